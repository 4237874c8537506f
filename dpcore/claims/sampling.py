"""`sampling`: what a query costs that sees a sample of the records."""

from functools import singledispatch

from dpcore.errors import ContractError
from dpcore.event import Event
from dpcore.sampling import Cyclic, Order, Poisson, Sampling, WithoutReplacement

_NEARLY_TWICE = 1.9


@singledispatch
def amplify(sampling: Sampling, event: Event) -> Event:
    """Return the cost of a query whose mechanism without sampling costs `event`.

    Raises:
        ContractError: the scheme's author registered no claim (`amplify.register`).
    """
    raise ContractError(f"{type(sampling).__name__} registers no claim with amplify")


@amplify.register
def _(sampling: Poisson, event: Event) -> Event:
    # Amplified events are imported where something is sampled.
    from dpcore.claims.events.poisson import PoissonSampledEvent

    return PoissonSampledEvent(event=event, sampling_probability=sampling.probability)


@amplify.register
def _(sampling: Cyclic, event: Event) -> Event:
    return event if sampling.probability == 1 else amplify(_of_group(sampling), event)


@amplify.register
def _(sampling: WithoutReplacement, event: Event) -> Event:
    from dpcore.claims.events.without_replacement import WithoutReplacementEvent

    return WithoutReplacementEvent(event=event, size=sampling.size, records=sampling.records)


@amplify.register
def _(sampling: Order, event: Event) -> Event:
    # The order is priced in the sensitivity.
    return event


@singledispatch
def amplify_sum(sampling: Sampling, event: Event, absent: Event) -> Event:
    """Return the cost of a query for a sum, if `absent` is the cost of a record not being seen."""
    return amplify(sampling, event)


@amplify_sum.register
def _(sampling: Poisson, event: Event, absent: Event) -> Event:
    """Return the cost under replacements: the record is seen, or its replacement is, or neither.

    A Gaussian that is about twice as far for a replacement is taken as exactly twice as far, if
    need be with more loss: then the curve is known exactly.
    """
    if not sampling.refusal(event.adjacency):
        return amplify(sampling, event)
    from dpcore.claims.events.gaussian import GaussianEvent
    from dpcore.claims.events.poisson_replaced import PoissonReplacedEvent

    full_mu, half_mu = event.claims.mu, absent.claims.mu
    if full_mu is not None and half_mu is not None and full_mu > _NEARLY_TWICE * half_mu:
        # The pair becomes (2 mu, mu) with both parts rounded up: never less loss.
        half_mu = max(half_mu, full_mu / 2)
        event = GaussianEvent(mu=2 * half_mu, adjacency=event.adjacency)
        absent = GaussianEvent(mu=half_mu, adjacency=event.adjacency)
    return PoissonReplacedEvent(
        event=event, absent=absent, sampling_probability=sampling.probability
    )


@amplify_sum.register
def _(sampling: Cyclic, event: Event, absent: Event) -> Event:
    # A replaced record draws the group and the randomness of its place.
    return event if sampling.probability == 1 else amplify_sum(_of_group(sampling), event, absent)


def _of_group(sampling: Cyclic) -> Poisson:
    """Return the Poisson sample that is drawn of a group in its turn."""
    return Poisson(probability=sampling.probability)
