"""The fast cosine against exact arithmetic; feature maps by blocks of columns."""

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcore.learning.features.turns import BLOCK, COEFFICIENTS, ERROR, Turns, cosines, sines

PI = Fraction("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")
UNIT = Fraction(1, 2**53)
BITS = 160
TERMS = 24  # of the cosine's series: the next is below 1e-40 on [0, pi]


def exact_cosine(turns):
    """cos(2 pi t), to 40 digits and more, by its series in whole numbers of 2^-BITS."""
    t = Fraction(turns)
    reduced = t - round(t)
    angle = int(2 * PI * reduced * 2**BITS)
    square = angle * angle >> BITS
    total, term = 0, 1 << BITS
    for k in range(1, 2 * TERMS, 2):
        total += term
        term = -(term * square >> BITS) // (k * (k + 1))
    return Fraction(total, 2**BITS)


def exact_sine(turns):
    return exact_cosine(Fraction(turns) - Fraction(1, 4))


def test_the_polynomial_is_within_u_of_the_cosine_everywhere():
    """On a grid in exact arithmetic, and by its derivative in between."""
    series = [Fraction((-1) ** k, factorial(2 * k)) * PI ** (2 * k) for k in range(TERMS)]
    ours = [Fraction(1), *map(Fraction, COEFFICIENTS)]
    ours += [Fraction(0)] * (TERMS - len(ours))
    off = [float(a - b) for a, b in zip(ours, series, strict=True)]
    points = 1 << 20
    grid = np.linspace(0, 0.25, points + 1)
    values = np.polynomial.polynomial.polyval(grid, off)  # of numbers that are tiny already
    steepest = sum(k * abs(c) * 0.25 ** (k - 1) for k, c in enumerate(off))
    assert np.abs(values).max() + steepest * 0.125 / points < float(UNIT)


def test_the_rounding_that_the_docstring_adds_up_is_below_13_u():
    v = np.linspace(0, 0.25, 100_001)
    terms = ((3 * k + 2) * abs(q) * v**k for k, q in enumerate(COEFFICIENTS, start=1))
    inner = 1 + sum(terms) + 1  # and the polynomial's own error
    cosine = np.cos(np.pi * np.sqrt(v))
    total = 4 * np.abs(cosine) * inner + 2 * cosine**2 + 1
    assert 12 < total.max() < 13  # in u; neighbouring points differ by less than 1e-3
    assert 13 + float(PI) < ERROR * 2**53 + 0.2


@settings(max_examples=300, deadline=None)
@given(st.floats(-1e6, 1e6) | st.floats(-0.5, 0.5) | st.integers(-100, 100).map(lambda k: k / 8))
def test_cosines_and_sines_are_within_their_error(turns):
    assert abs(Fraction(cosines(np.array([turns]))[0]) - exact_cosine(turns)) <= ERROR
    assert abs(Fraction(sines(np.array([turns]))[0]) - exact_sine(turns)) <= ERROR


def test_the_error_is_not_vacuous():
    turns = np.random.default_rng(0).uniform(-0.5, 0.5, 2000)
    found = cosines(turns.copy())
    worst = max(abs(Fraction(f) - exact_cosine(t)) for f, t in zip(found, turns, strict=True))
    assert 2 * UNIT < worst <= ERROR


@pytest.mark.parametrize("shape", [(8191,), (8192,), (8193,), (3, 6000), (0, 4), (5, 1)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_entry_is_reached_in_either_order(shape, order):
    turns = np.asarray(np.random.default_rng(1).normal(size=shape), order=order)
    expected = np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)
    for function, values in zip((cosines, sines), expected, strict=True):
        given_ = turns.copy(order="K")
        assert function(given_) is given_
        assert np.allclose(given_, values, rtol=0, atol=1e-14)


def test_turns_come_whole_or_in_blocks():
    rng = np.random.default_rng(2)
    frequencies, phases, rows = (
        rng.normal(size=s) for s in ((3, 2 * BLOCK + 5), 2 * BLOCK + 5, (7, 3))
    )
    for offsets in (phases, None):
        turns = Turns(frequencies, offsets)
        blocks = list(turns.blocks(rows))
        assert [block.shape for block in blocks] == [(7, BLOCK), (7, BLOCK), (7, 5)]
        expected = (rows @ frequencies + (0 if offsets is None else offsets)) / (2 * np.pi)
        assert np.allclose(np.hstack(blocks), expected, atol=1e-14)
        assert np.allclose(turns.at(rows), expected, atol=1e-14)
