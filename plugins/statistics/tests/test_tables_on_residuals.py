"""Tables, histograms and groups on the residual basis: never a wider bar, totals that add up."""

import itertools

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import dpcore
from dpcore import ADD_REMOVE, REPLACE_ONE, Categories, Domain, Public, PublicRandomness, Range
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.claims.mechanisms.discrete_laplace import DiscreteLaplace
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.interval import LaplaceDistribution, NormalDistribution, apart
from dpcore_statistics.groups import GroupBy
from dpcore_statistics.histogram import Histogram
from dpcore_statistics.statistic import StatisticBound
from dpcore_statistics.tables import Table
from dpcore_statistics.workload import Workload

from published.make import ARCHIVE
from statistics_checks import Lab, band, plan

RELATION = {False: ADD_REMOVE, True: REPLACE_ONE}


def facts(sizes, known, complete=True):
    columns = {
        f"c{i}": Categories(tuple(range(size)), default=0 if complete else None)
        for i, size in enumerate(sizes)
    }
    return Domain(columns=columns, exact=100 if known else None)


workloads = st.lists(st.integers(2, 9), min_size=1, max_size=4).flatmap(
    lambda sizes: st.tuples(
        st.just(sizes),
        st.sets(
            st.sets(st.integers(0, len(sizes) - 1), min_size=1, max_size=3).map(frozenset),
            min_size=1,
            max_size=5,
        ),
    )
)


def half_widths(learner, domain, relation):
    """By the formula: the sensitivity at mu = 1 times each table's noise, and all cells' bar."""
    public = Public(domain=domain, randomness=PublicRandomness(1), mu=1.0)
    (query,) = learner.queries(public)
    claim = StatisticBound().sensitivity(query, learner, public, relation)
    noise_distribution = NormalDistribution(width=claim.value, step=2.0**-30)
    measured = learner.measured(public)
    if measured is not None:
        return measured.half_widths(noise_distribution, 0.05)
    tables = learner.tables_of(public)
    miss = apart(0.05, sum(table.size for table in tables))
    return np.array([noise_distribution.within(miss) / table.weight for table in tables])


def deviations(learner, domain, relation):
    """The standard deviation of every table's cells at mu = 1, and how many cells there are."""
    public = Public(domain=domain, randomness=PublicRandomness(1), mu=1.0)
    (query,) = learner.queries(public)
    claim = StatisticBound().sensitivity(query, learner, public, relation)
    measured, tables = learner.measured(public), learner.tables_of(public)
    cells = sum(table.size for table in tables)
    if measured is None:
        return np.array([claim.value / table.weight for table in tables])
    # As many intervals hold together as before, and no quantile is above Šidák's of so many.
    assert measured.workload.answers == cells
    return measured.plan.deviations(claim.value)


