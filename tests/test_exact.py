"""Exact sums, against Python's own integers and fractions."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpcore.distance import Distance
from dpcore.exact import Exact
from dpcore.mechanisms.noise.grid import LARGEST, Grid

WHOLE = st.integers(-(2**63), 2**63 - 1)
ROWS = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(WHOLE, min_size=width, max_size=width), min_size=1, max_size=9)
)


def added(rows, exponent=-7):
    parts = [Exact.of(np.array(row, dtype=np.int64), exponent) for row in rows]
    return sum(parts[1:], parts[0])


@given(ROWS, st.randoms())
def test_a_sum_is_that_of_python_in_any_order_and_grouping(rows, chance):
    columns = [sum(column) for column in zip(*rows, strict=True)]
    shuffled = chance.sample(rows, len(rows))
    cut = chance.randrange(len(rows))
    whole = added(shuffled)
    assert added(rows).integers() == whole.integers() == columns
    assert added(rows) == whole
    if cut:
        assert added(rows[:cut]) + added(rows[cut:]) == whole
    assert ((whole.low >= 0) & (whole.low < 2**32)).all()


@given(st.lists(WHOLE, min_size=1, max_size=5), st.integers(-1120, 20))
def test_floats_are_rounded_once(numbers, exponent):
    found = added([[n] for n in numbers], exponent).floats()
    exact = Fraction(sum(numbers)) * Fraction(2) ** exponent
    assert found.tolist() == [float(exact)]


@given(st.lists(WHOLE, min_size=1, max_size=5), st.integers(-90, 90), st.integers(-90, 90))
def test_a_grid_rounds_once_half_to_even(numbers, unit, exponent):
    grid = Grid(exponent=exponent, dimension=1, distance=Distance.L2)
    exact = Fraction(sum(numbers)) * Fraction(2) ** (unit - exponent)
    nearest = max(-LARGEST, min(LARGEST, round(exact)))  # of a fraction: half to even
    assert grid.round(added([[n] for n in numbers], unit)).tolist() == [nearest]


@given(WHOLE, WHOLE)
def test_weights_are_multiplied_before_the_rounding(first, second):
    grid, weight = Grid(exponent=3, dimension=2, distance=Distance.L2), (math.isqrt(2 << 120), -60)
    found = grid.round(Exact.of([first, second], 0), [(1, 0), weight]).tolist()
    assert found == [
        round(Fraction(first, 8)),
        round(Fraction(second) * weight[0] * Fraction(2) ** weight[1] / 8),
    ]


def test_integers_in_floats_are_taken_and_nothing_else():
    assert Exact.of(np.array([2.0**53, -3.0]), 0).integers() == [2**53, -3]
    for wrong in ([0.5], [2.0**54], [math.nan], [math.inf], ["1"], [1j]):
        with pytest.raises(ValueError, match="integers"):
            Exact.of(np.array(wrong), 0)


def test_what_does_not_fit_is_refused():
    most = Exact(high=np.array([2**60]), low=np.array([2**32 - 1]), exponent=0)
    assert (most + Exact.of([0], 0)).integers() == [2**92 + 2**32 - 1]
    for more in (most, Exact.of([1], 0)):
        with pytest.raises(OverflowError, match="92 bits"):
            most + more
    with pytest.raises(ValueError, match="one unit"):
        most + Exact.of([1], 1)
    with pytest.raises(ValueError, match="one shape"):
        most + Exact.of([1, 1], 0)


def test_many_random_sums_of_floats_agree_with_python():
    chance = random.Random(1)
    rows = [[chance.randrange(-(2**53), 2**53) for _ in range(3)] for _ in range(500)]
    total = Exact.zeros((3,), 0)
    for row in rows:
        total += Exact.of(np.array(row, dtype=np.float64), 0)
    assert total.integers() == [sum(column) for column in zip(*rows, strict=True)]


def test_a_sum_never_shows_itself():
    assert repr(Exact.of([12345], 0)) == "Exact(private)"
