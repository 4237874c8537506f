"""Bounds found in private: the law of the walk by enumeration, its reach, and the mean within."""

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
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore.query import Query
from dpcore_statistics.bounds import BoundedMean, BoundedMeanBound
from dpcore_statistics.mechanisms.sparse_vector import SparseVector

from builders import price_learner
from mechanisms.mechanism_checks import bound
from statistics_checks import band

QUERY = Query(name="r", shape=(3,), distance="linf", values="integers")
ONE_WAY = attrs.evolve(bound(1.0, "linf"), range=1.0)
LEARNER = BoundedMean(column="x", finest=0.25)
OLD = attrs.evolve(LEARNER, count_clipped=False)
SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)


def distribution(scores, level, threshold_scale, score_scale):
    """P(stops at g) by summing over all noises of the threshold."""
    z = np.arange(-400, 401)
    weights = np.exp(-np.abs(z) / threshold_scale)
    weights /= weights.sum()
    wide = np.arange(-4000, 4001)
    own = np.exp(-np.abs(wide) / score_scale)
    below = np.cumsum(own) / own.sum()
    found, going = np.zeros(len(scores)), weights.copy()
    for g, score in enumerate(scores):
        gap = np.clip(level + z - score + 4000, 0, 8000)
        stop = below[gap] if g < len(scores) - 1 else np.ones(len(z))
        found[g] = (going * stop).sum()
        going = going * (1 - stop)
    return found


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_no_monotone_move_changes_the_law_by_more_than_epsilon(epsilon):
    mechanism = SparseVector(epsilon=epsilon)
    scales = [float(scale) for scale in mechanism.scales(ONE_WAY)]
    assert scales == [pytest.approx(2 / epsilon)] * 2
    worst = 0.0
    for base in ([0, 0, 0], [9, 4, 0], [30, 2, 1], [5, 5, 5], [0, 9, 40]):
        for up in itertools.product((0, 1), repeat=3):
            p, q = distribution(base, 5, *scales), distribution(np.add(base, up), 5, *scales)
            worst = max(worst, float(np.abs(np.log(p / q)).max()))
    assert 0.4 * epsilon < worst <= epsilon * (1 + 1e-9)


def test_moves_in_both_directions_need_the_wider_noise_and_get_it():
    """The check has teeth: the narrow noise is no more epsilon-DP when scores move both ways."""
    mixed = attrs.evolve(bound(1.0, "linf"), range=2.0)
    mechanism = SparseVector(epsilon=1.0)
    wide = [float(scale) for scale in mechanism.scales(mixed)]
    assert wide == [2.0, 4.0]

    def worst(scales):
        moves = itertools.product((-1, 0, 1), repeat=3)
        bases = ([0, 0, 0], [9, 4, 0], [20, 20, 0], [30, 30, 30])
        return max(
            float(
                np.abs(
                    np.log(distribution(b, 5, *scales) / distribution(np.add(b, m), 5, *scales))
                ).max()
            )
            for b in bases
            for m in moves
        )

    assert worst(wide) <= 1 + 1e-9


def test_what_is_no_list_of_integers_is_refused():
    with pytest.raises(ParameterError, match="real scores"):
        SparseVector(epsilon=1.0).event(attrs.evolve(QUERY, field="complex"), ONE_WAY)
    assert "whole numbers" in SparseVector().refusal(attrs.evolve(QUERY, values="reals"))


def test_the_release_follows_the_law():
    mechanism, scores = SparseVector(epsilon=1.0, late=0.2), np.array([12.0, 8.0, 0.0])
    level = mechanism.enough(QUERY, ONE_WAY)
    expected = distribution(scores.astype(int), level, 2.0, 2.0)
    stream = SecretRandomness.rehearsal(4).noise(0, "r", 1)
    found = sum(mechanism.release(scores, QUERY, ONE_WAY, stream) for _ in range(1500))
    assert np.abs(found / 1500 - expected).max() < 0.06
    assert found.sum() == 1500


