"""The residual basis: lengths by brute force, least squares by pseudo-inverse, counts,
intervals.
"""

import functools
import itertools
import math

import numpy as np
import pytest

from dpcore.interval import LaplaceDistribution, NormalDistribution, apart
from dpcore_models.measurements.agreement import block_by_block, size_by_size
from dpcore_models.measurements.allocation import least_largest, least_total
from dpcore_models.measurements.plan import joint_width, laplace_sums, plan
from dpcore_models.measurements.residuals import PLACES, Residuals
from dpcore_models.measurements.workload import Workload


def pairs(columns):
    return tuple(itertools.combinations(range(columns), 2))


SMALL = {
    "2x3": Workload((2, 3), ((0, 1),)),
    "2x3 and margins": Workload((2, 3), ((0, 1), (0,), (1,))),
    "3x4x5 pairs": Workload((3, 4, 5), pairs(3)),
    "2x3x2x3 pairs": Workload((2, 3, 2, 3), pairs(4)),
    "three ways": Workload((2, 2, 3), ((0, 1, 2), (1, 2))),
    "mixed": Workload((2, 3, 2), ((0, 1), (2,))),
    "a column of one cell": Workload((2, 1, 3), ((0, 1), (1, 2), (0, 2))),
    "one column": Workload((4,), ((0,),)),
    "total public": Workload((2, 3, 2), pairs(3), total_known=True),
}


def blocks_of(workload, factors, record):
    """What a record adds, from the definition: products of n_i e_x - 1, as whole numbers."""
    parts = []
    for subset, factor in zip(workload.subsets, factors, strict=True):
        vectors = [
            [workload.sizes[i] * (cell == record[i]) - 1 for cell in range(workload.sizes[i])]
            for i in subset
        ]
        parts += [factor * math.prod(entries) for entries in itertools.product(*vectors)]
    return parts


def universe(workload):
    return [*itertools.product(*(range(size) for size in workload.sizes))]


def squared(vector):
    return sum(entry * entry for entry in vector)


def minus(first, second):
    return [a - b for a, b in zip(first, second, strict=True)]


@pytest.mark.parametrize("name", SMALL)
def test_lengths_are_those_of_all_records_and_are_attained(name):
    workload = SMALL[name]
    residuals = plan(workload).residuals
    rows = [blocks_of(workload, residuals.factors, record) for record in universe(workload)]
    assert {squared(row) for row in rows} == {residuals.squared_length}
    distances = [squared(minus(a, b)) for a, b in itertools.combinations(rows, 2)]
    claimed = residuals.longest_squared_distance
    assert max(distances) <= claimed <= max(distances) * (1 + 2e-9) + 1
    assert residuals.squared_length < 4**PLACES


@pytest.mark.parametrize("name", ["2x3 and margins", "mixed"])
def test_a_person_of_two_records_moves_at_most_twice_the_larger_length(name):
    workload = SMALL[name]
    residuals = plan(workload).residuals
    rows = [blocks_of(workload, residuals.factors, record) for record in universe(workload)]
    rows.append([0] * residuals.size)  # no record
    sums = [[x + y for x, y in zip(a, b, strict=True)] for a in rows for b in rows]
    comes = max(squared(total) for total in sums)
    assert comes == 4 * residuals.squared_length
    moves = max(squared(minus(a, b)) for a in sums for b in sums)
    assert moves <= 4 * max(residuals.squared_length, residuals.longest_squared_distance)


def test_a_replaced_record_moves_more_than_root_two_of_the_length_of_binary_columns():
    only_pairs = Workload((2,) * 8, pairs(8), total_known=True)
    # Weight on pairs only: noise of the columns themselves is nearly without limit.
    noise = np.where([len(subset) == 1 for subset in only_pairs.subsets], 1e9, 1.0)
    residuals = Residuals.of(only_pairs, noise)
    found = max(
        squared(minus(*(blocks_of(only_pairs, residuals.factors, record) for record in both)))
        for both in itertools.product([(0,) * 8], universe(only_pairs))
    )
    ratio = found / residuals.squared_length
    assert ratio == pytest.approx(16 / 7, rel=1e-4)  # sqrt(2) times the length is 7 % too short
    assert found <= residuals.longest_squared_distance <= found * (1 + 2e-9)


