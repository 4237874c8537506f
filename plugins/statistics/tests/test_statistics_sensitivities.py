"""Every row of the sensitivity table by brute force: all neighbours of all tables of a small
universe, with statistics computed from their definition and not by the learners."""

import itertools
import math

import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Categories,
    Domain,
    Public,
    PublicRandomness,
    Range,
    Refused,
    SecretRandomness,
)
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore_statistics.count import Count
from dpcore_statistics.histogram import Histogram
from dpcore_statistics.mean import Mean
from dpcore_statistics.statistic import StatisticBound
from dpcore_statistics.total import Total
from dpcore_statistics.variance import FREE, Variance

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)
X = (0.0, 2.5, 5.0, 7.0, 10.0, None)  # None: missing
ROOT = math.sqrt(0.5)


def facts(records, missing=False):
    """x in [0, 10], and two groups."""
    return Domain(
        columns={"x": Range(0, 10, missing=missing), "g": Categories(("a", "b"))}, exact=records
    )


def universe(missing):
    return [(x, g) for x in X if missing or x is not None for g in "ab"]


def neighbours(missing, adjacency, size=2):
    """All pairs of tables: one record more or less, or one replaced, next to up to `size` - 1."""
    rows = universe(missing)
    for others in itertools.product(rows, repeat=size - 1):
        if adjacency is ADD_REMOVE:
            yield from (([*others, one], [*others]) for one in rows)
        else:
            yield from (([*others, a], [*others, b]) for a in rows for b in rows)


def distance(first, second, norm):
    moved = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    return float(np.abs(moved).sum() if norm == "l1" else np.linalg.norm(moved))


def claimed(learner, adjacency, missing=False, mu=1.0):
    """(what is claimed, the query, public facts)."""
    records = 2 if adjacency is REPLACE_ONE else None
    public = Public(domain=facts(records, missing), randomness=PublicRandomness(1), mu=mu)
    (query,) = learner.queries(public)
    return StatisticBound().sensitivity(query, learner, public, adjacency), query, public


def of(rows):
    return {"x": [x for x, _ in rows], "g": [g for _, g in rows]}


def in_range(x):
    return (x - 5.0) / 5.0


def mean_of(w):
    def statistic(rows, keep=lambda x, g: x is not None):
        kept = [in_range(x) for x, g in rows if keep(x, g)]
        return [w * len(kept), sum(kept)]

    return statistic


def moments(w, b):
    def statistic(rows, keep=lambda x, g: x is not None):
        kept = [in_range(x) for x, g in rows if keep(x, g)]
        return [w * len(kept), sum(kept), b * sum(1 - t * t for t in kept)]

    return statistic


