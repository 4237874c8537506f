"""Running counts and sums: what a record moves, by brute force; intervals; and what they win."""

import itertools
import math
from datetime import date, datetime

import attrs
import numpy as np
import pytest

import dpcore
from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Domain,
    Public,
    PublicRandomness,
    Range,
    SecretRandomness,
    Session,
)
from dpcore.claims.accounting.budget import PrivacyBudget
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.domain.columns import Dates, day
from dpcore.domain.domain import People
from dpcore.errors import ParameterError
from dpcore.interval import NormalDistribution
from dpcore.private.opening import open_table
from dpcore_models.solvers.banded import square_root_bands
from dpcore_statistics.running import Running
from dpcore_statistics.statistic import StatisticBound
from dpcore_statistics.synthetic_visits import write

from builders import price_learner

EDGES = (0, 2, 5, 10)
TIMES = (0.0, 1.0, 2.0, 7.0, 10.0, None)
COSTS = (-1.0, 0.0, 2.5, 4.0)


def facts(records=None, people=None):
    return Domain(
        columns={"t": Range(0, 10, missing=True), "cost": Range(-1, 4)},
        exact=records,
        limit=None if records else 50,
        people=people,
    )


def measured(rows, weights, *, total):
    """y = K x of (time, cost) pairs, by its definition; costs in units of 4."""
    sums = [0.0, 0.0, 0.0]
    for time, cost in rows:
        if time is not None:
            sums[0 if time < 2 else 1 if time < 5 else 2] += cost / 4 if total else 1
    matrix = sum(weight * np.eye(3, k=-lag) for lag, weight in enumerate(weights))
    return matrix @ sums


def claimed(learner, adjacency, people=None):
    records = 3 if adjacency is REPLACE_ONE else None
    public = Public(domain=facts(records, people), randomness=PublicRandomness(1), mu=1.0)
    (query,) = learner.queries(public)
    return StatisticBound().sensitivity(query, learner, public, adjacency), query, public


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE], ids=str)
@pytest.mark.parametrize("norm", ["l2", "l1"])
@pytest.mark.parametrize("total", [None, "cost"])
@pytest.mark.parametrize("bands", [None, 1, 2])
def test_no_record_moves_more_than_is_claimed_and_one_moves_that(adjacency, norm, total, bands):
    """Each record is in one period, by its own date; one that is replaced may be in two."""
    learner = Running(column="t", edges=EDGES, amount=total, bands=bands, distance=norm)
    claim, _, public = claimed(learner, adjacency)
    weights = learner.weights(public)
    rows = [*itertools.product(TIMES, COSTS)]
    pairs = (
        [((row,), ()) for row in rows]
        if adjacency is ADD_REMOVE
        else [((a,), (b,)) for a in rows for b in rows]
    )
    longest = max(
        np.linalg.norm(
            measured(first, weights, total=total) - measured(second, weights, total=total),
            ord=1 if norm == "l1" else 2,
        )
        for first, second in pairs
    )
    assert longest <= claim.value
    # In l1 a replacement is priced by the triangle inequality, which sums of one sign do not reach.
    if norm == "l2" or adjacency is ADD_REMOVE:
        assert claim.value <= longest * (1 + 1e-6)


@pytest.mark.parametrize("total", [None, "cost"])
def test_the_sum_is_that_of_its_definition_in_blocks_and_record_by_record(total):
    learner = Running(column="t", edges=EDGES, amount=total)
    _, query, public = claimed(learner, ADD_REMOVE)
    rng = np.random.default_rng(0)
    times = [TIMES[index] for index in rng.integers(0, 6, 40)]
    costs = [float(cost) for cost in rng.uniform(-1, 4, 40)]
    plan = planned(learner, domain=public.domain)
    table = {"t": times, "cost": costs}
    train = open_table(plan.request, table, SecretRandomness.rehearsal(1)).train
    value = learner.total_of(query, train, public)
    exact = measured([*zip(times, costs, strict=True)], learner.weights(public), total=total)
    assert np.allclose(value.floats(), exact, atol=1e-6 if total else 0)
    single = sum(
        learner.contributions(query, train.take(np.array([i])), public)[0] for i in range(40)
    )
    assert np.array_equal(single, value.floats())


def planned(learner, *, domain=None, mechanism=None, adjacency=ADD_REMOVE, delta=1e-6):
    return price_learner(
        learner,
        domain=domain or facts(),
        mechanism=mechanism or Gaussian(),
        adjacency=adjacency,
        delta=delta,
    )


