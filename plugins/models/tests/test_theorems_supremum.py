"""T5's exact supremum against brute force over data sets."""

import math

import numpy as np
import pytest

from dpcore_models.theorems.ridge import ridge_add_remove
from dpcore_models.theorems.supremum import ridge_add_remove_exact

CASES = [(1.0, 1.0, 10.0, 100), (2.0, 0.5, 1.0, 7), (1.0, 3.0, 0.01, 1), (0.5, 1.0, 50.0, 1000)]


def ridge(rows, labels, total):
    """The minimiser of the sum form, by its normal equations."""
    gram = rows.T @ rows + total * np.eye(rows.shape[1])
    return np.linalg.solve(gram, rows.T @ labels)


def brute(kappa, bound, total, records):
    """The best of equal points and one opposite to them, in one dimension, over a fine grid."""
    best = 0.0
    for a in np.linspace(0.0, kappa, 400):
        k = np.linspace(kappa / 2000, kappa, 2000)
        base = records * a * bound / (records * a * a + total)
        # the extra row is k with label -M, opposite to what the rest predict
        more = (records * a * bound - k * bound) / (records * a * a + k * k + total)
        best = max(best, float(np.abs(more - base).max()))
    return best


@pytest.mark.parametrize("case", CASES)
def test_the_supremum_is_what_brute_force_attains(case):
    exact, found = ridge_add_remove_exact(*case), brute(*case)
    assert found <= exact * (1 + 1e-12)
    assert found >= exact * (1 - 1e-4)  # the grid's step


@pytest.mark.parametrize("case", CASES)
def test_no_data_set_goes_beyond_it_and_the_closed_form_is_above(case):
    kappa, bound, total, records = case
    randomness = np.random.default_rng(0)
    exact = ridge_add_remove_exact(*case)
    for _ in range(50):
        count = min(records, int(randomness.integers(1, 20)))
        rows = randomness.standard_normal((count + 1, 3))
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        rows *= kappa * randomness.random((count + 1, 1)) / lengths
        labels = bound * randomness.choice([-1.0, 1.0], count + 1)
        apart = ridge(rows, labels, total) - ridge(rows[:-1], labels[:-1], total)
        assert np.linalg.norm(apart) <= exact * (1 + 1e-12)
    assert exact <= ridge_add_remove(*case) <= 1.5 * exact


def test_with_no_other_record_it_is_one_row_s_own_length():
    """k M/(k^2 + Lam), largest at k = sqrt(Lam) or at kappa."""
    assert ridge_add_remove_exact(3.0, 2.0, 4.0, 0) == pytest.approx(2.0 / (2 * math.sqrt(4.0)))
    assert ridge_add_remove_exact(1.0, 2.0, 4.0, 0) == pytest.approx(2.0 / 5.0)
