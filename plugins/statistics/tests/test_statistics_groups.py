"""Groups of public keys and distinct values: all neighbours of small tables, and intervals."""

import itertools
import math

import numpy as np
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE, Categories, Public, PublicRandomness, SecretRandomness
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore_statistics.distinct import Distinct, DistinctBound
from dpcore_statistics.groups import GroupBy
from dpcore_statistics.statistic import StatisticBound

from statistics_checks import Lab, band, domain, hits, plan

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)
GROUPS = Categories(("a", "b", "c"))
ROWS = [(x, g) for x in (0.0, 5.0, 10.0) for g in "ab"]


def public_of(adjacency, mu=1.0):
    records = 2 if adjacency is REPLACE_ONE else None
    return Public(domain=domain(records, g=GROUPS), randomness=PublicRandomness(1), mu=mu)


def pairs_of(rows, w):
    """(w n, sum of places) of every group, from the definition."""
    found = np.zeros((3, 2))
    for x, g in rows:
        found["abc".index(g)] += (w, (x - 5) / 5)
    return found.ravel()


@pytest.mark.parametrize(
    ("adjacency", "mu", "w", "expected"),
    [
        (ADD_REMOVE, 1.0, math.sqrt(0.5), math.sqrt(1.5)),
        (REPLACE_ONE, 1.0, 1.0, 2.0),
        (ADD_REMOVE, None, math.sqrt(0.5), 1 + math.sqrt(0.5)),
        (REPLACE_ONE, None, math.sqrt(0.5), 2 + math.sqrt(2)),
    ],
)
def test_a_claim_is_the_largest_movement_of_all_neighbours(adjacency, mu, w, expected):
    learner, public = GroupBy(by=("g",), column="x"), public_of(adjacency, mu)
    (query,) = learner.queries(public)
    claim = StatisticBound().sensitivity(query, learner, public, adjacency)
    order = 2 if mu else 1
    distance = 0.0
    for rest, one, other in itertools.product(ROWS, ROWS, [None, *ROWS]):
        if (other is None) != (adjacency is ADD_REMOVE):
            continue
        second = [rest] if other is None else [rest, other]
        distance = max(
            distance, np.linalg.norm(pairs_of([rest, one], w) - pairs_of(second, w), ord=order)
        )
    assert distance <= claim.value
    assert claim.value == pytest.approx(expected, rel=1e-9)
    assert distance == pytest.approx(expected, rel=1e-6)


def test_pairs_are_those_of_the_definition():
    learner, public = GroupBy(by=("g",), column="x"), public_of(ADD_REMOVE)
    (query,) = learner.queries(public)
    rows = [*ROWS, (2.5, "c")]
    records = project_table(public.domain, {"x": [x for x, _ in rows], "g": [g for _, g in rows]})
    found = np.asarray(learner.statistic(query, records, public, SECRET)).ravel()
    assert found == pytest.approx(pairs_of(rows, math.sqrt(0.5)), abs=1e-9)
    by_hand = learner.contributions(query, records, public).sum(axis=0).ravel()
    assert found == pytest.approx(by_hand, abs=1e-9)


def data(size):
    rng = np.random.default_rng(size)
    return {"x": 10 * rng.beta(1, 2, size), "g": rng.choice(["a", "b"], size, p=[0.3, 0.7])}


@pytest.mark.parametrize("size", [20, 200, 2000])
def test_counts_and_means_of_groups_are_covered_together(size):
    table, draws = data(size), 150
    lab = Lab.of(plan(GroupBy(by=("g",), column="x"), Gaussian(), domain(None, g=GROUPS)), table)
    counts = np.array([(table["g"] == g).sum() for g in "abc"])
    means = [table["x"][table["g"] == g].mean() if (table["g"] == g).any() else 5.0 for g in "abc"]
    found = np.zeros(2)
    for seed in range(draws):
        tables = lab.published(seed).tables
        for k, (name, truth) in enumerate((("count", counts), ("mean", means))):
            inside = (tables[name].low <= truth) & (truth <= tables[name].high)
            found[k] += inside.all()
    assert (found >= band(draws)[0]).all()


def test_an_empty_group_is_published_with_its_noise():
    (figures,) = (
        Lab.of(plan(GroupBy(by=("g",)), Gaussian(), domain(None, g=GROUPS)), data(50))
        .published(2)
        .tables.values()
    )
    assert figures["g"] == ("a", "b", "c")
    assert figures.unbiased[2] != 0


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE])
def test_the_number_of_distinct_values_moves_by_one_at_most(adjacency):
    learner, public = Distinct(of=("g", "x"), bins={"x": 2}), public_of(adjacency)
    (query,) = learner.queries(public)
    claim = DistinctBound().sensitivity(query, learner, public, adjacency)
    number = lambda rows: len({(x >= 5, g) for x, g in rows})  # noqa: E731
    distance = 0
    for first in itertools.product(ROWS, repeat=2):
        seconds = [first[:1]] if adjacency is ADD_REMOVE else [(first[0], r) for r in ROWS]
        records = project_table(
            public.domain, {"x": [x for x, _ in first], "g": [g for _, g in first]}
        )
        assert learner.statistic(query, records, public, SECRET)[0] == number(first)
        distance = max(distance, *(abs(number(first) - number(second)) for second in seconds))
    assert distance == claim.value == 1


def test_a_number_of_distinct_values_is_covered():
    lab = Lab.of(plan(Distinct(of=("g",)), DiscreteGaussian(), domain(None, g=GROUPS)), data(60))
    (found,) = hits(lab, [2], 150)
    assert found >= band(150)[0]


@pytest.mark.parametrize(
    ("learner", "caught"),
    [
        (GroupBy(by=()), "different columns"),
        (GroupBy(by=("g", "g")), "different columns"),
        (GroupBy(by=("x",)), "edges"),
        (GroupBy(by=("g",), bins={"x": 2}), "columns under by"),
        (GroupBy(by=("x",), bins={"x": 1 << 16}), "groups"),
        (GroupBy(by=("g",), column="g"), "holds categories"),
        (Distinct(of=("g", "g")), "different columns"),
    ],
)
def test_what_cannot_be_is_refused_when_priced(learner, caught):
    with pytest.raises(ParameterError, match=caught):
        learner.queries(public_of(ADD_REMOVE))
