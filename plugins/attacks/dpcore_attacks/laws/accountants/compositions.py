"""Accountants on every kind of event of the core, alone, repeated and mixed."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial

from dpcore import ADD_REMOVE, REPLACE_ONE, Accountant, Adjacency, Event
from dpcore.accountant import UnsupportedEventError
from dpcore.claims.accounting.methods.pld import PldAccountant
from dpcore.claims.events.concentrated import ZcdpEvent
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.randomized_response import (
    ApproximateEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussianEvent
from dpcore.claims.mechanisms.discrete_laplace import DiscreteLaplaceEvent
from dpcore.claims.mechanisms.truncated_laplace import TruncatedLaplaceEvent
from dpcore.errors import AdjacencyError, NoClaimError
from dpcore.interval import Interval
from dpcore_attacks.laws.law import Law, Verdict, fail_if, judge, skip_if

CERTIFIED = Law(
    "accountant.never-below-certified",
    "Of every composition that it accepts, the upper end is not below a certified lower end, nor "
    "its lower end above a certified upper one.",
)

LAWS = (CERTIFIED,)

_DELTAS = (1e-2, 1e-4, 1e-6)
_ROOM = 1e-9  # relative

Composition = tuple[tuple[Event, int], ...]


def compositions(relation: Adjacency) -> Iterator[Composition]:
    """Single events, many of one, small and large ones, and mixtures."""
    plain = {"adjacency": relation}
    gaussian, small = GaussianEvent(mu=1.0, **plain), GaussianEvent(mu=0.02, **plain)
    laplace, steep = LaplaceEvent(shift=0.5, **plain), LaplaceEvent(shift=3.0, **plain)
    pure, weak = PureEvent(epsilon=0.5, **plain), PureEvent(epsilon=0.01, **plain)
    response = RandomizedResponseEvent(epsilon=1.0, classes=4, **plain)
    approximate = ApproximateEvent(epsilon=0.3, delta=1e-4, **plain)
    truncated = TruncatedLaplaceEvent(shift=0.3, truncation=1e-3, dimension=1, **plain)
    rho = ZcdpEvent(rho=0.02, **plain)
    discrete = DiscreteLaplaceEvent(noise_scale=2.0, shift=1, **plain)
    coarse = DiscreteGaussianEvent(noise_width=2.0, shift=1, **plain)
    # Each kind only: its representation in the accountant is tested without any composition.
    yield from (((event, 1),) for event in (gaussian, laplace, steep, pure, response, rho))
    yield from (((event, 1),) for event in (approximate, truncated, discrete, coarse))
    # Repeated: errors of discretisation and of truncated tails add up with the count.
    yield from (((event, 30),) for event in (laplace, pure, response, approximate, discrete))
    yield from (((event, 250),) for event in (small, weak))
    yield ((small, 2500),)
    yield (laplace, 4), (gaussian, 2)
    yield (gaussian, 1), (pure, 3), (small, 40)
    yield (pure, 5), (steep, 1)
    yield (approximate, 3), (pure, 2)
    yield (rho, 2), (laplace, 2)
    # This event of Poisson sampling is about add/remove, whose two directions differ.
    if relation.membership:
        sampled_gaussian = PoissonSampledEvent(event=gaussian, sampling_probability=0.1)
        sampled_laplace = PoissonSampledEvent(event=laplace, sampling_probability=0.3)
        yield ((sampled_gaussian, 1),)
        yield ((sampled_gaussian, 50),)
        yield ((sampled_laplace, 10),)
        yield (sampled_gaussian, 10), (gaussian, 1)


CertifiedEnds = Callable[[Adjacency, Composition], Mapping[float, Interval]]
"""Both certified ends of a composition by delta; nothing where nothing can be said."""


def certified_ends(relation: Adjacency, composition: Composition) -> dict[float, Interval]:
    """See `CertifiedEnds`; those of one report are computed once for all of its accountants."""
    # Privacy loss distributions certify both ends of the composition, with little room.
    reference, ends = PldAccountant(relation).compose_all(composition), {}
    for delta in _DELTAS:
        with suppress(NoClaimError):
            ends[delta] = reference.epsilon(delta)
    return ends


def certified_verdicts(
    make: type[Accountant], ends_of: CertifiedEnds = certified_ends
) -> Iterator[Verdict]:
    """Yield the law of certified ends, once for replace-one and once for add/remove."""
    for relation in (REPLACE_ONE, ADD_REMOVE):
        check = partial(_certified, make, relation, ends_of)
        yield judge(CERTIFIED, f"{make.__name__}, {relation}", check)


def _certified(make: type[Accountant], relation: Adjacency, ends_of: CertifiedEnds) -> str:
    compared = 0
    for composition in compositions(relation):
        accountant: Accountant = make(relation)  # type: ignore[call-arg]  # as a spec makes it
        try:
            for event, count in composition:
                accountant = accountant.compose(event, count)
        except (UnsupportedEventError, AdjacencyError):
            continue
        for delta, truth in ends_of(relation, composition).items():
            try:
                quote = accountant.epsilon(delta)
            except NoClaimError:
                continue
            compared += 1
            mixture = " and ".join(f"{count} x {event!r}" for event, count in composition)
            # Too cheap: the composition certainly has a larger epsilon than is quoted.
            fail_if(
                quote.upper < truth.lower * (1 - _ROOM),
                f"{mixture} at delta={delta:g}: it quotes {quote.upper!r}, at least "
                f"{truth.lower!r} is certain",
            )
            # The lower end is a claim too: it must not lie above what is certainly enough.
            fail_if(
                quote.lower > truth.upper * (1 + _ROOM) + _ROOM,
                f"{mixture} at delta={delta:g}: its lower end is {quote.lower!r}, at most "
                f"{truth.upper!r} is certain",
            )
    skip_if(not compared, f"it composes none of the core's events under {relation}")
    return f"{compared} numbers of {len(list(compositions(relation)))} compositions"
