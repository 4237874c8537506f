"""Ends of curves against 60 digits: no upper end below the truth, no lower end above it."""

import math

import mpmath
import numpy as np
import pytest

from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE
from dpcore.claims.events.exponential import ExponentialMechanismEvent
from dpcore.claims.events.gaussian import GaussianEvent, _erfcx
from dpcore.claims.events.hit_mixture import HitMixtureEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.randomized_response import PureEvent, RandomizedResponseEvent
from dpcore.claims.events.renyi_curve import CurveEvent, RenyiEvent
from dpcore.claims.events.without_replacement import WithoutReplacementEvent
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussianEvent
from dpcore.claims.mechanisms.discrete_laplace import DiscreteLaplaceEvent
from dpcore.claims.mechanisms.truncated_laplace import TruncatedLaplaceEvent
from dpcore.event import Direction
from dpcore.rounding import UNIT

DIGITS = 60
CASES = 400  # of each event, ten epsilons each


def exact(value):
    return mpmath.mpf(float(value))


def gaussian(epsilon, mu):
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(
        -mu / 2 - epsilon / mu
    )


def of_gaussian(rng):
    mu = 10 ** rng.uniform(-3, 2)
    return (
        GaussianEvent(mu=mu, adjacency=ADD_REMOVE),
        mu * mu + 5 * mu,
        lambda e: gaussian(e, exact(mu)),
    )


def of_laplace(rng):
    shift = 10 ** rng.uniform(-6, 4)
    event = LaplaceEvent(shift=shift, adjacency=ADD_REMOVE)
    return event, shift, lambda e: max(mpmath.mpf(0), -mpmath.expm1((e - exact(shift)) / 2))


def of_pure(rng):
    pure = 10 ** rng.uniform(-6, 2.5)

    def truth(e):
        top = mpmath.exp(exact(pure))
        return max(mpmath.mpf(0), (top - mpmath.exp(e)) / (1 + top))

    return PureEvent(epsilon=pure, adjacency=ADD_REMOVE), pure, truth


def of_discrete_laplace(rng):
    shift, pure = int(10 ** rng.uniform(0, 6)), 10 ** rng.uniform(-3, 4)
    scale = shift / pure
    event = DiscreteLaplaceEvent(noise_scale=scale, shift=shift, adjacency=ADD_REMOVE)

    def truth(e):
        w = mpmath.exp(-1 / exact(scale))
        near = int(mpmath.floor((shift - e * exact(scale)) / 2))
        ms = {0, *(min(max(near + k, 0), shift) for k in range(-3, 4))}
        return max(
            mpmath.mpf(0),
            *(1 - (w ** (m + 1) + mpmath.exp(e) * w ** (shift - m)) / (1 + w) for m in ms),
        )

    return event, pure, truth


def of_discrete_gaussian(rng):
    width = 10 ** rng.uniform(-1.3, 1.5)
    shift = max(1, round(width * 10 ** rng.uniform(-1, 1.2)))
    event = DiscreteGaussianEvent(noise_width=width, shift=shift, adjacency=ADD_REMOVE)
    cutoff = math.ceil(45 * width) + 2
    square = 2 * exact(width) ** 2
    mass = {k: mpmath.exp(-(mpmath.mpf(k) ** 2) / square) for k in range(cutoff + 1)}
    tails, total = {cutoff + 1: mpmath.mpf(0)}, mpmath.mpf(0)
    for k in range(cutoff, -cutoff - 1, -1):
        total += mass[abs(k)]
        tails[k] = total

    def tail(m):
        return tails[min(max(m, -cutoff), cutoff + 1)] / total

    def truth(e):
        m = int(mpmath.floor(e * exact(width) ** 2 / shift + mpmath.mpf(shift) / 2)) + 1
        return tail(m - shift) - mpmath.exp(e) * tail(m)

    return event, shift * shift / width**2 * 0.5 + 8 * shift / width, truth


def of_hit_mixture(rng):
    mus = tuple((10 ** rng.uniform(-2, 1, 3)).tolist())
    weights = tuple((rng.dirichlet(np.ones(4))[:3]).tolist())
    event = HitMixtureEvent(mus=mus, weights=weights, adjacency=REPLACE_ONE)

    def truth(e):
        q = sum(map(exact, weights))
        inner = mpmath.log1p(mpmath.expm1(e) / q)
        parts = zip(weights, mus, strict=True)
        return sum(exact(w) * gaussian(inner, exact(mu)) for w, mu in parts)

    return event, max(mus) ** 2 + 5 * max(mus), truth


def of_randomized_response(rng):
    pure, classes = 10 ** rng.uniform(-6, 2.5), int(10 ** rng.uniform(0.5, 6))
    event = RandomizedResponseEvent(epsilon=pure, classes=classes, adjacency=ADD_REMOVE)

    def truth(e):
        top = mpmath.exp(exact(pure))
        return max(mpmath.mpf(0), (top - mpmath.exp(e)) / (top + classes - 1))

    return event, pure, truth


def of_exponential(rng):
    pure = 10 ** rng.uniform(-6, 2.5)

    def truth(e):
        high, low = mpmath.exp(exact(pure) / 2), mpmath.exp(e / 2)
        return (high - low) ** 2 / (high * high - 1) if high > low else mpmath.mpf(0)

    return ExponentialMechanismEvent(epsilon=pure, adjacency=ADD_REMOVE), pure, truth


def amplified(q, mu):
    """Balle, Barthe & Gaboardi: the Gaussian curve at log(1 + (e^epsilon - 1)/q), times q."""
    return lambda e: q * gaussian(mpmath.log1p(mpmath.expm1(e) / q), exact(mu))


