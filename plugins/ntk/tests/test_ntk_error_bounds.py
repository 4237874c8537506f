"""The paper's error bounds against definitions, draws and the pairs that attain them."""

import math

import numpy as np
import pytest

from dpcore_ntk import error_bounds as bounds
from dpcore_ntk.calculators import input_noise_bound


def kernel(rows, columns, weights):
    """(x.z)(x^T S z), by its definition."""
    noise_distribution = weights.T @ weights / len(weights)
    return (rows @ columns.T) * (rows @ noise_distribution @ columns.T)


def psd(randomness, low, high, size=6):
    turn = np.linalg.qr(randomness.standard_normal((size, size)))[0]
    return (turn * randomness.uniform(low, high, size)) @ turn.T


def test_samples_are_within_their_ends_as_often_as_stated():
    """400 draws, at most 5 % of them outside: 20 expected at most, 40 is 4.5 sd more. Seeded."""
    randomness, (n, k) = np.random.default_rng(0), (12, 60)
    low, high = bounds.spectral_ends(n, k, 0.05)
    outside, widest = 0, 0.0
    for _ in range(400):
        drawn = randomness.standard_normal((n, k))
        values = np.linalg.eigvalsh(drawn @ drawn.T / k)
        outside += values[0] < low or values[-1] > high
        widest = max(widest, values[-1])
    assert outside <= 40
    assert high <= 2 * widest  # not without use


def test_no_pair_between_the_ends_moves_the_inverse_more_and_one_attains_it():
    randomness, lam = np.random.default_rng(1), 0.7
    for low, high in ((0.4, 1.9), (0.0, 1.2)):
        most = bounds.inverse_movement(low, high, 0.1, 5.0, lam)
        for _ in range(100):
            own, between = psd(randomness, 0.1, 5.0), psd(randomness, low, high)
            values, vectors = np.linalg.eigh(own)
            root = (vectors * np.sqrt(values)) @ vectors.T
            drawn, eye = root @ between @ root, lam * np.eye(6)
            apart = np.linalg.inv(own + eye) - np.linalg.inv(drawn + eye)
            assert np.linalg.norm(apart, 2) <= most * (1 + 1e-9)
        grid = np.linspace(0.1, 5.0, 20_001)
        attained = max(
            np.abs(1 / (grid + lam) - 1 / (scale * grid + lam)).max() for scale in (low, high)
        )
        assert attained == pytest.approx(most, rel=1e-6)


def test_lemma_5_7_as_printed_and_the_proved_form():
    given = (50, 10**6, 0.01, 0.2, 30.0, 1.0)
    ratio = (50**2 + math.log(100)) / 10**6
    printed = (math.sqrt(ratio) + ratio) * 30 / 1.2**2
    assert bounds.inverse_error_printed(*given) == pytest.approx(printed, rel=1e-12)
    assert bounds.inverse_error(*given) < printed


def test_predictions_stay_within_lemma_4_3_proved():
    """Draws of everything, noise at the corners: none is beyond, in 30."""
    randomness = np.random.default_rng(2)
    n, d, k, lam, radius = 5, 3, 4000, 0.5, 1e-3
    noise = input_noise_bound(0.9, 0.01, radius, d)
    for _ in range(30):
        weights, x = randomness.standard_normal((8, d)), randomness.standard_normal((n, d))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        point, y = x[0], randomness.choice([-1.0, 1.0], n)
        own = kernel(x, x, weights)
        drawn = np.linalg.cholesky(own + 1e-12 * np.eye(n)) @ randomness.standard_normal((n, k))
        moved = x + noise * randomness.choice([-1.0, 1.0], (n, d))
        eye = lam * np.eye(n)
        exact = kernel(point[None], x, weights) @ np.linalg.solve(own + eye, y) / n
        private = kernel(point[None], moved, weights) @ np.linalg.solve(
            drawn @ drawn.T / k + eye, y
        )
        values = np.linalg.eigvalsh(own)
        most = bounds.prediction_error(
            records=n,
            samples=k,
            gamma=1e-3,
            eta_min=max(0.0, float(values[0])),
            eta_max=float(values[-1]),
            regularization=lam,
            epsilon=0.9,
            delta=0.01,
            radius=radius,
            width=d,
            largest=float(np.linalg.eigvalsh(weights.T @ weights / 8)[-1]),
        )
        assert abs(float((private / n - exact)[0])) <= most


