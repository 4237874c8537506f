"""Lemmas of the paper against exact chances, brute force over records, and grids of eigenvalues."""

import numpy as np
import pytest
import scipy.stats

from dpcore_kernel_ridge.statements import STATEMENTS


def values(name, **options):
    return [side["value"] for side in STATEMENTS[f"kernel_ridge/{name}"].values(options).values()]


@pytest.mark.parametrize("records", [1, 7, 40])
def test_lemma_3_is_above_the_exact_chance_of_a_fair_coin(records):
    heads = np.arange(records + 1)
    chances = scipy.stats.binom.pmf(heads, records, 0.5)
    means = abs(2 * heads / records - 1)  # of +-1, B = 1
    for deviation in (0.1, 0.5, 1.0):
        (bound,) = values("lemma_3", m=records, deviation=deviation, B=1)
        assert chances[means >= deviation].sum() <= bound


def test_one_evaluation_moves_by_less_than_epsilon_times_either_scale():
    """Kernel ridge by its definition, each record replaced by others, at one point."""
    rng, ridge, records, epsilon = np.random.default_rng(0), 0.05, 6, 0.5
    printed, corrected = values(
        "proposition_1", kappa=1, M=1, lam=ridge, m=records, epsilon=epsilon
    )

    def evaluate(x, y):
        kernel = np.exp(-8 * (x[:, None] - x) ** 2)
        weights = np.linalg.solve(kernel + records * ridge * np.eye(records), y)
        return np.exp(-8 * (0.5 - x) ** 2) @ weights

    largest = 0.0
    for _ in range(3000):
        x, y = rng.random(records), rng.choice([-1.0, 1.0], records)
        before = evaluate(x, y)
        x[0], y[0] = rng.random(), -y[0]
        largest = max(largest, abs(before - evaluate(x, y)))
    assert 0.1 * epsilon * corrected < largest <= epsilon * corrected < epsilon * printed


@pytest.mark.parametrize("smoothness", [0.2, 0.5, 0.9, 1.3])
def test_proposition_4_is_above_the_error_of_every_spectrum(smoothness):
    """lam^2 x^(2r)/(x + lam)^2 of the error and lam x^(2r+1)/(x + lam)^2 of the norm."""
    for kappa in (0.7, 1.0, 2.0):
        for ridge in (0.001, 0.1, 1.0):
            x = np.geomspace(1e-9, kappa**2, 100_001)
            error = (ridge * x**smoothness / (x + ridge)) ** 2
            largest = float(np.max(error + ridge * x * x ** (2 * smoothness) / (x + ridge) ** 2))
            printed, corrected = values(
                "proposition_4", kappa=kappa, M=1, lam=ridge, m=50, r=smoothness, norm=1
            )
            assert largest <= corrected * (1 + 1e-12) <= printed
