import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

from dpcore.domain.domain import Domain, Range
from dpcore.models.features.base import Features
from dpcore.randomness import PublicRandomness
from dpcore_models.features.cos_sin import CosSin
from dpcore_models.features.cosines import Cosines
from dpcore_models.features.turns import BLOCK
from dpcore_random_features.solvers.min_norm import fit_min_norm

from oracles.ridge import unit_rows


class AsTheyAre(Features):
    def __call__(self, encoded):
        return encoded


def solve_min_norm(phi, y):
    return fit_min_norm(AsTheyAre(), phi.shape[1], phi, y)


def lstsq(phi, y):
    return np.linalg.lstsq(phi, y, rcond=None)[0]


@pytest.mark.parametrize(
    ("records", "width"), [(1, 1), (1, 7), (20, 50), (50, 20), (30, 30), (200, 10)]
)
def test_it_is_the_min_norm_least_squares_solution(records, width):
    rng = np.random.default_rng(records)
    phi, y = unit_rows(rng, records, width), rng.uniform(-1, 1, records)
    expected = lstsq(phi, y)
    assert np.linalg.norm(solve_min_norm(phi, y) - expected) <= 1e-8 * np.linalg.norm(expected)


@pytest.mark.parametrize("width", [8, 60])
def test_equal_rows_count_as_often_as_they_occur(width):
    rng = np.random.default_rng(width)
    phi = unit_rows(rng, 12, width)[rng.integers(0, 12, 40)]
    y = rng.uniform(-1, 1, 40)
    expected = lstsq(phi, y)
    assert np.linalg.norm(solve_min_norm(phi, y) - expected) <= 1e-9 * np.linalg.norm(expected)


@pytest.mark.parametrize(("records", "width"), [(20, 30), (30, 20), (6, 100)])
def test_a_deficient_rank_is_cut_off(records, width):
    rng = np.random.default_rng(3)
    phi = rng.normal(size=(records, 4)) @ rng.normal(size=(4, width))
    y = rng.uniform(-1, 1, records)
    expected = lstsq(phi, y)
    assert np.linalg.norm(solve_min_norm(phi, y) - expected) <= 1e-9 * np.linalg.norm(expected)


def test_no_rows_and_zero_rows_give_zero():
    assert np.array_equal(solve_min_norm(np.zeros((0, 3)), np.zeros(0)), np.zeros(3))
    assert np.array_equal(solve_min_norm(np.zeros((4, 3)), np.ones(4)), np.zeros(3))


@settings(max_examples=200, deadline=None)
@given(
    hnp.arrays(float, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats()),
    st.floats(),
)
def test_it_never_raises_and_is_always_finite(phi, label):
    found = solve_min_norm(phi, np.full(phi.shape[0], label))
    assert found.shape == (phi.shape[1],)
    assert np.isfinite(found).all()


def drawn(kind, count, columns, bandwidth=0.7):
    randomness = PublicRandomness(0)
    columns = {f"x{i}": Range(-1, 1) for i in range(columns)}
    facts = Domain(columns=columns, target="y", labels=Range(-1, 1), limit=10_000)
    return kind(count=count, bandwidth=bandwidth).draw(facts, randomness)


@pytest.mark.parametrize(
    ("kind", "count", "records"),
    [
        (Cosines, 2500, 40),  # three blocks of columns
        (CosSin, 1100, 40),
        (Cosines, 30, 2100),  # three blocks of rows
        (CosSin, 10, 50),
    ],
)
def test_features_in_blocks_give_the_same_weights(kind, count, records):
    rng = np.random.default_rng(count)
    features = drawn(kind, count, 3)
    rows = rng.uniform(-1, 1, (records, 3))[rng.integers(0, records, records)]
    labels = rng.uniform(-1, 1, records)
    phi = features(rows)
    found = fit_min_norm(features, phi.shape[1], rows, labels)
    expected = lstsq(phi, labels)
    assert np.linalg.norm(found - expected) <= 1e-9 * np.linalg.norm(expected)


class FourPoints(Features):
    """Of period 1 in each column: rows that differ may have the same features."""

    def __call__(self, encoded):
        rng = np.random.default_rng(5)
        frequencies, phases = rng.integers(-3, 4, (2, 50)), rng.uniform(0, 1, 50)
        return np.cos(2 * np.pi * (encoded @ frequencies + phases))


