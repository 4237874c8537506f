"""Counts of persons: against their definition, by brute force over all persons, and in words."""

import itertools
import math

import attrs
import numpy as np
import pytest

import dpcore
from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Categories,
    Domain,
    Public,
    PublicRandomness,
    Range,
    SecretRandomness,
)
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore.interval import NormalDistribution
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_attacks.laws.bounds.person_sums import person_sum_verdicts
from dpcore_statistics.count import Count
from dpcore_statistics.groups import GroupBy
from dpcore_statistics.histogram import Histogram
from dpcore_statistics.mean import Mean
from dpcore_statistics.running import Running
from dpcore_statistics.statistic import StatisticBound
from dpcore_statistics.tables import Table
from dpcore_statistics.total import Total
from dpcore_statistics.workload import Workload

from builders import price_learner
from statistics_checks import band

WARDS = ("a", "b", "c", "d")
OF = {"of": "persons"}
LEARNERS = {
    "count": (Count(**OF), lambda ward: 0, 1),
    "count where": (Count(where={"ward": ["a", "b"]}, **OF), lambda w: 0 if w in "ab" else None, 1),
    "histogram": (Histogram(column="ward", **OF), WARDS.index, 4),
    "group_by": (GroupBy(by=("ward",), **OF), WARDS.index, 4),
    "count by": (Count(by=("ward",), **OF), WARDS.index, 4),
    "two cells": (Histogram(column="x", edges=(0, 1, 2), **OF), lambda w: w in "cd", 2),
}


def domain(records):
    columns = {"ward": Categories(WARDS), "x": Range(0, 2)}
    return Domain(columns=columns, people=People(column="id", records=records))


def project(facts, wards, owners):
    """Records of these persons; x says the second half of the wards from the first."""
    x = [0.5 if ward in "ab" else 1.5 for ward in wards]
    made = project_table(facts, {"ward": list(wards), "x": x})
    return attrs.evolve(made, persons=np.array(owners, dtype=np.int32))


def counted(records_of_persons, cell, cells):
    """In each cell the number of persons with a record in it: the definition."""
    found = np.zeros(cells)
    for wards in records_of_persons:
        for number in {cell(ward) for ward in wards} - {None}:
            found[int(number)] += 1
    return found


def all_persons(most):
    return [
        wards
        for size in range(most + 1)
        for wards in itertools.combinations_with_replacement(WARDS, size)
    ]


@pytest.mark.parametrize("name", LEARNERS)
def test_every_person_counts_once_in_a_cell_however_many_records_are_in_it(name):
    learner, cell, cells = LEARNERS[name]
    facts = domain(3)
    public = Public(domain=facts, randomness=PublicRandomness(1), mu=1.0)
    (query,) = learner.queries(public)
    persons = [wards for wards in all_persons(3) if wards]
    pairs = [(w, owner) for owner, wards in enumerate(persons) for w in wards]
    np.random.default_rng(1).shuffle(pairs)
    made = project(facts, [w for w, _ in pairs], [int(owner) for _, owner in pairs])
    found = learner.total_of(query, made, public).floats().ravel()
    assert found.tolist() == counted(persons, cell, cells).tolist()


@pytest.mark.parametrize("records", [1, 2, 3])
@pytest.mark.parametrize("distance", ["l1", "l2"])
@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_person_moves_counts_by_what_is_claimed_and_no_more(name, relation, distance, records):
    learner, cell, cells = LEARNERS[name]
    facts = domain(records)
    case = Case(
        learner=attrs.evolve(learner, distance=distance),
        bound=StatisticBound(),
        domain=facts,
        adjacency=facts.people.relation(relation),
    )
    claim = next(claim for _, claim in case.claims() if claim.distance == distance)
    vectors = np.array([counted([wards], cell, cells) for wards in all_persons(records)])
    others = vectors if relation is REPLACE_ONE else np.zeros((1, cells))
    order = {"l1": 1, "l2": 2}[distance]
    tail = max(np.linalg.norm(vectors - row, ord=order, axis=1).max() for row in others)
    assert tail <= claim.value
    assert tail == pytest.approx(claim.value, rel=1e-9)


@pytest.mark.parametrize("name", ["count", "histogram", "two cells"])
def test_the_attack_reaches_the_bound_and_the_laws_of_persons_hold(name):
    learner = LEARNERS[name][0]
    for relation in (ADD_REMOVE, REPLACE_ONE):
        facts = domain(3)
        case = Case(
            learner=learner, bound=StatisticBound(), domain=facts,
            adjacency=facts.people.relation(relation),
        )  # fmt: skip
        (finding,) = falsify(case, Effort(pairs=60), seed=1)
        assert not finding.broken
        assert finding.worst > 0.7
        assert {str(v.outcome) for v in person_sum_verdicts(case)} == {"passed"}


