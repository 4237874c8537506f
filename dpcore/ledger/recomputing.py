"""Recomputing: the sums that a ledger's rows must have come to, from their events alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import msgspec

from dpcore.errors import DpcoreError
from dpcore.events.catalogue import Catalogue
from dpcore.events.text import EventTextError, UnknownEventError
from dpcore.ledger.charge import Charge
from dpcore.ledger.journal import LedgerError, Row
from dpcore.ledger.total import Spent, Total

RESERVED, SPENT, COMMITTED = "reserved", "spent", "committed"
_TOLD = 1000  # rows
_REMEMBERED = 10_000  # charges that are read once where they come again


def stored(start: Spent, row: Row) -> Spent:
    """The sums that a row of a charge says.

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
    """Whether the sums and the order of rows are right.

    Args:
        progress: Told how many rows are right, now and then.

    Raises:
        LedgerError: the plugin of an event is missing or not admitted.
    """
    start = spent = total.start()
    open_ones: set[str] = set()
    charges: dict[bytes, Charge] = {}
    read, end = 0, ""
    for row in rows:
        fault = ""
        if row.kind in (RESERVED, SPENT):
            try:
                spent = spent.spend(_charge(row.body, events, charges))
                if spent.state() != row.body["after"] and not spent.covered_by(stored(start, row)):
                    fault = f"row {row.number} spends more than it says"
            except UnknownEventError as error:
                raise LedgerError(
                    f"row {row.number} cannot be recomputed: {error}; what is spent stays spent"
                ) from None
            except (DpcoreError, KeyError, TypeError, ValueError) as error:
                fault = f"row {row.number} does not recompute: {error}"
            open_ones.add(row.digest)
        elif row.kind == COMMITTED:
            if row.body.get("reservation") not in open_ones:
                fault = f"row {row.number} commits what was not reserved, or twice"
            open_ones.discard(row.body.get("reservation"))
        if fault:
            return Verified(faults=(fault,), rows=read, end=end)
        read, end = row.number, row.digest
        if read % _TOLD == 0:
            progress(read)
    return Verified(rows=read, end=end)


def _charge(body: dict[str, Any], events: Catalogue, charges: dict[bytes, Charge]) -> Charge:
    """The charge of a row; equal ones are read once."""
    parts = [body[name] for name in ("events", "failures", "frame", "assumptions")]
    parts.append(body.get("tilted"))
    text = msgspec.json.encode(parts)
    if text not in charges:
        if len(charges) >= _REMEMBERED:
            charges.clear()
        charges[text] = Charge.read(body, events)
    return charges[text]
