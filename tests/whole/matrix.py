"""Writes docs/records/matrix.md: whether every learner takes every mechanism, and if not, why not.

    python tests/whole/matrix.py

Nothing here decides: each mark is what `price` answers to a small example of the two, with the
noise left free, under replace-one and under add/remove. What the page says is also data for
`dpcore describe`, with what else the summaries of packaged components say.
"""

import json
import re
from pathlib import Path

import attrs

from dpcore import (
    ADD_REMOVE,
    Domain,
    Range,
    Registry,
    Release,
    Request,
    price,
)
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Categories, Texts
from dpcore.registry.kinds import COMPONENTS, LEARNER, MECHANISM
from dpcore_attacks import component_summary, fitting
from dpcore_models.features.cos_sin import CosSin

from whole import acceptance

PAGE = Path(__file__).parents[2] / "docs" / "records" / "matrix.md"
DATA = Path(fitting.__file__).with_name("matrix.json")
RELATIONS = fitting.RELATIONS
BUDGET = fitting.BUDGET
RECORDS = 200
NTK = {"regularization": 500.0, "neurons": 8}
LEARNERS = {
    "explainable_boosting.printed": {"rounds": 2},
    "hessian_mixing.eigenvalue": {},
    "linear.chosen_ridge": {"features": CosSin(count=4)},
    "linear.logistic": {},
    "ntk.printed": {**NTK, "eta_min": 0.1},
    "ntk.regression": NTK,
    "statistics.bounded_mean": {"column": "a"},
    "statistics.group_errors": {"by": ("g",)},
    "statistics.group_parity": {"by": ("g",)},
    "statistics.group_rates": {"by": ("g",), "calibration": 4},
    "statistics.prediction_interval": {"points": 8},
    "statistics.private_groups": {"column": "town", "mean_of": "a"},
    "statistics.private_keys": {"column": "town"},
    "statistics.ratio": {"column": "a", "over": "b"},
}
MARKS = {(True, True): "yes", (True, False): "r", (False, True): "a", (False, False): ""}
INTRODUCTION = """# Learners and mechanisms

Look up here whether a learner takes a mechanism. A cell says what a plan answers to the two, at a
budget of epsilon 3 and delta 1e-5, with the noise left for the plan to find:

* `yes`: it has a price under replace-one and under add/remove.
* `r`, `a`: it has a price under replace-one only, or under add/remove only.
* `if`: the price rests on assumptions that the spec must accept.
* A number: it has none, for the [reason](#why-not) with that number.

In the column *left out* the release names no mechanism, so that each query has the usual one. A
mechanism that fits some of a learner's queries answers those, and the usual ones answer the rest.
[What is accepted](acceptance.md) says the same of each bound.

`tests/whole/matrix.py` writes this page, and a test compares it with the plan.
"""
OF_CLASSES = {"linear.logistic", "statistics.group_rates"}
OF_A_MODEL = {
    "statistics.group_errors",
    "statistics.group_parity",
    "statistics.group_rates",
    "statistics.prediction_interval",
}


def example(name, registry):
    """A small learner of a name."""
    if name == "best_of":
        candidate = registry.component(LEARNER, "linear.sufficient_statistics")
        candidates = tuple(candidate(features=CosSin(count=n)) for n in (2, 4))
        return registry.component(LEARNER, name)(candidates=candidates)
    fields = {**acceptance.LEARNERS, **LEARNERS}[name]
    return registry.component(LEARNER, name)(**fields)


def domain(name, adjacency, records=RECORDS):
    """The columns that the learner needs, and the number of records that the relation publishes."""
    # What a ratio divides by is never below 0.
    columns = {"a": Range(-1, 1), "b": Range(0 if name == "statistics.ratio" else -1, 1)}
    if name.startswith("statistics.private_"):
        columns["town"] = Texts(12)
    exact, limit = (None, records) if adjacency is ADD_REMOVE else (records, None)
    groups = {"g": Categories(("p", "q"))} if name in OF_A_MODEL else {}
    labels = Classes(("no", "yes")) if name in OF_CLASSES else Range(-1, 1)
    return Domain(
        columns=columns, target="y", labels=labels, exact=exact, limit=limit, groups=groups
    )


def plan_of(name, mechanism, adjacency, registry):
    """The plan of the pair.

    Raises:
        DpcoreError: it has no price.
    """
    return price(request_of(name, mechanism, adjacency, registry), registry=registry)


def request_of(name, mechanism, adjacency, registry, records=RECORDS):
    """A request for the pair."""
    learner = example(name, registry)
    releases = [Release(learner=learner, mechanism=mechanism)]
    fields = {}
    if name in OF_A_MODEL:
        model = example("linear.sufficient_statistics", registry)
        gaussian = registry.component(MECHANISM, "gaussian")()
        releases = [
            Release(learner=model, mechanism=gaussian, name="model"),
            Release(learner=learner, mechanism=mechanism, of="model"),
        ]
        fields = {"holdout": 0.25}
    return Request.of(
        domain=domain(name, adjacency, records),
        adjacency=adjacency,
        budget=BUDGET,
        releases=releases,
        **fields,
    )


