"""Choices one after another against the analyst who picks every place, by exact recursion."""

import functools
import math

import mpmath
import numpy as np
import pytest

from dpcore.adjacency import ADD_REMOVE
from dpcore.claims.accounting.losses import choices
from dpcore.claims.accounting.losses.choices import ChoicesEvent, together
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.accounting.methods.pld import PldAccountant
from dpcore.claims.accounting.methods.renyi import RenyiAccountant
from dpcore.claims.events.exponential import ExponentialMechanismEvent
from dpcore.claims.events.gaussian import GaussianEvent, gaussian_delta
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.randomized_response import RandomizedResponseEvent
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussianEvent
from dpcore.claims.mechanisms.discrete_laplace import DiscreteLaplaceEvent
from dpcore.event import Direction

A = ADD_REMOVE


def analyst(ranges, parts, epsilon, last):
    """delta of the best adaptive places among multiples of range/parts, in the order of ranges.

    Each pair is the definition: losses t and t - r, the first with the probability under P at
    which both laws add up to 1. `last` is the curve of what follows.
    """

    @functools.cache
    def value(index, loss):
        if index == len(ranges):
            return last(epsilon - loss)
        r, best = ranges[index], 0.0
        for place in range(1, parts):
            t = r * place / parts
            p = (math.exp(r) - math.exp(t)) / math.expm1(r)
            high = value(index + 1, round(loss + t, 12))
            low = value(index + 1, round(loss + t - r, 12))
            best = max(best, p * high + (1 - p) * low)
        return best

    return value(0, 0.0)


def nothing(epsilon):
    return max(0.0, -math.expm1(epsilon))


def gaussian(mu):
    def curve(epsilon):
        if epsilon >= 0:
            return gaussian_delta(epsilon, mu)
        return -math.expm1(epsilon) + math.exp(epsilon) * gaussian_delta(-epsilon, mu)

    return curve


@pytest.mark.parametrize(
    ("epsilon_0", "count", "mu"), [(0.1, 3, 0.0), (1.5, 4, 0.0), (0.4, 2, 0.3)]
)
def test_the_joint_curve_lies_just_above_the_best_analyst(epsilon_0, count, mu):
    event = ChoicesEvent(
        event=ExponentialMechanismEvent(epsilon=epsilon_0, adjacency=A), count=count, mu=mu
    )
    last = gaussian(mu) if mu else nothing
    for epsilon in np.linspace(0.02, 0.7, 5) * epsilon_0 * count:
        truth = analyst((epsilon_0,) * count, 24, float(epsilon), last)
        found = event.curve.upper_at(float(epsilon), Direction.ADD)
        assert truth <= found
        # and it is not vacuous: what a hundredth less of range would lose, about, is more
        less = analyst((epsilon_0,) * count, 24, float(epsilon) * 0.985, last)
        assert found <= less * 1.01, (epsilon, truth, found, less)


def test_a_place_chosen_from_other_answers_gains_nothing():
    """Two sizes of choices in every order, and a coin between them: never above the composition."""
    sizes, delta = (0.3, 0.5), 1e-2
    accountant = PldAccountant(A)
    for size in sizes:
        accountant = accountant.compose(ExponentialMechanismEvent(epsilon=size, adjacency=A), 2)
    epsilon = accountant.epsilon(delta).upper
    for order in ((0.3, 0.3, 0.5, 0.5), (0.3, 0.5, 0.3, 0.5), (0.5, 0.3, 0.3, 0.5)):
        assert analyst(order, 12, epsilon, nothing) <= delta
    assert analyst((0.3, 0.5, 0.3, 0.5), 12, 0.93 * epsilon, nothing) > delta


