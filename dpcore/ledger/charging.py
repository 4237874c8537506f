"""Charge plans to ledgers: what a run may cost, and the reservation that pays for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from dpcore.adjacency import UNFRAMED
from dpcore.checks import describe_type
from dpcore.claims.plan.planned_query import failure_over_randomness
from dpcore.errors import ContractError, need
from dpcore.guarantee import Status
from dpcore.ledger.charge import Charge

if TYPE_CHECKING:
    from dpcore.claims.plan.plan import Plan
    from dpcore.ledger.book import Ledger
    from dpcore.ledger.reservation import Reservation


def charge(plan: Plan) -> Charge:
    """Return everything that a run of a plan may cost.

    Raises:
        ContractError: the plan guarantees nothing.
    """
    need(
        plan.guarantee.status is not Status.NONE,
        ContractError,
        "a plan without a guarantee cannot be charged to a ledger",
    )
    queries = plan.schedule.queries
    events = tuple((planned_query.event(), planned_query.charged) for planned_query in queries)
    domain = plan.request.domain
    # Two charges against one ledger add up only if neighbours mean the same in both. By adding
    # or replacing records they do; other relations need the declared domain as their frame.
    declared = domain.people or attrs.evolve(domain, exact=None, limit=None, sampled=None)
    needs_frame = any(event.adjacency not in UNFRAMED for event, _ in events)
    return Charge(
        events=events,
        failures=failure_over_randomness(queries),
        frame=repr(declared) if needs_frame else "",
        assumptions=tuple(a.name for a in plan.guarantee.basis.assumptions),
    )


def reserve(plan: Plan, ledger: Ledger, what: str, uncovered: tuple[str, ...]) -> Reservation:
    """Spend a plan's whole charge: what `Plan.reserve` says."""
    is_ledger, way = hasattr(ledger, "reserve"), "a ledger: Ledger.open(NAME)"
    need(is_ledger, "a run", way, "ledger", describe_type(ledger))
    return ledger.reserve(charge(plan), what, uncovered)
