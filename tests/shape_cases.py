"""Tables of sixty records for every way in which shape functions are fitted."""

from dpcore import REPLACE_ONE, Categories, Classes, Domain, Range
from dpcore.domain.people import People
from dpcore.learning.bounds.sum import SumBound
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
    "two": 50.0,
    "several": 50.0,
}
"""Mu: 1 makes a small table, 8 one whose fit is shifted at its end, 50 one with Gram
matrices, 400 one whose jumps are looked for."""


def case_of(kind, relation, records):
    """The case of one person's `records`, or of single records where that is 0."""
    people = People(column="id", records=records) if records else None
    public = relation is REPLACE_ONE and not records
    count = {"exact": 60} if public else {"limit": 60}
    target = TARGETS[kind.split(",")[0]]
    facts = Domain(columns=COLUMNS, target="y", labels=target, people=people, **count)
    return Case(
        learner=ShapeFunctions(),
        bound=SumBound(),
        domain=facts,
        adjacency=relation.of_persons(records) if records else relation,
        mu=BUDGETS[kind],
    )
