"""The best of a random number of runs, against every score of small releases and a hard one."""

import itertools
import math

import numpy as np
import pytest

from dpcore.adjacency import ADD_REMOVE
from dpcore.claims.accounting.conversions import epsilon_end, event_epsilon
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.random_stopping import RandomStoppingEvent
from dpcore.claims.events.renyi_curve import CurveEvent
from dpcore.errors import NoClaimError
from dpcore.event import Direction, Event, VectorCurve

A = ADD_REMOVE
LAWS = [(1.0, 4.0), (0.0, 3.0), (2.5, 6.0), (-0.5, 3.0), (math.inf, 0.6), (math.inf, 5.0)]


class Pair(Event, VectorCurve):
    """Two laws on finitely many outcomes, by the definition."""

    adjacency = A

    def __init__(self, p, q):
        self.p, self.q = p, q

    def upper(self, epsilons, direction):
        first, second = (self.p, self.q) if direction is Direction.REMOVE else (self.q, self.p)
        return np.maximum(first - np.exp(epsilons)[:, None] * second, 0).sum(axis=1)


def generating(shape, mean):
    """E x^K of the law, its gamma by bisection."""
    if shape == math.inf:
        return lambda x: np.exp(mean * (x - 1))

    def of(gamma):
        if shape == 0:
            return lambda x: np.log1p(-(1 - gamma) * x) / math.log(gamma)
        return lambda x: ((1 - (1 - gamma) * x) ** -shape - 1) / (gamma**-shape - 1)

    def expected(gamma):
        if shape == 0:
            return (1 / gamma - 1) / -math.log(gamma)
        return shape * (1 - gamma) / (gamma * (1 - gamma**shape))

    low, high = 1e-9, 1 - 1e-9
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if expected(middle) > mean else (low, middle)
    return of(low)


def published(distribution, order, f):
    """Probabilities of the best answer, the last of `order` being the best score."""
    total = np.concatenate([[0.0], np.cumsum(distribution[order])])
    return np.diff(f(np.minimum(total, 1.0)))


@pytest.mark.parametrize(("shape", "mean"), LAWS)
def test_no_score_of_a_small_release_exceeds_the_curve(shape, mean):
    rng, f = np.random.default_rng(3), generating(shape, mean)
    epsilons = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0])
    for _ in range(2):
        p, q = (rng.dirichlet(np.full(5, 0.8)) + 0.01 for _ in range(2))
        p, q = p / p.sum(), q / q.sum()
        event = RandomStoppingEvent(event=Pair(p, q), mean=mean, shape=shape)
        worst = {way: np.zeros(len(epsilons)) for way in Direction}
        for order in itertools.permutations(range(5)):
            one, other = (published(distribution, list(order), f) for distribution in (p, q))
            for way, first, second in ((Direction.REMOVE, one, other), (Direction.ADD, other, one)):
                value = np.maximum(first - np.exp(epsilons)[:, None] * second, 0).sum(axis=1)
                worst[way] = np.maximum(worst[way], value)
        for way in Direction:
            assert np.all(worst[way] <= event.curve.upper(epsilons, way) + 1e-15)


def ranked(base, shape, mean, fraction, epsilons):
    """The curve's lower end where the `fraction` least saying answers win, the most saying
    follow.

    Of the events "one of the most saying, none of the winners": of a Gaussian pair N(mu), N(0).
    """
    from scipy.stats import norm

    f = generating(shape, mean)
    top = norm.ppf(fraction)  # the winners lie below it under N(mu) - mu
    cut = np.linspace(-8, 14, 1601)
    p, q = norm.sf(cut - base.mu), norm.sf(cut)
    p_win, q_win = fraction, norm.cdf(top + base.mu)
    inside = cut > top + base.mu
    one = f(1 - p_win) - f(1 - p_win - p[inside])
    other = f(1 - q_win) - f(1 - q_win - q[inside])
    return np.array([np.max(one - math.exp(e) * other) for e in epsilons])


@pytest.mark.parametrize(
    ("shape", "mean", "mu"),
    [(1.0, 10.0, 0.1), (0.0, 10.0, 0.5), (math.inf, 10.0, 1.5), (1.0, 100.0, 0.5)],
)
def test_a_hard_score_comes_near_the_curve(shape, mean, mu):
    base = GaussianEvent(mu=mu, adjacency=A)
    event = RandomStoppingEvent(event=base, mean=mean, shape=shape)
    epsilon = epsilon_end(event, 1e-6, lower=False)
    near = np.array([0.96, 1.0]) * epsilon
    fractions = np.geomspace(1e-3, 0.6, 16)
    lower = np.max([ranked(base, shape, mean, fraction, near) for fraction in fractions], axis=0)
    assert lower[1] <= 1e-6 <= lower[0]


@pytest.mark.parametrize(
    ("shape", "mean", "mu", "divergences"),
    [(1.0, 10.0, 0.1, 0.898), (0.0, 100.0, 0.5, 4.53), (math.inf, 10.0, 0.5, 4.25)],
)
def test_it_is_no_looser_than_the_divergences_that_papernot_and_steinke_prove(
    shape, mean, mu, divergences
):
    event = RandomStoppingEvent(event=GaussianEvent(mu=mu, adjacency=A), mean=mean, shape=shape)
    assert epsilon_end(event, 1e-6, lower=False) < divergences


def test_any_curve_will_do_and_too_many_runs_are_refused():
    curve = CurveEvent(epsilons=(0.0, 1.0), deltas=(0.3, 1e-9), adjacency=A)
    event = RandomStoppingEvent(event=curve, mean=3.0)
    assert 0 < event.curve.upper_at(0.5, Direction.ADD) < 1
    many = RandomStoppingEvent(event=GaussianEvent(mu=6.0, adjacency=A), mean=1e4)
    with pytest.raises(NoClaimError, match="say all"):
        many.curve.upper_at(1.0, Direction.ADD)
    few = RandomStoppingEvent(event=GaussianEvent(mu=1e-4, adjacency=A), mean=1e4)
    assert event_epsilon(few, 1e-6).upper < 1.0


def test_it_composes_with_both_ends():
    event = RandomStoppingEvent(event=GaussianEvent(mu=0.1, adjacency=A), mean=10.0, shape=1.0)
    one = AutoAccountant(A).compose(event)
    ten = AutoAccountant(A).compose(event, 10).compose(LaplaceEvent(shift=0.05, adjacency=A), 5)
    single, several = one.epsilon(1e-6), ten.epsilon(1e-6)
    assert single.upper < 0.61
    assert 0 < several.lower < several.upper < 0.75 * 10 * single.upper


@pytest.mark.parametrize("direction", Direction)
def test_a_whole_epsilon_has_the_curve_of_the_float(direction):
    """Values that are stored in the integers' own type would be rounded to 0."""
    event = RandomStoppingEvent(event=GaussianEvent(mu=0.5, adjacency=ADD_REMOVE), mean=10)
    assert 0 < event.curve.upper(np.array([2.0]), direction)[0] < 1
    assert event.curve.upper(np.array([2]), direction) == event.curve.upper(
        np.array([2.0]), direction
    )