@pytest.mark.parametrize("kind", [Gaussian, DiscreteGaussian])
def test_bars_of_periods_and_totals_are_those_of_the_inverse(kind):
    learner = Running(column="t", edges=tuple(range(11)))
    plan = planned(learner, mechanism=kind())
    (scheduled,) = plan.schedule.releases
    (planned_query,) = plan.schedule.queries
    public = Public(domain=scheduled.part, randomness=PublicRandomness(1), mu=scheduled.mu)
    weights = learner.weights(public)
    matrix = sum(k * np.eye(10, k=-i) for i, k in enumerate(weights))
    inverse = np.linalg.inv(matrix)
    for half, rows in zip(
        learner.half_widths(planned_query.noise_distribution, public),
        (inverse, np.cumsum(inverse, axis=0)),
        strict=True,
    ):
        lengths = np.linalg.norm(rows, axis=1)
        cutoff = planned_query.noise_distribution.rounding * np.abs(rows).sum(axis=1)
        proportion = -math.expm1(math.log1p(-0.05) / 20)
        assert (
            half >= lengths * planned_query.noise_distribution.quantile(proportion) + cutoff - 1e-12
        ).all()
        assert np.allclose(
            half,
            lengths * planned_query.noise_distribution.quantile(proportion) + cutoff,
            rtol=1e-9,
        )


def test_bars_of_all_periods_and_totals_hold_together():
    """150 runs at 80 %: the number of runs with all 20 intervals right has a standard error of
    5.
    """
    learner = Running(column="t", edges=tuple(range(11)), level=0.8)
    plan = planned(learner)
    rng = np.random.default_rng(1)
    table = {"t": rng.uniform(0, 10, 40), "cost": rng.uniform(-1, 4, 40)}
    counts = np.histogram(table["t"], bins=range(11))[0]
    right = 0
    for seed in range(150):
        (model,) = plan.run(table, secret=SecretRandomness.rehearsal(seed)).models.values()
        pairs = ((model.tables["periods"], counts), (model.tables["totals"], np.cumsum(counts)))
        right += all(
            ((figures.low <= exact) & (exact <= figures.high)).all() for figures, exact in pairs
        )
    assert right >= 0.8 * 150 - 3 * 5


def errors(bands, periods=60):
    """Root mean squares of the deviations of totals and of periods, per unit of mu = 1."""
    learner = Running(column="t", edges=tuple(np.linspace(0, 10, periods + 1)), bands=bands)
    public = Public(domain=facts(), randomness=PublicRandomness(1), mu=1.0)
    (query,) = learner.queries(public)
    deviation = NormalDistribution(width=query.sum.clip)
    # Half-widths are one quantile times the deviation.
    quantile = deviation.quantile(-math.expm1(math.log1p(-0.05) / (2 * periods))) / deviation.width
    return [
        float(np.sqrt((half**2).mean())) / quantile
        for half in learner.half_widths(deviation, public)
    ]


def test_totals_have_less_noise_than_single_periods_or_a_tree_would_give():
    """60 months: 40.0 % of the error of independent noise; a binary tree with least squares has
    45.1 %, and without them (6 levels and one) at least 60 %."""
    single, total = errors(None)
    only, added = errors(1)
    assert only == pytest.approx(1.0, rel=1e-5)
    assert added == pytest.approx(math.sqrt(61 / 2), rel=1e-5)
    assert total / added == pytest.approx(0.400, abs=5e-4)
    assert single == pytest.approx(1.734, abs=5e-3)
    levels = [2**level for level in range(7)]
    nodes = np.array(
        [
            [start <= period < start + width for period in range(60)]
            for width in levels
            for start in range(0, 60, width)
        ],
        dtype=float,
    )
    least_squares = np.tril(np.ones((60, 60))) @ np.linalg.pinv(nodes)
    tree = math.sqrt(len(levels)) * math.sqrt((least_squares**2).sum(axis=1).mean())
    assert tree / added == pytest.approx(0.451, abs=1e-3)
    assert total < tree


