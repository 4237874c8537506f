"""The page of a ledger: what it promises, what was spent on what, and what is left."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dpcore.errors import LedgerError, need
from dpcore.guarantee import rounded_up
from dpcore.ledger.book import Ledger
from dpcore.ledger.entries import ChargeShare, latest, taken
from dpcore_report.pictures import PEN, drawn
from dpcore_report.plots.ledgers import draw_spending
from dpcore_report.templates import filled

_ENTRIES = 200  # of the latest that are listed
_SUMS = {
    "gaussian": "Shares are of the squares of mu, which add up.",
    "renyi": "Shares are of the divergence at the ledger's order, which adds up.",
    "basic": "Shares are of epsilon, which adds up.",
}


def ledger_report(ledger: Ledger) -> bytes:
    """One self-contained HTML page of a ledger, for those who keep it.

    Raises:
        LedgerError: the ledger is damaged, or its sums do not recompute.
    """
    # A page of a damaged ledger would state a budget that nobody can check.
    verification = ledger.verified()
    need(
        not verification.faults,
        LedgerError,
        f"the ledger {ledger.name!r} is damaged: {'; '.join(verification.faults)}",
    )
    # Shares are computed again from the entries, by the ledger's own notion of composition.
    total, charges = ledger.total, list(taken(ledger.total, ledger.iterate_rows()))
    shares = [charge.share for charge in charges]
    picture = drawn(lambda axes: draw_spending(axes, shares, PEN), "spending") if charges else ""
    entries, entry_count = latest(ledger.iterate_rows(), _ENTRIES)
    return filled(
        "ledger.html",
        all=entry_count,
        charges=len(charges),
        delta=rounded_up(total.delta),
        end=verification.end,
        entries=[entry.cells for entry in reversed(entries)],
        epsilon=rounded_up(total.epsilon),
        left=ledger.left().describe(),
        name=ledger.name,
        picture=picture,
        rows=verification.rows,
        shares=_shares(charges),
        sums=_SUMS[total.notion],
        total=total,
        used=_percent(sum(shares)),
    ).encode()


def _shares(charges: Sequence[ChargeShare]) -> list[tuple[str, int, str]]:
    """What was spent on what, the largest share first; runs of one spec together."""
    by_purpose: dict[str, tuple[int, float]] = {}
    for charge in charges:
        # Runs of one spec have its name with a number: count them as one purpose.
        purpose = re.sub(r"-\d+\Z", "", charge.what) or "not named"
        count, share = by_purpose.get(purpose, (0, 0.0))
        by_purpose[purpose] = count + 1, share + charge.share
    ordered = sorted(by_purpose.items(), key=lambda item: -item[1][1])
    return [(purpose, count, _percent(share)) for purpose, (count, share) in ordered]


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
