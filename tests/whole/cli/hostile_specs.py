"""A corpus of broken specs, as (name, bytes): each must be refused where it is wrong."""

import copy

import yaml

FULL = {
    "dpcore": 1,
    "data": {
        "source": "people.csv",
        "csv": {"delimiter": ",", "decimal": "."},
        "target": "y",
        "domain": {
            "records": 40,
            "columns": {
                "a": [-1, 1],
                "b": {"range": [-1, 1], "default": 0},
                "c": ["no", "yes"],
                "d": {"categories": [1, 2, "x"], "default": 2},
            },
            "target": [-1, 1],
            "norm": 1.5,
        },
    },
    "adjacency": "replace_one",
    "budget": {"epsilon": 2, "delta": 1e-5},
    "release": {
        "name": "model",
        "share": 1,
        "learner": {
            "name": "random_features.ridge",
            "features": {"name": "cosines", "count": 6, "bandwidth": 2},
            "regularization": 0.5,
        },
        "bound": "random_features.ridge_replace_one",
        "mechanism": {"coefficients": {"name": "gaussian", "share": 2}},
    },
    "accountant": "auto",
    "coins": {"public": 7},
    "evaluate": {"holdout": 0.25, "metrics": ["mse"]},
    "on_invalid": "refuse",
    "sealed": False,
    "accept_assumptions": [],
}

WORDS = ["x", [], {}, True, None, [1, 2, 3], {"x": 1}]

# What each path cannot be, beyond what `everywhere` generates.
IMPOSSIBLE = {
    "dpcore": [0, 2, "1", 1.5],
    "data.csv.delimiter": ["", ",,", 1],
    "data.csv.decimal": ["x", ""],
    "data.domain.records": [0, -1, 1.5, "many", {"at_most": 0}, {"atmost": 5}, {"at_most": 9}],
    "data.domain.columns.a": [[1], [1, 1], [2, 1], [1, 2, 3], ["x"], ["x", "x"], ["x", 1], "range"],
    "data.domain.columns.b.range": [[0], [1, 0], "x", [0, "x"], [0, 1, 2]],
    "data.domain.columns.b.default": ["x", 7, [0]],
    "data.domain.columns.d.categories": [[1], [1, 1], [1, "1"], "x", [[1], [2]]],
    "data.domain.columns.d.default": [3, [1]],
    "data.domain.target": [[1, 1], [1, 0], [0], ["a", "b"], 5],
    "data.domain.norm": [0, -1, "x", [1]],
    "adjacency": [
        "replace",
        "bounded",
        {"replace_features": {"radius": 0, "label": "free"}},
        {"replace_features": {"radius": 1}},
        {"replace_features": {"radius": 1, "label": "maybe"}},
        "add_remove",
    ],
    "budget": [{}, {"delta": 1e-5}, {"epsilon": 1, "mu": 1, "delta": 0.1}, {"mu": 1}],
    "budget.epsilon": [0, -1, "one", [1]],
    "budget.delta": [1, -1e-9, 2, "x"],
    "release.name": ["a b", "a.b", "", "evaluation", 3],
    "release.share": [0, -1, "x"],
    "release.learner": ["random_features.rige", "gaussian", "identity", {"nme": "x"}],
    "release.learner.name": ["", "ridge", "random_features", 7],
    "release.learner.regularization": [0, -1, "x", [1]],
    "release.learner.features": ["cosine", "gaussian", {"name": "cosines"}, {"count": 5}],
    "release.learner.features.count": [0, -3, 2.5, "six"],
    "release.learner.features.bandwidth": [0, -1, "wide"],
    "release.bound": ["random_features.t4", "gaussian", {"name": "twice_add_remove"}],
    "release.mechanism": [
        "gauss",
        "exponential",
        "random_features.ridge",
        {"name": "gaussian", "noise_multiplier": -1},
        {"name": "gaussian", "noise_multiplier": 0},
        {"name": "gaussian", "noise_std": 3},
        {"other": "gaussian"},
        {"coefficients": {"name": "gaussian", "share": 0}},
        {"coefficients": {"name": "gaussian", "share": "x"}},
        {"coefficients": {"share": 2}},
    ],
    "accountant": ["rdp", {"name": "auto"}, 3],
    "coins": [{}, {"secret": 1}],
    "coins.public": [-1, 1.5, "x"],
    "evaluate.holdout": [0, 1, -0.1, 0.001, "x"],
    "evaluate.metrics": [[], ["r2"], "mse", [1]],
    "on_invalid": ["drop", "ignore"],
    "sealed": ["yes", 1, True],
    "accept_assumptions": ["no_failure", ["tame"], [1]],
}

REQUIRED = [
    "dpcore",
    "data",
    "data.source",
    "data.target",
    "data.domain",
    "data.domain.records",
    "data.domain.columns",
    "data.domain.target",
    "adjacency",
    "budget",
    "release",
    "release.learner",
    "release.mechanism",
    "release.learner.regularization",
    "release.learner.features",
]

