"""Lemmas of the paper by enumeration of orders, by grids and by quadrature."""

import itertools
import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from dpcore_sgd.statements import STATEMENTS


def values(name, **options):
    return [side["value"] for side in STATEMENTS[f"sgd/{name}"].values(options).values()]


@pytest.mark.parametrize("seed", range(5))
def test_the_expected_training_error_of_every_iterate_is_below_lemma_3_1(seed):
    """Over all orders of four steps on three records."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((3, 2))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    labels, rate, steps = rng.choice([-1.0, 1.0], 3), 0.38, 4
    (bound,) = values("lemma_3_1", rate=rate, kappa=1, label_bound=1, steps=steps)
    for length in range(1, steps):
        errors = []
        for order in itertools.product(range(3), repeat=length):
            weights = np.zeros(2)
            for row in order:
                weights -= rate * (features[row] @ weights - labels[row]) * features[row]
            errors.append(np.mean((features @ weights - labels) ** 2))
        assert np.mean(errors) <= bound


@pytest.mark.parametrize(("a", "b"), [(0.01, 1.0), (0.5, 0.5), (3.0, 2.0)])
def test_lemma_3_4_needs_the_power_that_it_leaves_out(a, b):
    rate = 0.3
    x = np.linspace(0, 1 / rate, 200_001)[1:-1]  # eta x < 1
    largest = float(np.max((1 - rate * x) ** a * x**b))
    printed, corrected = values("lemma_3_4", rate=rate, b=b, a=a)
    assert largest <= corrected * (1 + 1e-12)
    assert (largest > printed) == (a < 1)


def test_lemma_3_5_is_an_upper_end_of_the_exact_chance():
    for features in (1, 4, 50):
        for t in (0.05, 0.5, 0.99):
            printed, exact = values("lemma_3_5", features=features, t=t)
            tail, _ = scipy.integrate.quad(
                scipy.stats.chi2(features).pdf, features * (1 + t), 40 * features + 200, limit=200
            )
            assert exact == pytest.approx(tail, abs=1e-7)
            assert exact <= printed


@pytest.mark.parametrize("r", [0.5, 0.8, 1.0])
def test_proposition_4_6_is_the_largest_squared_bias(r):
    for ridge in (0.01, 0.4):
        x = np.geomspace(1e-9, 1e9, 200_001)  # eigenvalues
        largest = float(np.max(4 * (ridge * x**r / (x + ridge)) ** 2))
        printed, corrected = values("proposition_4_6", r=r, lam=ridge, R=2)
        assert largest == pytest.approx(corrected, rel=1e-6)
        assert corrected <= printed
        assert math.isclose(printed, 4 * ridge ** (2 * r))
