"""Intervals about the population with Laplace noise: what they cost, whom they hold, and when."""

import itertools
import math

import attrs
import numpy as np
import pytest
from population_laws import covered, drawn, interval_text, populations
from scipy import integrate, stats

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Categories,
    Distance,
    Domain,
    PrivacyBudget,
    Public,
    PublicRandomness,
    Range,
    Session,
)
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore.interval import LaplaceDistribution, NormalDistribution
from dpcore_attacks.attacks.setting import Case
from dpcore_statistics.count import Count, Share
from dpcore_statistics.groups import GroupBy
from dpcore_statistics.histogram import Histogram
from dpcore_statistics.mean import Mean
from dpcore_statistics.population.comparisons import mean_difference, mean_ratio
from dpcore_statistics.population.moments import Moments, mean_interval, stream_sum
from dpcore_statistics.population.sampling import Sampling, sampling_of
from dpcore_statistics.population.shares import noisy_fraction, public_fraction, stream_count
from dpcore_statistics.statistic import StatisticBound
from dpcore_statistics.tables import Table
from dpcore_statistics.total import Total
from dpcore_statistics.variance import Variance

W = math.sqrt(0.5)
LEAST, LARGEST = 0.928, 0.975
BOTH = {"interval": "both", "distance": "l1"}
LEARNERS = {
    "count": Count(**BOTH),
    "count, some": Count(where={"g": ["a"]}, **BOTH),
    "share": Share(meets={"g": ["a"]}, **BOTH),
    "sum": Total(column="x", **BOTH),
    "mean": Mean(column="x", **BOTH),
    "mean by": Mean(column="x", by=("g",), **BOTH),
    "groups": GroupBy(by=("g",), column="x", compare="difference", **BOTH),
    "ratio": GroupBy(by=("g",), column="x", compare="ratio", **BOTH),
    "histogram": Histogram(column="x", bins=3, **BOTH),
    "shares": Histogram(column="x", bins=3, shares=True, **BOTH),
    "table": Table(marginals={"g": ("g",), "both": ("g", "x")}, bins={"x": 3}, **BOTH),
}


def domain(exact=None):
    columns = {"x": Range(0, 3), "g": Categories(("a", "b"))}
    return Domain(columns=columns, sampled="independent", exact=exact)


# The law of a normal number and Laplace ones.


def tail_of_sum(t, sigma, scales):
    """P(N + sum of Laplace > t) by the inversion of characteristic functions."""

    def integrand(u):
        laplace_part = math.prod(1 + (b * u) ** 2 for b in scales)
        return math.sin(u * t) / u * math.exp(-0.5 * (sigma * u) ** 2) / laplace_part

    area, _ = integrate.quad(integrand, 0, np.inf, limit=2000)
    return 0.5 - area / math.pi


@pytest.mark.parametrize(
    ("sigma", "scales"),
    [
        (1.0, [0.01]),
        (1.0, [1.0]),
        (0.3, [1.0]),
        (0.5, [1.0, 0.7]),
        (1.0, [0.8] * 7),
        (0.2, [1, 0.1]),
    ],
)
@pytest.mark.parametrize("miss", [0.2, 0.05, 0.001])
def test_a_quantile_holds_for_every_sum_of_laplace_noises(sigma, scales, miss):
    """Exact with one of them; of several the miss is at most 1.06 times as large."""
    variances = [2 * b * b for b in scales]
    total = sigma**2 + sum(variances)
    sampling = Sampling(width=1.0, miss=miss, is_laplace=True)
    cutoff = sampling.z * float(sampling.tail(total, sum(v * v for v in variances)))
    beyond = 2 * tail_of_sum(cutoff * math.sqrt(total), sigma, scales)
    assert beyond <= miss * 1.06
    # Where the normal quantile is the larger one it stays.
    if len(scales) == 1 and cutoff > sampling.z * (1 + 1e-9):
        assert beyond == pytest.approx(miss, rel=1e-3)


def test_laplace_noise_has_a_law_in_l1_and_normal_noise_the_one_it_had():
    noise_distribution = LaplaceDistribution(scale=3.0, step=1.0)
    assert sampling_of(noise_distribution, 0.05, domain()) is None
    distribution = sampling_of(noise_distribution, 0.05, domain(), Distance.L1)
    assert distribution.is_laplace
    assert distribution.width == pytest.approx(math.hypot(math.sqrt(2) * 3, 1 / math.sqrt(3)))
    normal = sampling_of(NormalDistribution(width=3.0), 0.05, domain(), Distance.L1)
    assert normal.tail(1.0, 1.0) == 1.0
    assert sampling_of(None, 0.05, domain(), Distance.L1) is None