def test_months_are_cut_where_the_calendar_cuts_them():
    dates = Dates.between(date(2023, 1, 15), date(2023, 4, 2))
    public = Public(
        domain=Domain(columns={"t": dates}, exact=None), randomness=PublicRandomness(1), mu=1.0
    )
    assert Running(column="t", every="month").periods(public).labels == (
        "[2023-01-15, 2023-02-01)",
        "[2023-02-01, 2023-03-01)",
        "[2023-03-01, 2023-04-01)",
        "[2023-04-01, 2023-04-02]",
    )
    weeks = Running(column="t", every="week").periods(public).labels
    assert weeks[0] == "[2023-01-15, 2023-01-22)"
    # The last day begins a twelfth week, which it holds by itself.
    assert weeks[11:] == ("[2023-04-02, 2023-04-03]",)
    assert len(Running(column="t", every="day").periods(public).labels) == 78
    assert day(date(2023, 4, 2)) - day(date(2023, 1, 15)) == 77
    years = Dates.between(date(2020, 6, 1), date(2022, 6, 1))
    public = attrs.evolve(public, domain=Domain(columns={"t": years}, exact=None))
    assert [label[1:11] for label in Running(column="t", every="year").periods(public).labels] == [
        "2020-06-01",
        "2021-01-01",
        "2022-01-01",
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"every": "month"}, "column of dates"),
        ({"every": "month", "edges": EDGES}, "either every or edges"),
        ({}, "edges"),
        ({"edges": tuple(np.linspace(0, 10, 1100))}, "1024 periods"),
    ],
)
def test_periods_that_are_none_are_refused(fields, message):
    with pytest.raises(ParameterError, match=message):
        planned(Running(column="t", **fields))


@pytest.mark.parametrize("total", [None, "cost"])
def test_persons_cost_all_their_records_or_are_clipped_over_all_periods(total):
    people = People(column="id", records=3)
    domain = facts(people=people)
    adjacency = ADD_REMOVE.of_persons(3)
    plans = [
        planned(Running(column="t", edges=EDGES, amount=total, **fields), domain=domain,
                adjacency=adjacency)
        for fields in ({}, {"clip": "person", "states_unit": total is not None})
    ]  # fmt: skip
    one = planned(Running(column="t", edges=EDGES, amount=total))
    of_one, of_three, clipped = (
        plan.schedule.queries[0].sensitivity.value for plan in (one, *plans)
    )
    assert of_three == pytest.approx(3 * of_one, rel=1e-6)
    assert clipped == pytest.approx(of_one, rel=1e-6)
    rng = np.random.default_rng(0)
    table = {
        "id": np.repeat(np.arange(20), 2),
        "t": rng.uniform(0, 10, 40),
        "cost": rng.uniform(-1, 4, 40),
    }
    for plan in plans:
        (model,) = plan.run(table, secret=SecretRandomness.rehearsal(1)).models.values()
        assert np.isfinite(model.tables["totals"].estimate).all()


def test_laplace_noise_is_put_on_the_periods_themselves():
    plan = planned(Running(column="t", edges=EDGES), mechanism=Laplace(), delta=0.0)
    (planned_query,) = plan.schedule.queries
    assert planned_query.sensitivity.value == 64.0


def test_the_example_runs_on_its_file_and_replays(tmp_path):
    write(tmp_path, patients=300)
    path = tmp_path / "running.yaml"
    examples = dpcore.Registry.default().load("statistics").examples
    path.write_text(examples["statistics.running"].read_text())
    outcome = dpcore.run(path, runs=tmp_path / "runs")
    loaded = dpcore.replay(outcome.folder)
    assert {*loaded.tables} == {
        f"{name}.{table}" for name in ("patients", "costs") for table in ("periods", "totals")
    }


def test_one_period_is_never_free():
    claim, _, _ = claimed(Running(column="t", edges=(0, 10)), REPLACE_ONE)
    assert claim.value >= square_root_bands(1)[0]


@pytest.mark.parametrize(
    ("first", "last", "every", "expected"),
    [
        (date(2020, 10, 1), date(2020, 12, 1), "month", [0, 25, 50]),
        (date(2020, 11, 30), date(2020, 12, 1), "day", [25, 50]),
        (datetime(2020, 11, 30, 6), datetime(2020, 12, 1, 18), "year", [75]),
        (date(2020, 11, 1), date(2020, 12, 31), "month", [25, 50]),
    ],
)
def test_every_moment_of_the_range_is_in_the_period_of_its_day(first, last, every, expected):
    moments = ["2020-11-30 12:00", "2020-12-01", "2020-12-01 18:00"] * 25
    session = Session(
        PrivacyBudget(epsilon=1e5, delta=1e-6),
        Domain(columns={"a": Dates.between(first, last)}),
        {"a": np.array(moments, "datetime64[us]")},
        adjacency="add_remove",
    )
    counts = session.running("a", every=every, epsilon=3000).tables["periods"]["estimate"]
    assert [round(count) for count in counts] == expected
