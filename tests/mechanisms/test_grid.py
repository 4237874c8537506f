"""The public grid: how fine, what rounding adds, and that values on it are exact."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcore.claims.mechanisms.noise.grid import LARGEST, Grid
from dpcore.errors import ParameterError
from dpcore.sensitivity import Distance

NORMS = {
    Distance.L1: lambda v: np.abs(v).sum(),
    Distance.L2: lambda v: math.sqrt((v * v).sum()),
    Distance.LINF: lambda v: np.abs(v).max(),
}
ROUNDING = {Distance.L1: lambda d: d, Distance.L2: math.sqrt, Distance.LINF: lambda d: 1}


@given(st.floats(1e-12, 1e12), st.integers(1, 10**7), st.sampled_from(sorted(NORMS)))
def test_the_step_is_the_largest_power_of_two_that_adds_a_thousandth(
    unit: float, dimension: int, distance: Distance
) -> None:
    grid = Grid.for_release(unit, dimension, distance)
    limit = unit / (1000 * ROUNDING[distance](dimension))
    assert grid.step <= limit * (1 + 1e-12)
    assert 2 * grid.step > limit * (1 - 1e-12)
    exact = unit / grid.step + ROUNDING[distance](dimension)
    assert exact * (1 - 1e-15) <= float(grid.sensitivity(unit)) <= exact * (1 + 1e-12)


@settings(max_examples=200)
@given(st.integers(1, 6), st.sampled_from(sorted(NORMS)), st.integers(0, 2**32 - 1))
def test_rounding_moves_neighbours_apart_by_at_most_what_is_added(
    dimension: int, distance: Distance, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    grid = Grid.for_release(1.0, dimension, distance)
    v = generator.standard_normal(dimension) * 10.0 ** generator.integers(-4, 5)
    step = generator.standard_normal(dimension)
    w = v + step / NORMS[distance](step)
    moved = (grid.round(v) - grid.round(w)).astype(float)
    assert NORMS[distance](moved) <= float(grid.sensitivity(1.0)) * (1 + 1e-9)


def test_what_rounding_adds_is_attained() -> None:
    grid = Grid(exponent=0, dimension=4, distance=Distance.L2)
    v, w = np.full(4, 0.49), np.full(4, 0.51)
    assert np.linalg.norm(grid.round(v) - grid.round(w)) == 2.0


def test_values_on_the_grid_are_exact_and_huge_ones_are_clamped() -> None:
    grid = Grid(exponent=-20, dimension=3, distance=Distance.L2)
    steps = np.array([-(2**52) + 1, 0, 2**52 - 1])
    assert (grid.values(steps) * 2.0**20 == steps).all()
    assert (grid.values(steps, halves=1) * 2.0**21 == 2.0 * steps + 1).all()
    assert grid.round(np.array([1e300, -np.inf, 2.0**-21 * 1.5])).tolist() == [LARGEST, -LARGEST, 1]


def test_denormal_coordinates_round_to_zero() -> None:
    grid = Grid.for_release(1.0, 1, Distance.L2)
    assert grid.round(np.array([5e-324, -5e-324])).tolist() == [0, 0]


def test_norms_without_a_grid_and_extreme_sensitivities_are_refused() -> None:
    with pytest.raises(ParameterError, match="l1, l2 or linf"):
        Grid.for_release(1.0, 1, Distance.HAMMING)
    for unit in (1e-310, 1e-290, 1e290):
        with pytest.raises(ParameterError, match="near 1"):
            Grid.for_release(unit, 1, Distance.L2)