def test_beyond_twenty_columns_the_bound_is_above_every_pair_of_records():
    workload = Workload((2,) * 21, pairs(21))
    residuals = plan(workload).residuals
    assert residuals.worst_agreement() is None
    found = max(residuals.squared_distance(frozenset(range(count))) for count in range(22))
    assert found <= residuals.longest_squared_distance <= found * (1 + 1e-9)
    mixed = Workload((*range(2, 25),), pairs(23))
    residuals = plan(mixed).residuals
    rng = np.random.default_rng(5)
    patterns = [frozenset(np.flatnonzero(rng.random(23) < p).tolist()) for p in rng.random(300)]
    found = max(map(residuals.squared_distance, patterns))
    assert found <= residuals.longest_squared_distance <= 1.3 * found


@pytest.mark.parametrize("name", SMALL)
def test_the_bounds_for_many_columns_hold_for_few(name):
    residuals = plan(SMALL[name]).residuals
    exact = max(
        residuals.squared_distance(frozenset(pattern))
        for size in range(len(SMALL[name].sizes) + 1)
        for pattern in itertools.combinations(range(len(SMALL[name].sizes)), size)
    )
    for bound in (block_by_block, size_by_size):
        assert exact <= bound(residuals.workload, residuals.factors)


@functools.cache
def explicit(name, objective="total"):
    """(plan, A, W): the measured rows in real units and the tables' rows, over the full cells."""
    workload = SMALL[name]
    made = plan(workload, objective)
    rows = [blocks_of(workload, made.residuals.factors, record) for record in universe(workload)]
    tables = [
        [float(all(record[i] == x for i, x in zip(table, cell, strict=True)))
         for record in universe(workload)]
        for table in workload.tables
        for cell in itertools.product(*(range(workload.sizes[i]) for i in table))
    ]  # fmt: skip
    return made, np.array(rows, dtype=float).T, np.array(tables)


UNKNOWN = [name for name in SMALL if name != "total public"]


@pytest.mark.parametrize("name", UNKNOWN)
def test_estimates_are_least_squares_and_their_variance_is_the_certificate(name):
    made, measured, tables = explicit(name)
    rng = np.random.default_rng(1)
    released = measured @ rng.integers(0, 50, measured.shape[1]) + rng.normal(
        0, 2.0**36, len(measured)
    )
    scaled = measured / 2.0**PLACES
    best = tables @ np.linalg.pinv(scaled) @ (released / 2.0**PLACES)
    mine = np.concatenate([t.ravel() for t in made.residuals.estimates(released, None)])
    np.testing.assert_allclose(mine, best, rtol=1e-7, atol=1e-6)
    # The covariance of the explicit estimate, at noise of width 1.
    covariance = tables @ np.linalg.pinv(scaled) @ np.linalg.pinv(scaled).T @ tables.T
    deviations = np.repeat(made.deviations(1.0), SMALL[name].table_cells.astype(int))
    np.testing.assert_allclose(np.sqrt(np.diag(covariance)), deviations, rtol=1e-6)
    total = np.trace(covariance) * (residual_length(made) ** 2)
    assert total == pytest.approx(made.allocation.least, rel=1e-4)
    assert made.allocation.value == pytest.approx(made.allocation.least, rel=1e-9)


def residual_length(made):
    return math.sqrt(made.residuals.squared_length) / 2**PLACES


@pytest.mark.parametrize("name", SMALL)
def test_noiseless_counts_come_back_as_they_are(name):
    workload = SMALL[name]
    made = plan(workload)
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 1000, workload.sizes)
    partial = {
        table: counts.sum(axis=tuple(i for i in range(counts.ndim) if i not in table))
        for table in workload.maximal
    }
    sums = made.residuals.sums(partial)
    total = float(counts.sum()) if workload.total_known else None
    for table, estimate in zip(
        workload.tables, made.residuals.estimates(sums.astype(float), total), strict=True
    ):
        exact = counts.sum(axis=tuple(i for i in range(counts.ndim) if i not in table))
        np.testing.assert_allclose(estimate, exact, rtol=0, atol=1e-8)


def test_sums_are_those_of_the_records():
    workload = SMALL["2x3x2x3 pairs"]
    residuals = plan(workload).residuals
    records = np.random.default_rng(3).integers(0, workload.sizes, (20, 4))
    counts = {
        table: np.histogramdd(records[:, table], [np.arange(workload.sizes[i] + 1) for i in table])[
            0
        ].astype(np.int64)
        for table in workload.maximal
    }
    rows = [blocks_of(workload, residuals.factors, record) for record in records.tolist()]
    assert residuals.sums(counts).tolist() == np.array(rows).sum(axis=0).tolist()


