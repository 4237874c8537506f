"""Facts of the paper by quadrature."""

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from dpcore_ntk.statements import STATEMENTS


def values(name, **options):
    return [*STATEMENTS[f"ntk/{name}"].values(options).values()]


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_truncated_laplace_noise_is_as_wide_as_its_delta_needs(epsilon):
    delta, sensitivity = 0.01, 1.5
    (side,) = values("lemma_5_9", epsilon=epsilon, delta=delta, beta=sensitivity, d=1)
    end = side["value"]

    def density(x):
        return math.exp(-abs(x) * epsilon / sensitivity)

    total = 2 * scipy.integrate.quad(density, 0, end)[0]
    outside = scipy.integrate.quad(density, end - sensitivity, end)[0] / total
    assert outside == pytest.approx(delta, rel=1e-9)


def test_lemma_a_1_is_above_both_chances():
    for samples in (1, 6, 80):
        for t in (0.1, 1.0, 5.0):
            printed, exact = values("lemma_a_1", samples=samples, t=t)
            assert max(exact.values()) <= printed["value"]
            start = samples + 2 * math.sqrt(samples * t) + 2 * t
            density = scipy.stats.chi2(samples).pdf
            tail, _ = scipy.integrate.quad(density, start, start + 300, limit=200)
            assert exact["above"] == pytest.approx(tail, abs=1e-8)


def test_fact_a_4_is_false_unless_the_variance_is_1():
    for variance in (0.25, 1.0, 3.0):
        printed, corrected = values("fact_a_4", sigma2=variance)
        nodes, weights = np.polynomial.hermite_e.hermegauss(5)
        moment = float(weights @ (math.sqrt(variance) * nodes) ** 4 / weights.sum())
        assert corrected["value"] == pytest.approx(moment, rel=1e-12)
        assert (printed["value"] == pytest.approx(moment)) == (variance == 1)