# What it costs: nothing.


def test_one_moment_is_free_in_l1_and_so_is_what_a_sum_needs():
    x, y = np.linspace(-1, 1, 20_001), np.linspace(0, 1, 20_001)
    assert (abs(x) + (1 - x * x) / 2).max() <= 1 + 1e-15
    assert (y + y * (1 - y)).max() <= 1 + 1e-15
    # A little more would not be.
    assert (abs(x) + 0.51 * (1 - x * x)).max() > 1 + 1e-6
    assert (y + 1.01 * y * (1 - y)).max() > 1 + 1e-6


@pytest.mark.parametrize(
    ("name", "exact"),
    [
        (name, exact)
        for name, exact in itertools.product(LEARNERS, (None, 40))
        # Of a public number of records a count reveals nothing, and the mean says the sum.
        if exact is None or name not in ("count", "sum")
    ],
)
def test_no_record_moves_the_sum_farther_than_is_claimed(name, exact):
    """All records of a grid, or none where their number is private; and the claim is attained,
    and that of the noise only."""
    facts, learner = domain(exact), LEARNERS[name]
    relation = ADD_REMOVE if exact is None else REPLACE_ONE
    claims = {}
    for interval in ("both", "noise"):
        case = Case(
            learner=attrs.evolve(learner, interval=interval), bound=StatisticBound(), domain=facts,
            adjacency=relation,
        )  # fmt: skip
        claims[interval] = next(c.value for _, c in case.claims() if c.distance == "l1")
    public = Public(domain=facts, randomness=PublicRandomness(1), mu=None)
    (query,) = learner.queries(public)
    places = [*itertools.product(np.linspace(0, 3, 25), "ab")]
    made = project_table(
        attrs.evolve(facts, exact=None), {"x": [x for x, _ in places], "g": [g for _, g in places]}
    )
    rows = np.array(learner.contributions(query, made, public)).reshape(len(places), -1)
    if exact is None:
        distance = abs(rows).sum(axis=1).max()
    else:
        distance = max(abs(rows - row).sum(axis=1).max() for row in rows)
    assert distance <= claims["both"]
    assert distance == pytest.approx(claims["both"], rel=1e-6)
    if name != "count, some" or exact is not None:  # next to which the rest is stated
        assert claims["both"] == pytest.approx(claims["noise"], rel=1e-9)


# When it is stated.


def test_intervals_of_laplace_noise_are_told_on_request_alone():
    """So that no run without them becomes another; and those that have none say the way out."""
    table = {"x": np.linspace(0, 3, 900).tolist(), "g": ["a", "b", "b"] * 300}
    for name, learner in LEARNERS.items():
        session = Session(PrivacyBudget(epsilon=100.0), domain(), table)
        plain = attrs.evolve(learner, interval=None, distance=None)
        tables = session.release(plain, epsilon=4.0).tables.values()
        assert all(figures.population is None for figures in tables)
        tables = session.release(attrs.evolve(plain, interval="both"), epsilon=4.0).tables
        for key, figures in tables.items():
            intervals = figures.population
            assert (intervals.low <= figures.estimate + 1e-9).all(), (name, key)
            assert (figures.estimate <= intervals.high + 1e-9).all()
            assert np.isfinite(intervals.low).all()
    public = Public(domain=domain(), randomness=PublicRandomness(1), mu=None)
    people = attrs.evolve(domain(), people=People(column="id", records=2))
    persons = attrs.evolve(public, domain=people)
    for learner, facts in (
        (Variance(column="x", **BOTH), public),
        (GroupBy(by=("g",), column="x", compare="equality", **BOTH), public),
        (Mean(column="x", **BOTH), persons),
    ):
        with pytest.raises(ParameterError, match="a budget with a delta"):
            learner.queries(facts)


# Whom it holds.


def truth(name):
    places, chances = populations()[name]
    return float(places @ chances / chances.sum())


def laplace(std, shape, rng):
    return rng.laplace(scale=std / math.sqrt(2), size=shape)


def smooth(std, miss=0.05):
    return Sampling(width=std, miss=miss, is_laplace=True)


def moments(counts, places, std, weight, rng, public=None):
    """As a release in l1 has them: n, the sum of x, and d_0 by a half."""
    noise = laplace(std, (3, len(counts)), rng)
    n = counts.sum(axis=1) + noise[0] / weight if public is None else np.full(len(counts), public)
    lost = 2 * (counts @ (0.5 * (1 - places**2)) + noise[2])
    return Moments(
        n=n, total=counts @ places + noise[1], lost=lost[None], width=std,
        of_count=0.0 if public else weight**-2.0, of_lost=4.0,
    )  # fmt: skip


