"""What a ledger shows of itself: its promise, its latest entries, and what is left."""

from collections.abc import Iterable

from dpcore.guarantee import rounded_up
from dpcore.ledger.entries import latest
from dpcore.ledger.journal import Row
from dpcore.ledger.remaining_budget import RemainingBudget
from dpcore.ledger.total import Total
from dpcore.notebook_view import MOST_ROWS, Listing, Sheet, facts


def ledger_sheet(name: str, total: Total, rows: Iterable[Row], left: RemainingBudget) -> Sheet:
    """The ledger's promise and its latest entries as tables, and what is left as a sentence."""
    recent_entries, count = latest(rows, MOST_ROWS)
    # A promise may be shown as weaker than it is by rounding, never as stronger.
    promise = facts(
        ("epsilon", rounded_up(total.epsilon)),
        ("delta", rounded_up(total.delta)),
        ("neighbours", total.adjacency),
        ("adds up", total.notion),
    )
    headings = ("row", "time", "what", "cost", "status")
    return Sheet(
        title=f"Ledger {name!r}: {count} entries",
        tables=(promise, Listing.of(headings, [entry.cells for entry in recent_entries])),
        sentences=(f"Left: {left.describe()}.",),
    )
