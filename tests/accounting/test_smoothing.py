"""What a list costs a Gaussian budget of which more is left: against quadrature, both ways."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import norm

from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.randomized_response import PureEvent
from dpcore.errors import NoClaimError, ParameterError
from dpcore.ledger.marginal_cost import _informative_points, _least_cost, smoothed_cost

A = ADD_REMOVE
LEAK = 2.0**-32
Q, MU = 0.05, 0.5  # of the sampled Gaussians


def _gaussian(epsilon, square):
    """The curve of a Gaussian at any real epsilon, by its definition."""
    mu = math.sqrt(square)
    a = np.exp(epsilon)
    return norm.cdf(mu / 2 - epsilon / mu) - a * norm.cdf(-mu / 2 - epsilon / mu)


def _joined(epsilons, pair, square):
    """The curve of a pair (weights, losses), given as atoms, and a Gaussian."""
    weights, losses = pair
    return np.array([weights @ _gaussian(one - losses, square) for one in epsilons])


def _sampled(q, mu, remove, points=1501):
    """A Poisson-sampled Gaussian's first measure and its losses, by the trapezoidal rule."""
    x = np.linspace(-11.0, 11.0 + mu, points)
    width = x[1] - x[0]
    base, mixed = norm.pdf(x), (1 - q) * norm.pdf(x) + q * norm.pdf(x - mu)
    first, second = (mixed, base) if remove else (base, mixed)
    return first * width, np.log(first / second)


def _twice(pair, points=400):
    """Two independent copies of a pair whose atoms are thinned to the middles of bins."""
    weights, losses = pair
    edges = np.linspace(losses.min(), losses.max(), points + 1)
    at = np.clip(np.digitize(losses, edges) - 1, 0, points - 1)
    weight = np.bincount(at, weights, points)
    # of each bin the mean loss: by convexity the thinned pair's curve is not above the pair's
    ratio = np.bincount(at, weights * np.exp(-losses), points)
    kept = weight > 0
    loss = np.log(weight[kept] / ratio[kept])
    weight = weight[kept]
    return np.outer(weight, weight).ravel(), np.add.outer(loss, loss).ravel()


def _over(pair, rest, cost):
    """How far the joined curve lies above what the cost allows, at most, relative to that."""
    at = np.linspace(0.0, 9 * math.sqrt(rest + cost) + 1.0, 200)
    allowed = LEAK + (1 - LEAK) * _gaussian(at, rest + cost)
    return float(np.max(_joined(at, pair, rest) / allowed)) - 1


@pytest.mark.parametrize("rest", [0.1, 0.01])
def test_a_sampled_gaussian_and_the_rest_stay_below_the_gaussian_they_cost(rest):
    event = PoissonSampledEvent(event=GaussianEvent(mu=MU, adjacency=A), sampling_probability=Q)
    cost = smoothed_cost([(event, 1)], LEAK, rest, adjacency=A)
    pairs = [_sampled(Q, MU, remove) for remove in (True, False)]
    assert all(_over(pair, rest, cost) < 1e-6 for pair in pairs)
    assert any(_over(pair, rest, 0.98 * cost) > 1e-4 for pair in pairs)  # and hardly above


def test_two_sampled_gaussians_and_the_rest_stay_below_the_gaussian_they_cost():
    event = PoissonSampledEvent(event=GaussianEvent(mu=MU, adjacency=A), sampling_probability=Q)
    cost = smoothed_cost([(event, 2)], LEAK, 0.1, adjacency=A)
    pairs = [_twice(_sampled(Q, MU, remove), 120) for remove in (True, False)]
    assert all(_over(pair, 0.1, cost) < 1e-6 for pair in pairs)
    assert any(_over(pair, 0.1, 0.95 * cost) > 1e-5 for pair in pairs)


def test_a_pure_release_costs_little_more_than_the_square_of_its_epsilon():
    cost = smoothed_cost([(PureEvent(epsilon=0.05, adjacency=A), 1)], LEAK, 0.1, adjacency=A)
    high = 1 / (1 + math.exp(-0.05))
    pair = np.array([high, 1 - high]), np.array([0.05, -0.05])
    assert _over(pair, 0.1, cost) < 1e-9
    assert _over(pair, 0.1, 0.98 * cost) > 1e-5
    assert cost < 1.02 * 0.05**2  # by itself a Gaussian covers it at 1.57 of that


def test_a_gaussian_costs_its_square():
    cost = smoothed_cost([(GaussianEvent(mu=0.05, adjacency=A), 3)], LEAK, 0.1, adjacency=A)
    assert 3 * 0.05**2 <= cost <= 1.005 * 3 * 0.05**2


