"""Products of integers at the ends of their budget of bits, against exact rational arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcore_linear.integers import (
    BLOCK,
    clipped_gradients,
    integer_rows,
    label_moves,
    multipliers,
    unit_of,
)
from dpcore_models.solvers.elementary import falling_exp, half_tanh


def exact_contribution(row, label, weights, clip):
    """One record's clipped gradient in units, from the definition in rational numbers."""
    a = [round(Fraction(float(x)) * 2**20) for x in row]
    y = round(Fraction(float(label)) * 2**20)
    r = -unit_of(clip) - 20
    h = next(h for h in range(60) if 4**h >= len(row))
    places = min(40, 30 - math.frexp(float(np.max(np.abs(weights), initial=0)))[1] - h)
    w = [round(Fraction(float(x)) * Fraction(2) ** places) for x in weights]
    score = sum(x * y for x, y in zip(a, w, strict=True))
    scaled = float(Fraction(score) * Fraction(2) ** (r - 20 - places))
    residual = scaled - float(Fraction(y) * Fraction(2) ** (r - 20))  # rounded once
    squares = sum(x * x for x in a)
    if not squares:
        return [0] * len(a)
    cutoff = clip * 2.0 ** (20 + r) * (1 - 2.0**-48) / math.sqrt(squares)
    u = round(max(-math.floor(cutoff), min(math.floor(cutoff), residual)))
    return [u * x for x in a]


def rows(rng, count, width, clip):
    found = rng.normal(size=(count, width)) * 10 ** rng.uniform(-6, 3, (count, 1))
    return found / np.maximum(1, np.linalg.norm(found, axis=1, keepdims=True) * (1 + 1e-12))


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 70),
    st.sampled_from([1, 2, 5, 33]),
    st.floats(1e-12, 1e6),
    st.floats(-6, 3),
)
def test_a_block_is_the_exact_sum_of_clipped_gradients(seed, count, width, clip, size):
    rng = np.random.default_rng(seed)
    features, labels = rows(rng, count, width, clip), rng.uniform(-1, 1, count)
    weights = rng.normal(size=width) * 10**size
    block = integer_rows(features, labels, clip, unit_of(clip))
    each = [exact_contribution(x, y, weights, clip) for x, y in zip(features, labels, strict=True)]
    found = clipped_gradients(block, weights).integers()
    assert found == [sum(column) for column in zip(*each, strict=True)]
    limit = (Fraction(clip) / Fraction(2) ** unit_of(clip)) ** 2
    assert all(sum(n * n for n in row) <= limit for row in each)
    order = rng.permutation(count)
    shuffled = integer_rows(features[order], labels[order], clip, unit_of(clip))
    assert clipped_gradients(shuffled, weights).integers() == found


@pytest.mark.parametrize("clip", [1.0, 1 - 2.0**-53, 0.5, 1e-3, 1.9999999, 4096.0])
@pytest.mark.parametrize("width", [1, 3, 4, 80])
def test_full_blocks_of_the_longest_rows_stay_exact(clip, width):
    """Every record at the clip, in one direction: partial sums reach 2^53 and no further."""
    rng = np.random.default_rng(width)
    row = rng.normal(size=width)
    row /= np.linalg.norm(row) * (1 + 1e-15)
    weights = 1000.0 * np.sign(row) * np.abs(row) * (5.0 if clip > 100 else 1.0)
    features, labels = np.tile(row, (BLOCK, 1)), np.full(BLOCK, -1.0)
    block = integer_rows(features, labels, clip, unit_of(clip))
    one = exact_contribution(row, -1.0, weights, clip)
    assert clipped_gradients(block, weights).integers() == [BLOCK * n for n in one]
    length = math.sqrt(sum(n * n for n in one)) * 2.0 ** unit_of(clip)
    assert clip * (1 - 1e-5) <= length <= clip * (1 + 1e-15)


def test_rows_that_are_no_rows_contribute_nothing():
    features = np.array([[np.nan, 0], [np.inf, 0], [3.0, 0], [1e308, 1e308], [0, 0], [0.5, 0]])
    labels = np.array([0.1, 0.1, 0.1, 0.1, 0.1, np.nan])
    block = integer_rows(features, labels, 1.0, unit_of(1.0))
    assert not clipped_gradients(block, np.array([3.0, -7.0])).integers().count(1)
    assert clipped_gradients(block, np.array([3.0, -7.0])).integers() == [0, 0]


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-3, 0.3, 2.0, 50.0, 1e4]), st.integers(1, 40))
@settings(max_examples=60)
def test_a_label_moves_a_contribution_by_no_more_than_said(seed, clip, width):
    rng = np.random.default_rng(seed)
    row = rows(rng, 1, width, clip)[0]
    row /= max(np.linalg.norm(row) * (1 + 1e-15), 1e-300)
    weights = rng.normal(size=width) * 10 ** rng.uniform(-3, 1)
    low, high = (exact_contribution(row, y, weights, clip) for y in (-1.0, 1.0))
    moved = math.sqrt(sum((b - a) ** 2 for a, b in zip(low, high, strict=True)))
    assert moved * 2.0 ** unit_of(clip) <= label_moves(clip, width) * (1 + 1e-14)
    assert label_moves(clip, width) <= 2.001 + 2.0 ** (unit_of(clip) + 21)


@pytest.mark.parametrize("scale", [1e-300, 1e-3, 1.0, 1e6, 1e300])
def test_weights_of_any_size_give_whole_multipliers(scale):
    rng = np.random.default_rng(0)
    block = integer_rows(rows(rng, 50, 6, 1), rng.uniform(-1, 1, 50), 0.7, unit_of(0.7))
    for link in (None, half_tanh):
        found = multipliers(block, scale * rng.normal(size=6), link)
        assert (found == np.rint(found)).all()
        assert (np.abs(found) <= block.limits).all()


def test_exponentials_are_right_and_the_same_anywhere():
    points = np.concatenate([[0.0, 1e-300, 1e-17, 700.0, 739.9, 740.0, 1e308, np.inf]])
    points = np.concatenate([points, np.random.default_rng(0).exponential(20, 5000)])
    found = falling_exp(points)
    expected = np.array([math.exp(-t) for t in points])
    usual = points < 700
    assert (np.abs(found - expected)[usual] <= 4e-16 * expected[usual]).all()
    assert (found[points >= 740] == 0).all()
    for at in (0, 3, 17, 4001):
        assert falling_exp(points[at : at + 1]) == found[at]
    scores = np.concatenate([points, -points])
    slopes = half_tanh(scores)
    assert np.abs(slopes - np.tanh(scores / 2)).max() < 1e-15
    assert (slopes[: points.size] == -slopes[points.size :]).all()