@pytest.mark.parametrize("records", [20, 80])
def test_different_rows_with_equal_features_are_a_deficient_rank(records):
    rng = np.random.default_rng(records)
    rows = rng.integers(-3, 4, (records, 2)) + rng.choice([0, 0.25, 0.5, 0.75], (records, 2))
    labels = rng.uniform(-1, 1, records)
    phi = FourPoints()(rows)
    assert np.linalg.matrix_rank(phi) < min(np.unique(rows, axis=0).shape[0], 50)
    expected = lstsq(phi, labels)
    found = fit_min_norm(FourPoints(), 50, rows, labels)
    assert np.linalg.norm(found - expected) <= 1e-9 * np.linalg.norm(expected)


class Complex(Features):
    """exp(i x w), whole."""

    def __call__(self, encoded):
        return np.exp(1j * encoded @ np.random.default_rng(6).normal(size=(2, 60)))


@pytest.mark.parametrize("records", [10, 200])
def test_features_may_be_complex(records):
    rng = np.random.default_rng(records)
    rows, labels = rng.uniform(-20, 20, (records, 2)), rng.uniform(-1, 1, records)
    expected = np.linalg.pinv(Complex()(rows)) @ labels
    found = fit_min_norm(Complex(), 60, rows, labels)
    assert np.linalg.norm(found - expected) <= 1e-8 * np.linalg.norm(expected)


def test_weights_are_right_to_a_billionth_at_a_condition_number_of_ten_million():
    rng = np.random.default_rng(7)
    features = drawn(Cosines, 3000, 3, bandwidth=0.05)
    rows = rng.uniform(-1, 1, (150, 3))
    rows[75:] = rows[:75] + 3e-5 * rng.choice([-1, 1], (75, 3))
    labels = rng.uniform(-1, 1, 150)
    phi = features(rows)
    assert 2e6 < np.linalg.cond(phi @ phi.T) < 1e7
    expected = lstsq(phi, labels)
    found = fit_min_norm(features, 3000, rows, labels)
    assert np.linalg.norm(found - expected) <= 1e-9 * np.linalg.norm(expected)


def test_equal_inputs_give_equal_bytes():
    rng = np.random.default_rng(8)
    features, rows, labels = (
        drawn(Cosines, 1500, 3),
        rng.uniform(-1, 1, (60, 3)),
        rng.uniform(-1, 1, 60),
    )
    first = fit_min_norm(features, 1500, rows, labels)
    assert fit_min_norm(features, 1500, rows.copy(), labels.copy()).tobytes() == first.tobytes()


def test_a_hundred_thousand_features_are_never_held_at_once():
    rng = np.random.default_rng(9)
    count, records = 100_000, 100
    features = drawn(Cosines, count, 3)
    rows, labels = rng.uniform(-1, 1, (records, 3)), rng.uniform(-1, 1, records)
    fit_min_norm(drawn(Cosines, 10, 3), 10, rows, labels)  # whatever is imported at first use
    tracemalloc.start()
    try:
        found = fit_min_norm(features, count, rows, labels)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    drawn_arrays = 6 * 4 * count * 8  # frequencies and phases, as turns too, and the weights
    assert peak < 8 * (3 * records**2 + 4 * records * BLOCK) + drawn_arrays
    assert peak < 8 * records * count / 3
    assert np.allclose(features(rows) @ found, labels, atol=1e-6)


@pytest.mark.skipif("DPCORE_DATA" not in os.environ, reason="DPCORE_DATA names no folder")
def test_wines_that_occur_twice_are_merged():
    path = Path(os.environ["DPCORE_DATA"]) / "winequality-red.csv"
    table = np.genfromtxt(path, delimiter=";", skip_header=1)
    low, high = table.min(axis=0), table.max(axis=0)
    encoded = 2 * (table[:500] - low) / (high - low) - 1
    rows, labels = encoded[:, :-1], encoded[:, -1]
    assert np.unique(rows, axis=0).shape[0] < 450
    features = drawn(Cosines, 1500, 11)
    expected = np.linalg.lstsq(features(rows), labels, rcond=1e-13)[0]
    found = fit_min_norm(features, 1500, rows, labels)
    assert np.linalg.norm(found - expected) <= 1e-7 * np.linalg.norm(expected)