@pytest.mark.parametrize("epsilon_0", [1e-4, 1e-2, 0.5, 4.0])
def test_a_step_misses_nothing_of_its_chords(epsilon_0):
    """The largest mixture of chords over many places, in 50 digits, at points of the grid."""
    cells, mu = choices._CELLS, 3 * epsilon_0
    step = epsilon_0 / cells
    found = choices._joint_curve(epsilon_0, 1, mu)[1]
    with mpmath.workdps(50):
        heights = {k: mpmath.mpf(gaussian(mu)(float(step * k))) for k in range(-cells, 6 * cells)}
        top = mpmath.exp(mpmath.mpf(epsilon_0))
        for point in (0, 1, 17, 40, 79):
            best = mpmath.mpf(0)
            for t in np.linspace(0.3, 0.8, 401) * epsilon_0:
                t = mpmath.mpf(float(t))
                p = (top - mpmath.exp(t)) / (top - 1)
                value = mpmath.mpf(0)
                for weight, loss in ((p, t), (1 - p, t - epsilon_0)):
                    place = point - loss / step
                    k = int(mpmath.floor(place))
                    fraction = mpmath.expm1(step * (place - k)) / mpmath.expm1(mpmath.mpf(step))
                    value += weight * (heights[k] * (1 - fraction) + heights[k + 1] * fraction)
                best = max(best, value)
            assert best <= found[point] <= best * mpmath.mpf("1.0005")


@pytest.mark.parametrize("others", [[], [(GaussianEvent(mu=0.3, adjacency=A), 1)]])
@pytest.mark.parametrize(
    ("size", "count", "wide"), [(0.02, 1000, 1.05), (0.1, 100, 1.05), (0.5, 10, 1.45)]
)
def test_composed_choices_have_two_ends_near_each_other(size, count, wide, others):
    """The lower end is of one pair for all, so that every one of them is attained."""
    accountant = (
        AutoAccountant(A)
        .compose(ExponentialMechanismEvent(epsilon=size, adjacency=A), count)
        .compose_all(others)
    )
    interval = accountant.epsilon(1e-6)
    assert 0 < interval.lower <= interval.upper <= wide * interval.lower, interval
    renyi = RenyiAccountant(A).compose(ExponentialMechanismEvent(epsilon=size, adjacency=A), count)
    assert interval.upper < renyi.compose_all(others).epsilon(1e-6).upper


def test_what_is_one_choice_costs_what_it_did():
    one = ExponentialMechanismEvent(epsilon=0.5, adjacency=A)
    assert together(one, 1) == {one: 1}
    assert sum(event.count * n for event, n in together(one, 1000).items()) == 1000
    tiny = ExponentialMechanismEvent(epsilon=1e-6, adjacency=A)
    assert together(tiny, 1000) == {tiny: 1000}
    mixed = PldAccountant(A).compose(one).compose(LaplaceEvent(shift=0.1, adjacency=A), 3)
    assert 0.5 < mixed.epsilon(1e-6).lower <= mixed.epsilon(1e-6).upper <= 0.8 + 1e-9


def seven_kinds(seed):
    """Between 20 and 200 of each kind, all of about the same weight, as a month of a ledger has."""
    randomness, events = np.random.default_rng(seed), []
    for kind in (
        lambda size: GaussianEvent(mu=size, adjacency=A),
        lambda size: LaplaceEvent(shift=size, adjacency=A),
        lambda size: DiscreteGaussianEvent(noise_width=1 / size, shift=1, adjacency=A),
        lambda size: DiscreteLaplaceEvent(noise_scale=1 / size, shift=1, adjacency=A),
        lambda size: RandomizedResponseEvent(epsilon=size, classes=3, adjacency=A),
        lambda size: ExponentialMechanismEvent(epsilon=2 * size, adjacency=A),
        lambda size: PoissonSampledEvent(
            event=GaussianEvent(mu=20 * size, adjacency=A), sampling_probability=0.02
        ),
    ):
        count = int(20 * 10 ** randomness.random())
        events.append((kind(float(0.3 * (0.5 + randomness.random()) / math.sqrt(count))), count))
    return events


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_random_month_of_seven_kinds_is_composed_within_three_percent(seed):
    """Upper over lower end: certified, so that no accountant whatever is better by more."""
    interval = AutoAccountant(A).compose_all(seven_kinds(seed)).epsilon(1e-6)
    assert interval.upper <= 1.03 * interval.lower, (interval, interval.upper / interval.lower)
