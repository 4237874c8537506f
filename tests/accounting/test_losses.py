"""Masses from above and below enclose the curve; their composition encloses independent truths."""

import math

import attrs
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE, Adjacency
from dpcore.claims.accounting.losses.masses import Extent, Masses, loss_limit, masses_both
from dpcore.claims.accounting.methods.pld import PldAccountant
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.gaussian_sampling import GaussianSamplingEvent
from dpcore.claims.events.hit_mixture import HitMixtureEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.randomized_response import (
    ApproximateEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussianEvent
from dpcore.errors import NoClaimError
from dpcore.event import Direction, Event, PrivacyCurve, extended_curve

from oracles import accounting as oracles


def extent_of(event, direction, tail):
    back = loss_limit(event, direction.reverse, tail)
    return Extent.between(event, direction, loss_limit(event, direction, tail), back)


EVENTS = [
    GaussianEvent(mu=0.7, adjacency=ADD_REMOVE),
    LaplaceEvent(shift=0.4, adjacency=ADD_REMOVE),
    PureEvent(epsilon=0.4, adjacency=ADD_REMOVE),
    ApproximateEvent(epsilon=0.4, delta=1e-7, adjacency=ADD_REMOVE),
    RandomizedResponseEvent(epsilon=1.0, classes=7, adjacency=ADD_REMOVE),
    DiscreteGaussianEvent(noise_width=2.5, shift=2, adjacency=ADD_REMOVE),
    PoissonSampledEvent(
        event=GaussianEvent(mu=1.0, adjacency=ADD_REMOVE), sampling_probability=0.05
    ),
    PoissonSampledEvent(
        event=LaplaceEvent(shift=1.5, adjacency=ADD_REMOVE), sampling_probability=0.3
    ),
    GaussianSamplingEvent(theta=0.02, samples=50, adjacency=REPLACE_ONE),
]
UPPER = HitMixtureEvent(mus=(0.5, 1.0), weights=(0.2, 0.03), adjacency=REPLACE_ONE)


@attrs.frozen(kw_only=True)
class OnlyACurve(Event, PrivacyCurve):
    """A third-party event that gives nothing but `delta`."""

    mu: float
    adjacency: Adjacency

    def upper_at(self, epsilon: float, direction: Direction) -> float:
        return GaussianEvent(mu=self.mu, adjacency=self.adjacency).curve.upper_at(
            epsilon, direction
        )


def curve_of(masses: Masses, epsilons: np.ndarray) -> np.ndarray:
    """The definition: the mass above, less what the other neighbour has there."""
    losses = masses.first + masses.step * np.arange(len(masses.mass))
    above = np.maximum(-np.expm1(epsilons[:, None] - losses[None, :]), 0.0)
    return masses.infinite + above @ masses.mass


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("cells", [7, 100, 3000])
def test_masses_enclose_the_curve_at_every_epsilon(event, direction, cells):
    extent = extent_of(event, direction, 1e-13)
    step = (extent.top - extent.bottom) / cells * 1.01
    above, below = masses_both(event, direction, extent, step)
    middle = np.sort(np.random.default_rng(cells).uniform(extent.bottom, extent.top, 400))
    epsilons = np.concatenate([[extent.bottom - 0.3], middle, [extent.top + 0.3]])
    upper = extended_curve(event, epsilons, direction, lower=False)
    lower = extended_curve(event, epsilons, direction, lower=True)
    assert np.all(curve_of(above, epsilons) >= lower * (1 - 1e-13) - 1e-300)
    assert np.all(curve_of(below, epsilons) <= upper * (1 + 1e-13) + 1e-300)


@pytest.mark.parametrize("direction", list(Direction))
def test_a_curve_that_need_not_be_attained_has_masses_above_it_alone(direction):
    extent = extent_of(UPPER, direction, 1e-13)
    step = (extent.top - extent.bottom) / 100 * 1.01
    above, below = masses_both(UPPER, direction, extent, step)
    assert below is None
    epsilons = np.linspace(extent.bottom - 0.3, extent.top + 0.3, 400)
    lower = extended_curve(UPPER, epsilons, direction, lower=True)
    assert np.all(curve_of(above, epsilons) >= lower * (1 - 1e-13) - 1e-300)


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_masses_are_close_to_the_curve(event):
    extent = extent_of(event, Direction.REMOVE, 1e-13)
    step = (extent.top - extent.bottom) / 2000
    above, below = masses_both(event, Direction.REMOVE, extent, step)
    epsilons = np.linspace(extent.bottom, extent.top, 777)
    gap = curve_of(above, epsilons) - curve_of(below, epsilons)
    assert np.max(gap) < 0.003  # an error of first order in all cells would be 0.01 and more


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10, 1e-12])
@pytest.mark.parametrize("count", [2, 10, 300, 10_000, 1_000_000])
def test_an_event_with_only_a_curve_composes_like_the_exact_gaussian(count, delta):
    event = OnlyACurve(mu=1.5 / math.sqrt(count), adjacency=ADD_REMOVE)
    found = PldAccountant(ADD_REMOVE, width=0.02).compose(event, count).epsilon(delta)
    truth = oracles.gaussian_epsilon(delta, 1.5)
    assert found.lower <= truth <= found.upper
    assert found.upper - truth < 0.05
    assert truth - found.lower < 0.2


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize(("count", "epsilon", "classes"), [(2, 0.5, 2), (9, 0.3, 4), (40, 0.2, 3)])
def test_randomized_response_encloses_the_sum_over_outcomes(count, epsilon, classes, delta):
    event = RandomizedResponseEvent(epsilon=epsilon, classes=classes, adjacency=REPLACE_ONE)
    found = PldAccountant(REPLACE_ONE).compose(event, count).epsilon(delta)
    truth = oracles.response_epsilon(count, epsilon, classes, delta)
    assert found.lower <= truth * (1 + 1e-12)
    assert found.upper >= truth * (1 - 1e-12)
    assert found.width < 0.02