def coverages(size, epsilon, draws):
    """By statistic and population: how often the interval holds, and how often it is stated."""
    rng, found, root = np.random.default_rng([size, int(10 * epsilon)]), {}, math.sqrt(2)
    for name, (places, chances) in populations().items():
        counts = drawn(places, chances, size, draws, rng)
        for public, length in ((None, 1 + W), (size, 2.0)):
            std = root * length / epsilon
            ends = mean_interval(moments(counts, places, std, W, rng, public), smooth(std))
            kind = "private" if public is None else "public"
            found[f"mean, {kind} n", name] = covered(ends, truth(name)), interval_text(ends)
        y, std = (places + 1) / 2, root / epsilon
        counts = drawn(places, chances, size, draws, rng, poisson=True)
        noise = laplace(std, (2, draws), rng)
        ends = stream_sum(
            counts @ y + noise[0], counts @ (y * (1 - y)) + noise[1], smooth(std), 1.0
        )
        expected = size * float(y @ chances / chances.sum())
        found["sum", name] = covered(ends, expected), interval_text(ends)
    std = root / epsilon
    for proportion in (0.5, 0.1, 0.01):
        top = rng.binomial(size, proportion, draws)
        noise = laplace(std, (2, draws), rng)
        ends = noisy_fraction(top + noise[0], size - top + noise[1], smooth(std))
        found["share", proportion] = covered(ends, proportion), interval_text(ends)
        ends = public_fraction(top + noise[0], size, smooth(std))
        found["share, public n", proportion] = covered(ends, proportion), interval_text(ends)
    for expected in (10, size):
        ends = stream_count(rng.poisson(expected, draws) + laplace(std, draws, rng), smooth(std))
        found["count", expected] = covered(ends, expected), interval_text(ends)
    cells = np.array([0.3, 0.2, 0.15, 0.12, 0.1, 0.08, 0.04, 0.01])
    counts = rng.multinomial(size, cells, draws) + laplace(std, (draws, 8), rng)
    rest = counts.sum(axis=1, keepdims=True) - counts
    low, high = noisy_fraction(counts, rest, smooth(std, 1 - 0.95 ** (1 / 8)), (1, 7))
    inside = float(np.mean(((low <= cells) & (cells <= high)).all(axis=1)))
    found["shares together", 8] = inside, interval_text((low, high))
    std = root * (1 + W) / epsilon
    for first, second in (("skewed", "bounded"), ("tied", "tied"), ("rare", "skewed")):
        sizes, pair = rng.binomial(size, 0.3, draws), []
        for name, records in ((first, sizes), (second, size - sizes)):
            places, chances = populations()[name]
            counts = rng.multinomial(records, chances / chances.sum())
            pair.append(moments(counts, places, std, W, rng))
        ends = mean_difference(*pair, smooth(std))
        found["difference", first] = (
            covered(ends, truth(first) - truth(second)),
            interval_text(ends),
        )
        ends = mean_ratio(*pair, 0.2, smooth(std))
        ratio = (truth(first) + 1.2) / (truth(second) + 1.2)
        found["ratio of means", first] = covered(ends, ratio), interval_text(ends)
    return found


def test_coverage_of_a_few_cells():
    for size, epsilon in ((1000, 1.0), (20_000, 0.5)):
        for name, (proportion, says) in coverages(size, epsilon, 400).items():
            # Four binomial standard deviations below .95: the sweep has the bar.
            assert proportion >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / 400), name
            assert says > 0.5, name


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("size", [100, 1000, 20_000])
def test_coverage(size, epsilon):
    """2,000 draws a cell. Where most draws say nothing, there is no interval to judge."""
    for name, (proportion, says) in coverages(size, epsilon, 2000).items():
        assert says < 0.5 or proportion >= LEAST, (name, proportion)


def test_widths_over_those_without_noise():
    """At 20,000 records and epsilon 1."""
    rng, std = np.random.default_rng(6), math.sqrt(2) * (1 + W)
    for name, (places, chances) in populations().items():
        counts = drawn(places, chances, 20_000, 200, rng)
        low, high = mean_interval(moments(counts, places, std, W, rng), smooth(std))
        variance = float(places**2 @ chances / chances.sum()) - truth(name) ** 2
        plain = 2 * stats.norm.ppf(0.975) * math.sqrt(variance / 20_000)
        assert np.median(high - low) <= 1.03 * plain, name
