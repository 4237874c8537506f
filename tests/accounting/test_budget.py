"""What a budget leaves beside a failure probability, in exact arithmetic."""

from fractions import Fraction

from hypothesis import given, strategies as st

from dpcore import PrivacyBudget


@given(st.floats(1e-300, 0.5), st.floats(0.0, 1.0, exclude_max=True))
def test_the_parts_of_delta_never_add_up_to_more_than_delta(delta, share):
    gamma = delta * share
    left = PrivacyBudget(epsilon=1.0, delta=delta).delta_beside(gamma)
    assert left >= 0
    assert Fraction(left) + Fraction(gamma) <= Fraction(delta)
    assert Fraction(left) + Fraction(gamma) >= Fraction(delta) * (1 - Fraction(1, 2**50))


def test_nothing_is_taken_where_no_probability_is_paid_for():
    assert PrivacyBudget(epsilon=1.0, delta=1e-5).delta_beside(0.0) == 1e-5