@pytest.mark.parametrize(
    ("count", "delta"),
    [
        (10_000, 1e-6),
        (10_000, 1e-12),
        *(
            pytest.param(count, delta, marks=pytest.mark.slow)
            for count in (300, 10_000, 1_000_000)
            for delta in (1e-3, 1e-6, 1e-10, 1e-12)
        ),
    ],
)
def test_sampled_gaussians_enclose_the_contour_integral(count, delta):
    event = PoissonSampledEvent(
        event=GaussianEvent(mu=1.0, adjacency=ADD_REMOVE), sampling_probability=0.01
    )
    found = PldAccountant(ADD_REMOVE, width=0.02).compose(event, count).epsilon(delta)

    def truth(epsilon):
        return max(
            oracles.contour_delta(
                oracles.sampled_gaussian_log_moment(0.01, 1.0, count, direction), epsilon
            )
            for direction in ("remove", "add")
        )

    assert truth(found.upper) <= delta * (1 + 1e-7)
    assert truth(found.lower) >= delta * (1 - 1e-7)
    assert found.width < max(0.05, 0.002 * found.upper)  # in proportion beyond epsilon 20


@pytest.mark.parametrize("delta", [1e-6, 1e-12])
@pytest.mark.parametrize("count", [500, 20_000])
def test_laplace_releases_enclose_the_contour_integral(count, delta):
    shift = 2 / math.sqrt(count)
    event = LaplaceEvent(shift=shift, adjacency=ADD_REMOVE)
    found = PldAccountant(ADD_REMOVE).compose(event, count).epsilon(delta)
    moment = oracles.laplace_log_moment(shift, count)
    assert oracles.contour_delta(moment, found.upper) <= delta * (1 + 1e-7)
    assert oracles.contour_delta(moment, found.lower) >= delta * (1 - 1e-7)
    assert found.width < 0.02


def test_the_mixture_of_three_kinds_is_known_to_a_hundredth():
    gaussian = GaussianEvent(mu=1 / 20, adjacency=ADD_REMOVE)
    laplace = LaplaceEvent(shift=0.1, adjacency=ADD_REMOVE)
    sampled = PoissonSampledEvent(
        event=GaussianEvent(mu=1.0, adjacency=ADD_REMOVE), sampling_probability=0.01
    )
    accountant = PldAccountant(ADD_REMOVE).compose(gaussian, 1000).compose(laplace, 500)
    found = accountant.compose(sampled, 10_000).epsilon(1e-6)
    moments = [
        oracles.sampled_gaussian_log_moment(0.01, 1.0, 10_000, "remove"),
        oracles.laplace_log_moment(0.1, 500),
        lambda z: 1000 / 400 * z * (z + 1) / 2,
    ]

    def moment(z):
        return sum(one(z) for one in moments)

    assert oracles.contour_delta(moment, found.upper) <= 1e-6 * (1 + 1e-7)
    assert oracles.contour_delta(moment, found.lower) >= 1e-6 * (1 - 1e-7)
    assert oracles.contour_delta(moment, 18.2276) == pytest.approx(1e-6, rel=1e-3)
    assert found.width <= 0.01


def test_gaussian_sampling_composed_with_gaussians_is_the_joint_curve():
    """theta and mu in one release: the mixture over u of sqrt(mu^2 + theta^2 u)."""
    sampling = GaussianSamplingEvent(theta=0.05, samples=40, adjacency=REPLACE_ONE)
    features = GaussianEvent(mu=0.3, adjacency=REPLACE_ONE)
    labels = GaussianEvent(mu=0.4, adjacency=REPLACE_ONE)
    accountant = PldAccountant(REPLACE_ONE)
    for event in (sampling, features, labels):
        accountant = accountant.compose(event)
    found = accountant.epsilon(1e-6)
    mu = math.hypot(0.3, 0.4)
    assert oracles.chi_square_mixture_delta(found.upper, 0.05, 40, mu) <= 1e-6 * (1 + 1e-6)
    assert oracles.chi_square_mixture_delta(found.lower, 0.05, 40, mu) >= 1e-6 * (1 - 1e-6)
    assert found.width < 0.01


def test_infinite_losses_above_delta_are_refused():
    event = ApproximateEvent(epsilon=0.1, delta=1e-3, adjacency=ADD_REMOVE)
    with pytest.raises(NoClaimError, match="infinite"):
        PldAccountant(ADD_REMOVE).compose(event, 100).epsilon(1e-3)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(EVENTS[:3] + EVENTS[4:8]), min_size=1, max_size=4),
    st.integers(1, 50),
    st.sampled_from([1e-3, 1e-6, 1e-9]),
)
def test_order_and_grouping_do_not_matter(events, count, delta):
    forward = backward = PldAccountant(ADD_REMOVE)
    for event in events:
        forward = forward.compose(event, count).compose(event)
    for event in reversed(events):
        backward = backward.compose(event, count + 1)
    first, second = forward.epsilon(delta), backward.epsilon(delta)
    assert first.lower <= second.upper
    assert second.lower <= first.upper
    assert first.upper == pytest.approx(second.upper, abs=1e-9, rel=1e-9)
