"""Exact sums, against Python's own integers and fractions."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpcore.claims.mechanisms.noise.grid import LARGEST, Grid
from dpcore.exact import Exact
from dpcore.sensitivity import Distance

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


@given(
    st.lists(st.integers(-(2**62), 2**62), min_size=2, max_size=5),
    st.sampled_from([0, 1, 2, 29, 30, 31, 32, 33, 60, 61, 62]),
    st.integers(-64, 64),
)
def test_a_vector_is_rounded_as_each_of_its_numbers_is(numbers, cut, shift):
    # Vectors that fit 64 bits, those that do not, and those on the border between the two.
    numbers = [number >> cut for number in numbers]
    exact = [round(Fraction(number) * Fraction(2) ** shift) for number in numbers]
    assert Exact.of(numbers, shift).in_units(0).tolist() == exact
    ties = Exact.of([2 * number + 1 for number in numbers if abs(number) < 2**61], -1)
    assert ties.in_units(0).tolist() == [round(Fraction(n, 2)) for n in ties.integers()]


@pytest.mark.parametrize("wraps", [False, True])
def test_sums_beyond_64_bits_are_clamped_or_wrapped(wraps):
    grid = Grid(exponent=0, dimension=1, distance=Distance.L2, wraps=wraps)
    sums = [3 * 2**70 + 5, -(2**65) - 1, 2**61, -(2**62), 7]
    huge = Exact(
        high=np.array([n >> 32 for n in sums]), low=np.array([n % 2**32 for n in sums]), exponent=0
    )
    half = 2**61
    expected = [
        (n + half) % 2**62 - half if wraps else max(-LARGEST, min(LARGEST, n)) for n in sums
    ]
    assert grid.round(huge).tolist() == expected


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
