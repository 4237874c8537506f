"""Intervals about the population: what they cost, what they rest on, and what they refuse."""

import itertools
import json
import math
import re

import attrs
import numpy as np
import pytest
from scipy import stats

import dpcore
from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Categories,
    Domain,
    PrivacyBudget,
    Public,
    PublicRandomness,
    Range,
    Session,
)
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.domain import Classes
from dpcore.domain.domain import People
from dpcore.encoding.tables import project_table
from dpcore.errors import ParameterError
from dpcore_statistics.bounds import BoundedMean
from dpcore_statistics.count import Count
from dpcore_statistics.group_rates import GroupRates
from dpcore_statistics.groups import GroupBy
from dpcore_statistics.histogram import Histogram
from dpcore_statistics.mean import Mean
from dpcore_statistics.population.comparisons import mean_difference, mean_test
from dpcore_statistics.population.moments import FREE_SQUARE, Moments, free_moments
from dpcore_statistics.population.sampling import Sampling, sampling_of
from dpcore_statistics.population.shares import noisy_fraction
from dpcore_statistics.quantiles import Quantiles
from dpcore_statistics.statistic import StatisticBound
from dpcore_statistics.tables import Table
from dpcore_statistics.total import Total
from dpcore_statistics.variance import Variance
from dpcore_statistics.workload import Workload

from statistics_checks import Lab, plan

IN_A = {"g": ["a"]}
GROUPED = {"by": ("g",)}
LEARNERS = {
    "count": Count(),
    "count where": Count(where=IN_A),
    "count of groups": Count(where={"x": {"below": 4}}, **GROUPED),
    "sum": Total(column="x"),
    "sum of groups": Total(column="x", **GROUPED),
    "mean": Mean(column="x"),
    "mean where": Mean(column="x", where=IN_A),
    "mean of groups": Mean(column="x", **GROUPED),
    "variance": Variance(column="x"),
    "variance of groups": Variance(column="x", **GROUPED),
    "histogram": Histogram(column="x", bins=3),
    "shares": Histogram(column="x", bins=3, shares=True),
    "proportions of groups": Histogram(column="x", bins=3, shares=True, **GROUPED),
    "counts": GroupBy(by=("g",)),
    "table": Table(marginals={"t": ("g",)}),
    "tables of cells": Table(
        marginals={"g": ("g",), "both": ("g", "x")}, bins={"x": 4}, strategy="cells"
    ),
    "tables that agree": Table(marginals={"g": ("g",), "both": ("g", "x")}, bins={"x": 4}),
    "difference": GroupBy(by=("g",), column="x", compare="difference"),
    "ratio": GroupBy(by=("g",), column="x", compare="ratio"),
}
NO_COUNT = ("count", "sum")  # of a public number of records


def facts(records=None, sampled="independent", **more):
    """x in [0, 10], and three groups."""
    columns = {"x": Range(0, 10), "g": Categories(("a", "b", "c"))}
    return Domain(columns=columns, exact=records, sampled=sampled, **more)


def table(size=400, seed=0):
    rng = np.random.default_rng(seed)
    return {"x": rng.beta(2, 5, size) * 10, "g": rng.choice(["a", "b", "c"], size)}


def cases():
    for name, relation in itertools.product(LEARNERS, (ADD_REMOVE, REPLACE_ONE)):
        if relation is ADD_REMOVE or name not in NO_COUNT:
            yield pytest.param(name, relation, id=f"{name}, {relation}")


def priced(learner, relation, epsilon=1.0, sampled="independent", size=400):
    records = size if relation is REPLACE_ONE else None
    return plan(learner, Gaussian(), facts(records, sampled), relation, epsilon)


# What it costs.