MAPPINGS = ["", "data", "data.csv", "data.domain", "data.domain.columns.b", "budget", "release",
            "release.learner", "release.learner.features", "coins", "evaluate"]  # fmt: skip

TEXTS = {
    "empty": b"",
    "blank": b"\n\n   \n",
    "comment": b"# nothing\n",
    "null": b"~\n",
    "list": b"- 1\n",
    "text": b"hello\n",
    "tab": b"dpcore: 1\n\tdata: 2\n",
    "twice": b"dpcore: 1\ndpcore: 1\n",
    "anchor": b"dpcore: &a 1\n",
    "alias": b"dpcore: *a\n",
    "recursive": b"&a [*a]\n",
    "merge": b"<<: {dpcore: 1}\n",
    "tag": b"dpcore: !!int 1\n",
    "python-tag": b"!!python/object/apply:os.system ['true']\n",
    "two-documents": b"--- {dpcore: 1}\n--- {dpcore: 1}\n",
    "directive": b"%YAML 1.1\n---\ndpcore: 1\n",
    "nan": b"dpcore: .nan\n",
    "infinity": b"dpcore: -.inf\n",
    "overflow": b"dpcore: 1e999\n",
    "huge-integer": b"dpcore: " + b"9" * 10_000 + b"\n",
    "open-list": b"dpcore: [1\n",
    "open-quote": b"dpcore: '1\n",
    "open-brace": b"{dpcore: 1\n",
    "stray-brace": b"}\n",
    "bad-indent": b"dpcore:\n    a: 1\n  b: 2\n",
    "colons": b"dpcore: 1: 2\n",
    "list-key": b"? [1]\n: 2\n",
    "empty-key": b"'': 2\n",
    "latin-1": "dpcore: 1 # é\n".encode("latin-1"),
    "utf-16": "dpcore: 1\n".encode("utf-16"),
    "null-byte": b"dpcore: 1\x00\n",
    "control": b"dpcore: \x07\n",
    "binary": bytes(range(256)),
    "elf": b"\x7fELF\x02\x01\x01" + b"\x00" * 64,
    "deep-list": b"[" * 5000,
    "deep-map": b"{a: " * 5000,
    "deep-block": b"".join(b" " * i + b"a:\n" for i in range(200)),
    "huge": b"# " + b"x" * (1 << 21),
    "many-keys": b"".join(b"k%d: 1\n" % i for i in range(3000)),
    "json-lines": b'{"dpcore": 1}\n{"dpcore": 1}\n',
}


def put(spec, path, value):
    spec = copy.deepcopy(spec)
    *steps, last = path.split(".")
    inner = spec
    for step in steps:
        inner = inner[step]
    inner[last] = value
    return spec


def drop(spec, path):
    spec = copy.deepcopy(spec)
    *steps, last = path.split(".")
    inner = spec
    for step in steps:
        inner = inner[step]
    del inner[last]
    return spec


def dump(spec):
    return yaml.safe_dump(spec, sort_keys=False).encode()


def corpus():
    for name, text in TEXTS.items():
        yield f"text-{name}", text
    for path in REQUIRED:
        if path != "release.mechanism":  # each query then has the usual one
            yield f"without-{path}", dump(drop(FULL, path))
        if path not in ("release.learner", "release.mechanism"):
            yield f"null-{path}", dump(put(FULL, path, None))
    for path in MAPPINGS:
        where = f"{path}.surprise" if path else "surprise"
        yield f"unknown-{where}", dump(put(FULL, where, 1))
    for path, values in IMPOSSIBLE.items():
        for number, value in enumerate(values):
            yield f"impossible-{path}-{number}", dump(put(FULL, path, value))
    for path in ("data", "data.domain", "data.domain.columns", "budget", "release", "evaluate"):
        for number, value in enumerate(("x", [], 5, True)):
            yield f"type-{path}-{number}", dump(put(FULL, path, value))
    both = {**FULL, "releases": [FULL["release"]]}
    yield "release-and-releases", dump(both)
    several = drop(FULL, "release")
    yield "releases-empty", dump({**several, "releases": []})
    yield "releases-alike", dump({**several, "releases": [FULL["release"]] * 2})
    for number, sweep in enumerate(
        (
            {},
            {"grid": {}, "budget": "divided"},
            {"grid": {"release.learner.regularization": []}, "budget": "divided"},
            {"grid": {"release.learner.regularization": 5}, "budget": "divided"},
            {"grid": {"release.learner.nothing.there": [1]}, "budget": "divided"},
            {"grid": {"budget.epsilon": [1]}, "budget": "divided"},
            {"grid": {"release.learner.regularization": [0.1]}, "budget": "both"},
            {"grid": {"release.learner.regularization": [0.1, 0]}, "budget": "each"},
            {"grid": {"release.learner.regularization": [1] * 1001}, "budget": "each"},
            {"grid": {"releases.0.share": [1]}, "budget": "each"},
        )
    ):
        yield f"sweep-{number}", dump({**FULL, "sweep": sweep})
