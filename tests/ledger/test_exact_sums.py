"""A ledger's sums are exact: integers in one unit against rational numbers by definition."""

import contextlib
import math
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from dpcore import ADD_REMOVE, Ledger
from dpcore.claims.accounting.conversions import pure_to_gdp
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.randomized_response import ApproximateEvent, PureEvent
from dpcore.ledger import Charge, dyadic as exact
from dpcore.ledger.dyadic import Dyadic, dyadic
from dpcore.ledger.filters import BasicFilter, BudgetExceededError
from dpcore.ledger.total import Total

A = ADD_REMOVE
finite = st.floats(0, allow_nan=False, allow_infinity=False)
edges = st.sampled_from(
    [0.0, 5e-324, 2.0**-1074, 2.0**-1022, 1e-170, 2.0**53 + 2, 1.7976931348623157e308, 0.1]
)
numbers = finite | edges
counts = st.integers(1, 10**40)


def by_definition(total):
    """The text of a sum: a double's where it is one, else the quotient in lowest terms."""
    with contextlib.suppress(OverflowError):
        if Fraction(float(total)) == total:
            return float(total).hex()
    return f"{total.numerator:x}/{total.denominator:x}"


@given(st.lists(st.tuples(numbers, counts, st.booleans()), max_size=6), numbers)
def test_sums_of_doubles_and_of_squares(parts, other):
    found, true = Dyadic(0), Fraction(0)
    for value, count, squared in parts:
        found += (Dyadic.square(value) if squared else dyadic(value)) * count
        true += Fraction(value) ** (2 if squared else 1) * count
    assert found.fraction() == true
    assert found == true
    assert hash(found) == hash(true)
    assert dyadic(true) == found
    for limit in (Fraction(other), true + Fraction(1, 2**2148), true - Fraction(1, 2**2148)):
        bound = dyadic(limit)
        assert ((found <= bound), (found < bound), (found > bound)) == (
            (true <= limit), (true < limit), (true > limit),
        )  # fmt: skip
        assert (found <= limit, found > limit) == (true <= limit, true > limit)
        assert (found - bound).fraction() == true - limit
    assert exact.write(found) == by_definition(true)
    assert exact.read(exact.write(found)) == found
    with contextlib.suppress(OverflowError):
        assert float(found) == float(true)
    up = exact.rounded_up(found)
    assert math.isinf(up) or Fraction(up) >= true
    assert up == 0 or Fraction(math.nextafter(up, 0)) < true


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, Fraction(1, 3)])
def test_what_is_no_sum_of_doubles(value):
    with pytest.raises(ValueError, match="a sum"):
        dyadic(value)


@given(st.floats(1e-12, 10), st.integers(1, 1000), st.integers(-3, 3))
def test_a_budget_is_met_to_the_last_unit(budget, parts, ulps):
    """Refused exactly where the rational sum exceeds what a budget may be rounded by."""
    one = budget / parts * (1 + ulps * 2.0**-49)
    event = PureEvent(epsilon=one, adjacency=A)
    fits = parts * Fraction(one) <= Fraction(budget) * (1 + Fraction(1, 2**48))
    try:
        spent = BasicFilter(adjacency=A, epsilon=budget).spend(event, parts)
    except BudgetExceededError:
        assert not fits
    else:
        assert fits
        assert spent.spent_epsilon == parts * Fraction(one)


events = st.one_of(
    st.floats(1e-9, 1e-2).map(lambda mu: GaussianEvent(mu=mu, adjacency=A)),
    st.floats(1e-9, 1e-2).map(lambda e: PureEvent(epsilon=e, adjacency=A)),
    st.tuples(st.floats(1e-9, 1e-2), st.floats(1e-12, 1e-9)).map(
        lambda c: ApproximateEvent(epsilon=c[0], delta=c[1], adjacency=A)
    ),
)
charges = st.lists(st.tuples(events, st.integers(1, 9)), min_size=1, max_size=3)


@given(st.lists(st.tuples(charges, st.floats(0, 1e-9)), min_size=1, max_size=6))
def test_a_history_adds_up_to_the_rational_sum(history):
    total = Total(epsilon=8.0, delta=1e-5, adjacency=A, failures=1e-6)
    spent = total.start()
    squares, epsilons, leaks, additions, pure = Fraction(0), Fraction(0), Fraction(0), 0, True
    for listed, failures in history:
        spent = spent.spend(Charge(events=tuple(listed), failures=failures))
        leaks += Fraction(failures)
        for event, count in listed:
            additions += 1
            if isinstance(event, GaussianEvent):
                pure = False
                squares += count * Fraction(event.mu) ** 2
            else:
                epsilon, delta = event.claims.approximate
                epsilons += count * Fraction(epsilon)
                squares += count * Fraction(pure_to_gdp(epsilon)) ** 2
                leaks += count * Fraction(delta)
    state = spent.state()
    assert state["composed"] == {"mu_squared": by_definition(squares), "additions": additions}
    assert state["failures"] == by_definition(leaks)
    assert (state["pure"] is not None) == pure
    if pure:
        assert state["pure"]["spent_epsilon"] == by_definition(epsilons)
    assert spent.at(state) == spent


def test_a_reading_tells_the_rows_and_the_end(tmp_path):
    ledger = Ledger.create(tmp_path / "people.ledger", epsilon=1.0, delta=1e-5, adjacency=A)
    for mu in (0.1, 0.2):
        ledger.reserve(Charge.of(GaussianEvent(mu=mu, adjacency=A)))
    found, last = ledger.verified(), ledger.rows()[-1]
    assert (found.faults, found.rows, found.end) == ((), last.number, last.digest)
    assert ledger.faults() == []
