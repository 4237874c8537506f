"""The fast cosine against exact arithmetic; feature maps by blocks of columns."""

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcore import Domain, PublicRandomness, Range
from dpcore.encoding.tables import row_lengths
from dpcore_models.features.angles import ROW_BITS, integer_turns
from dpcore_models.features.cos_sin import CosSin
from dpcore_models.features.cosines import Cosines
from dpcore_models.features.turns import BLOCK, COEFFICIENTS, ERROR, Turns, cosines, sines

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


def circular(first, second):
    """How far angles are apart, in turns."""
    apart = first - second
    return np.abs(apart - np.rint(apart)).max(initial=0.0)


def drawn(shape, seed, scale=1.0):
    rng = np.random.default_rng(seed)
    return scale * rng.normal(size=shape), 7 * rng.uniform(size=shape[1])


def test_turns_come_whole_or_in_blocks():
    frequencies, phases = drawn((3, 2 * BLOCK + 5), 2)
    rows = np.random.default_rng(2).uniform(-1, 1, (7, 3))
    for offsets in (phases, None):
        turns = Turns(frequencies, offsets)
        blocks = list(turns.blocks(rows))
        assert [block.shape for block in blocks] == [(7, BLOCK), (7, BLOCK), (7, 5)]
        assert np.hstack(blocks).tobytes() == turns.at(rows).tobytes()
        expected = (rows @ frequencies + (0 if offsets is None else offsets)) / (2 * np.pi)
        size = np.abs(frequencies).sum(axis=0).max() / (2 * np.pi)
        assert circular(turns.at(rows), expected) < 2.0**-25 * size


@pytest.mark.parametrize("bandwidth", [1e-300, 1e-16, 1e-10, 1e-3, 1, 1e6, 1e300])
@pytest.mark.parametrize("columns", [1, 10, 300])
def test_angles_are_exact_sums_of_integers(bandwidth, columns):
    """Against rational arithmetic on the map's definition, at the worst rows and random ones."""
    frequencies, phases = drawn((columns, 8), columns, 1 / bandwidth)
    turned = integer_turns(frequencies / (2 * np.pi), phases / (2 * np.pi))
    rng = np.random.default_rng(0)
    rows = np.vstack(
        [np.sign(turned[:-1].T), -np.sign(turned[:-1].T), rng.uniform(-1, 1, (5, columns))]
    )
    integers = [[round(Fraction(x) * 2**ROW_BITS) for x in row] for row in rows.tolist()]
    found = Turns(frequencies, phases).at(rows)
    for row, angles in zip(integers, found.tolist(), strict=True):
        for wave, angle in zip(turned.T.tolist(), angles, strict=True):
            *parts, offset = map(Fraction, wave)
            exact = offset + sum(x * part for x, part in zip(row, parts, strict=True))
            assert Fraction(angle) == exact


def test_the_budget_is_used_and_kept():
    for columns in (1, 7, 50):
        frequencies, phases = drawn((columns, 40), columns)
        turned = integer_turns(frequencies, phases)
        unit = 1.0
        while np.any(turned % unit):  # the unit divides all of them
            unit /= 2
        cutoff = (np.abs(turned[:-1]).sum(axis=0) * 2**ROW_BITS + np.abs(turned[-1])) / unit
        assert 2**51 < cutoff.max() <= 2**53


@settings(max_examples=60)
@given(
    st.sampled_from([CosSin, Cosines]),
    st.integers(1, 70),
    st.integers(1, 40),
    st.sampled_from([1e-16, 1e-10, 0.1, 1.0, 30.0]),
    st.integers(0, 2**32),
)
def test_a_row_alone_has_the_features_of_the_row_in_any_table(kind, count, width, bandwidth, seed):
    domain = Domain(
        columns={f"x{i}": Range(-1, 1) for i in range(width)}, target="y", labels=Range(0, 1)
    )
    rng = np.random.default_rng(seed)
    features = kind(count=count, bandwidth=bandwidth).draw(domain, PublicRandomness(seed))
    rows = rng.uniform(-1, 1, (9, width))
    whole = features(rows)
    for table in (rows[:1], rows[3:5], rows[::2], np.asfortranarray(rows), rows[::-1]):
        for found, row in zip(features(table), table, strict=True):
            (at,) = np.flatnonzero((rows == row).all(axis=1))
            assert found.tobytes() == whole[at].tobytes()
    assert np.linalg.norm(whole, axis=1).max() <= 1 + 2.0**-40


def test_row_lengths_are_lengths_and_each_its_own():
    rng = np.random.default_rng(3)
    for width in (0, 1, 2, 3, 8, 9, 1000):
        rows = rng.normal(size=(50, width))
        found = row_lengths(rows)
        assert np.allclose(found[:, 0], np.linalg.norm(rows, axis=1), rtol=1e-14)
        for table in (rows[7:8], np.asfortranarray(rows), rows[:, ::-1][:, ::-1]):
            single = row_lengths(table)
            assert single[-1].tobytes() == found[7 if len(table) == 1 else -1].tobytes()