@pytest.mark.parametrize(("name", "relation"), [*cases()])
def test_the_default_costs_no_noise(name, relation):
    """Where intervals about the population come by default, the noise is what it was without."""
    noise_distributions = []
    for sampled in (None, "independent"):
        (scheduled,) = priced(LEARNERS[name], relation, sampled=sampled).schedule.releases
        (planned_query,) = scheduled.queries.values()
        noise_distributions.append(
            (
                planned_query.sensitivity.value,
                planned_query.query.real_size,
                planned_query.noise_distribution.width,
            )
        )
    assert noise_distributions[1][0] == pytest.approx(noise_distributions[0][0], rel=1e-6)
    assert noise_distributions[1][2] == pytest.approx(
        noise_distributions[0][2], rel=1e-3
    )  # as calibration rounds
    same = name in ("count", "histogram", "shares", "proportions of groups", "counts")
    same = same or name.startswith("table")
    same = same or (relation is REPLACE_ONE and name in ("count where", "variance"))
    assert (noise_distributions[1][1] > noise_distributions[0][1]) != same


ENDS = (0.0, 1.5, 4.0, 5.0, 8.1, 10.0)


def contribution(name, row, relation, w):
    """What one record adds, from the definition."""
    x, g = row
    t, y, group = (x - 5) / 5, x / 10, "abc".index(g)
    moments = [(1 - t * t) * t**k for k in range(3)]
    kind = name.split()[0]
    if name == "count where":
        return np.array([g == "a", g != "a"][: 2 if relation is ADD_REMOVE else 1], dtype=float)
    if name == "mean where":
        return np.array([w, t, *moments]) if g == "a" else np.zeros(5)
    block = {
        "count": [x < 4, x >= 4],
        "sum": [y, FREE_SQUARE * y * (1 - y)],
        "mean": [w, t, *moments],
        "variance": [w, t, *moments],
        "difference": [w, t, *moments],
    }[kind]
    if relation is REPLACE_ONE and name in ("mean", "variance"):
        return np.array([t, *moments])
    if name.endswith("groups") or kind == "difference":
        placed = np.zeros((3, len(block)))
        placed[group] = block
        return placed.ravel()
    return np.array(block, dtype=float)


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize(
    "name",
    [
        "count where", "count of groups", "sum", "sum of groups", "mean", "mean where",
        "mean of groups", "variance", "variance of groups", "difference",
    ],
)  # fmt: skip
def test_no_record_moves_more_than_is_claimed(name, relation):
    """By brute force: the definition's contributions, and all neighbours of a small universe."""
    if relation is REPLACE_ONE and name == "sum":
        pytest.skip("a mean is asked for, where the number of records is public")
    learner = attrs.evolve(LEARNERS[name], interval="both")
    domain = facts(2 if relation is REPLACE_ONE else None)
    public = Public(domain=domain, randomness=PublicRandomness(1), mu=1.0)
    (query,) = learner.queries(public)
    claim = StatisticBound().sensitivity(query, learner, public, relation)
    rows = [
        (x, g) for x in (*ENDS, 10 * (math.sqrt(5) - 1) / 2, *np.arange(0, 10, 0.7)) for g in "abc"
    ]
    columns = dict(zip("xg", map(list, zip(*rows, strict=True)), strict=True))
    records = project_table(domain, columns)
    grouped = name.endswith("groups") or name == "difference"
    w = (
        1.0
        if grouped and relation is REPLACE_ONE
        else (1.7320508 if relation is REPLACE_ONE else math.sqrt(0.5))
    )
    expected = np.array([contribution(name, row, relation, w) for row in rows])
    added = learner.contributions(query, records, public).reshape(len(rows), -1)
    assert added == pytest.approx(expected, abs=1e-12)
    tail = np.linalg.norm(expected, axis=1).max()
    if relation is REPLACE_ONE:
        steps = expected[:, None] - expected[None]
        tail = np.linalg.norm(steps, axis=2).max()
    assert tail <= claim.value * (1 + 1e-12)
    assert tail == pytest.approx(claim.value, rel=1e-4)


def test_moments_lengthen_nothing():
    """The lemma on a fine grid, and the one of a sum: both are attained, and neither is passed."""
    x = np.linspace(-1, 1, 100_001)
    lengths = np.linalg.norm(np.column_stack([x, free_moments(x)]), axis=1)
    assert lengths.max() == pytest.approx(1.0, abs=1e-12)
    y = np.linspace(0, 1, 100_001)
    for c, passes in ((FREE_SQUARE, False), (FREE_SQUARE + 0.02, True)):
        assert (np.hypot(y, c * y * (1 - y)).max() > 1 + 1e-9) == passes


# What it rests on.