def test_a_cost_does_not_rise_with_what_is_left():
    event = PoissonSampledEvent(event=GaussianEvent(mu=MU, adjacency=A), sampling_probability=Q)
    costs = [smoothed_cost([(event, 1)], LEAK, rest, adjacency=A) for rest in (0.003, 0.03, 0.3)]
    assert costs[0] > costs[1] * 1.05
    assert costs[1] > costs[2] * 1.05


def test_whoever_chooses_by_the_first_answer_stays_within_the_budget():
    """The first answer decides between all of the rest at once, half of it, and another sample."""
    whole = 0.2
    event = PoissonSampledEvent(event=GaussianEvent(mu=MU, adjacency=A), sampling_probability=Q)
    cost = smoothed_cost([(event, 1)], LEAK, whole / 2, adjacency=A)
    rest = whole - cost
    again = rest - smoothed_cost([(event, 1)], LEAK, whole / 2, adjacency=A)
    assert again >= whole / 2  # the costs were found for a rest that is still there
    for remove in (True, False):
        weights, losses = _sampled(Q, MU, remove, 1001)
        second = _sampled(Q, MU, remove, 401)
        for epsilon in (0.5, 1.0, 2.0):
            left = epsilon - losses
            choices = np.array(
                [
                    _gaussian(left, rest),
                    _gaussian(left, rest / 2),
                    _joined(left, second, again),
                    np.maximum(-np.expm1(left), 0.0),  # nothing more
                ]
            )
            greedy = float(weights @ choices.max(axis=0))
            assert greedy <= 2 * LEAK + _gaussian(epsilon, whole) * (1 + 1e-6)


def test_what_cannot_be_covered_is_refused():
    with pytest.raises(NoClaimError):
        smoothed_cost([(LaplaceEvent(shift=550.0, adjacency=A), 1)], LEAK, 0.1, adjacency=A)
    for leak, rest in ((0.0, 0.1), (0.5, 0.1), (LEAK, 0.0), (LEAK, math.inf)):
        with pytest.raises(ParameterError):
            smoothed_cost(
                [(PureEvent(epsilon=0.1, adjacency=REPLACE_ONE), 1)],
                leak, rest, adjacency=REPLACE_ONE,
            )  # fmt: skip


def _short_by(epsilons, heights, rest, cost, leak):
    """How far the polygon through the points rises above leak and Gaussian, by a fine net."""
    a = np.exp(epsilons)
    net = np.unique(np.concatenate([np.linspace(left, right, 400) for left, right in pairwise(a)]))
    net = net[net >= 1]
    cover = leak + (1 - leak) * _gaussian(np.log(net), rest + cost)
    return float(np.max(np.interp(net, a, heights) / cover)) - 1


@pytest.mark.parametrize("seed", range(3))
def test_what_is_found_of_points_far_apart_covers_the_polygon_between_them(seed):
    """Points of a mixture of two Gaussians' curves; the last may lie far below the leak."""
    generator = np.random.default_rng(seed)
    found = 0
    for _ in range(60):
        rest = 10.0 ** generator.uniform(-2, 0)
        leak = 10.0 ** generator.uniform(-6, -1)
        cutoff = math.sqrt(rest) * generator.uniform(2, 12)
        number = int(generator.integers(3, 30))
        epsilons = np.sort(
            np.append(generator.uniform(0, cutoff, number), [-0.01 * cutoff, cutoff])
        )
        fraction, square = generator.uniform(0, 1), rest * (1 + 10.0 ** generator.uniform(-2, 1))
        heights = fraction * _gaussian(epsilons, square) + (1 - fraction) * _gaussian(
            epsilons, rest
        )
        heights = np.minimum.accumulate(np.clip(heights, 0.0, 1.0))
        if heights[-1] > leak:
            continue
        cost = _least_cost(*_informative_points(epsilons, heights, leak), leak, rest)
        if not math.isfinite(cost):
            continue
        found += 1
        assert _short_by(epsilons, heights, rest, cost, leak) < 1e-9
    assert found > 20


def test_of_a_fine_grid_the_cost_is_hardly_above_the_least_one():
    leak, rest = 1e-4, 0.1
    epsilons = np.linspace(-0.01, 6.0, 1202)
    for square in (0.11, 0.2, 1.0):
        heights = np.clip(_gaussian(epsilons, square), 0.0, 1.0)
        cost = _least_cost(*_informative_points(epsilons, heights, leak), leak, rest)
        assert _short_by(epsilons, heights, rest, cost, leak) < 1e-9
        assert _short_by(epsilons, heights, rest, cost * 0.97, leak) > 0


def test_a_leak_that_covers_everything_costs_next_to_nothing():
    cost = smoothed_cost([(GaussianEvent(mu=1e-5, adjacency=A), 1)], 1e-3, 1e-9, adjacency=A)
    assert 0 < cost < 1e-10
