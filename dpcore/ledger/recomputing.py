"""Recomputing: the sums that a ledger's rows must have come to, from their events alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dpcore.errors import DpcoreError
from dpcore.events.catalogue import Catalogue
from dpcore.events.text import EventTextError, UnknownEventError
from dpcore.ledger.charge import Charge
from dpcore.ledger.journal import LedgerError, Row
from dpcore.ledger.total import Spent, Total

RESERVED, SPENT, COMMITTED = "reserved", "spent", "committed"
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


def recomputed(total: Total, rows: Iterable[Row], events: Catalogue) -> list[str]:
    """What is wrong with the sums and the order of rows; empty if nothing is.

    Raises:
        LedgerError: the plugin of an event is missing or not admitted.
    """
    start = spent = total.start()
    open_ones: set[str] = set()
    charges: dict[bytes, Charge] = {}
    for row in rows:
        if row.kind in (RESERVED, SPENT):
            try:
                spent = spent.spend(_charge(row.body, events, charges))
                if spent.state() != row.body["after"] and not spent.covered_by(stored(start, row)):
                    return [f"row {row.number} spends more than it says"]
            except UnknownEventError as error:
                raise LedgerError(
                    f"row {row.number} cannot be recomputed: {error}; what is spent stays spent"
                ) from None
            except (DpcoreError, KeyError, TypeError, ValueError) as error:
                return [f"row {row.number} does not recompute: {error}"]
            open_ones.add(row.digest)
        elif row.kind == COMMITTED:
            if row.body.get("reservation") not in open_ones:
                return [f"row {row.number} commits what was not reserved, or twice"]
            open_ones.remove(row.body["reservation"])
    return []


def _charge(body: dict[str, Any], events: Catalogue, charges: dict[bytes, Charge]) -> Charge:
    """The charge of a row; equal ones are read once."""
    parts = [body[name] for name in ("events", "failures", "frame", "assumptions")]
    text = msgspec.json.encode(parts)
    if text not in charges:
        if len(charges) >= _REMEMBERED:
            charges.clear()
        charges[text] = Charge.read(body, events)
    return charges[text]