@pytest.mark.parametrize(("name", "relation"), [*cases()])
def test_equal_answers_have_equal_tables(name, relation):
    """Two tables of records, one answer: an interval reads answers and public facts only."""
    labs = [Lab.of(priced(LEARNERS[name], relation), table(400, seed)) for seed in (1, 2)]
    value = np.asarray(labs[0].value.floats()) + 3.25
    texts = [
        json.dumps({k: t.data() for k, t in lab.of_answer(value).tables.items()}) for lab in labs
    ]
    assert texts[0] == texts[1]
    assert '"population"' in texts[0] or (name == "variance" and relation is REPLACE_ONE)


@pytest.mark.parametrize("epsilon", [0.05, pytest.param(1.0, marks=pytest.mark.slow), 6.0])
@pytest.mark.parametrize(("name", "relation"), [*cases()])
def test_estimates_lie_in_their_intervals(name, relation, epsilon):
    """Whatever the answer, where the estimate is a possible number; and intervals are the wider
    ones.
    """
    learner = attrs.evolve(LEARNERS[name], interval="both")
    lab = Lab.of(priced(learner, relation, epsilon), table())
    rng = np.random.default_rng(3)
    (scheduled,) = priced(learner, relation, epsilon).schedule.releases
    (planned_query,) = scheduled.queries.values()
    truth = np.asarray(lab.value.floats())
    for size in (0.0, 1.0, 3.0):
        value = truth + size * planned_query.noise_distribution.width * rng.standard_normal(
            truth.shape
        )
        for figures in lab.of_answer(value).tables.values():
            intervals, estimate = figures.population, figures.estimate
            # A count may be released as a negative number, which is cut in no table.
            possible = (figures.low <= estimate) & (estimate <= figures.high)
            assert possible.all() or "count" in str(figures) or "x" in figures.about
            assert (intervals.low <= estimate + 1e-9)[possible].all()
            assert (estimate <= intervals.high + 1e-9)[possible].all()
            if epsilon >= 1 and size <= 1 and name != "ratio":
                widths = intervals.high - intervals.low, figures.high - figures.low
                assert (widths[0] >= widths[1] * (1 - 1e-6)).all()


def test_few_records_say_nothing():
    lab = Lab.of(priced(Mean(column="x"), ADD_REMOVE, 0.05), table(20))
    (figures,) = lab.of_answer(np.asarray(lab.value.floats())).tables.values()
    assert not np.isfinite(figures.population.low[0])
    assert "says nothing" in str(figures)
    (interval,) = [i for i in figures.data()["intervals"] if i["kind"] == "population"]
    assert interval["between"] == ["population_low", "population_high"]
    assert figures.data()["columns"]["population_low"][0] is None
    assert "too few records for this budget" in interval["covers"]


def test_population_alone_stands_in_place_of_the_noise():
    both, single = (
        Lab.of(priced(Mean(column="x", interval=kind), ADD_REMOVE), table())
        for kind in ("both", "population")
    )
    value = np.asarray(both.value.floats())
    (two,), (one,) = (lab.of_answer(value).tables.values() for lab in (both, single))
    assert [*one.low, *one.high] == [*two.population.low, *two.population.high]
    assert one.data()["intervals"][0]["kind"] == "population"
    assert "population_low" not in one.columns


def test_a_finite_population_narrows_the_bars():
    widths = []
    for sampled in ("independent", 100_000, 800, 400):
        lab = Lab.of(priced(Mean(column="x"), REPLACE_ONE, 4.0, sampled), table())
        (figures,) = lab.of_answer(np.asarray(lab.value.floats())).tables.values()
        widths.append(float((figures.population.high - figures.population.low)[0]))
        noise = float((figures.high - figures.low)[0])
    assert widths[0] > widths[1] > widths[2] > widths[3]
    # All of a population is sampled: what is left is the noise.
    assert widths[3] == pytest.approx(noise, rel=1e-3)


# What it refuses.


