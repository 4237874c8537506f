"""Tables of measured cells: least squares by the explicit pseudo-inverse, errors, joint
intervals.
"""

import itertools
import math

import attrs
import numpy as np
import pytest

from dpcore.interval import LaplaceDistribution, NormalDistribution, apart
from dpcore_models.measurements.cells import CellTables, joint_half_widths

CASES = {
    "pairs": CellTables(
        sizes=(2, 3, 4), tables=((0, 1), (1, 2), (0, 2)), factors=(1.0, 2.0, 0.5), total=None
    ),
    "a public total": CellTables(
        sizes=(2, 3), tables=((0, 1), (0,), (1,)), factors=(1.0, 1.5, 0.7), total=9
    ),
    "an open column": CellTables(
        sizes=(2, 3, 2),
        tables=((0, 1), (1, 2), (0, 2), (0, 1, 2), (1,)),
        factors=(1.0, 2.0, 0.5, 3.0, 1.1),
        open_columns=frozenset({1}),
        total=9,
    ),
    "totals only": CellTables(sizes=(3, 1, 2), tables=((0, 1), (2,)), factors=(1.0, 4.0)),
    "apart": CellTables(
        sizes=(3, 2), tables=((0,), (0, 1)), factors=(1.0, 4.0), open_columns=frozenset({1})
    ),
}


def explicit(tables):
    """Every answer as a row over cells of all columns; open columns have one cell more."""
    sizes = [size + (i in tables.open_columns) for i, size in enumerate(tables.sizes)]
    rows = []
    records = [*itertools.product(*map(range, sizes))]
    for table in tables.tables:
        rows.extend(
            [
                all(record[i] == code for i, code in zip(table, cell, strict=True))
                for record in records
            ]
            for cell in itertools.product(*(range(tables.sizes[i]) for i in table))
        )
    return np.array(rows, dtype=float)


def least_squares(tables):
    """The matrix from noisy answers (and the total) to estimates, by the pseudo-inverse."""
    answers = explicit(tables)
    sizes = [math.prod(tables.sizes[i] for i in table) for table in tables.tables]
    scale = 1 / np.repeat(tables.factors, sizes)
    weighted = answers * scale[:, None]
    if tables.total is None:
        return answers @ np.linalg.pinv(weighted) * scale, np.zeros(len(answers))
    # All records add up to the total: x = x0 + Z z, Z the directions that leave it as it is.
    ones = np.ones(answers.shape[1])
    start = ones * tables.total / ones.size
    directions = np.linalg.svd(ones[None, :])[2][1:].T
    solved = answers @ directions @ np.linalg.pinv(weighted @ directions) * scale
    return solved, answers @ start - solved @ (answers @ start)


def split(tables, values):
    shapes = [tuple(tables.sizes[i] for i in table) for table in tables.tables]
    ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
    parts = np.split(values, ends, axis=-1)
    return [
        part.reshape(*values.shape[:-1], *shape) for part, shape in zip(parts, shapes, strict=True)
    ]


@pytest.mark.parametrize("name", CASES)
def test_estimates_deviations_and_largest_errors_are_those_of_the_pseudo_inverse(name):
    tables = CASES[name]
    matrix, constant = least_squares(tables)
    rng = np.random.default_rng(0)
    values = rng.normal(5, 3, (4, tables.size))
    estimates = tables.estimates(split(tables, values), tables.total)
    expected = split(tables, values @ matrix.T + constant)
    noise = np.repeat(tables.factors, [math.prod(t.shape[1:]) for t in expected])
    deviations = split(tables, np.sqrt(((matrix * noise) ** 2).sum(axis=1)))
    errors = split(tables, (np.abs(matrix) * noise).sum(axis=1))
    for number, table in enumerate(expected):
        np.testing.assert_allclose(estimates[number], table, atol=1e-9)
        np.testing.assert_allclose(deviations[number], tables.deviations()[number], atol=1e-12)
        assert (errors[number] <= tables.largest_errors()[number] * (1 + 1e-9)).all()


@pytest.mark.parametrize(
    "distribution",
    [
        LaplaceDistribution(scale=3.0, step=1.0),
        NormalDistribution(width=1.2, step=1.0),
        LaplaceDistribution(scale=1),
    ],
)
@pytest.mark.parametrize("name", ["pairs", "a public total"])
def test_all_estimates_lie_within_their_bars_together(name, distribution):
    tables = CASES[name]
    half = joint_half_widths(tables, distribution, 0.05)
    # The law by its definition, with draws of another stream.
    rng = np.random.default_rng(8)
    steps = np.arange(-200, 201) if distribution.step else np.arange(-2000, 2001) / 50
    width = (
        distribution.width if isinstance(distribution, NormalDistribution) else distribution.scale
    )
    power = 2 if isinstance(distribution, NormalDistribution) else 1
    weights = np.exp(-((np.abs(steps) / width) ** power) / power)
    noise = rng.choice(steps, (20_000, tables.size), p=weights / weights.sum())
    factors = np.repeat(
        tables.factors, [math.prod(tables.sizes[i] for i in t) for t in tables.tables]
    )
    total = None if tables.total is None else 0.0
    misses = np.zeros(len(noise), dtype=bool)
    for errors, end in zip(
        tables.estimates(split(tables, noise * factors), total), half, strict=True
    ):
        misses |= (np.abs(errors).reshape(len(noise), -1) > end).any(axis=1)
    assert 0.02 <= misses.mean() <= 0.0505
    single = distribution.within(apart(0.05, tables.size)) * np.array(tables.factors)
    assert max(np.array(half) / single) < 1.02


def test_what_says_nothing_of_another_table_is_not_simulated():
    distribution = LaplaceDistribution(scale=1.0)
    for tables in (CASES["apart"], attrs.evolve(CASES["pairs"], sizes=(50, 50, 50))):
        assert joint_half_widths(tables, distribution, 0.05) == (math.inf,) * len(tables.tables)
    moved = attrs.evolve(distribution, rounding=1.0)
    half = np.array(
        [joint_half_widths(CASES["pairs"], each, 0.05) for each in (distribution, moved)]
    )
    np.testing.assert_allclose(half[1] - half[0], CASES["pairs"].largest_errors())
