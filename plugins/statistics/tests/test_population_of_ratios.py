"""Ratios of two columns' sums: what a record moves, what is reported, and how well it holds."""

import itertools
import math

import attrs
import numpy as np
import pytest
from population_laws import MU, covered
from scipy import stats

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Answer,
    Categories,
    Domain,
    PrivacyBudget,
    Public,
    PublicRandomness,
    Range,
    Session,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore.interval import NormalDistribution
from dpcore_statistics.columns import number_column
from dpcore_statistics.pairs.covariance import Covariance
from dpcore_statistics.pairs.ratio import Ratio
from dpcore_statistics.pairs.sampled_ratio import RatioSums
from dpcore_statistics.population.sampling import Sampling

from statistics_checks import plan

W = math.sqrt(0.5)
COST, DAYS = Range(-20, 100), Range(1, 31)


def facts(records=None, sampled="independent", **more):
    columns = {"cost": COST, "days": DAYS, "g": Categories(("a", "b"))}
    return Domain(columns=columns, exact=records, sampled=sampled, **more)


def ratio(**more):
    return Ratio(column="cost", over="days", **{"interval": "both", **more})


def vectors(cost, days, w):
    """What a record adds, from the definition; days come second."""
    y, x = (cost - 40) / 60, (days - 16) / 15
    return np.column_stack([w + 0 * x, y, 1 - y * y, x, 1 - x * x, x * y / 2])


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
def test_no_record_moves_more_than_is_claimed(relation):
    public = relation is REPLACE_ONE
    priced = plan(ratio(), Gaussian(), facts(300 if public else None), relation)
    (scheduled,) = priced.schedule.releases
    (planned_query,) = scheduled.queries.values()
    places = itertools.product(np.linspace(-20, 100, 41), np.linspace(1, 31, 41))
    cost, days = np.array([*places]).T
    rows = vectors(cost, days, W)[:, 1 if public else 0 :]
    assert planned_query.query.real_size == rows.shape[1]
    # The learner's own rows are those of the definition.
    learner, domain = scheduled.learner, priced.request.domain
    table = {"cost": cost, "days": days, "g": ["a"] * cost.size}
    records = project_table(attrs.evolve(domain, exact=None), table)
    own = learner.contributions(planned_query.query, records, scheduled.public(PublicRandomness(1)))
    assert own == pytest.approx(rows, abs=1e-12)
    movement = np.linalg.norm(rows, axis=1).max()
    if public:
        movement = max(np.linalg.norm(rows - row, axis=1).max() for row in rows)
    assert movement <= planned_query.sensitivity.value <= 1.0001 * movement


def test_the_numbers_of_an_answer_give_the_variance_of_the_definition():
    """Without noise: both sums, and the sum of (Y - r X)^2, whether n is public or not."""
    rng = np.random.default_rng(0)
    days = rng.uniform(1, 31, 300)
    cost = np.clip(3 * days + rng.normal(0, 20, 300), -20, 100)
    value = vectors(cost, days, W).sum(axis=0)
    pair = tuple(number_column(facts(), name) for name in ("cost", "days"))
    for sums in (RatioSums.of(value, pair, W), RatioSums.of(value[1:], pair, W, 300.0)):
        r = cost.sum() / days.sum()
        assert (sums.top, sums.bottom) == pytest.approx((cost.sum(), days.sum()))
        assert sums.left == pytest.approx(((cost - r * days) ** 2).sum())
        low, high = sums.interval(Sampling(width=0.0, miss=0.05), 300.0)
        assert (low + high) / 2 == pytest.approx(r, rel=0.01)
    # Of the noise of the definition, by the derivative of A - r B.
    noise = np.random.default_rng(1).standard_normal((20_000, 6))
    noisy = RatioSums.of(noise, pair, W)
    noise_distribution = np.cov(noisy.top, noisy.bottom)
    private = RatioSums.of(value, pair, W).noise
    assert (
        noise_distribution[0, 0],
        noise_distribution[0, 1],
        noise_distribution[1, 1],
    ) == pytest.approx(private, rel=0.05)


def test_a_session_tells_ratios_by_group_and_all_together():
    rng = np.random.default_rng(2)
    days = rng.integers(1, 32, 8000)
    table = {
        "cost": np.clip(2 * days + rng.normal(0, 9, 8000), -20, 100),
        "days": days,
        "g": rng.choice(["a", "b"], 8000),
    }
    session = Session(PrivacyBudget(epsilon=8.0, delta=1e-6), facts(), table)
    truth = table["cost"].sum() / days.sum()
    for figures in (
        session.ratio("cost", "days", interval="both", epsilon=2.0),
        session.ratio("cost", "days", interval="both", epsilon=2.0, by=("g",)),
        session.ratio("cost", "days", interval="both", epsilon=2.0, where={"g": "a"}),
    ):
        assert figures.estimate == pytest.approx(truth, rel=0.05)
        intervals = figures.population
        assert (intervals.low < figures.low).all()
        assert (figures.low < figures.estimate).all()
        assert (figures.estimate < figures.high).all()
        assert (figures.high < intervals.high).all()


