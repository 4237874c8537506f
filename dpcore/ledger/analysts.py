"""Analysts: limits inside a ledger, one for each analyst whom its owner names.

A limit is a total under the ledger's relation. An analyst's charge is let through if it fits what
is left of the ledger and what is left of the limit, and is added to both. So what the ledger
promises of everything that it lets through rests on no limit, and guarantees quote it alone. In a
ledger with limits every charge names an analyst.

A limit says something about one analyst only on an assumption: that analysts share neither their
answers nor anything that they chose by them. The ledger's own rows are such a thing: anyone who
reads them sees what others asked for.

The latest row that holds sums holds every limit with its sums, under `analysts`. A row of a charge
names its analyst, and has the charge as the limit adds it up under `analyst_charge`: what covers it
depends on what is left, so that the ledger may add it up as another Gaussian.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from dpcore.checks import need_positive
from dpcore.errors import LedgerError, near, need
from dpcore.guarantee import rounded_up
from dpcore.ledger.charge import Charge
from dpcore.ledger.filters import BudgetExceededError
from dpcore.ledger.gaussian_cover import settled
from dpcore.ledger.journal import Row, Transaction, now
from dpcore.ledger.locations import NAME
from dpcore.ledger.remaining_budget import RemainingBudget
from dpcore.ledger.total import Spent, Total
from dpcore.registry.events import Catalogue

RESERVED, SPENT, LIMITED = "reserved", "spent", "limited"
HOLDERS = (RESERVED, SPENT, LIMITED)
"""Kinds of rows that hold sums: the latest of them holds those of the whole ledger."""

Entries = Mapping[str, Any]
"""By analyst: the limit as a first row writes a total, and its sums under `after`."""


def limits_in(row: Row | None) -> Entries:
    """Return the entries of the latest row that holds sums; empty without limits."""
    return {} if row is None else row.body.get("analysts", {})


def spent_by(entries: Entries, analyst: str, slack: float = 0.0) -> Spent:
    """Return a limit, and what its analyst was let through.

    Args:
        slack: A part of its epsilon by which the limit is larger.

    Raises:
        LedgerError: there is no such analyst.
    """
    need(
        analyst in entries,
        LedgerError,
        f"the ledger has no analyst {analyst!r}{near(analyst, entries)}; `dpcore ledger limit` "
        f"gives a new one a limit",
    )
    limit = Total.read(entries[analyst])
    start = attrs.evolve(limit, epsilon=limit.epsilon * (1 + slack)).start()
    return start.at(entries[analyst]["after"])


def left_of(entries: Entries, analyst: str | None, remainder: RemainingBudget) -> RemainingBudget:
    """Return what an analyst may still spend where the ledger keeps `remainder`: the lesser of
    both.
    """
    return remainder if analyst is None else remainder.minimum(spent_by(entries, analyst).left())


def append_limit(
    transaction: Transaction, total: Total, analyst: str, epsilon: float, delta: float
) -> None:
    """Add a limit to a ledger of this total; a limit has the ledger's parts of delta.

    Raises:
        ParameterError: the name or a number is out of range.
        LedgerError: the analyst has a limit.
    """
    need(
        isinstance(analyst, str) and NAME.fullmatch(analyst),
        "a limit",
        "a name of letters, digits, - and _",
        "analyst",
        analyst,
    )
    need_positive("a limit", epsilon=epsilon)
    row = transaction.last(*HOLDERS)
    entries = limits_in(row)
    fault = f"analyst {analyst!r} has a limit already, which stays as it is"
    need(analyst not in entries, LedgerError, fault)
    # By the ledger's notion, so that what is left of both is of one kind.
    fraction = delta / total.delta if total.delta else 0.0
    parts: dict[str, Any] = {
        "failures": total.failures * fraction,
        "tilted": total.tilted * fraction,
    }
    limit = Total(
        epsilon=epsilon,
        delta=delta,
        adjacency=total.adjacency,
        notion=total.notion,
        **({} if total.notion == "basic" else parts),
    )
    body = {
        "time": now(),
        "what": f"limit ({rounded_up(epsilon)}, {rounded_up(delta)})",
        "analyst": analyst,
        "analysts": {**entries, analyst: _entry(limit.start())},
        "all_assumptions": [] if row is None else row.body["all_assumptions"],
        "after": total.start().state() if row is None else row.body["after"],
    }
    transaction.append(LIMITED, body)


def add_charge(
    entries: Entries, analyst: str | None, charge: Charge, events: Catalogue
) -> dict[str, Any]:
    """Return what a row of a charge says of its analyst: nothing in a ledger without limits.

    Raises:
        BudgetExceededError: it does not fit the limit.
        LedgerError: it names no analyst, or one without a limit.
    """
    if analyst is None:
        way = f"`ledger: {{name: NAME, analyst: {next(iter(entries), '')}}}`"
        need(not entries, LedgerError, f"every charge names an analyst, who has a limit: {way}")
        return {}
    try:
        spent, summand = settled(spent_by(entries, analyst), charge)
    except BudgetExceededError as error:
        raise BudgetExceededError(f"the limit of analyst {analyst!r}: {error}") from None
    return {
        "analyst_charge": summand.written(events),
        "analysts": {**entries, analyst: _entry(spent)},
    }


def fault_of(
    row: Row, before: Entries, slack: float, read_charge: Callable[[dict[str, Any]], Charge]
) -> str:
    """Return what is wrong with a row's entries after those of the row before; empty if nothing
    is.
    """
    entries, analyst = limits_in(row), row.body.get("analyst")
    if analyst is None:
        return f"row {row.number} names no analyst" if before or entries else ""
    stored = spent_by(entries, analyst, slack)
    if row.kind == LIMITED:
        is_right = analyst not in before and stored == stored.total.start()
    else:
        # From the sums that were stored before: those were checked at their own row.
        spent = spent_by(before, analyst, slack)
        charged = spent.spend(read_charge(row.body["analyst_charge"]))
        is_right = spent.total == stored.total and charged.covered_by(stored)
    is_right = is_right and {**entries, analyst: None} == {**before, analyst: None}
    return "" if is_right else f"row {row.number} counts less than analyst {analyst!r} spent"


def _entry(spent: Spent) -> dict[str, Any]:
    return {**spent.total.written(), "after": spent.state()}