def test_lemma_4_3_and_theorem_4_4_as_printed():
    noise = input_noise_bound(0.5, 1e-3, 1e-4, 4)
    ratio = (20**2 + math.log(10)) / 1000
    rho = math.sqrt(ratio) + ratio
    printed = 8 * 2 * noise / 1.1 + rho * 7 * (6 * 4 * 3 * 16) / 1.1**2
    report = bounds.main_theorem_printed(
        0.5, 1e-3, 0.25, 2e-3, 0.01, 20, 1000, 0.1, 0.1, 7.0, 1.0, 1e-4, 4, 2.0, 3.0
    )
    assert report["error"] == pytest.approx(printed, rel=1e-12)
    assert report["epsilon"] == 0.75
    assert report["delta"] == pytest.approx(3e-3)
    assert report["probability"] == pytest.approx(0.89)
    proved = bounds.main_theorem(
        0.5, 1e-3, 0.25, 2e-3, 20, 1000, 0.1, 0.1, 7.0, 1.0, 1e-4, 4, 6.0, 2.0
    )
    assert proved["probability"] == pytest.approx(0.9)
    assert 0 < proved["error"] < math.inf


@pytest.mark.parametrize("same", [True, False])
def test_entries_are_as_far_from_their_mean_as_lemma_e_10_says(same):
    """4000 draws, at most 5 % beyond: 200 at most, 270 is 5 sd more. Seeded."""
    randomness, m, norm = np.random.default_rng(3), 40, 1.5
    x = norm * np.array([0.6, 0.8])
    z = x if same else norm * np.array([1.0, 0.0])
    weights = randomness.standard_normal((4000, m, 2)) * 2
    entries = float(x @ z) * np.mean((weights @ x) * (weights @ z), axis=1)
    distance = np.abs(entries - 4 * float(x @ z) ** 2)
    most = bounds.entry_error(m, 0.05, norm, 4.0)
    assert np.sum(distance > most) <= 270
    if same:
        assert most <= 3 * np.quantile(distance, 0.95)  # not without use


def test_the_whole_matrix_is_as_lemma_e_11_says():
    randomness = np.random.default_rng(4)
    x = randomness.standard_normal((4, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    most = bounds.matrix_error(4, 50, 0.05)
    mean = (x @ x.T) ** 2
    beyond = sum(
        np.linalg.norm(kernel(x, x, randomness.standard_normal((50, 3))) - mean) > most
        for _ in range(400)
    )
    assert beyond <= 40  # 20 expected at most


def test_lemmas_e_10_to_e_12_as_printed():
    first = math.sqrt(5 * 2**8 * 9 * math.log(1 / 0.1) / 700)
    assert bounds.entry_error_printed(700, 5, 0.1, 2.0, 3.0) == pytest.approx(first, rel=1e-12)
    each = math.sqrt(5 * 2**8 * 9 * math.log(100 / 0.1) / 700)
    assert bounds.matrix_error_printed(10, 700, 5, 0.1, 2.0, 3.0) == pytest.approx(10 * each)
    moved = 10 * each + math.sqrt(10) * 3 * 8 * 0.01
    found = bounds.matrix_sensitivity_printed(10, 700, 5, 0.1, 0.01, 2.0, 3.0)
    assert found == pytest.approx(moved, rel=1e-12)


def test_no_moved_record_goes_beyond_lemma_e_12_proved():
    randomness = np.random.default_rng(5)
    worst = 0.0
    for _ in range(200):
        weights, x = randomness.standard_normal((4, 3)), randomness.standard_normal((6, 3))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
        if randomness.random() < 0.5:
            x[1:] = x[1]  # all along one direction
            x[0] = x[1]
        other = x.copy()
        other[0] *= 1 - 0.01
        values = np.linalg.eigvalsh(weights.T @ weights / 4)
        apart = np.linalg.norm(kernel(x, x, weights) - kernel(other, other, weights))
        worst = max(worst, apart / bounds.matrix_sensitivity(6, 0.01, float(values[-1])))
    assert 0.3 <= worst <= 1
