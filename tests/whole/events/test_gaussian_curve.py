import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpcore import REPLACE_ONE, Query, Sensitivity
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.events.gaussian import (
    gaussian_curve,
    gaussian_delta,
    gaussian_delta_lower,
    gaussian_epsilon,
    gaussian_mu,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.plan.planned_query import PlannedQuery
from dpcore.claims.pricing.calibration import calibrate

from oracles.definitions import hockey_stick_of_gaussians

EPSILONS = [0.01, 0.03, 0.2, 1.0, 3.7, 12.0, 50.0]
DELTAS = [1e-12, 1e-9, 1e-5, 1e-2, 0.1]
UNIT = Sensitivity(value=1.0, distance="l2", adjacency=REPLACE_ONE, source="test")


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_calibrated_sigma_agrees_with_quadrature_to_1e_10_and_never_falls_short(epsilon, delta):
    query = Query(name="q", shape=(1,), distance="l2")
    planned_query = PlannedQuery(query=query, sensitivity=UNIT, mechanism=Gaussian(), share=1.0)
    (locate_errors,) = calibrate([planned_query], AutoAccountant(REPLACE_ONE), epsilon, delta)
    sigma = locate_errors.mechanism.noise_multiplier
    assert hockey_stick_of_gaussians(epsilon, 1 / mpmath.mpf(sigma)) <= delta
    tenth_digit_less = sigma * (1 - 1e-10)
    assert hockey_stick_of_gaussians(epsilon, 1 / mpmath.mpf(tenth_digit_less)) > delta


@pytest.mark.parametrize(
    ("epsilon", "delta", "expected"), [(1, 1e-5, 3.730631), (0.5, 1e-5, 1 / 0.14221)]
)
def test_published_multipliers_are_reproduced(epsilon, delta, expected):
    assert 1 / gaussian_mu(epsilon, delta) == pytest.approx(expected, rel=1e-4)


@given(
    epsilon=st.floats(0, 60),
    mu=st.floats(-6, 2).map(lambda exponent: 10**exponent),
)
def test_both_ends_enclose_the_exact_curve(epsilon, mu):
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
    assert gaussian_delta_lower(epsilon, mu) <= exact <= gaussian_delta(epsilon, mu)


@given(
    epsilon=st.floats(0, 1e12),
    mu=st.floats(-300, 300).map(lambda exponent: 10**exponent),
)
def test_the_curve_is_a_probability_for_any_parameter(epsilon, mu):
    lower, upper = gaussian_delta_lower(epsilon, mu), gaussian_delta(epsilon, mu)
    assert 0 <= lower <= upper <= 1


@given(delta=st.floats(1e-14, 0.5), mu=st.floats(1e-3, 50))
def test_epsilon_inverts_the_curve_from_above(delta, mu):
    epsilon = gaussian_epsilon(delta, mu)
    assert gaussian_delta(epsilon, mu) <= delta
    lower = gaussian_epsilon(delta, mu, lower=True)
    assert 0 <= lower <= epsilon
    assert epsilon - lower <= 1e-9 * max(1.0, epsilon)


def test_epsilon_is_zero_where_total_variation_is_below_delta():
    assert gaussian_epsilon(0.4, 0.1) == 0.0


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-9, math.nan])
def test_a_delta_outside_the_open_interval_is_an_error_that_names_it(delta):
    with pytest.raises(ValueError, match="delta"):
        gaussian_epsilon(delta, 1.0)


def test_two_real_noises_are_added_to_a_complex_entry():
    from dpcore import SecretRandomness

    query = Query(name="q", shape=(2000,), distance="l2", field="complex")
    mechanism = Gaussian(noise_multiplier=3.0)
    noise = SecretRandomness.rehearsal(1).noise(0, "q", 1)
    released = mechanism.release(np.zeros(2000, complex), query, UNIT, noise)
    for part in (released.real, released.imag):
        # a chi-square of 2000 degrees leaves [1630, 2400] with probability below 1e-8
        assert 1630 < np.sum((part / 3.0) ** 2) < 2400
    assert abs(np.mean(released.real * released.imag)) / 9 < 6 / np.sqrt(2000)


@pytest.mark.parametrize("lower", [False, True])
def test_the_curve_of_many_is_the_curve_of_each(lower):
    """Blocks of any shape against the function of one, which is written apart from it."""
    one = gaussian_delta_lower if lower else gaussian_delta
    chosen = np.random.default_rng(5)
    mus = np.concatenate([10.0 ** chosen.uniform(-6, 3, 200), chosen.uniform(0.1, 5, 100)])
    epsilons = np.concatenate([[0.0], 10.0 ** chosen.uniform(-9, 4, 99), -chosen.uniform(0, 9, 9)])
    many = gaussian_curve(epsilons[:, None], mus[None, :], lower=lower)
    assert many.shape == (109, 300)  # more than one block
    for i, j in chosen.integers((109, 300), size=(2000, 2)):
        single = one(float(epsilons[i]), float(mus[j]))
        assert many[i, j] == pytest.approx(single, rel=1e-12, abs=1e-15)
    assert np.array_equal(many[:, 7], gaussian_curve(epsilons, float(mus[7]), lower=lower))
    assert float(gaussian_curve(epsilons[3], mus[5], lower=lower)) == many[3, 5]
