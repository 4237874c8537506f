"""What represents Figure 1: its parts are Algorithm 2's, and it claims the shape only."""

import math

import numpy as np
import pytest

from dpcore_experiments.experiment import load_experiment
from dpcore_ntk.calculators import input_noise_bound
from dpcore_ntk.experiment_methods import fit_kernel, kernel, sampled, truncated

GIVEN = {"neurons": 50, "regularization": 2.0, "delta": 2e-3, "radius": 1e-6, "eta_min": 7e-3}


def test_no_number_of_the_figure_is_compared_and_the_substitute_says_so():
    text = load_experiment("ntk/figure_1_substitute").text
    assert "stand for them" in text.substitute
    assert all(p is None for series in text.series for p in series.paper)


def test_the_mean_of_squares_has_the_matrix_for_its_mean():
    """An entry's sd is sqrt((K_ij^2 + K_ii K_jj)/k): 6 of them allowed."""
    randomness = np.random.default_rng(0)
    half = randomness.standard_normal((4, 4))
    matrix = half @ half.T
    found = sampled(matrix, 20_000, randomness)
    deviation = np.sqrt((matrix**2 + np.outer(matrix.diagonal(), matrix.diagonal())) / 20_000)
    assert np.all(np.abs(found - matrix) <= 6 * deviation)


def test_the_noise_of_the_inputs_is_a_laplace_law_cut_at_its_bound():
    """Its mean size, by integrating x exp(-x/t)/t over the range: 5 sd of the mean allowed."""
    given = (0.9, 0.2, 0.1)
    scale, most = math.sqrt(4) * 0.1 / 0.9, input_noise_bound(*given, 4)
    noise = truncated(*given, (5000, 4), np.random.default_rng(1))
    assert np.abs(noise).max() <= most * (1 + 1e-12)
    cut = most / scale
    mean = scale * (1 - cut / math.expm1(cut))
    assert abs(np.abs(noise).mean() - mean) <= 5 * scale / math.sqrt(noise.size)
    assert abs(noise.mean()) <= 5 * scale / math.sqrt(noise.size)


def test_the_regression_is_the_papers():
    """K(x, X)^T (K + lam)^{-1} Y, one column a class."""
    randomness = np.random.default_rng(2)
    x, y = randomness.standard_normal((8, 3)), np.array([0, 1, 2, 0, 1, 2, 0, 1.0])
    fit = fit_kernel(x, y, randomness, **GIVEN)
    rows = x / np.linalg.norm(x, axis=1, keepdims=True)
    by_hand = [
        [float(a @ b) * float(a @ fit.noise_distribution @ b) for b in rows] for a in rows
    ] + 2.0 * np.eye(8)
    wanted = np.linalg.inv(by_hand) @ np.eye(3)[y.astype(int)]
    assert np.allclose(fit.coefficients, wanted)
    assert np.allclose(fit.features(x[:2]), kernel(rows[:2], rows, fit.noise_distribution))
    noisy = fit_kernel(x, y, randomness, epsilon=1, **GIVEN)
    assert not np.allclose(noisy.coefficients, fit.coefficients)
    assert noisy.rows == pytest.approx(rows, abs=1e-4)