def instance(name, registry):
    """A mechanism of a name, with its noise left free; None of none."""
    if not name:
        return None
    # what the learner's query says of this one fits it better than the page of bounds
    fields = {} if name == "gaussian_sampling" else acceptance.MECHANISMS.get(name, {})
    return registry.component(MECHANISM, name)(**fields)


def pair(name, title, registry):
    """How a learner fits with a mechanism; "" where none is named, which labels by itself may
    need.
    """
    mechanism = instance(title, registry)
    relations = RELATIONS if title else fitting.LEARNER_RELATIONS
    answers = {
        str(relation): fitting.answer(request_of(name, mechanism, relation, registry), registry)
        for relation in relations
    }
    priced = [relation for relation, answer in answers.items() if answer.plan is not None]
    assumptions = [text for relation in priced for text in answers[relation].assumptions]
    return fitting.Fit(
        relations=tuple(priced),
        assumptions=tuple(dict.fromkeys(assumptions)),
        reason="" if priced else answers[str(RELATIONS[0])].reason,
    )


def pairs(registry):
    """{learner: {mechanism: Fit}}, "" where none is named."""
    titles = ["", *registry.names(MECHANISM)]
    return {
        name: {title: pair(name, title, registry) for title in titles}
        for name in registry.names(LEARNER)
    }


def summaries(registry, matrix):
    """{kind: {component: what its summary says also the pairs}}."""
    describe = component_summary.describer(registry, matrix)
    return {
        kind.name: {name: facts(describe(name, kind)) for name in registry.names(kind)}
        for kind in COMPONENTS
    }


def facts(summary):
    """What is priced of a summary, as plain data; the rest is read from its class."""
    names = ("norms", "relations", "samplings", "example_name")
    plain = {name: getattr(summary, name) for name in names}
    if summary.kind not in (LEARNER.name, MECHANISM.name):
        plain["fits"] = [attrs.asdict(fit) for fit in summary.fits]
    if not summary.example_name:
        plain["example"] = summary.example
    return plain


def data(found, registry):
    """The pairs and the summaries as JSON, one line each."""
    matrix = fitting.Matrix(pairs=found)
    plain = {
        name: {title: without_defaults(fit) for title, fit in row.items()}
        for name, row in found.items()
    }
    parts = {"pairs": plain, "summaries": summaries(registry, matrix)}
    blocks = []
    for part, groups in parts.items():
        lines = [
            f"  {json.dumps(group)}: {{\n"
            + ",\n".join(
                f"   {json.dumps(name)}: {json.dumps(item)}" for name, item in items.items()
            )
            + "\n  }"
            for group, items in groups.items()
        ]
        blocks.append(f" {json.dumps(part)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def without_defaults(fit):
    """What a fit says, without what it leaves empty."""
    return {key: value for key, value in attrs.asdict(fit).items() if value}


def rows(found):
    """(learner, {mechanism: mark}, {mechanism: reason}), "" where none is named."""
    for name, fits in found.items():
        marks, reasons = {}, {}
        for title, fit in fits.items():
            marks[title] = MARKS[tuple(str(each) in fit.relations for each in RELATIONS)]
            if marks[title] == "":
                reasons[title] = general(fit.reason)
            elif fit.assumptions:
                marks[title] += " if"
        yield name, marks, reasons


def general(reason):
    """A reason without what differs from learner to learner."""
    reason = re.sub(r"no bound of \w+ gives a claim: ", "no bound gives a claim: ", reason)
    reason = re.sub(r"the query '[^']*'", "the query", reason)
    return re.sub(r"epsilon=[0-9.e+-]+", "epsilon", reason).replace("\n", " ")


def page(found):
    """The page as text, from what `rows` yields."""
    numbers, lines = {}, []
    titles = list(found[0][1])
    for number, title in enumerate(titles[1:], start=1):
        lines.append(f"{number}. `{title}`")
    columns = ["left out", *map(str, range(1, len(titles)))]
    lines += ["", f"| learner | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for name, marks, reasons in found:
        cells = [
            mark or f"({numbers.setdefault(reasons[title], len(numbers) + 1)})"
            for title, mark in marks.items()
        ]
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    priced = sum(bool(mark) for _, marks, _ in found for title, mark in marks.items() if title)
    pairs = len(found) * (len(titles) - 1)
    lines += ["", f"{priced} of {pairs} pairs have a price.", "", "## Why not", ""]
    lines += [f"{number}. {reason}" for reason, number in numbers.items()]
    return "\n".join([INTRODUCTION, *lines, ""])


if __name__ == "__main__":
    answers = pairs(Registry.default())
    PAGE.write_text(page(list(rows(answers))))
    DATA.write_text(data(answers, Registry.default()))
