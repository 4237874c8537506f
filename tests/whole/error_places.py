"""A corpus of errors: what is wrong, where it must be reported, and in which words.

The mark § is before the place that a message must begin with (at any of them, where several
are as good); it is taken out before the file is written.
"""

import attrs

MARK = "§"
# Words of libraries and of Python, which no message may hold.
FOREIGN = (
    "Object missing", "Expected `", "$.", "Invalid enum", "regex", "__init__", "keyword",
    "iterable", "NoneType", "Traceback", "internal error", "KeyError", "FileNotFoundError",
    "ValueError", "Value error", "Input should be", "is spent",
)  # fmt: skip

HEAD = """\
dpcore: 1
data:
  source: people.csv
  target: y
  domain:
    records: 40
    columns: {a: [-1, 1], b: [-1, 1]}
    target: [-1, 1]
adjacency: replace_one
budget: {epsilon: 2, delta: 1e-5}
"""
RIDGE = "{name: random_features.ridge, features: identity, regularization: 0.5}"
KERNEL = "{name: kernel_ridge.ridge, kernel: gaussian, bandwidth: 1, regularization: 0.3}"
BEST = """
    name: best_of
    candidates:
      - linear.staged_gradient
      - {name: linear.clipped_gradient, features: {name: linear.affine, features: identity}, clip: 1}"""  # noqa: E501
NTK = "{name: ntk.printed, neurons: 8, regularization: 10, eta_min: 7e-3}"
NTK_NOISE = (
    "{kernel: {name: ntk.gram_sampling, samples: 43}, labels: {name: gaussian, "
    "noise_multiplier: 99}, inputs: {name: truncated_laplace, noise_scale: 2e-6, truncation: 1e-3}}"
)
PICK = "{fits: gaussian, choice: permute_and_flip}"
EVALUATION = "evaluate: {holdout: 0.25, metrics: [mse], private: "


def release(learner=RIDGE, mechanism="gaussian", more=""):
    return f"{HEAD}release:\n  learner: {learner}\n  mechanism: {mechanism}\n{more}"


def releases(first, second, more=""):
    """Two releases, named m and k, as flow mappings without their braces."""
    return f"{HEAD}releases:\n  - {{name: m, {first}}}\n  - {second}\n{more}"


def put(text, *changes):
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def head(*changes):
    return put(release(), *changes)


def metrics(text, holdout="0.25"):
    return release(more=f"evaluate: {{holdout: {holdout}, metrics: {text}}}\n")


def sweep(grid, budget="divided"):
    return release(more=f"sweep: {{grid: {{{grid}}}, budget: {budget}}}\n")


STAGED = "learner: linear.staged_gradient, mechanism: gaussian"
PROMISED = put(
    release(NTK, NTK_NOISE),
    ("target: [-1, 1]", "target: [p, q, r]"),
    ("replace_one", "{replace_features: {radius: 1e-6, label: fixed}}"),
    ("1e-5", "4e-3"),
)
UNCOUNTED = [("records: 40", "records: {at_most: 50}"), ("replace_one", "add_remove")]
BALL = "{name: random_features.ball_ridge, features: identity, total_regularization: 9, radius: 1}"


@attrs.frozen
class Entry:
    """A file or a command that is wrong.

    Args:
        text: Of the file; with a mark, where the message must begin.
        words: All of them must be reported.
        code: Exit codes that are right.
        never: Next to `FOREIGN`.
        command: What is run on the file.
    """

    text: str
    words: tuple[str, ...] = ()
    code: int | tuple[int, ...] = 2
    never: tuple[str, ...] = ()
    command: tuple[str, ...] = ("check", "s.yaml")


def run(text, *words, **changes):
    return Entry(text, words, command=("run", "s.yaml"), **changes)