def visits(order=None):
    """600 visits of 200 patients: one in three has 5, others 2."""
    rng = np.random.default_rng(2)
    owners = np.concatenate([np.repeat(n, 5 if n % 3 == 0 else 2) for n in range(200)])
    wards = rng.choice(list(WARDS), owners.size)
    index = np.arange(owners.size) if order is None else order.permutation(owners.size)
    return {"id": [f"p{n}" for n in owners[index]], "ward": wards[index], "x": np.ones(owners.size)}


def priced(learner, records=5):
    facts = domain(records)
    return price_learner(
        learner,
        domain=facts,
        adjacency=facts.people.relation(ADD_REMOVE),
        mechanism=DiscreteGaussian(),
        randomness=PublicRandomness(3),
        epsilon=2.0,
        delta=1e-6,
    )


def published(learner, table, seed, records=5, plan=None):
    plan = plan or priced(learner, records)
    outcome = plan.run(table, secret=SecretRandomness.rehearsal(seed))
    (figures,) = outcome.models["release"].tables.values()
    return figures


def test_persons_are_counted_and_records_are_and_the_table_says_which():
    table, hits, draws, plan = visits(), 0, 60, priced(Count(**OF))
    for seed in range(draws):
        figures = published(Count(**OF), table, seed, plan=plan)
        hits += figures.low[0] <= 200 <= figures.high[0]
    assert hits >= band(draws)[0]
    assert figures["statistic"] == ("count of persons",)
    assert "each counts once" in figures.covers
    records = published(Count(), table, 0)
    assert records["statistic"] == ("count of records",)
    assert records.low[0] <= len(table["id"]) <= records.high[0]
    assert "counts are of records, at most 5 of each person" in records.covers
    public = Public(domain=domain(5), randomness=PublicRandomness(1), mu=1.0)
    for learner, unit in ((Count(**OF), "persons"), (Histogram(column="ward"), "records")):
        (query,) = learner.queries(public)
        (line,) = learner.forecast(public, {query.name: NormalDistribution(width=3.0)})
        assert f"of {unit} (95 %)" in line


def test_the_order_of_the_file_never_decides():
    """Of two records a person's first in the file would always be in ward a."""
    table = {"id": [f"p{n // 2}" for n in range(600)], "ward": ["a", "b"] * 300, "x": [1.0] * 600}
    figures = published(Histogram(column="ward", **OF), table, 5, records=1)
    assert 100 < figures.estimate[0] < 200
    assert 100 < figures.estimate[1] < 200


def test_what_counts_neither_is_refused_with_the_way_out():
    cells = {"column": "x", "edges": (0, 1, 2)}
    for make in (
        lambda: Count(clip="person"),
        lambda: Histogram(clip="person", **cells),
        lambda: Table(marginals={"w": ("ward",)}, clip="person"),
        lambda: Workload(column="ward", clip="person"),
        lambda: Running(clip="person", **cells),
        lambda: GroupBy(by=("ward",), clip="person"),
    ):
        with pytest.raises(ParameterError, match="or of: persons"):
            make()
    for learner in (Total(column="x", clip="person"), Mean(column="x", clip="person")):
        assert priced_mean(learner).estimate.size == 1  # no count that is neither
    public = Public(
        domain=Domain(columns={"x": Range(0, 2)}), randomness=PublicRandomness(1), mu=1.0
    )
    with pytest.raises(ParameterError, match="a domain with people"):
        Count(**OF).queries(public)
    with pytest.raises(ParameterError, match="clip: person averages persons"):
        GroupBy(by=("ward",), column="x", **OF)


def priced_mean(learner):
    facts = domain(3)
    session = dpcore.Session(dpcore.PrivacyBudget(epsilon=9.0, delta=1e-6), facts, visits())
    (figures,) = session.release(learner, epsilon=1.0).tables.values()
    return figures


def test_bars_of_persons_are_narrower_than_those_of_records():
    """With k = 5 a count of persons costs what one record costs, in four cells twice that."""
    figures = [published(learner, visits(), 1) for learner in (Count(**OF), Count())]
    widths = [(table.high - table.low)[0] for table in figures]
    assert 4 * widths[0] < widths[1] < 6 * widths[0]
    assert math.sqrt(4) == claim_of(Histogram(column="ward", **OF), 5)
    assert claim_of(Histogram(column="ward"), 5) == 5.0


def claim_of(learner, records):
    facts = domain(records)
    case = Case(
        learner=attrs.evolve(learner, distance="l2"), bound=StatisticBound(), domain=facts,
        adjacency=facts.people.relation(ADD_REMOVE),
    )  # fmt: skip
    return next(claim.value for _, claim in case.claims() if claim.distance == "l2")
