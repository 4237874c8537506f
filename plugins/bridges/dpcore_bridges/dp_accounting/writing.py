"""From events to DpEvents: each for the event's own relation, rounded towards more loss."""

import contextlib
import math
from functools import singledispatch

from dp_accounting import DpEvent, dp_event as dp

from dpcore.accountant import UnsupportedEventError
from dpcore.claims.events.composition import ComposedEvent
from dpcore.claims.events.concentrated import ZcdpEvent
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.randomized_response import PureEvent, RandomizedResponseEvent
from dpcore.claims.events.without_replacement import WithoutReplacementEvent
from dpcore.claims.mechanisms.discrete_laplace import DiscreteLaplaceEvent
from dpcore.event import Event
from dpcore.registry.events import CORE
from dpcore.rounding import down, up
from dpcore_bridges.dp_accounting.relations import adjacency_factor, relation_of


def to_dp_event(event: Event) -> DpEvent:
    """Return what an accountant for `relation_of(event.adjacency)` may know of the event, rounded
    up.

    By the letter of the DpEvents' definitions: noise multipliers are noise over C, and under
    replace-one the sensitivity is 2 C. **An accountant that ignores its relation under-states
    such an event**: dp-accounting's own Rényi accountant does. `spend` knows which ones.

    Raises:
        UnsupportedEventError: there is no such DpEvent.
        AdjacencyError: there is no such relation.
    """
    relation_of(event.adjacency)
    return write(event, adjacency_factor(event.adjacency))


def in_core_terms(event: Event) -> tuple[Event, ...]:
    """Core events that a toolkit without `event`'s class may take for it, the closest first.

    The event itself where its class is the core's. Another one is exactly the Gaussian of its mu;
    or it is known as a release of its pure epsilon, or of its rho: never for less than it costs.
    Empty where it declares none of them.
    """
    if type(event) in CORE.values():
        return (event,)
    adjacency = event.adjacency
    # exact, so no other term can be closer; the terms below are upper bounds
    claims = event.claims
    if claims.mu:
        return (GaussianEvent(mu=claims.mu, adjacency=adjacency),)
    pure = (PureEvent(epsilon=claims.pure, adjacency=adjacency),) if claims.pure else ()
    concentrated = (ZcdpEvent(rho=claims.rho, adjacency=adjacency),) if claims.rho else ()
    return (*pure, *concentrated)


@singledispatch
def write(event: Event, factor: int) -> DpEvent:
    """Return the event for an accountant that takes `factor` C for the sensitivity, rounded up.

    With a factor of 1, the event is written as if add/remove moved it as far as its own relation
    does: never for less than it costs, whether or not the accountant doubles it.
    """
    # an event may have no counterpart and still equal, or be covered by, one that does
    for equivalent in in_core_terms(event):
        if equivalent is not event:
            with contextlib.suppress(UnsupportedEventError):  # the next one may have a counterpart
                return write(equivalent, factor)
    rho = event.claims.rho
    implied = "" if rho is None else f"; its zCDP claim has one: ZcdpEvent(rho={rho!r}, ...)"
    raise UnsupportedEventError(
        f"{type(event).__name__} has no counterpart in dp_accounting{implied}"
    )


@write.register
def _gaussian(event: GaussianEvent, factor: int) -> DpEvent:
    # rounded down: less noise is more loss
    return dp.GaussianDpEvent(down(factor / event.mu, roundings=3))


@write.register
def _laplace(event: LaplaceEvent, factor: int) -> DpEvent:
    return dp.LaplaceDpEvent(down(factor / event.shift, roundings=3))


@write.register
def _discrete_laplace(event: DiscreteLaplaceEvent, factor: int) -> DpEvent:
    # its sensitivity is an integer, and no document says whether replacing doubles it: never halved
    return dp.DiscreteLaplaceDpEvent(up(1 / event.noise_scale, roundings=3), event.shift)


def _response(event: Event, epsilon: float, classes: int) -> DpEvent:
    # The peer has no randomized response where records come and go. Discrete Laplace noise of rate
    # epsilon on one step has losses of +-epsilon only: the curve of the worst epsilon-DP release.
    if event.adjacency.membership:
        return dp.DiscreteLaplaceDpEvent(epsilon, 1)
    # divided by e^epsilon, which may overflow
    odds = math.exp(-epsilon)
    noise = classes * odds / (1 + (classes - 1) * odds)  # k / (e^epsilon + k - 1)
    return dp.RandomizedResponseDpEvent(down(noise, roundings=6), classes)


@write.register
def _randomized_response(event: RandomizedResponseEvent, factor: int) -> DpEvent:
    return _response(event, event.epsilon_0, event.classes)


@write.register
def _pure(event: PureEvent, factor: int) -> DpEvent:
    return _response(event, event.epsilon_0, 2)  # the worst of all


@write.register
def _zcdp(event: ZcdpEvent, factor: int) -> DpEvent:
    return dp.ZCDpEvent(event.rho)


@write.register
def _composed(event: ComposedEvent, factor: int) -> DpEvent:
    return dp.ComposedDpEvent(
        [dp.SelfComposedDpEvent(write(part, factor), count) for part, count in event.events]
    )


@write.register
def _poisson_sampled(event: PoissonSampledEvent, factor: int) -> DpEvent:
    return dp.PoissonSampledDpEvent(event.sampling_probability, write(event.event, factor))


@write.register
def _without_replacement(event: WithoutReplacementEvent, factor: int) -> DpEvent:
    inner = write(event.event, factor)
    return dp.SampledWithoutReplacementDpEvent(event.records, event.size, inner)