def of_poisson(rng):
    mu, q = 10 ** rng.uniform(-2, 1), 10 ** rng.uniform(-4, -0.01)
    event = PoissonSampledEvent(
        event=GaussianEvent(mu=mu, adjacency=ADD_REMOVE), sampling_probability=q
    )
    return event, mu * mu + 5 * mu, amplified(exact(q), mu)


def of_without_replacement(rng):
    mu, records = 10 ** rng.uniform(-2, 1), int(10 ** rng.uniform(1, 6))
    size = int(rng.integers(1, records))
    base = GaussianEvent(mu=mu, adjacency=REPLACE_ONE)
    event = WithoutReplacementEvent(event=base, size=size, records=records)
    return event, mu * mu + 5 * mu, amplified(mpmath.mpf(size) / records, mu)


def of_truncated_laplace(rng):
    shift, cut = 10 ** rng.uniform(-3, 1.5), 10 ** rng.uniform(-12, -1)
    dimension = int(10 ** rng.uniform(0, 4))
    event = TruncatedLaplaceEvent(
        shift=shift, truncation=cut, dimension=dimension, adjacency=REPLACE_ONE
    )

    def truth(e):
        t, d = exact(shift), exact(cut)
        generic = d + (1 - d) * max(0, (mpmath.exp(t) - mpmath.exp(e)) / (mpmath.exp(t) + 1))
        fraction = 2 * d / (2 * d + mpmath.expm1(t))
        laplace = max(0, -mpmath.expm1((e - t) / 2)) * (1 - fraction) ** -dimension
        return min(generic, d + laplace)

    return event, shift, truth


def of_renyi(rng):
    """One order, as near to 1 as floats go."""
    alpha, bound = 1 + 10 ** rng.uniform(-15, 4), 10 ** rng.uniform(-6, 2)
    event = RenyiEvent(orders=(alpha,), divergences=(bound,), adjacency=REPLACE_ONE)

    def truth(e):
        a = exact(alpha)
        return min(1, mpmath.exp((a - 1) * (exact(bound) - e)) / (a - 1) * (1 - 1 / a) ** a)

    return event, 3 * bound + 1, truth


def of_chords(rng):
    """Chords between points, whose epsilons are near or far."""
    knots = np.cumsum([0.0, *10 ** rng.uniform(-9, 2, 3)])
    deltas = np.sort(10 ** rng.uniform(-12, 0, 4))[::-1]
    event = CurveEvent(epsilons=knots, deltas=deltas, adjacency=REPLACE_ONE)

    def truth(e):
        if e >= exact(knots[-1]):
            return exact(deltas[-1])
        i = max(j for j in range(3) if exact(knots[j]) <= e)
        low, high, x = (mpmath.exp(v) for v in (exact(knots[i]), exact(knots[i + 1]), e))
        fraction = (x - low) / (high - low)
        return exact(deltas[i]) * (1 - fraction) + exact(deltas[i + 1]) * fraction

    return event, float(knots[-1]), truth


KINDS = [of_gaussian, of_laplace, of_pure, of_discrete_laplace, of_discrete_gaussian]
KINDS += [of_hit_mixture, of_randomized_response, of_exponential, of_poisson]
KINDS += [of_without_replacement, of_truncated_laplace, of_renyi, of_chords]


def worst(make, cases, seed=0):
    """(the largest truth - upper, the largest lower - truth): neither may exceed 0."""
    rng = np.random.default_rng(seed)
    below, above = mpmath.mpf(-2), mpmath.mpf(-2)
    with mpmath.workdps(DIGITS):
        for _ in range(cases):
            event, top, truth = make(rng)
            near = top * (1 + rng.normal(size=4) * 10.0 ** -rng.integers(1, 16, 4))
            epsilons = np.clip(np.concatenate([rng.uniform(0, top, 4), near, [0.0, top]]), 0, None)
            upper = event.curve.upper(epsilons, Direction.REMOVE)
            lower = event.curve.lower(epsilons, Direction.REMOVE)
            for epsilon, high, low in zip(epsilons, upper, lower, strict=True):
                exactly = truth(exact(epsilon))
                below = max(below, exactly - exact(high))
                above = max(above, exact(low) - exactly)
                assert exactly <= high, (event, epsilon, mpmath.nstr(exactly - high, 5))
                assert low <= max(exactly, 0), (event, epsilon, mpmath.nstr(low - exactly, 5))
    return below, above


@pytest.mark.parametrize("make", KINDS)
def test_ends_hold_at_60_digits(make):
    worst(make, 4)


@pytest.mark.slow
@pytest.mark.parametrize("make", KINDS)
def test_ends_hold_at_60_digits_in_many_cases(make):
    below, above = worst(make, CASES, seed=1)
    print(f"{make.__name__}: truth - upper <= {mpmath.nstr(below, 3)}, "
          f"lower - truth <= {mpmath.nstr(above, 3)}")  # fmt: skip
    assert below <= 0
    assert above <= 0


def test_the_scaled_tail_of_a_gaussian_errs_by_a_few_units_in_the_last_place():
    rng = np.random.default_rng(11)
    points = np.concatenate([rng.uniform(0, 27, 3000), 10.0 ** rng.uniform(-9, 2, 500), [26.0]])
    with mpmath.workdps(40):
        for x in points:
            truth = mpmath.exp(exact(x) ** 2) * mpmath.erfc(exact(x))
            assert abs(exact(_erfcx(float(x))) / truth - 1) <= 12 * UNIT, x
