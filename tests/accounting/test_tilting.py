"""Leaks that fall with epsilon: what they allow, and that what is allowed stays allowed."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from dpcore.adjacency import ADD_REMOVE as A
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.randomized_response import ApproximateEvent, PureEvent
from dpcore.ledger.filters import BudgetExceededError, GaussianFilter
from dpcore.ledger.marginal_cost import smoothed_cost
from dpcore.ledger.tilted_leak import Tilt, TiltedLeak, least_squares, slope_for

Q, MU, LEAK = 0.05, 1.2, 1e-9
STEP = PoissonSampledEvent(event=GaussianEvent(mu=MU, adjacency=A), sampling_probability=Q)


def gaussian(epsilon, square):
    mu = math.sqrt(square)
    return norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def sampled(remove, points=4001):
    x = np.linspace(-11.0, 11.0 + 10 * MU, points)
    base, mixed = norm.pdf(x), (1 - Q) * norm.pdf(x) + Q * norm.pdf(x - MU)
    first, second = (mixed, base) if remove else (base, mixed)
    return first * (x[1] - x[0]), np.log(first / second)


def response(epsilon):
    high = 1 / (1 + math.exp(-epsilon))
    return np.array([high, 1 - high]), np.array([epsilon, -epsilon])


@pytest.mark.parametrize("slope", [1, 4, 9])
@pytest.mark.parametrize(("event", "pairs"), [
    (STEP, [sampled(True), sampled(False)]),
    (PureEvent(epsilon=0.3, adjacency=A), [response(0.3)]),
])  # fmt: skip
def test_a_tilted_leak_grows_on_average_no_more_than_its_squares_allow(event, pairs, slope):
    allowed = slope * (slope + 1) / 2 * least_squares([(event, 1)], slope)
    grown = [math.log(weights @ np.exp(slope * losses)) for weights, losses in pairs]
    assert max(grown) <= allowed * (1 + 1e-9)
    assert max(grown) > allowed * (1 - 1e-6)  # and no less


def test_squares_add_up_and_a_list_without_divergences_has_none():
    steps, pure = (STEP, 3), (PureEvent(epsilon=0.3, adjacency=A), 2)
    apart = 3 * least_squares([(STEP, 1)], 5) + 2 * least_squares([(pure[0], 1)], 5)
    assert least_squares([steps, pure], 5) == pytest.approx(apart, rel=1e-12)
    squares = least_squares([(GaussianEvent(mu=0.1, adjacency=A), 7)], 5)
    assert 0.07 <= squares <= 0.07 * (1 + 1e-12)
    leaky = ApproximateEvent(epsilon=0.1, delta=1e-9, adjacency=A)
    assert least_squares([(leaky, 1)], 5) == math.inf


@pytest.mark.parametrize("remove", [True, False])
def test_a_step_the_rest_and_its_leaks_stay_below_what_they_cost(remove):
    rest, tilted = 0.05, TiltedLeak(slope=5, height=-3.0)
    cost = smoothed_cost([(STEP, 1)], LEAK, rest, adjacency=A, tilted=tilted)
    plain = smoothed_cost([(STEP, 1)], LEAK, rest, adjacency=A)
    assert cost < 0.8 * plain
    at = np.linspace(0.0, 4.0, 300)
    weights, losses = sampled(remove)
    joined = np.array([weights @ gaussian(one - losses, rest) for one in at])

    def allowed(squares):
        leak = np.exp(tilted.height + 15 * squares - 5 * at)
        return LEAK + (1 - LEAK) * gaussian(at, rest + squares) + leak

    assert np.all(joined <= allowed(cost) * (1 + 1e-6))
    if remove:
        assert np.any(joined > allowed(0.95 * cost) * (1 + 1e-6))  # and hardly above


def test_a_cost_found_for_a_rest_holds_for_a_larger_one():
    """With one more Gaussian on both sides, its leak grown as the larger rest's."""
    tilt, size = Tilt.of(5, 4.0, 1e-6), 1e-9
    costs = [
        smoothed_cost([(STEP, 1)], LEAK, rest, adjacency=A, tilted=tilt.leak(size, rest))
        for rest in (0.02, 0.05, 0.15, 0.4)
    ]
    assert all(costs[i] >= costs[i + 1] * (1 - 2e-2) for i in range(3))
    for small, large in ((0.02, 0.05), (0.05, 0.4)):
        grown = tilt.leak(size, large).height - tilt.leak(size, small).height
        assert grown == pytest.approx(15 * (large - small), abs=1e-9)


def test_no_filter_lets_more_squares_through_than_a_tilt_expects():
    for epsilon, delta in ((0.1, 1e-9), (1.0, 1e-5), (8.0, 1e-6)):
        most = Tilt.of(3, epsilon, delta).most
        budget = GaussianFilter(adjacency=A, epsilon=epsilon, delta=delta)
        with pytest.raises(BudgetExceededError):
            budget.spend(GaussianEvent(mu=math.sqrt(most), adjacency=A))
        budget.spend(GaussianEvent(mu=math.sqrt(most * (1 - 1e-6)), adjacency=A))


def test_a_leak_at_the_start_is_worth_its_size_at_the_promised_epsilon():
    tilt = Tilt.of(6, 2.0, 1e-5)
    leak = tilt.leak(1e-7, tilt.most)  # nothing is spent yet
    at_promise = math.exp(leak.height - 6 * 2.0)
    assert 1e-7 * (1 - 1e-9) <= at_promise <= 1e-7


def test_slopes_are_those_of_the_budgets_curve():
    for epsilon, delta in ((0.5, 1e-6), (4.0, 1e-6), (1.0, 1e-2)):
        tilt = Tilt.of(1, epsilon, delta)
        steep = epsilon / tilt.most - 0.5
        assert abs(slope_for(epsilon, delta) - min(max(steep, 1), 4)) <= 0.51