def facts(records=None, high=1e6):
    return Domain(columns={"x": Range(-high, high)}, exact=records)


def value(values, name, args=None, records=None, learner=LEARNER, mu=1.0):
    public = Public(domain=facts(records), randomness=PublicRandomness(1), mu=mu)
    (query,) = (q for q in learner.queries(public) if q.name == name)
    query = attrs.evolve(query, args=args)
    found = learner.statistic(query, project_table(public.domain, {"x": values}), public, SECRET)
    return np.asarray(found), query


def test_counts_are_those_of_larger_values():
    values = [-3.0, 0.1, 0.3, 1.9, 2.1, 700.0, 1e6]
    found, _ = value(values, "bound")
    grid = LEARNER.grid(Public(domain=facts(), randomness=PublicRandomness(1), mu=1.0))
    assert found.tolist() == [sum(abs(v) > g + 1e-9 * g for v in values) for g in grid]
    assert grid[0] == 0.25
    assert grid[-2] < 1e6 <= grid[-1]


EXPECTED = [  # of (w, t, v (b - 1/2)): what comes or goes, and two that are most distant
    (ADD_REMOVE, OLD, 1.0, math.sqrt(1.5)),
    (REPLACE_ONE, OLD, 1.0, 2.0),
    (ADD_REMOVE, LEARNER, 1.0, math.sqrt(1.5 + 1 / 16)),
    (REPLACE_ONE, LEARNER, 1.0, math.sqrt(4 + 1 / 4)),
    (ADD_REMOVE, LEARNER, None, 1 + math.sqrt(0.5) + 1 / 8),
    (REPLACE_ONE, LEARNER, None, 2 + 1 / 4),
]


@pytest.mark.parametrize(("adjacency", "learner", "mu", "expected"), EXPECTED)
def test_claims_are_the_largest_moves_of_all_neighbours_at_every_bound(
    adjacency, learner, mu, expected
):
    records = 2 if adjacency is REPLACE_ONE else None
    public = Public(domain=facts(records), randomness=PublicRandomness(1), mu=mu)
    claims = {
        q.name: BoundedMeanBound().sensitivity(q, learner, public, adjacency)
        for q in learner.queries(public)
    }
    points = (-1e6, -0.2499999, -3.0, 0.0, 0.2, 40.0, 1e6)
    firsts = [[5.0, x] for x in points]
    seconds = [[5.0]] if adjacency is ADD_REMOVE else firsts
    move = cutoff = 0.0
    tail = dict.fromkeys((0.25, 8.0, 2.0**20), 0.0)
    for first, second in itertools.product(firsts, seconds):
        change = value(first, "bound")[0] - value(second, "bound")[0]
        move, cutoff = max(move, np.abs(change).max()), max(cutoff, np.ptp(change))
        for g in tail:
            pair = (
                value(one, "mean", {"bound": g}, records, learner, mu)[0] for one in (first, second)
            )
            tail[g] = max(tail[g], float(np.linalg.norm(np.subtract(*pair), 2 if mu else 1)))
    assert move == claims["bound"].value == 1
    assert cutoff == claims["bound"].range == 1
    assert max(tail.values()) <= claims["mean"].value
    assert tail[0.25] == pytest.approx(claims["mean"].value, rel=1e-6)
    assert claims["mean"].value == pytest.approx(expected, rel=1e-6)


def plan(**budget):
    return price_learner(
        LEARNER,
        domain=facts(),
        adjacency=ADD_REMOVE,
        budget=dpcore.PrivacyBudget(**(budget or {"epsilon": 1.0, "delta": 1e-6})),
        mechanism={"bound": SparseVector(), "mean": Gaussian()},
        randomness=PublicRandomness(1),
    )


