"""What a ledger shows of itself: its promise, its latest entries, and what is left."""

from __future__ import annotations

from collections.abc import Iterable

from dpcore.guarantee import rounded_up
from dpcore.ledger.entries import latest
from dpcore.ledger.journal import Row
from dpcore.ledger.remaining_budget import Left
from dpcore.ledger.total import Total
from dpcore.notebook_view import MOST_ROWS, Listing, Sheet, facts


def ledger_sheet(name: str, total: Total, rows: Iterable[Row], left: Left) -> Sheet:
    """Tables of the promise and of the latest entries."""
    found, entries = latest(rows, MOST_ROWS)
    promise = facts(
        ("epsilon", rounded_up(total.epsilon)),
        ("delta", rounded_up(total.delta)),
        ("neighbours", total.adjacency),
        ("adds up", total.notion),
    )
    headings = ("row", "time", "what", "cost", "status")
    return Sheet(
        title=f"Ledger {name!r}: {entries} entries",
        tables=(promise, Listing.of(headings, [entry.cells for entry in found])),
        sentences=(f"Left: {left.describe()}.",),
    )