@pytest.mark.parametrize(
    ("name", "value"),
    [("3x4x5 pairs", 103.3158)],
)
def test_totals_are_the_least_of_all_strategies(name, value):
    # By duality from the explicit matrix: (tr M^(1/2))^2 / cells, with M the workload's.
    _, _, tables = explicit(name)
    roots = np.sqrt(np.maximum(np.linalg.eigvalsh(tables.T @ tables), 0))
    assert roots.sum() ** 2 / tables.shape[1] == pytest.approx(value, abs=1e-4)
    assert plan(SMALL[name]).allocation.value == pytest.approx(value, abs=1e-4)


def test_the_largest_ratio_is_within_its_gap():
    workload = Workload((2, 7, 16, 3), (*pairs(4), (2,)))
    made = least_largest(workload, np.ones(7))
    ratios = workload.variances(made.noise)
    assert ratios.max() == pytest.approx(made.value)
    assert made.least <= made.value <= 1.0011 * made.least
    assert made.value <= workload.variances(least_total(workload, np.ones(7)).noise).max()


@pytest.mark.parametrize("known", [False, True])
def test_all_cells_lie_within_their_bars_together(known):
    workload = Workload((2, 3, 4), (*pairs(3), (0,), (2,)), total_known=known)
    made = plan(workload)
    noise_distribution = NormalDistribution(width=1.0, step=2.0**-20, rounding=2.0**-21)
    half = made.half_widths(noise_distribution, 0.05)
    rng = np.random.default_rng(4)
    noise = rng.normal(0, 2.0**PLACES, (20_000, made.residuals.size))
    tables = made.residuals.estimates(noise, 0.0 if known else None)
    misses = np.zeros(len(noise), dtype=bool)
    for table, width in zip(tables, half, strict=True):
        misses |= (np.abs(table).reshape(len(noise), -1) > width).any(axis=1)
    # 20,000 draws: five standard errors are .008.
    assert 0.037 <= misses.mean() <= 0.0505


def test_bars_of_the_joint_law_are_never_above_sidaks_and_below_where_cells_repeat():
    # Of two cells with a public total, one is the other's opposite.
    small = plan(Workload((2,), ((0,),), total_known=True))
    large = plan(Workload((16,) * 5, pairs(5)))
    distribution = NormalDistribution(width=1.0)
    assert 1.95996 <= joint_width(small.residuals, distribution, 0.05) <= 2.1
    sidak = distribution.quantile(apart(0.05, 16 * 16 * 10))
    assert (
        large.half_widths(distribution, 0.05) <= sidak * large.deviations(1.0) * (1 + 1e-9)
    ).all()
    assert (
        small.half_widths(distribution, 0.05)
        < 0.95 * distribution.quantile(apart(0.05, 2)) * small.deviations(1.0)
    ).all()
    # Too many numbers are not simulated.
    assert math.isinf(joint_width(plan(Workload((50, 50), pairs(2))).residuals, distribution, 0.05))


def test_noise_of_another_law_or_on_a_coarse_grid_has_wider_bars():
    made = plan(SMALL["mixed"])
    fine = made.half_widths(NormalDistribution(width=1.0, step=1e-3), 0.05)
    for noise_distribution in (
        LaplaceDistribution(scale=1.0),
        NormalDistribution(width=1.0, step=0.1),
    ):
        assert (made.half_widths(noise_distribution, 0.05) > fine).all()
    assert np.isinf(made.half_widths(None, 0.05)).all()


@pytest.mark.parametrize("scales", [(1.0,), (1.0, 0.5, 0.25), (0.3,) * 12, (2.0, 0.1, 0.1, 0.1)])
def test_sums_of_laplace_noises_are_no_longer_than_their_bound(scales):
    # The law itself, by convolution of every noise's density on a fine grid.
    step, cutoff = 0.02, 3000
    places = np.arange(-cutoff, cutoff + 1) * step
    distribution = np.zeros(len(places))
    distribution[cutoff] = 1.0
    for scale in scales:
        density = np.exp(-np.abs(places) / scale)
        spectrum = np.fft.rfft(np.fft.ifftshift(density / density.sum()))
        distribution = np.fft.irfft(np.fft.rfft(distribution) * spectrum, len(places))
    deviation = math.sqrt(2 * sum(scale**2 for scale in scales))
    for miss in (0.05, 1e-3, 1e-5):
        (bound,) = laplace_sums(np.array([deviation]), np.array([max(scales)]), miss)
        assert distribution[np.abs(places) > bound].sum() <= miss
        assert bound <= 1.5 * max(scales) * math.log(1 / miss) + 3 * deviation
