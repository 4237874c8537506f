"""Tables of many columns: an evaluation at curves of all numbers chooses those that the screen
fits.
"""

import attrs
import numpy as np
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE, Answer, Domain, Public, PublicRandomness, Range, Records
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.domain import People
from dpcore.encoding.columns import centre_labels
from dpcore.learners.bounds.sum import SumBound
from dpcore_attacks.attacks.given_pair import misfit
from dpcore_attacks.attacks.neighbours import Pair
from dpcore_attacks.attacks.setting import Case
from dpcore_tables.answers.queries import queries_of
from dpcore_tables.choice import first_terms
from dpcore_tables.layout import Term
from dpcore_tables.plan import CURVES, Plan
from dpcore_tables.shape_functions import ShapeFunctions

COLUMNS = {f"x{place}": Range(-1, 1) for place in range(60)}


def case_of(relation, records):
    """Sixty columns and as many records, with a budget that makes the paid evaluation clear."""
    people = People(column="id", records=records) if records else None
    public = relation is REPLACE_ONE and not records
    count = {"exact": 60} if public else {"limit": 60}
    return Case(
        learner=ShapeFunctions(),
        bound=SumBound(),
        domain=Domain(columns=COLUMNS, target="y", labels=Range(0, 10), people=people, **count),
        adjacency=relation.of_persons(records) if records else relation,
        mu=50.0 * max(records, 1),
    )


def evaluation_of(case):
    """The query of the paid evaluation, after answers of 0, small residuals and, if released, sixty
    records.
    """
    state = case.learner.start(case.public)
    while (query := case.learner.ask(state)) is not None and query.name != "look.gradient":
        value = np.zeros(query.shape)
        if query.name in ("count", "residuals"):
            value[0] = 60.0
        mechanism = Gaussian(noise_multiplier=1.0)
        answer = Answer(query=query, number=1, value=value, mechanism=mechanism)
        state = case.learner.update(state, answer)
    return query


@pytest.mark.parametrize("records", [0, 3], ids=lambda k: f"{k} records" if k else "one")
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
def test_one_row_with_opposite_residuals_reaches_the_bound_of_a_look(relation, records):
    case, times = case_of(relation, records), max(records, 1)
    planned_query = evaluation_of(case)
    (claim,) = [claim for query, claim in case.claims() if query.name == "look.gradient"]
    # Both functions are at their ends, so that the row is shortened to length 1.
    row = np.ones(60)
    others = 50 if case.domain.exact is None else 60 - times

    def table(label, count):
        rows, labels = [np.zeros(60)] * others + [row] * count, [0.0] * others + [label] * count
        return Records(features=np.array(rows), labels=np.array(labels))

    low, high = (float(end) for end in centre_labels(case.domain.labels, np.array([0.0, 10.0])))
    before = table(low, 0 if case.adjacency.membership else times)
    after = table(high, times)
    pair = Pair(before=before, after=after, changed=len(after) - times, count=times)
    assert misfit(pair, case) == ""
    sums = [
        case.learner.total_of(planned_query, side, case.public).floats() for side in (before, after)
    ]
    moved = float(np.linalg.norm(sums[1] - sums[0])) / claim.value
    assert 0.999 < moved <= 1.0


def plan_of(columns, count, edition=2, mu=0.27):
    facts = Domain(
        columns={f"x{place}": Range(-1, 1) for place in range(columns)},
        target="y", labels=Range(0, 1), exact=count,
    )  # fmt: skip
    return Plan.of(
        Public(domain=facts, randomness=PublicRandomness(1), mu=mu), None, edition=edition
    )


@pytest.mark.parametrize(
    ("columns", "count", "edition", "looked"),
    [
        (60, 20_000, 2, True),
        (60, 20_000, 1, False),  # as before 0.2.0
        (60, 8000, 2, False),  # an evaluation would be noise
        (10, 20_000, 2, False),  # the screen has room for all
    ],
)
def test_only_a_crowded_screen_of_enough_records_pays_for_a_look(columns, count, edition, looked):
    plan = plan_of(columns, count, edition)
    assert ("look.gradient" in plan.script()) is looked
    assert ("look.gradient" in {query.name for query in queries_of(plan)}) is looked
    assert sum(query.share for query in queries_of(plan)) == pytest.approx(1.0)


def test_the_strongest_curves_join_the_screen():
    plan = plan_of(120, 30_000)
    strengths = dict.fromkeys(plan.layout.curves(), -1.0)
    strong = Term(77, 2)
    terms = [term for term, _ in first_terms(plan, strengths | {strong: 1.0})]
    assert {Term(column, 0) for column in range(120)} < {*terms}
    assert terms.index(strong) == 120
    assert len(terms) == 120 + CURVES


def test_a_spec_of_before_keeps_its_rules():
    assert ShapeFunctions.earlier == {"0.2.0": {"edition": 1}}
    assert ShapeFunctions().edition == 2
    assert attrs.evolve(ShapeFunctions(), edition=1).edition == 1
    with pytest.raises(ValueError, match="edition"):
        ShapeFunctions(edition=3)