@pytest.mark.parametrize(
    ("learner", "domain", "words"),
    [
        (Mean(column="x"), facts(sampled=None), "data.domain.sampled"),
        (Mean(column="x"), facts(sampled="census"), "a census has no sampling error"),
        (Variance(column="x"), facts(people=People(column="id", records=2)), "one record a person"),
        (Variance(column="x", distance="l1"), facts(), "Gaussian noise"),
        (
            Mean(column="x", clip="person"),
            facts(people=People(column="id", records=1)),
            "clip: record",
        ),
        (Workload(column="x", bins=4), facts(), "has no interval about the population"),
        (Table(marginals={"t": ("g",)}), facts(sampled=5000), "shares: true"),
        (Count(), facts(sampled=5000), "sampled: independent"),
        (Histogram(column="x", bins=2), facts(sampled=5000), "shares: true"),
        (Total(column="x"), facts(400), "take the mean"),
    ],
)
def test_refusals_say_what_is_needed(learner, domain, words):
    for kind in ("population", "both"):
        public = Public(domain=domain, randomness=PublicRandomness(1), mu=1.0)
        with pytest.raises(ParameterError, match=words):
            attrs.evolve(learner, interval=kind).queries(public)
    # By default nothing is reported, and nothing refused.
    assert not learner.samples(public)
    assert learner.queries(public)


def test_persons_are_draws_where_they_are_counted():
    people = People(column="id", records=3)
    public = Public(domain=facts(people=people), randomness=PublicRandomness(1), mu=1.0)
    assert Count(of="persons").samples(public)
    assert not Count().samples(public)


def test_shares_of_persons_and_samples_that_cannot_be_are_refused():
    with pytest.raises(ParameterError, match="of: records"):
        Histogram(column="x", bins=2, of="persons", shares=True)
    for wrong in ("random", 0, 399, True, 2.5):
        with pytest.raises(ParameterError, match="independent, census"):
            facts(400, wrong)
    columns = {"x": Range(-1, 1), "g": Categories(("a", "b"))}
    domain = attrs.evolve(facts(), columns=columns)
    public = Public(domain=domain, randomness=PublicRandomness(1), mu=1.0)
    with pytest.raises(ParameterError, match="a range from 0 on"):
        GroupBy(by=("g",), column="x", compare="ratio").queries(public)


def test_laplace_noise_tells_no_population():
    """Without a delta the default is the noise; of noise that is not normal nothing is reported."""
    one = Session(PrivacyBudget(epsilon=2.0), facts(), table())
    assert one.mean("x", epsilon=1.0).population is None
    lab = Lab.of(plan(Mean(column="x", interval="both"), Laplace(), facts()), table())
    (figures,) = lab.of_answer(np.asarray(lab.value.floats())).tables.values()
    assert not np.isfinite(figures.population.low).any()
    assert "not normal" in figures.interval_sentence


def test_a_session_tells_both():
    one = Session(PrivacyBudget(epsilon=3.0, delta=1e-6), facts(), table(3000))
    figures = one.mean("x", epsilon=1.0)
    assert (figures.population.low < figures.low).all()
    assert (figures.high < figures.population.high).all()
    assert "population_low to population_high: 95 % intervals; noise and sampling" in str(figures)


def test_a_bounded_mean_has_no_population():
    for kind in ("population", "both"):
        with pytest.raises(ParameterError, match="its bias is in no interval"):
            BoundedMean(column="x", interval=kind)


# Quantiles, rates and tests.


@pytest.mark.parametrize("records", [None, 3000])
def test_quantiles_of_a_population_are_wider_than_those_of_its_records(records):
    """By prefixes only, where they are asked for: a choice reveals nothing of a population."""
    learner = Quantiles(column="x", quantiles=(0.5,), points=129, interval="both")
    relation = ADD_REMOVE if records is None else REPLACE_ONE
    rows = table(3000)
    lab = Lab.of(plan(learner, Gaussian(), facts(records), relation, epsilon=4.0), rows)
    (figures,) = lab.published(1).tables.values()
    intervals = figures.population
    assert intervals.low[0] <= figures.estimate[0] <= intervals.high[0]
    # As wide as the interval of order statistics, up to the noise and two steps of the grid.
    ordered = np.sort(rows["x"])
    ranks = stats.binom.ppf([0.025, 0.975], 3000, 0.5).astype(int)
    width = ordered[ranks[1]] - ordered[ranks[0]]
    assert width < intervals.high[0] - intervals.low[0] < 1.2 * width + 2 * 10 / 128
    with pytest.raises(ParameterError, match="method: prefixes"):
        Quantiles(column="x", interval="population", method="choice")
    with pytest.raises(ParameterError, match="one of"):
        Quantiles(column="x", interval="all")