def test_a_sum_below_that_is_negative_has_no_ratio():
    """Of a column of both signs: reported where its sum is surely above 0, and else not."""
    rng = np.random.default_rng(4)
    session = Session(
        PrivacyBudget(epsilon=8.0, delta=1e-6),
        facts(),
        {"cost": rng.normal(30, 9, 4000), "days": rng.uniform(1, 31, 4000), "g": ["a"] * 4000},
    )
    figures = session.ratio("days", "cost", interval="both", epsilon=2.0)
    assert (figures.population.low < 16 / 30 < figures.population.high).all()
    pair = tuple(number_column(facts(), name) for name in ("days", "cost"))
    below = RatioSums.of(np.array([100 * W, 0.0, 0, -150, 0, 0]), pair, W)
    assert below.bottom < 0
    assert np.isinf(below.interval(Sampling(width=1.0, miss=0.05), 100.0)).all()


def test_few_records_say_nothing():
    public = Public(domain=facts(), randomness=PublicRandomness(1), mu=0.05)
    learner = ratio()
    (query,) = learner.queries(public)
    noise_distribution = NormalDistribution(width=30.0)
    value = vectors(np.array([10.0]), np.array([3.0]), W)[0] - 1
    answer = Answer(
        query=query,
        number=1,
        value=value,
        mechanism=Gaussian(),
        noise_distribution=noise_distribution,
    )
    figures = learner.tables(answer, public).tables[""]
    assert np.isfinite(figures.estimate).all()
    assert np.isneginf(figures.low).all()
    assert np.isposinf(figures.population.high).all()


@pytest.mark.parametrize(
    ("learner", "domain", "words"),
    [
        (ratio(distance="l1"), facts(), "Gaussian noise"),
        (ratio(interval="both"), facts(sampled="census"), "census"),
        (ratio(interval="both"), facts(people=People(column="id", records=2)), "one record"),
        (Ratio(column="cost", over="cost", interval="both"), facts(), "two columns"),
        (
            Covariance(column="cost", other="days", interval="both"), facts(),
            "has no interval about the population",
        ),
    ],
)  # fmt: skip
def test_refusals_say_what_is_needed(learner, domain, words):
    with pytest.raises(ParameterError, match=words):
        learner.queries(Public(domain=domain, randomness=PublicRandomness(1), mu=1.0))


def test_the_population_is_paid_for_where_it_is_asked_for():
    """Two sums are released by default, also where it is known how records were drawn."""
    public = Public(domain=facts(), randomness=PublicRandomness(1), mu=1.0)
    (query,) = ratio(interval=None).queries(public)
    assert query.shape == (2,)
    (query,) = ratio(interval="both").queries(public)
    assert query.shape == (6,)


# How well it holds.


def pairs(kind):
    """Places of both columns in [-1, 1], and probabilities."""
    x = (np.arange(20) + 0.5) / 20
    if kind == "skewed":
        below = np.clip(np.exp(stats.norm.ppf(x)) / 5, 0, 1)
        above = [np.clip(0.8 * b + shift, 0, 1) for b in below for shift in (-0.1, 0.0, 0.25)]
        return np.repeat(2 * below - 1, 3), 2 * np.array(above) - 1, np.full(60, 1 / 60)
    if kind == "rare":
        return np.array([-0.2, -0.2, 0.4]), np.array([-1.0, 1.0, 0.0]), np.array([0.9, 0.01, 0.09])
    below, above = np.meshgrid(2 * stats.beta.ppf(x, 2, 3) - 1, 2 * x - 1)
    return below.ravel(), above.ravel(), np.full(400, 1 / 400)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 4.0])
@pytest.mark.parametrize("size", [100, 1000, 20_000])
def test_coverage_of_ratios(size, epsilon):
    """2,000 draws a cell: at least .9335 of 95 % intervals; near those without noise."""
    columns = tuple(number_column(facts(), name) for name in ("cost", "days"))
    for kind, public in itertools.product(("skewed", "rare", "apart"), (False, True)):
        rng = np.random.default_rng([31, size, int(10 * epsilon)])
        x, y, chances = pairs(kind)
        cost, days = 40 + 60 * y, 16 + 15 * x
        truth = float(cost @ chances / (days @ chances))
        rows = vectors(cost, days, W)
        width = (math.sqrt(8) if public else math.sqrt(W * W + 2.25)) / MU[epsilon]
        value = rng.multinomial(size, chances / chances.sum(), 2000) @ rows
        value = value + width * rng.standard_normal(value.shape)
        n = value[:, 0] / W
        sums = RatioSums.of(value, columns, W)
        if public:
            n = np.full(2000, float(size))
            sums = RatioSums.of(value[:, 1:], columns, W, n)
        low, high = sums.interval(Sampling(width=width, miss=0.05), n)
        plain = math.sqrt(size * chances @ (cost - truth * days) ** 2) / (size * days @ chances)
        assert covered((low, high), truth) >= 0.9335
        if size == 20_000 and epsilon >= 1:
            assert np.median(high - low) <= 1.06 * 3.92 * plain
