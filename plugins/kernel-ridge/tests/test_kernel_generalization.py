"""Theorem 1, Propositions 2 and 3: definitions, quadrature, and mechanisms solved exactly."""

import math

import pytest
from scipy import integrate

from dpcore_kernel_ridge.bounds import lemma_2
from dpcore_kernel_ridge.generalization import (
    generalization,
    generalization_printed,
    noise_variance,
    noise_variance_printed,
    random_error,
    random_error_printed,
)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_theorem_1_holds_for_randomised_response(epsilon):
    """One fair bit z, published as a by randomised response; g = 1 if z is what was published.

    On the sample it is e^eps/(1 + e^eps), on a fresh bit 1/2 = G.
    """
    keeps = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert keeps - 0.5 <= generalization(epsilon, 0.5)


def test_theorem_1_as_printed_is_false_from_where_the_exponential_overtakes():
    """One of N values, by N-ary randomised response; g = 1 if z is what was published.

    On the sample it is e^eps/(N - 1 + e^eps), on a fresh value 1/N = G.
    """
    epsilon, values = 2.0, 1000
    attained = math.exp(epsilon) / (values - 1 + math.exp(epsilon)) - 1 / values
    assert generalization_printed(epsilon, 1 / values) < attained
    assert attained <= generalization(epsilon, 1 / values) <= 1.01 * attained
    assert generalization(1.25, 1.0) < generalization_printed(1.25, 1.0)
    assert generalization(1.26, 1.0) > generalization_printed(1.26, 1.0)


def second_moment(scale):
    """Of a Laplace variable, by quadrature."""
    found, _ = integrate.quad(lambda b: b * b * math.exp(-b / scale) / scale, 0, 60 * scale)
    return found


def test_proposition_3_is_the_second_moment_of_the_noise():
    kappa, bound, lam, records, epsilon = 1.5, 2.0, 0.1, 500, 0.7
    printed = second_moment(kappa * lemma_2(kappa, bound, lam, records) / epsilon)
    given = (kappa, bound, lam, records, epsilon)
    assert noise_variance_printed(*given) == pytest.approx(printed, rel=1e-9)
    tau = 1 / (2 * math.sqrt(lam))
    t4 = kappa * bound / (records * lam) * (2 + kappa * tau)  # the least of T4's three here
    assert noise_variance(*given) == pytest.approx(second_moment(kappa * t4 / epsilon), rel=1e-9)
    few = (kappa, bound, 1e-6, 5, epsilon)
    assert noise_variance(*few) == pytest.approx(second_moment(2 * bound / epsilon), rel=1e-9)


def test_proposition_2_is_theorem_1_of_the_squared_error():
    kappa, bound, lam, records, epsilon = 1.0, 1.0, 0.2, 300, 0.5
    given = (kappa, bound, lam, records, epsilon)
    square = (bound / math.sqrt(lam)) ** 2 * kappa**4 * (kappa + 1) ** 2
    inner = 2 * square / (lam * records * epsilon) ** 2 + bound**2
    assert random_error_printed(*given) == pytest.approx(8 * epsilon * inner, rel=1e-12)
    most = noise_variance(*given) + 4 * bound**2
    assert random_error(*given) == pytest.approx((math.exp(0.5) - 1) * most, rel=1e-12)
    assert random_error(*given) < random_error_printed(*given)