def test_ties_are_in_the_interval_of_a_quantile():
    """All values alike: both tests hold at that point, and none next to it."""
    learner = Quantiles(column="x", quantiles=(0.5,), points=11, interval="both")
    rows = {"x": [4.0] * 3000, "g": ["a"] * 3000}
    lab = Lab.of(plan(learner, Gaussian(), facts(), epsilon=2.0), rows)
    (figures,) = lab.published(1).tables.values()
    assert figures.population.low[0] <= 4.0 <= figures.population.high[0]
    assert figures.population.high[0] - figures.population.low[0] == pytest.approx(1.0)


def test_rates_and_gaps_have_both_bars():
    """From their definition: a rate's interval is the proportion of two sums of cells."""
    columns = {"g": Categories(("a", "b")), "predicted": Categories(("no", "yes"))}
    domain = Domain(
        columns=columns, target="y", labels=Classes(("no", "yes")), sampled="independent"
    )
    rng = np.random.default_rng(0)
    rows = {name: rng.choice(["no", "yes"], 4000).tolist() for name in ("predicted", "y")}
    rows["g"] = rng.choice(["a", "b"], 4000).tolist()
    lab = Lab.of(plan(GroupRates(by=("g",)), DiscreteGaussian(), domain, epsilon=1.0), rows)
    tables = lab.published(2).tables
    rates, gap = tables["rate"], tables["gap-error"]
    assert (rates.population.low < rates.low).all()
    assert (rates.high < rates.population.high).all()
    distribution = attrs.evolve(lab_distribution(lab), miss=1 - 0.95 ** (1 / 8))
    cells = tables["count"].estimate.reshape(2, 2, 2)
    wrong, right = cells[0, 0, 1] + cells[0, 1, 0], cells[0, 0, 0] + cells[0, 1, 1]
    expected = noisy_fraction(wrong, right, distribution, (2, 2))
    assert [rates.population.low[0], rates.population.high[0]] == pytest.approx(
        [float(end) for end in expected], rel=1e-6
    )
    assert gap.population.low[0] < gap.low[0] < gap.high[0] < gap.population.high[0]


def lab_distribution(lab):
    (planned_query,) = lab.scheduled.queries.values()
    return sampling_of(planned_query.noise_distribution, 0.05, facts())


@pytest.mark.parametrize(
    ("tied", "size", "verdict"), [(0.0, 4000, ""), (0.3, 4000, ""), (0.3, 12, "nothing")]
)
def test_independence_is_tested(tied, size, verdict):
    domain = Domain(
        columns={"g": Categories(("a", "b")), "h": Categories(("u", "v", "w"))},
        sampled="independent",
    )
    rng = np.random.default_rng(1)
    g = rng.integers(2, size=size)
    h = np.where(rng.uniform(size=size) < tied, g, rng.integers(3, size=size))
    rows = {"g": np.array(["a", "b"])[g].tolist(), "h": np.array(["u", "v", "w"])[h].tolist()}
    learner = GroupBy(by=("g", "h"), compare="independence")
    lab = Lab.of(plan(learner, DiscreteGaussian(), domain, epsilon=1.0), rows)
    first, again = (lab.published(3).tables["independence"] for _ in range(2))
    assert json.dumps(first.data()) == json.dumps(again.data())
    p_value = first.estimate[1]
    assert (p_value < 0.01) == (tied > 0 and not verdict)
    assert verdict in first.interval_sentence
    assert "says nothing" not in first.interval_sentence or p_value == 1.0


def test_a_test_of_independence_is_refused_by_name():
    public = Public(domain=facts(sampled=None), randomness=PublicRandomness(1), mu=1.0)
    edges = {"x": (0, 5, 10)}
    with pytest.raises(ParameterError, match=r"data\.domain\.sampled"):
        GroupBy(by=("g", "x"), edges=edges, compare="independence").queries(public)
    for wrong in (
        {"by": ("g",)},
        {"by": ("g", "x"), "column": "x"},
        {"by": ("g", "x"), "of": "persons"},
    ):
        with pytest.raises(ParameterError, match=r"independence|of: records"):
            GroupBy(compare="independence", **wrong)