IN_A = {"where": {"g": ["a"]}}
A = lambda x, g: g == "a"  # noqa: E731
CASES = {
    "count": (Count(), ADD_REMOVE, "l2", 1, lambda r: [len(r)], False),
    "count where": (Count(**IN_A), ADD_REMOVE, "l2", 1, lambda r: [sum(A(*x) for x in r)], False),
    "count where, replaced": (
        Count(**IN_A), REPLACE_ONE, "l2", 1, lambda r: [sum(A(*x) for x in r)], False,
    ),
    "count of a range": (
        Count(where={"x": {"from": 2.5, "below": 7}}), REPLACE_ONE, "l2", 1,
        lambda r: [sum(x is not None and 2.5 <= x < 7 for x, _ in r)], True,
    ),
    "sum": (Total(column="x"), ADD_REMOVE, "l2", 1, lambda r: [sum(x for x, _ in r) / 10], False),
    "sum, replaced": (
        Total(column="x"), REPLACE_ONE, "l2", 1, lambda r: [sum(x for x, _ in r) / 10], False,
    ),
    "sum with missing": (
        Total(column="x", distance="l1"), REPLACE_ONE, "l1", 1,
        lambda r: [sum(x or 0 for x, _ in r) / 10], True,
    ),
    "mean": (Mean(column="x"), ADD_REMOVE, "l2", math.sqrt(1.5), mean_of(ROOT), False),
    "mean, l1": (
        Mean(column="x", distance="l1"), ADD_REMOVE, "l1", 1 + ROOT, mean_of(ROOT), False,
    ),
    "mean with missing, replaced": (
        Mean(column="x"), REPLACE_ONE, "l2", 2, mean_of(1.7320508), True,
    ),
    "mean where, replaced, l1": (
        Mean(column="x", distance="l1", **IN_A), REPLACE_ONE, "l1", 2,
        lambda r: mean_of(1.0)(r, A), False,
    ),
    "mean, replaced": (
        Mean(column="x"), REPLACE_ONE, "l2", 2, lambda r: [sum(in_range(x) for x, _ in r)], False,
    ),
    "variance": (Variance(column="x"), ADD_REMOVE, "l2", math.sqrt(1.5), moments(ROOT, 1), False),
    "variance, l1": (
        Variance(column="x", distance="l1"), ADD_REMOVE, "l1", 1 + ROOT, moments(ROOT, 0.5), False,
    ),
    "variance with missing, replaced": (
        Variance(column="x"), REPLACE_ONE, "l2", 2, moments(1.7320508, 1), True,
    ),
    "variance, replaced": (
        Variance(column="x"), REPLACE_ONE, "l2", 2,
        lambda r: [sum(in_range(x) ** k * f for x, _ in r) for k, f in ((1, 1), (2, FREE))], False,
    ),
    "variance, replaced, l1": (
        Variance(column="x", distance="l1"), REPLACE_ONE, "l1", 2,
        lambda r: [sum(in_range(x) ** k * f for x, _ in r) for k, f in ((1, 1), (2, 0.5))], False,
    ),
    "histogram": (
        Histogram(column="x", edges=(0, 5, 10)), ADD_REMOVE, "l2", 1,
        lambda r: np.histogram([x for x, _ in r], [0, 5, 10])[0], False,
    ),
    "histogram, replaced": (
        Histogram(column="x", edges=(0, 5, 10)), REPLACE_ONE, "l2", math.sqrt(2),
        lambda r: np.histogram([x for x, _ in r], [0, 5, 10])[0], False,
    ),
    "histogram, replaced, l1": (
        Histogram(column="x", edges=(0, 5, 10), distance="l1"), REPLACE_ONE, "l1", 2,
        lambda r: np.histogram([x for x, _ in r if x is not None], [0, 5, 10])[0], True,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_claim_is_the_largest_movement_of_all_neighbours(name):
    learner, adjacency, norm, expected, definition, missing = CASES[name]
    claim, query, public = claimed(learner, adjacency, missing)
    assert claim.distance == norm
    assert claim.value == pytest.approx(expected, rel=1e-9)
    found = max(
        distance(definition(d), definition(e), norm)
        for d, e in neighbours(missing, adjacency, size=1 + (adjacency is ADD_REMOVE))
    )
    assert found <= claim.value
    assert found == pytest.approx(claim.value, rel=1e-6)  # attained
    assert query.distance == norm
    assert public.domain.exact == (2 if adjacency is REPLACE_ONE else None)


@pytest.mark.parametrize("name", CASES)
def test_a_learner_computes_the_statistic_that_is_defined(name):
    learner, adjacency, _, _, definition, missing = CASES[name]
    _, query, public = claimed(learner, adjacency, missing)
    rows = universe(missing)
    records = project_table(public.domain, of(rows))
    value = np.asarray(learner.statistic(query, records, public, SECRET))
    assert value == pytest.approx(np.asarray(definition(rows), dtype=float), abs=1e-9)


def test_squares_weigh_as_much_as_they_may_and_no_more():
    """b* = phi^(5/2)/2: a little more would move the moments by more than 2."""
    golden = (1 + math.sqrt(5)) / 2
    assert golden**2.5 / 2 - 2e-4 < FREE <= golden**2.5 / 2
    x, y = np.meshgrid(np.linspace(-1, 1, 801), np.linspace(-1, 1, 801))
    moved = lambda b: np.hypot(x - y, b * (x * x - y * y)).max()  # noqa: E731
    assert moved(FREE) <= 2 + 1e-12
    assert moved(1.7) > 2.02
    assert np.hypot(x, 1 - x * x).max() <= 1 + 1e-12
    assert (np.abs(x) + 0.5 * (1 - x * x)).max() <= 1 + 1e-12
    assert (np.abs(x - y) + 0.5 * np.abs(x * x - y * y)).max() <= 2 + 1e-12


def test_a_public_number_of_records_is_not_asked_for():
    claim, _, _ = claimed(Count(), REPLACE_ONE)
    assert isinstance(claim, Refused)
    assert "public" in claim.reason


@pytest.mark.parametrize(
    ("learner", "caught"),
    [
        (Histogram(column="x", edges=(0, 5, 5, 10)), "each above the one before"),
        (Histogram(column="x", edges=(0, 7, 5, 10)), "each above the one before"),
        (Histogram(column="x", edges=(0, 5, 11)), "a number in"),
        (Histogram(column="x", edges=(0,)), "two or more edges"),
        (Histogram(column="x"), "edges"),
        (Histogram(column="x", bins=0), "1 to"),
        (Histogram(column="g", bins=2), "has categories already"),
        (Histogram(column="X", bins=2), "did you mean 'x'"),
        (Mean(column="g"), "holds categories"),
        (Count(where={"g": ["c"]}), "not different categories"),
        (Count(where={"g": ["a", "a"]}), "not different categories"),
        (Count(where={"x": {"from": 7, "below": 3}}), "must be lower"),
        (Count(where={"x": {"above": 7}}), "is no condition"),
        (Count(where={"x": {"from": 70}}), "a number in"),
        (Count(where={"y": ["a"]}), "a declared column"),
    ],
)
def test_what_cannot_be_is_refused_when_priced(learner, caught):
    with pytest.raises(ParameterError, match=caught):
        claimed(learner, ADD_REMOVE)


@pytest.mark.parametrize("weight", [0.0, -1.0, math.nan, math.inf])
def test_weights_that_cannot_be_are_refused(weight):
    with pytest.raises(ParameterError):
        Mean(column="x", weight=weight)


def test_rows_scaled_to_a_norm_are_refused():
    public = Public(
        domain=Domain(columns={"x": Range(0, 1)}, norm=0.5), randomness=PublicRandomness(1), mu=1.0
    )
    with pytest.raises(ParameterError, match="norm"):
        Mean(column="x").queries(public)
