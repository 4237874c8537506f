"""Recomputing: the sums that a ledger's rows must have come to, from their events only."""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import attrs
import msgspec

from dpcore.claims.events.event_text import UnknownEventError
from dpcore.claims.events.relation_text import EventTextError
from dpcore.errors import DpcoreError, LedgerError
from dpcore.ledger.analysts import HOLDERS, LIMITED, Entries, fault_of, limits_in
from dpcore.ledger.charge import Charge
from dpcore.ledger.journal import Row
from dpcore.ledger.total import Spent, Total
from dpcore.registry.events import Catalogue

COMMITTED = "committed"
_OTHER_ROUNDING = 2.0**-40  # relative: what recomputed sums may differ by
_PROGRESS_STEP = 1000  # rows
_CACHE_SIZE = 10_000  # charges that are read once where they come again


def stored(start: Spent, row: Row) -> Spent:
    """Return the sums that a row of a charge has stored.

    Raises:
        LedgerError: it says none.
    """
    try:
        return start.at(row.body["after"])
    except (KeyError, EventTextError) as error:
        raise LedgerError(f"row {row.number} is damaged: {error}") from None


@attrs.frozen(kw_only=True)
class Verified:
    """What a reading of all rows found.

    Args:
        faults: What is wrong; empty if nothing is. The rest is about what was read before that.
        rows: How many there are.
        end: The digest in which their chain ends.
    """

    faults: tuple[str, ...] = ()
    rows: int = 0
    end: str = ""


def recomputed(
    total: Total, rows: Iterable[Row], events: Catalogue, progress: Callable[[int], None]
) -> Verified:
    """Recompute all sums from the events of the rows, and report the first fault.

    Args:
        progress: Called now and then with how many rows are right so far.

    Raises:
        LedgerError: the plugin of an event is missing or not admitted.
    """
    # Rows were let through by the rounding of their day, which another version or platform repeats
    # but for the last bits: an exhausted ledger is no damaged one.
    start = spent = attrs.evolve(total, epsilon=total.epsilon * (1 + _OTHER_ROUNDING)).start()
    open_reservations: set[str] = set()
    charges: dict[bytes, Charge] = {}
    number, end = 0, ""
    entries: Entries = {}
    for row in rows:
        fault = ""
        if row.kind in HOLDERS:
            try:
                if row.kind != LIMITED:
                    spent = spent.spend(_charge(row.body, events, charges))
                    open_reservations.add(row.digest)
                # Stored sums may be larger than these, by another platform's rounding. Smaller ones
                # would be budget that was spent and is not counted.
                if spent.state() != row.body["after"] and not spent.covered_by(stored(start, row)):
                    fault = f"row {row.number} spends more than it says"
                read_charge = partial(_charge, events=events, charges=charges)
                fault = fault or fault_of(row, entries, _OTHER_ROUNDING, read_charge)
                entries = limits_in(row)
            except UnknownEventError as error:
                raise LedgerError(
                    f"row {row.number} cannot be recomputed: {error}; what is spent stays spent"
                ) from None
            except (DpcoreError, KeyError, TypeError, ValueError) as error:
                fault = f"row {row.number} does not recompute: {error}"
        elif row.kind == COMMITTED:
            # A guarantee comes after its reservation, and only once.
            if row.body.get("reservation") not in open_reservations:
                fault = f"row {row.number} commits what was not reserved, or twice"
            open_reservations.discard(row.body.get("reservation"))
        if fault:
            return Verified(faults=(fault,), rows=number, end=end)
        number, end = row.number, row.digest
        if number % _PROGRESS_STEP == 0:
            progress(number)
    return Verified(rows=number, end=end)


def _charge(body: dict[str, Any], events: Catalogue, charges: dict[bytes, Charge]) -> Charge:
    """Return the charge of a row; equal ones are read once."""
    parts = [body[name] for name in ("events", "failures", "frame", "assumptions")]
    parts.append(body.get("tilted"))
    text = msgspec.json.encode(parts)
    if text not in charges:
        # A ledger may be longer than the memory, so the cache is bounded.
        if len(charges) >= _CACHE_SIZE:
            charges.clear()
        charges[text] = Charge.read(body, events)
    return charges[text]