def test_check_says_how_wide_the_population_will_be():
    """By the formula of the documentation, as letters or at a public guess."""
    (line, *_) = [line for line in forecast_of(Mean(column="x")) if "population mean of x" in line]
    assert "sd)^2/n)" in line
    guessed = Mean(column="x", guess={"records": 5000, "sd": 2})
    (line, *_) = [line for line in forecast_of(guessed) if "population mean of x" in line]
    noise = float(
        re.search(r"mean of x about \+- ([\d.]+)/n", "".join(forecast_of(guessed))).group(1)
    )
    half = math.hypot(noise / 5000, 1.95996 * 2 / math.sqrt(5000))
    assert float(re.search(r"\+- ([\d.]+) at n = 5000", line).group(1)) == pytest.approx(
        half, rel=1e-3
    )
    even = float(re.search(r"below n = ([\d.]+)", line).group(1))
    assert even == pytest.approx((noise / (1.95996 * 2)) ** 2, rel=2e-3)
    with pytest.raises(ParameterError, match="both records and sd"):
        Mean(column="x", guess={"records": 5000})


def numbers(line):
    """The half-width, n and the break-even number of a line of `check`."""
    found = re.search(r"\+- ([\d.]+) at n = ([\d.]+): .* below n = ([\d.e+]+)", line)
    return tuple(map(float, found.groups()))


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize("kind", ["count", "shares"])
def test_check_says_how_wide_shares_of_the_population_will_be(kind, relation):
    """By Wilson-Fieller's terms at a guess: the noise of both cells, or of one out of a public n;
    of several shares together each by its part of the miss."""
    learner = Count(where=IN_A) if kind == "count" else Histogram(column="x", bins=3, shares=True)
    guess = {"records": 2000, "share": 0.2}
    letters, at_guess = (
        forecast_of(attrs.evolve(learner, guess=more), relation)[-1] for more in ({}, guess)
    )
    assert "sqrt(p(1 - p))" in letters
    miss = 0.05 if kind == "count" else 1 - 0.95 ** (1 / 3)
    z = stats.norm.ppf(1 - miss / 2)
    (scheduled,) = priced(learner, relation).schedule.releases
    (planned_query,) = scheduled.queries.values()
    noise = planned_query.noise_distribution.within(miss) * (
        math.hypot(0.8, 0.2) if relation is ADD_REMOVE else 1
    )
    half, n, even = numbers(at_guess)
    assert n == 2000
    assert half == pytest.approx(math.hypot(noise / 2000, z * 0.4 / math.sqrt(2000)), rel=1e-3)
    assert even == pytest.approx((noise / (z * 0.4)) ** 2, rel=1e-3)
    # Without sampling error nothing is said of it, nor where a count is of a stream.
    noise_only = forecast_of(attrs.evolve(learner, interval="noise"), relation)
    assert not any("population" in line for line in noise_only)
    assert not any("population" in line for line in forecast_of(Count()))


def test_check_says_how_wide_quantiles_and_group_means_will_be():
    quantiles = Quantiles(column="x", quantiles=(0.5, 0.9), points=65, interval="both")
    letters = forecast_of(quantiles)
    assert sum("population quantile" in line for line in letters) == 2
    guessed = forecast_of(attrs.evolve(quantiles, guess={"records": 3000}))
    halves = [numbers(line)[0] for line in guessed if "population quantile" in line]
    z = stats.norm.ppf(1 - (1 - 0.95**0.5) / 2)
    for half, q in zip(halves, (0.5, 0.9), strict=True):
        assert half > z * math.sqrt(q * (1 - q) / 3000)
    (line,) = [line for line in forecast_of(LEARNERS["difference"]) if "each population" in line]
    assert "sd)^2/n" in line
    for wrong in ({"records": 5}, {"records": 5, "share": 1.0}, {"records": -1, "share": 0.5}):
        with pytest.raises(ParameterError, match="both records and share"):
            Count(where=IN_A, guess=wrong)
    with pytest.raises(ParameterError, match="guess"):
        attrs.evolve(quantiles, guess={"share": 0.5})


