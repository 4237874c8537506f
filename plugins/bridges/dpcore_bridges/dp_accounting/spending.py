"""Spending dpcore's events from dp-accounting's own accountants, around their known faults."""

from dp_accounting import DpEvent, PrivacyAccountant, RandomizedResponseDpEvent, ZCDpEvent
from dp_accounting.dp_event import DiscreteLaplaceDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from dpcore.errors import AdjacencyError, need
from dpcore.event import Event
from dpcore.rounding import up
from dpcore_bridges.dp_accounting.relations import adjacency_factor, relation_of
from dpcore_bridges.dp_accounting.writing import write

_MANY = 25.0  # 2 log(1/delta) at a delta of some 1e-6


def spend(accountant: PrivacyAccountant, event: Event, count: int = 1) -> None:
    """Compose `event` into one of dp-accounting's accountants, never for less than it costs.

    Two faults of version 0.6 are stepped around:

    * Its Rényi accountant ignores the relation, so that a noise multiplier under replace-one
      costs what it does under add/remove. There a Gaussian is spent as its zCDP claim, which is
      exact, and anything else with its full sensitivity, which stays an upper bound if the
      factor is ever put right.
    * Its numerical accountant composes randomized response once whatever the count. There it is
      spent in as many calls.

    Its Rényi accountant knows no pure release under add/remove. There one is spent as divergences
    of its epsilon at all orders, or of its zCDP claim where that is about less in `count` uses.

    Raises:
        AdjacencyError: the accountant is about another relation than the event.
        UnsupportedEventError: the event has no counterpart; or the accountant's own exception of
            that name, where it does not support the counterpart. Nothing is spent.
        ValueError: `count` is not an integer >= 1.
    """
    need(
        not isinstance(count, bool) and isinstance(count, int) and count >= 1,
        ValueError,
        f"count must be an integer >= 1, got count={count!r}",
    )
    relation = relation_of(event.adjacency)
    need(
        accountant.neighboring_relation is relation,
        AdjacencyError,
        f"the accountant is about {accountant.neighboring_relation}, the event about {relation}",
    )
    parts = [
        (_counterpart(part, times * count, accountant), times * count)
        for part, times in event.parts()
    ]
    # every part is asked about before any is spent, so that a refusal leaves nothing behind
    for counterpart, _ in parts:
        if not accountant.supports(counterpart):
            accountant.compose(counterpart)  # raises, and says why
    for counterpart, times in parts:
        _compose(accountant, counterpart, times)


def _counterpart(event: Event, count: int, accountant: PrivacyAccountant) -> DpEvent:
    if not isinstance(accountant, RdpAccountant):
        return write(event, adjacency_factor(event.adjacency))
    # a zCDP claim needs no relation: for a Gaussian it is exact, at rho = mu^2 / 2
    claims = event.claims
    if claims.mu is not None:
        return ZCDpEvent(up(claims.mu * claims.mu / 2, roundings=3))
    counterpart = write(event, 1)
    if claims.pure is None or not isinstance(counterpart, DiscreteLaplaceDpEvent):
        return counterpart
    # Either claim holds. Of many small ones the zCDP claim is the less: about where this says.
    is_many = count * max(0.0, 1 - claims.pure / 2) ** 2 > _MANY
    return (
        ZCDpEvent(claims.rho) if is_many and claims.rho is not None else ZCDpEvent(0.0, claims.pure)
    )


def _compose(accountant: PrivacyAccountant, counterpart: DpEvent, count: int) -> None:
    # version 0.6 composes such an event once, whatever its count
    singly = isinstance(accountant, PLDAccountant) and isinstance(
        counterpart, RandomizedResponseDpEvent
    )
    for _ in range(count if singly else 1):
        accountant.compose(counterpart, 1 if singly else count)