def test_the_bound_fits_the_values_and_the_mean_is_covered():
    values = np.random.default_rng(0).lognormal(3.0, 0.5, 2000)
    priced, found, beyond, draws = plan(), 0, 0, 60
    for seed in range(draws):
        outcome = priced.run({"x": values}, secret=SecretRandomness.rehearsal(seed))
        (figures,) = outcome.models["release"].tables.values()
        largest = figures.estimate[3]
        assert np.quantile(values, 0.5) < largest <= 4 * 2 ** math.ceil(math.log2(values.max()))
        clipped = np.clip(values, -largest, largest).mean()
        found += figures.low[0] <= clipped <= figures.high[0]
        beyond += figures.low[2] <= np.count_nonzero(values > largest) <= figures.high[2]
        is_warned = "THE MEAN OF THE VALUES AS THEY ARE" in figures.covers
        assert is_warned or np.mean(values > largest) < 0.02
    assert found >= band(draws)[0]
    assert beyond >= band(draws)[0]


def test_a_walk_without_values_stops_at_once_and_one_without_end_at_the_last():
    priced = plan(epsilon=20.0, delta=1e-6)
    (figures,) = priced.run({"x": []}).models["release"].tables.values()
    assert figures.estimate[3] == 0.25
    (figures,) = priced.run({"x": [1e6] * 3000}).models["release"].tables.values()
    assert figures.estimate[3] == 2.0**20


def test_a_bound_that_is_too_small_is_said_in_plain_words():
    """Few records and little budget: the walk stops early, and the mean is far from the truth."""
    values = np.random.default_rng(0).lognormal(6.0, 0.7, 60)
    priced, warned, wrong, covered = plan(epsilon=0.4, delta=1e-6), 0, 0, 0
    for seed in range(20):
        (figures,) = (
            priced.run({"x": values}, secret=SecretRandomness.rehearsal(seed))
            .models["release"]
            .tables.values()
        )
        is_wrong = not figures.low[0] <= values.mean() <= figures.high[0]
        says_so = "THE MEAN OF THE VALUES AS THEY ARE" in figures.covers
        assert says_so or not is_wrong
        wrong, warned = wrong + is_wrong, warned + ("IS NOT THE MEAN" in figures.covers)
        count = np.count_nonzero(values > figures.estimate[3])
        covered += figures.low[2] <= count <= figures.high[2]
    assert wrong > 10
    assert 0 < warned <= wrong
    assert covered >= band(20)[0]


def test_means_by_group_share_one_bound_and_move_as_claimed():
    domain = Domain(columns={"x": Range(-1e6, 1e6), "g": Categories(("a", "b"))}, exact=None)
    points = [(x, g) for x in (-1e6, -7.999999, 0.0, 40.0) for g in "ab"]
    for adjacency, mu in itertools.product((ADD_REMOVE, REPLACE_ONE), (1.0, None)):
        learner = attrs.evolve(LEARNER, by=("g",))
        exact = 1 if adjacency is REPLACE_ONE else None
        public = Public(
            domain=attrs.evolve(domain, exact=exact), randomness=PublicRandomness(1), mu=mu
        )
        _, query = learner.queries(public)
        claim = BoundedMeanBound().sensitivity(query, learner, public, adjacency)
        asked = attrs.evolve(query, args={"bound": 8.0})
        rows = []
        for x, g in points:
            records = project_table(public.domain, {"x": [x], "g": [g]})
            rows.append(np.asarray(learner.statistic(asked, records, public, SECRET)).ravel())
        rows = np.array(rows)
        w = 1.0 if exact and mu else math.sqrt(0.5)
        v = 0.5 if mu else 0.25
        blocks = np.zeros((len(points), 2, 3))
        for index, (x, g) in enumerate(points):
            blocks[index, "ab".index(g)] = (w, np.clip(x / 8, -1, 1), v * ((abs(x) > 8) - 0.5))
        assert rows == pytest.approx(blocks.reshape(len(points), -1), abs=1e-9)
        others = rows if exact else np.zeros((1, rows.shape[1]))
        order = 2 if mu else 1
        tail = max(np.linalg.norm(rows - row, ord=order, axis=1).max() for row in others)
        assert tail <= claim.value
        assert tail == pytest.approx(claim.value, rel=1e-6)
