"""What a budget leaves next to a failure probability, in exact arithmetic."""

from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from dpcore import PrivacyBudget, Range
from dpcore.errors import ParameterError


@given(st.floats(1e-300, 0.5), st.floats(0.0, 1.0, exclude_max=True))
def test_the_parts_of_delta_never_add_up_to_more_than_delta(delta, fraction):
    gamma = delta * fraction
    left = PrivacyBudget(epsilon=1.0, delta=delta).delta_with(gamma)
    assert left >= 0
    assert Fraction(left) + Fraction(gamma) <= Fraction(delta)
    assert Fraction(left) + Fraction(gamma) >= Fraction(delta) * (1 - Fraction(1, 2**50))


def test_nothing_is_taken_where_no_probability_is_paid_for():
    assert PrivacyBudget(epsilon=1.0, delta=1e-5).delta_with(0.0) == 1e-5


@pytest.mark.parametrize("rho", [0, -0.1, float("nan"), float("inf"), 10**400, "x", True])
def test_a_rho_that_is_no_positive_number_is_refused(rho):
    with pytest.raises(ParameterError, match="rho"):
        PrivacyBudget(epsilon=1.0, delta=1e-6, rho=rho)


def test_an_integer_beyond_all_floats_is_refused_as_any_other_wrong_number():
    with pytest.raises(ParameterError, match="epsilon"):
        PrivacyBudget(epsilon=10**400)
    with pytest.raises(ParameterError):
        Range(0, 10**400)