SPECS = {
    "key of the spec": Entry(head(("release:", "§relase:")), ("did you mean 'release'?",)),
    "key of the budget": Entry(head(("epsilon: 2", "§eps: 2")), ("budget", "'epsilon'?")),
    "budget without its delta": Entry(
        head(("{epsilon: 2, delta: 1e-5}", "§{mu: 1}")), ("budget", "delta")
    ),
    "delta of 1": Entry(head(("1e-5", "§1")), ("budget", "delta", "1.0")),
    "missing key": Entry(f"§{head(('adjacency: replace_one', ''))}", ("'adjacency' is missing",)),
    "key of the adjacency": Entry(
        head(("replace_one", "{§replace_feature: {radius: 1, label: free}}")),
        ("adjacency", "'replace_features'?"),
    ),
    "count that is private": Entry(
        head(("records: 40", "records: §{at_most: 50}")), ("exact number of records",)
    ),
    "columns of the wrong order": Entry(
        head(("a: [-1, 1]", "a: §[1, -1]")), ("columns.a", "write [-1, 1]")
    ),
    "sealed by yes": Entry(release(more="sealed: §yes\n"), ("sealed", "true or false", "'yes'")),
    "sealed and refusing": Entry(
        release(more="sealed: true\non_invalid: §refuse\n"), ("on_invalid", "project")
    ),
    "mechanism's name": Entry(
        release(mechanism="§gausian"), ("release.mechanism", "did you mean 'gaussian'?")
    ),
    "candidate's name": Entry(
        release(put(BEST, ("- linear.staged_gradient", "- §linear.staged_gradent")), PICK),
        ("release.learner.candidates.0", "did you mean 'linear.staged_gradient'?"),
    ),
    "candidate's field": Entry(
        release(put(BEST, ("clip: 1", "§clipp: 1")), PICK),
        ("release.learner.candidates.1", "did you mean 'clip'?"),
    ),
    "candidate that lacks a field": Entry(
        release("{name: best_of, candidates: [linear.staged_gradient, §linear.clipped_gradient]}"),
        ("release.learner.candidates.1", "'features' is missing"),
    ),
    "share in a mechanism map": Entry(
        release(mechanism="{coefficients: {name: gaussian, share: §-1}}"),
        ("release.mechanism.coefficients.share", "got -1"),
    ),
    "sweep of a place that is not": Entry(
        sweep("§releases.3.share: [1, 2]"), ("sweep.grid", "leads nowhere")
    ),
    "sweep's value": Entry(
        sweep("release.learner.regularization: [0.1, §0]"), ("release.learner", "> 0")
    ),
    "function run without points": run(
        put(release(KERNEL, "gaussian_process"), ("  learner", "  §learner")), "add predictions_at"
    ),
    "sound claim reproduced": Entry(
        put(release(), ("  learner", "  §learner")),
        ("run it instead",),
        command=("reproduce", "s.yaml"),
    ),
    "record outside its column": run(
        head(("b: [-1, 1]", "b: [-1, 0]")), "'b'", "[-1, 0]", code=5, never=("0.1",)
    ),
    # a name that is not in the list
    "adjacency": Entry(
        head(("replace_one", "§replace_on")), ("adjacency:", "did you mean 'replace_one'?")
    ),
    "label of an adjacency": Entry(
        head(("replace_one", "{replace_features: {radius: 1, label: §fred}}")), ("fixed", "free")
    ),
    "records in words": Entry(head(("40", "§many")), ("records:", "private", "at_most")),
    "records in halves": Entry(head(("40", "§40.5")), ("whole number", "private", "at_most")),
    "metric no one knows": Entry(metrics("[§r2]"), ("evaluate.metrics", "mae", "mse", "rmse")),
    "metric mistyped": Entry(metrics("[mse, §rsme]"), ("evaluate.metrics", "mean 'rmse'?")),
    "invalid records": Entry(
        release(more="on_invalid: §drop\n"), ("on_invalid", "refuse", "project")
    ),
    "sweep's budget": Entry(
        sweep("release.learner.regularization: [1]", "§divide"), ("divided", "each")
    ),
    "version": Entry(head(("dpcore: 1", "dpcore: §2")), ("dpcore", "needs 1")),
    "decimal sign": Entry(
        head(("  target: y", "  csv: {decimal: §;}\n  target: y")), ("csv.decimal", "'.'", "','")
    ),
    "learner's word": Entry(
        release(put(KERNEL, ("gaussian", "§gausian")), "gaussian_process"),
        ("release.learner.kernel", "did you mean 'gaussian'?"),
    ),
    "mechanism's word": Entry(
        release(mechanism="{name: gaussian, noise: §flat}"), ("mechanism.noise", "grid", "float")
    ),
    # a pattern or a bound in another library's words
    "release's name": Entry(
        release(more="  name: §my model\n"), ("release.name", "letters")
    ),
    "ledger's name": Entry(release(more="ledger: §my people\n"), ("ledger", "letters")),
    "share below zero": Entry(
        release(more="  share: §-1\n"), ("release.share", "got -1")
    ),
    "holdout above one": Entry(metrics("[mse]", "§1.5"), ("evaluate.holdout", "got 1.5")),
    # parts that do not fit together
    "assumption that nothing needs": Entry(
        release(more="accept_assumptions: [§foo]\n"), ("accept_assumptions", "'foo'")
    ),
    "assumption mistyped": Entry(
        f"{PROMISED}accept_assumptions: [§eta_mim]\n", ("did you mean 'eta_min'?",)
    ),
    "mechanism of another norm": Entry(
        release(mechanism="§exponential"), ("release.mechanism", "'coefficients'", "l2")
    ),
    "mechanism of the second release": Entry(
        releases(STAGED, "{name: k, learner: linear.staged_gradient, mechanism: §exponential}"),
        ("releases.1.mechanism",),
    ),
    "mechanism in a sweep": Entry(
        sweep("release.mechanism: [gaussian, §exponential]"),
        ("release.mechanism", "'coefficients'"),
    ),
    "parameters by a process": Entry(
        release(mechanism="§gaussian_process"), ("release.mechanism", "'coefficients'")
    ),
    "function by single noise": Entry(
        release(KERNEL, "§gaussian"), ("release.mechanism", "gaussian_process")
    ),
    "query mistyped": Entry(
        release(mechanism="{§coeficients: gaussian}"), ("mean 'coefficients'?", "release.mechanism")
    ),
    "query's share mistyped": Entry(
        release(mechanism="{§coeficients: {name: gaussian, share: 2}}"), ("mean 'coefficients'?",)
    ),
    "group of queries mistyped": Entry(
        release(BEST, "{§fts: gaussian, choice: permute_and_flip}"), ("did you mean 'fits'?",)
    ),
    "query without a mechanism": Entry(
        release(BEST, "§{fits: gaussian}"), ("release.mechanism", "'choice'")
    ),
    "choice by the wrong mechanism": Entry(
        release(BEST, "{fits: gaussian, choice: §gaussian}"), ("release.mechanism.choice",)
    ),
    "points for parameters": Entry(
        release(more="  §predictions_at: §points.csv\n"),
        ("release.predictions_at", "functions"),
    ),
    "one function without points": Entry(
        releases(
            f"learner: {KERNEL}, mechanism: gaussian_process, predictions_at: points.csv",
            f"§{{name: k, §learner: §{KERNEL}, mechanism: gaussian_process}}",
        ),
        ("releases.1", "predictions_at"),
    ),
    "paid evaluation at a function": Entry(
        put(
            release(KERNEL, "gaussian_process", f"  predictions_at: p.csv\n{EVALUATION}3}}\n"),
            ("private: 3", "§private: §{epsilon: 1}"),
        ),
        ("evaluate.private",),
    ),
    "reserved name": Entry(
        release(more="  name: §evaluation\n"), ("release.name",)
    ),
    "name given twice": Entry(
        releases(STAGED, f"{{name: §m, {STAGED}}}"), ("releases.1.name", "'m'")
    ),
    "one release and several": Entry(
        release(more=f"§releases: §[{{{STAGED}}}]\n"), ("'release'", "'releases'")
    ),
    "metric among others": Entry(
        put(metrics("[accuracy, §mse]"), ("target: [-1, 1]", "target: [no, yes]")), ("accuracy",)
    ),
    "holdout too small": Entry(metrics("[mse]", "§0.001"), ("evaluate.holdout", "40")),
    "sweep's last key": Entry(
        sweep("§release.learner.regularisation: [0.1, 1]"), ("mean 'regularization'?",)
    ),
    "sweep's inner key": Entry(
        sweep("§release.lerner.regularization: [0.1, 1]"), ("did you mean 'learner'?",)
    ),
    "learner of the second release": Entry(
        releases(STAGED, "{name: k, learner: §linear.staged_gradent, mechanism: gaussian}"),
        ("releases.1.learner", "mean 'linear.staged_gradient'?"),
    ),
    "key of the second release": Entry(
        releases(STAGED, "{name: k, §lerner: linear.staged_gradient, mechanism: gaussian}"),
        ("releases.1", "did you mean 'learner'?"),
    ),
    "bound of another learner": Entry(
        release(more="  bound: §random_features.ball_ridge\n"),
        ("release.bound", "random_features.ridge"),
        never=("BallRidgeLearner",),
    ),
    "list for one component": Entry(
        release(put(RIDGE, ("identity", "§[identity]"))), ("release.learner.features",)
    ),
    # what is refused when it is priced or run
    "assumption to be accepted": Entry(
        put(PROMISED, (NTK, f"§{NTK}")), ("eta_min", "accept_assumptions", "release.learner"), 3
    ),
    "look beyond the budget": Entry(
        release(more=f"{EVALUATION}{{epsilon: §3}}}}\n"), ("evaluate.private.epsilon", "budget"), 3
    ),
    "look where the count is private": Entry(
        put(release(BALL, more=f"{EVALUATION}§{{epsilon: §0.1}}}}\n"), *UNCOUNTED),
        ("evaluate.private", "add_remove"),
        3,
    ),
    "noise beyond the budget": Entry(
        release(mechanism="§{name: gaussian, noise_multiplier: §0.1}"),
        ("release.mechanism", "budget"),
        3,
    ),
    "noise too wide to be drawn": Entry(
        release(mechanism="§{name: gaussian, noise_multiplier: §1e+18}"),
        ("release.mechanism", "wide"),
        (2, 3),
    ),
    "no delta for a Gaussian": Entry(
        head(("{epsilon: 2, delta: 1e-5}", "§{epsilon: §2}")), ("budget", "delta"), 3
    ),
    "no delta for a plan of steps": Entry(
        put(release("linear.staged_gradient"), ("{epsilon: 2, delta: 1e-5}", "§{epsilon: §2}")),
        ("budget", "delta"),
        3,
    ),
    "learner that needs the count": Entry(
        put(release(f"§{RIDGE}"), ("40", "{at_most: 50}"), ("replace_one", "§add_remove")),
        ("number of records",),
        3,
    ),
    "learner of two classes": Entry(
        put(release(f"§{RIDGE}"), ("target: [-1, 1]", "target: §[p, q, r]")), ("3 classes",), 3
    ),
    "accountant of another noise": Entry(
        release(mechanism="§l2_gamma", more="accountant: §gdp\n"),
        ("gdp", "l2_gamma"),
        3,
        never=("L2GammaEvent",),
    ),
    "ledger no one made": Entry(
        release(more="ledger: §people\n"), ("ledger:", "dpcore ledger create people")
    ),
    "sealed run rehearsed": Entry(
        release(more="sealed: §true\n"),
        ("--rehearsal",),
        command=("run", "s.yaml", "--rehearsal", "1"),
    ),
    "data set no one ships": run(
        head(("people.csv", "§sklearn:diabets")), "data.source", "mean 'diabetes'?", code=5
    ),
    "points that are missing": run(
        release(KERNEL, "gaussian_process", "  predictions_at: §none.csv\n"),
        "none.csv",
        code=5,
    ),
    "points without a column": run(
        release(KERNEL, "gaussian_process", "  predictions_at: p.csv\n"),
        "p.csv",
        "'b'",
        code=5,
    ),
    "more points than are paid for": run(
        release(
            KERNEL, "{name: per_query, questions: §1}", "  predictions_at: §points.csv\n"
        ),
        "2 points",
    ),
}  # fmt: skip


def places(text):
    """FILE:LINE:COLUMN of every mark; and the text without them."""
    found = []
    while MARK in text:
        before, _, after = text.partition(MARK)
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        found.append(f"s.yaml:{line}:{column}: ")
        text = before + after
    return tuple(found), text
