"""Tables of sixty records for every way in which shape functions are fitted."""

import numpy as np

from dpcore import REPLACE_ONE, Answer, Categories, Domain, Range
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain import Classes
from dpcore.domain.domain import People
from dpcore.learners.bounds.sum import SumBound
from dpcore_attacks.attacks.setting import Case
from dpcore_tables.shape_functions import ShapeFunctions

COLUMNS = {"a": Range(-1, 1), "c": Categories(("x", "y", "z")), "b": Range(0, 5)}
TARGETS = {
    "number": Range(0, 10),
    "two": Classes(("no", "yes")),
    "several": Classes(("p", "q", "r")),
}
BUDGETS = {
    "number, small": 1.0,
    "number, shifted": 8.0,
    "number": 50.0,
    "number, jumps": 400.0,
    "number, tables": 400.0,
    "two, small": 25.0,
    "several, small": 2.0,
    "two, small, weighted": 25.0,
    "two": 100.0,
    "several": 100.0,
    "number, small, weighted": 1.0,
    "number, jumps, weighted": 400.0,
    "several, weighted": 100.0,
    "number, poisson": 50.0,
    "number, gamma, weighted": 50.0,
    "number, quantile": 50.0,
    "number, small, quantile": 1.0,
}
"""Mu: 1 makes a small table, 8 one whose fit is shifted at its end, 50 one with Gram matrices. Of
classes 2 makes a small one, 25 a small one whose categories are counted, of persons too, and 100
one with Gram matrices, whose scores are mixed at its end. 400 makes one whose jumps are looked for,
and whose declared pairs are tried as tables."""

LOSSES = ("poisson", "gamma", "quantile")


def case_of(kind, relation, records):
    """The case of one person's `records`, or of single records where that is 0."""
    people = People(column="id", records=records) if records else None
    public = relation is REPLACE_ONE and not records
    count = {"exact": 60} if public else {"limit": 60}
    target = TARGETS[kind.split(",")[0]]
    words = kind.split(", ")
    columns = {**COLUMNS, "w": Range(0, 4)} if "weighted" in words else COLUMNS
    facts = Domain(columns=columns, target="y", labels=target, people=people, **count)
    loss = next((word for word in words if word in LOSSES), "squared")
    pairs = (("a", "c"), ("c", "b")) if "tables" in words else None
    weight = "w" if "weighted" in words else None
    return Case(
        learner=ShapeFunctions(loss=loss, weight=weight, pairs=pairs),
        bound=SumBound(),
        domain=facts,
        adjacency=relation.of_persons(records) if records else relation,
        mu=BUDGETS[kind],
    )


def queries_of(case):
    """The last query of every kind, to which answers lead that are 0, but for the number of
    records, the proportions of several classes, of which two are equally frequent, and residuals,
    which are small, so that the clip is."""
    state, found, numbers = case.learner.start(case.public), {}, {}
    while (query := case.learner.ask(state)) is not None:
        found[query.name] = of_a_line(query) if query.name.startswith("slope") else query
        numbers[query.name] = numbers.get(query.name, 0) + 1
        value = np.zeros(query.shape)
        if query.name == "count":
            value[:] = 60.0
        elif query.name == "label" and len(value) > 1:
            value[:2] = 30.0
        elif query.name.endswith("residuals"):
            value[0] = 60.0
        answer = Answer(
            query=query,
            number=numbers[query.name],
            value=value,
            mechanism=Gaussian(noise_multiplier=1.0),
        )
        state = case.learner.update(state, answer)
    return found


def of_a_line(query):
    """The same query, were the fit a straight line of the first number only."""
    is_line = (query.args["terms"] == [0, 0, -1, -1]).all(axis=1)
    weights = np.append(0.0, 0.1 * is_line)[:, None]  # far beyond the reach, and below a clip
    return query.with_args({**query.args, "weights": weights})