@given(
    workload=workloads,
    known=st.booleans(),
    complete=st.booleans(),
    weighted=st.booleans(),
    where=st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_no_bar_is_wider_than_before_at_the_same_budget(workload, known, complete, weighted, where):
    sizes, sets = workload
    marginals = {
        "-".join(map(str, sorted(table))): tuple(f"c{i}" for i in sorted(table)) for table in sets
    }
    weights = {name: 1.0 + 2 * i for i, name in enumerate(marginals)} if weighted else {}
    fields = {"where": {"c0": [1]}} if where else {}
    now, before = (
        deviations(
            Table(marginals=marginals, weights=weights, strategy=strategy, **fields),
            facts(sizes, known, complete),
            RELATION[known],
        )
        for strategy in ("basis", "cells")
    )
    assert (now <= before * (1 + 1e-6)).all()


def test_pairs_gain_as_much_as_the_basis_promises():
    names = [f"c{i}" for i in range(4)]
    marginals = {f"{a}{b}": (a, b) for a, b in itertools.combinations(names, 2)}
    now, before = (
        half_widths(
            Table(marginals=marginals, strategy=strategy), facts([2, 4, 9, 16], False), ADD_REMOVE
        )
        for strategy in ("basis", "cells")
    )
    assert (now < 0.92 * before).all()


@pytest.mark.parametrize("learner", [Histogram(column="c0"), GroupBy(by=("c0", "c1"))])
def test_counts_of_all_records_add_up_to_their_public_number(learner):
    domain = facts([5, 2], True)
    table = {"c0": [0, 1, 2, 3, 3] * 20, "c1": [0, 1] * 50}
    lab = Lab.of(plan(learner, Gaussian(), domain, REPLACE_ONE, 3.0), table)
    (figures,) = lab.published(1).tables.values()
    assert figures.unbiased.sum() == pytest.approx(100, abs=1e-9)
    before = Lab.of(
        plan(attrs.evolve(learner, strategy="cells"), Gaussian(), domain, REPLACE_ONE, 3.0), table
    )
    (old,) = before.published(1).tables.values()
    assert old.unbiased is None
    inside = (old.low > 0) & (figures.low > 0)
    assert inside.any()
    assert ((figures.high - figures.low)[inside] < (old.high - old.low)[inside]).all()


def test_counts_of_all_groups_add_up_to_a_public_number_of_records():
    domain, table = facts([4, 3], True), {"c0": [0, 1, 2, 3] * 25, "c1": [0, 1] * 50}
    intervals = []
    for strategy in ("basis", "cells"):
        learner = Histogram(column="c0", by=("c1",), strategy=strategy)
        priced = plan(learner, Gaussian(), domain, REPLACE_ONE, 3.0)
        (figures,) = Lab.of(priced, table).published(1).tables.values()
        assert [*zip(figures["c1"], figures["c0"], strict=True)] == [
            *itertools.product(range(3), range(4))
        ]
        intervals.append((figures.high - figures.low)[figures.low > 0].min())
        if strategy == "basis":
            assert figures.unbiased.sum() == pytest.approx(100, abs=1e-9)
    assert intervals[0] < intervals[1]


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("mechanism", [DiscreteGaussian(), Laplace(), DiscreteLaplace()])
def test_counts_add_up_whatever_the_noise_and_no_bar_is_wider(mechanism, epsilon):
    domain = facts([5], True)
    delta = 1e-6 if isinstance(mechanism, DiscreteGaussian) else 0.0
    half = []
    for strategy in ("basis", "cells"):
        learner = Histogram(column="c0", strategy=strategy)
        priced = plan(learner, mechanism, domain, REPLACE_ONE, epsilon, delta)
        lab = Lab.of(priced, {"c0": [0, 1, 2, 3, 4] * 20})
        (figures,) = lab.published(1).tables.values()
        half.append((figures.high - figures.low).max() / 2)
    (figures,) = (
        Lab.of(
            plan(Histogram(column="c0"), mechanism, domain, REPLACE_ONE, epsilon, delta),
            {"c0": [0] * 100},
        )
        .published(1)
        .tables.values()
    )
    assert figures.unbiased.sum() == pytest.approx(100, abs=1e-9)
    assert half[0] <= half[1] * (1 + 1e-9)


@pytest.mark.parametrize(
    "learner",
    [
        Table(marginals={"a": ("c0",), "ab": ("c0", "c1")}),
        Histogram(column="c0"),
        GroupBy(by=("c0",)),
    ],
)
def test_laplace_noise_has_its_numbers_cut_and_marked_too(learner):
    lab = Lab.of(
        plan(learner, Laplace(), facts([9, 2], False), epsilon=0.1, delta=0.0),
        {"c0": [0, 1], "c1": [0, 1]},
    )
    for figures in lab.published(1).tables.values():
        assert (figures.unbiased < 0).any()
        assert (figures.estimate >= 0).all()


@pytest.mark.parametrize("name", ["statistics.tables", "statistics.tables.format-3"])
def test_a_lock_of_before_publishes_what_it_published(name):
    run = dpcore.replay(ARCHIVE / "runs" / name)
    learners = [release.learner for release in run.spec.request.releases]
    assert [learner.strategy for learner in learners if isinstance(learner, Table)] == ["cells"]
    assert run.lock.versions["dpcore-statistics"] == "0.1.0"


def test_a_range_that_may_be_missing_is_no_part_of_a_public_total():
    domain = Domain(columns={"x": Range(0, 1, missing=True)}, exact=50)
    lab = Lab.of(
        plan(Histogram(column="x", bins=3), Gaussian(), domain, REPLACE_ONE),
        {"x": [0.1] * 30 + [None] * 20},
    )
    (figures,) = lab.published(1).tables.values()
    assert abs(figures.unbiased.sum() - 50) > 1


def test_what_the_basis_cannot_do_is_measured_by_cells():
    binary = Domain(columns={f"c{i}": Categories((0, 1), default=0) for i in range(15)}, exact=9)
    single = Domain(columns={"x": Range(0, 1)}, exact=9)
    for domain, bins in ((binary, {}), (single, {"x": 1})):
        learner = Table(marginals={"all": tuple(domain.columns)}, bins=bins)
        public = Public(domain=domain, randomness=PublicRandomness(1), mu=1.0)
        assert learner.measured(public) is None
        assert learner.queries(public)


def of_cells(known, sizes=(3, 4), **fields):
    """Tables that are measured by cells: without a delta."""
    marginals = {"ba": ("c1", "c0"), "a": ("c0",), "b": ("c1",)}
    learner = Table(marginals=marginals, **fields)
    domain = facts(sizes, known)
    priced = plan(learner, Laplace(), domain, RELATION[known], epsilon=1.0, delta=0.0)
    return Lab.of(priced, {"c0": [0, 1] * 50, "c1": [1] * 100})


@pytest.mark.parametrize("known", [False, True])
def test_tables_of_measured_cells_agree_and_no_bar_is_wider(known):
    now = of_cells(known).published(2).tables
    before = of_cells(known, strategy="cells").published(2).tables
    cells = now["ba"].unbiased.reshape(4, 3)
    np.testing.assert_allclose(cells.sum(axis=0), now["a"].unbiased, atol=1e-9)
    np.testing.assert_allclose(cells.sum(axis=1), now["b"].unbiased, atol=1e-9)
    if known:
        assert all(table.unbiased.sum() == pytest.approx(100) for table in now.values())
    for name, table in now.items():
        assert (table.low <= table.estimate).all()
        # Of a public number of records the bar ends there; an estimate may lie above.
        assert (np.minimum(table.estimate, 100 if known else np.inf) <= table.high).all()
        inside = (table.low > 0) & (before[name].low > 0)
        inside &= (table.high < 100) & (before[name].high < 100)
        widths = [(each.high - each.low)[inside] for each in (table, before[name])]
        assert (widths[0] <= widths[1] * (1 + 1e-9)).all()


@pytest.mark.parametrize("known", [False, True])
def test_bars_of_measured_cells_hold_together(known):
    lab = of_cells(known)
    truths = {"ba": [0] * 3 + [50, 50, 0] + [0] * 6, "a": [50, 50, 0], "b": [0, 100, 0, 0]}
    covered = 0
    for seed in range(100):
        tables = lab.published(seed).tables
        covered += all(
            ((tables[name].low <= truth) & (truth <= tables[name].high)).all()
            for name, truth in truths.items()
        )
    assert covered >= band(100)[0]


def test_a_column_with_missing_values_has_no_margin_and_pairs_without_it_agree():
    domain = Domain(
        columns={
            "x": Range(0, 1, missing=True),
            "c0": Categories((0, 1), default=0),
            "c1": Categories((0, 1), default=0),
        },
        exact=60,
    )
    marginals = {"xa": ("x", "c0"), "x": ("x",), "ab": ("c0", "c1"), "a": ("c0",)}
    learner = Table(marginals=marginals, bins={"x": 2})
    priced = plan(learner, Laplace(), domain, REPLACE_ONE, epsilon=1.0, delta=0.0)
    lab = Lab.of(priced, {"x": [None] * 40 + [0.1] * 20, "c0": [0, 1] * 30, "c1": [0] * 60})
    tables = {name: table.unbiased for name, table in lab.published(1).tables.items()}
    np.testing.assert_allclose(tables["xa"].reshape(2, 2).sum(axis=1), tables["x"], atol=1e-9)
    np.testing.assert_allclose(tables["ab"].reshape(2, 2).sum(axis=1), tables["a"], atol=1e-9)
    assert tables["a"].sum() == pytest.approx(60)
    assert abs(tables["x"].sum() - 20) < 40


@given(workload=workloads, known=st.booleans(), weighted=st.booleans())
@settings(max_examples=5, deadline=None)
def test_no_bar_is_wider_with_laplace_noise_in_l2(workload, known, weighted):
    sizes, sets = workload
    marginals = {
        "-".join(map(str, sorted(table))): tuple(f"c{i}" for i in sorted(table)) for table in sets
    }
    weights = {name: 1.0 + 2 * i for i, name in enumerate(marginals)} if weighted else {}
    public = Public(domain=facts(sizes, known), randomness=PublicRandomness(1), mu=1.0)
    half = []
    for strategy in ("basis", "cells"):
        learner = Table(marginals=marginals, weights=weights, strategy=strategy)
        (query,) = learner.queries(public)
        claim = StatisticBound().sensitivity(query, learner, public, RELATION[known])
        # The l1 length of that many numbers, which Laplace noise is calibrated to.
        noise_distribution = LaplaceDistribution(scale=claim.value * query.real_size**0.5)
        half.append(
            [
                float(line.split("+- ")[1].split(",")[0])
                for line in learner.expected(public, noise_distribution)
            ]
        )
    assert (np.array(half[0]) <= np.array(half[1]) * 1.001).all()


def test_answers_of_a_workload_below_0_are_printed_as_0():
    domain = facts([30], False)
    for intervals in ("joint", "single"):
        learner = Workload(column="c0", bars=intervals)
        lab = Lab.of(plan(learner, Gaussian(), domain, epsilon=0.2), {"c0": [20, 21]})
        (figures,) = lab.published(1).tables.values()
        if intervals == "single":
            assert figures.unbiased is None
            assert (figures.estimate < 0).any()
            continue
        below = figures.unbiased < 0
        assert below.any()
        np.testing.assert_array_equal(figures.estimate, np.maximum(figures.unbiased, 0))
        assert (figures.low <= figures.estimate).all()
        printed = [row[1] == "0*" for row in figures.printed_rows()]
        assert printed == below.tolist()


def test_an_estimate_above_the_number_of_records_is_printed_as_that_number():
    """The file keeps the number as it came: sums of cells are taken from that."""
    for learner in (Histogram(column="c0"), Workload(column="c0", ask_for="prefixes")):
        priced = plan(learner, Gaussian(), facts([3], True), REPLACE_ONE, epsilon=0.2)
        lab = Lab.of(priced, {"c0": [0] * 100})
        seen = set()
        for seed in range(6):
            (figures,) = lab.published(seed).tables.values()
            above = figures.unbiased > 100
            seen |= {*above.tolist()}
            np.testing.assert_array_equal(figures.estimate, np.maximum(figures.unbiased, 0))
            column = list(figures).index("estimate")
            printed = [row[column] for row in figures.printed_rows()]
            assert [cell == "100*" for cell in printed] == above.tolist()
            assert ("larger than can be" in figures.interval_sentence) == above.any()
            # Without a bar nothing says how large a number may be.
            assert all("100*" not in row for row in figures.unstated().printed_rows())
        assert seen == {False, True}


def test_weighted_sums_may_be_negative():
    learner = Workload(column="c0", matrix=((1.0, -1.0),))
    lab = Lab.of(plan(learner, Gaussian(), facts([2], False)), {"c0": [1] * 40})
    (figures,) = lab.published(1).tables.values()
    assert figures.unbiased is None
    assert figures.estimate[0] < 0
