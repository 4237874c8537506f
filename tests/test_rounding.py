"""Rounding up is at least the exact number, in rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest

from dpcore.rounding import UNIT, down, gamma, up

COUNTS = [1, 2, 3, 6, 7, 14, 20, 30, 100, 200]


def chain(generator, roundings):
    """A number after so many products and quotients, and the exact one."""
    computed, exact = 1.0, Fraction(1)
    for _ in range(roundings):
        factor = float(generator.uniform(0.5, 2.0))
        if generator.random() < 0.5:
            computed, exact = computed * factor, exact * Fraction(factor)
        else:
            computed, exact = computed / factor, exact / Fraction(factor)
    return computed, exact


@pytest.mark.parametrize("roundings", COUNTS)
def test_the_exact_number_lies_between_down_and_up(roundings):
    generator = np.random.default_rng(roundings)
    for _ in range(60):
        computed, exact = chain(generator, roundings)
        assert Fraction(down(computed, roundings=roundings)) <= exact
        assert exact <= Fraction(up(computed, roundings=roundings))


@pytest.mark.parametrize("roundings", [*COUNTS, 500, 5000, 1 << 22])
def test_even_if_every_rounding_errs_the_same_way(roundings):
    """The worst chain the model allows, for numbers just above and just below a power of two."""
    u = Fraction(1, 2**53)
    low, high = (1 - u) ** min(roundings, 5000), (1 + u) ** min(roundings, 5000)
    if roundings > 5000:  # by Bernoulli, without a power of four million digits
        low, high = 1 - roundings * u, 1 / (1 - roundings * u)
    for computed in (1.0, math.nextafter(2.0, 0.0), 1.5, 3e200, 7e-200):
        assert Fraction(computed) / low <= Fraction(up(computed, roundings=roundings))
        assert Fraction(down(computed, roundings=roundings)) <= Fraction(computed) / high


@pytest.mark.parametrize("roundings", COUNTS)
def test_no_more_is_added_than_twice_what_is_needed(roundings):
    assert up(1.0, roundings=roundings) - 1 <= 2 * (roundings + 1) * UNIT
    assert 1 - down(1.0, roundings=roundings) <= 2 * (roundings + 1) * UNIT


def test_arrays_are_rounded_entry_by_entry():
    values = np.array([0.0, 1.0, np.inf])
    assert up(values, roundings=3).tolist() == [0.0, 1 + 2.0**-50, np.inf]
    assert down(values, roundings=3).tolist() == [0.0, 1 - 2.0**-50, np.inf]


def test_gamma_covers_that_many_roundings():
    for roundings in (1, 10, 1000):
        u = Fraction(1, 2**53)
        assert 1 / (1 - u) ** roundings - 1 <= Fraction(gamma(roundings)) * (1 + 4 * u)
