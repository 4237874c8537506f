"""Noise by its law: the curve, the intervals and the release against brute force over the
integers.
"""

import itertools
import math
from fractions import Fraction

import attrs
import numpy as np
import pytest

from dpcore import (
    REPLACE_ONE,
    AdditiveNoise,
    IntegerDistribution,
    Query,
    SecretRandomness,
    Sensitivity,
)
from dpcore.claims.events.composition import ComposedEvent
from dpcore.claims.events.renyi_curve import CurveEvent
from dpcore.claims.mechanisms.noise.discrete_laplace import laplace_distribution
from dpcore.claims.mechanisms.noise.magnitudes import gaussian_distribution
from dpcore.errors import ContractError, ParameterError
from dpcore.event import Direction


def no_draws(count, stream):
    raise AssertionError("nothing is drawn here")


def stairs(shift, loss, upper):
    def log_weight(k):
        return -loss * (abs(k) // shift + (abs(k) % shift >= upper))

    return IntegerDistribution(draw=no_draws, log_weight=log_weight, period=shift, decay=loss)


def skewed():
    """Rate 0.3 above 0 and 0.9, every third step, below -2."""

    def log_weight(k):
        return np.where(k >= 0, -0.3 * k, -0.9 * (-k // 3) - 0.1)

    return IntegerDistribution(draw=no_draws, log_weight=log_weight, period=3, decay=0.9, start=3)


def normal(width):
    """Tails that fall faster and faster."""
    start = math.ceil(9 * width)
    return IntegerDistribution(
        draw=no_draws,
        log_weight=lambda k: -0.5 * (k / width) ** 2,
        period=1,
        decay=(2 * start + 1) / (2 * width**2),
        start=start,
        thin=True,
    )


def bounded():
    """0 beyond 3."""

    def log_weight(k):
        return np.where(abs(k) <= 3, -0.4 * abs(k), -math.inf)

    return IntegerDistribution(draw=no_draws, log_weight=log_weight, period=1, decay=1.0, start=4)


def probabilities(distribution, cutoff=6000):
    weights = np.exp(distribution.log_weight(np.arange(-cutoff, cutoff + 1)))
    return weights / math.fsum(weights)


def truth(distribution, shift, epsilon):
    """The largest difference over all shifts, from the definition."""
    p = probabilities(distribution)
    shifts = range(-shift, shift + 1)
    return max(np.maximum(p - math.exp(epsilon) * np.roll(p, s), 0.0).sum() for s in shifts)


LAWS = [
    (stairs(5, 0.7, 2), 5),
    (stairs(1, 1.3, 1), 1),
    (stairs(8, 0.05, 3), 8),
    (skewed(), 4),
    (normal(6.0), 3),
    (bounded(), 2),
]


@pytest.mark.parametrize(("distribution", "shift"), LAWS)
def test_the_curve_is_the_largest_of_all_shifts(distribution, shift):
    event = distribution.event(shift, 1, REPLACE_ONE)
    assert isinstance(event, CurveEvent)
    for epsilon in (0.0, 0.02, 0.3, 0.55, 0.9, 1.3, 2.0):
        expected = truth(distribution, shift, epsilon)
        found = event.curve.upper_at(epsilon, Direction.REMOVE)
        assert expected * (1 - 1e-12) - 1e-15 <= found
        assert found <= expected * 1.02 + 1e-9
    for epsilon, delta in itertools.islice(
        zip(event.epsilons, event.deltas, strict=True), 0, None, 60
    ):
        assert delta == pytest.approx(truth(distribution, shift, epsilon), rel=1e-9, abs=1e-11)


def test_only_laws_whose_losses_are_bounded_are_pure():
    assert stairs(5, 0.7, 2).event(5, 1, REPLACE_ONE).claims.pure == pytest.approx(0.7)
    assert skewed().event(1, 1, REPLACE_ONE).claims.pure == pytest.approx(0.9)
    assert normal(6.0).event(3, 1, REPLACE_ONE).claims.pure is None
    event = bounded().event(2, 1, REPLACE_ONE)
    assert event.claims.pure is None
    p = probabilities(bounded())
    lost = p[(p > 0) & (np.roll(p, 2) == 0)].sum()
    assert event.curve.infinite_mass(Direction.ADD) == pytest.approx(lost)


@pytest.mark.parametrize(("distribution", "shift"), LAWS[:4])
@pytest.mark.parametrize("dimension", [2, 3])
def test_several_coordinates_lose_no_more_than_is_claimed(distribution, shift, dimension):
    p = np.log(probabilities(distribution, 300))
    worst = [
        max(np.abs(p[20:-20] - np.roll(p, s)[20:-20]).max() for s in (-t, t))
        for t in range(shift + 1)
    ]
    moves = itertools.product(range(shift + 1), repeat=dimension)
    largest = max(sum(worst[s] for s in move) for move in moves if sum(move) <= shift)
    epsilon = distribution.event(shift, dimension, REPLACE_ONE).claims.pure
    assert largest * (1 - 1e-12) <= epsilon <= dimension * max(worst) * (1 + 1e-9)


def test_without_a_largest_loss_coordinates_are_composed():
    event = normal(6.0).event(3, 4, REPLACE_ONE)
    assert isinstance(event, ComposedEvent)
    assert event.parts() == ((normal(6.0).event(3, 1, REPLACE_ONE), 4),)


@pytest.mark.parametrize("distribution", [distribution for distribution, _ in LAWS])
def test_bars_are_the_tails_of_the_law(distribution):
    p = probabilities(distribution)
    sizes = np.abs(np.arange(-6000, 6001))
    deviation = distribution.noise_distribution(0.5, 0.25)
    two_sided = np.bincount(sizes, weights=p)
    tails = np.append(np.cumsum(two_sided[::-1])[::-1][1:], 0.0)
    for miss in (0.5, 0.05, 1e-3, 1e-6, 1e-9):
        expected = 0.5 * np.flatnonzero(tails <= miss * (1 - 1e-7))[0]
        assert expected - 0.5 <= deviation.quantile(miss) <= expected
        assert tails[round(2 * deviation.quantile(miss))] <= miss
        assert deviation.within(miss) == deviation.quantile(miss) + 0.25
    variance = math.fsum(p * sizes**2)
    assert deviation.std == pytest.approx(0.5 * math.sqrt(variance), rel=1e-9)
    assert deviation.std >= 0.5 * math.sqrt(variance) * (1 - 1e-14)
    assert deviation.over(2.0).quantile(0.05) == deviation.quantile(0.05) / 2


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_the_fine_staircase_has_the_optimal_error_and_the_curve_by_quadrature(epsilon):
    steps = 150
    part = 1 / (1 + math.exp(epsilon / 2))
    distribution = stairs(steps, epsilon, round(part * steps))
    cutoff = 100 * steps
    p = probabilities(distribution, cutoff)
    error = math.fsum(p * np.abs(np.arange(-cutoff, cutoff + 1))) / steps
    # Geng & Viswanath (2014), the least expected size of all noise of that epsilon
    assert error == pytest.approx(math.exp(epsilon / 2) / (math.exp(epsilon) - 1), rel=5e-3)
    # the density on the reals and its shift by the whole sensitivity, at midpoints
    x = np.arange(-100, 100, 1 / 1000) + 1 / 2000

    def density(x):
        inside = np.abs(x) - np.floor(np.abs(x)) < part
        return np.exp(-epsilon * (np.floor(np.abs(x)) + ~inside))

    f, g = density(x), density(x - 1)
    event = distribution.event(steps, 1, REPLACE_ONE)
    for fraction in (0.0, 0.3, 0.8):
        least = np.maximum(f - math.exp(fraction * epsilon) * g, 0).sum() / f.sum()
        claim = event.curve.upper_at(fraction * epsilon, Direction.ADD)
        assert least - 4e-3 <= claim
        assert claim <= least + 4e-3


def test_a_law_that_does_not_do_what_it_says_is_refused():
    right = stairs(5, 0.7, 2)

    def cut(k):
        return np.where(abs(k) > 60, -math.inf, right.log_weight(k))

    wrong = [
        attrs.evolve(right, decay=0.8),
        attrs.evolve(right, period=4),
        attrs.evolve(right, log_weight=cut),
        attrs.evolve(right, thin=True, decay=0.71),
        attrs.evolve(normal(6.0), thin=False),
        attrs.evolve(normal(6.0), decay=3.0),
        attrs.evolve(right, log_weight=lambda k: np.where(k > 7, math.nan, 0.0)),
        attrs.evolve(right, log_weight=lambda k: 0.0),
    ]
    for distribution in wrong:
        with pytest.raises(ContractError, match="log_weight"):
            distribution.event(5, 1, REPLACE_ONE)
    with pytest.raises(ContractError, match="decay > 0"):
        attrs.evolve(right, decay=0.0)
    with pytest.raises(ParameterError, match="steps"):
        normal(1e6).event(5, 1, REPLACE_ONE)


class Twin(AdditiveNoise):
    """The geometric mechanism, by its law."""

    source = "a test"

    def distribution(self, shift, scale):
        return IntegerDistribution(
            draw=laplace_distribution(scale, 1).symmetric,
            log_weight=lambda k: -np.abs(k) / float(scale),
            period=1,
            decay=float(1 / scale),
        )


def claim(value=1.0):
    return Sensitivity(value=value, distance="l1", adjacency=REPLACE_ONE, source="a test")


def test_integers_stay_integers_and_others_are_rounded_to_a_grid():
    query = Query(name="q", shape=(3,), distance="l1", values="integers")
    noise = SecretRandomness.rehearsal(0).noise(0, "q", 1)
    released = Twin(noise_scale=2.0).release(np.array([1.0, 2.0, 9.0]), query, claim(), noise)
    same = laplace_distribution(2.0, 1).symmetric(3, SecretRandomness.rehearsal(0).noise(0, "q", 1))
    assert np.array_equal(released, np.array([1, 2, 9]) + same)
    assert Twin(noise_scale=2.0).event(query, claim(2.5)).claims.pure == pytest.approx(1.0)
    reals = attrs.evolve(query, values="reals")
    mechanism = Twin(noise_scale=2.0)
    step = mechanism.grid(reals, claim()).step
    assert step <= 1 / 150
    noise = SecretRandomness.rehearsal(0).noise(0, "q", 1)
    released = mechanism.release(np.array([0.1, 0.2, 0.3]), reals, claim(), noise)
    assert np.array_equal(released / step, np.rint(released / step))
    # the claim covers the steps that rounding adds: the scale grows with them
    distribution, shift = mechanism.distribution_of(reals, claim())
    assert shift == 1 / step + 3
    assert distribution.decay == pytest.approx(0.5 / shift)
    assert mechanism.event(reals, claim()).claims.pure == pytest.approx(0.5)


def test_calibration_sets_the_scale_from_the_sensitivity():
    query = Query(name="q", shape=(1,), distance="l1")
    assert Twin().at(3.0, query, claim(0.5)) == Twin(noise_scale=1.5)


def test_draws_of_another_shape_or_type_are_refused():
    noise = SecretRandomness.rehearsal(0).noise(0, "q", 1)
    for draw in (
        lambda count, stream: np.zeros(1, dtype=np.int64),
        lambda count, stream: np.zeros(count),
        lambda count, stream: gaussian_distribution(Fraction(4), count).symmetric(
            count + 1, stream
        ),
    ):
        with pytest.raises(ContractError, match="must return int64"):
            attrs.evolve(stairs(2, 1.0, 1), draw=draw).sample(3, noise)