def forecast_of(learner, relation=ADD_REMOVE):
    (scheduled,) = priced(learner, relation).schedule.releases
    return scheduled.forecast(PublicRandomness(1))


# A spec of its own.

SPEC = """
dpcore: 1
data:
  source: people.csv
  domain:
    records: private
    sampled: {of: 90000}
    columns:
      age: [0, 100]
budget: {epsilon: 1, delta: 1.0e-6}
adjacency: add_remove
release:
  learner: {name: statistics.mean, column: age}
  mechanism: gaussian
"""


def test_a_published_run_holds_both_and_replays(tmp_path):
    """A table's file names both kinds, and a replay finds the same bytes."""
    ages = np.random.default_rng(0).integers(20, 80, 2000)
    (tmp_path / "people.csv").write_text("age\n" + "\n".join(map(str, ages)) + "\n", "utf-8")
    (tmp_path / "spec.yaml").write_text(SPEC, "utf-8")
    outcome = dpcore.run(dpcore.load_spec(tmp_path / "spec.yaml"), runs=tmp_path / "runs")
    files = outcome.files
    (name,) = [name for name in files if name.endswith(".table.json")]
    (found,) = json.loads(files[name]).values()
    assert [interval["kind"] for interval in found["intervals"]] == ["noise", "population"]
    assert "population of 90000" in found["intervals"][1]["covers"]
    dpcore.replay(outcome.folder)


# Tests of equal means.


def test_p_values_agree_with_the_intervals_of_differences():
    """p is at most the miss exactly where the interval at that miss leaves 0 out."""
    rng = np.random.default_rng(3)
    pair = []
    for shift in (0.0, 0.03):
        places = np.clip(rng.beta(2, 3, (200, 400)) * 2 - 1 + shift, -1, 1)
        lost = [((1 - places**2) * places**k).sum(axis=1) for k in range(3)]
        noise = 12 * rng.standard_normal((5, 200))
        pair.append(
            Moments(
                n=400 + noise[0] * math.sqrt(2), total=places.sum(axis=1) + noise[1],
                lost=np.array(lost) + noise[2:], width=12.0, of_count=2.0,
            )
        )  # fmt: skip
    sampling = Sampling(width=12.0, miss=0.05)
    p_values = mean_test(*pair, sampling)
    assert 0 < np.mean(p_values <= 0.05) < 1
    for miss in (0.3, 0.05, 1e-3):
        low, high = mean_difference(*pair, attrs.evolve(sampling, miss=miss))
        assert np.array_equal(p_values <= miss, (low > 0) | (high < 0))


def test_a_session_tests_means_of_groups():
    rng = np.random.default_rng(4)
    groups = rng.choice(["a", "b", "c"], 6000)
    table = {"x": rng.beta(2, 5, 6000) * 10 + 1.5 * (groups == "c"), "g": groups}
    session = Session(PrivacyBudget(epsilon=4.0, delta=1e-6), facts(), table)
    tables = session.group_by("g", epsilon=2.0, column="x", compare="equality").tables
    figures = tables["equality"]
    a_b, a_c, b_c = figures["p_value"]
    assert max(a_c, b_c) < 1e-6 < 0.01 < a_b <= 1
    assert "of 3 tests" in figures.covers
    holds = (figures.population.low <= 0) & (figures.population.high >= 0)
    assert list(holds) == [True, False, False]


def test_a_test_of_means_needs_intervals_about_the_population():
    learner = GroupBy(by=("g",), column="x", compare="equality")
    for changed, domain, words in (
        (learner, facts(sampled=None), "data.domain.sampled"),
        (attrs.evolve(learner, interval="noise"), facts(), "both, or population"),
        (attrs.evolve(learner, distance="l1"), facts(), "Gaussian noise"),
    ):
        with pytest.raises(ParameterError, match=words):
            changed.queries(Public(domain=domain, randomness=PublicRandomness(1), mu=1.0))
    with pytest.raises(ParameterError, match="a column"):
        GroupBy(by=("g",), compare="equality")
