"""The page of a ledger: what it promises, what was spent on what, and what is left."""

import re
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from dpcore.errors import LedgerError, need
from dpcore.guarantee import rounded_up
from dpcore.ledger.book import Ledger
from dpcore.ledger.entries import ChargeFraction, charge_fractions, latest
from dpcore.models.description import Lines
from dpcore_report.pictures import Additions, drawn
from dpcore_report.results import readable
from dpcore_report.templates import filled

_ENTRIES = 200  # of the latest that are listed
_STEPS = 500  # charges that are drawn one by one
_FEW = 4  # runs that are named one by one
_SUMS = {
    "gaussian": "Shares are of the squares of mu, which add up.",
    "renyi": "Shares are of the divergence at the ledger's order, which adds up.",
    "basic": "Shares are of epsilon, which adds up.",
}


def ledger_report(ledger: Ledger) -> bytes:
    """Return one self-contained HTML page of a ledger, for those who keep it.

    Raises:
        LedgerError: the ledger is damaged, or its sums do not recompute.
    """
    # A page of a damaged ledger would state a budget that no one can check.
    verification = ledger.verified()
    need(
        not verification.faults,
        LedgerError,
        f"the ledger {ledger.name!r} is damaged: {'; '.join(verification.faults)}",
    )
    # Shares are computed again from the entries, by the ledger's own notion of composition.
    total, charges = ledger.total, list(charge_fractions(ledger.total, ledger.iterate_rows()))
    fractions = [charge.share for charge in charges]
    entries, entry_count = latest(ledger.iterate_rows(), _ENTRIES)
    return filled(
        "ledger.html",
        all=entry_count,
        charges=len(charges),
        delta=rounded_up(total.delta),
        end=verification.end,
        day=readable(entries[-1].cells[1]) if entries else "",
        entries=[(*map(readable, entry.cells),) for entry in reversed(entries)],
        epsilon=rounded_up(total.epsilon),
        left=ledger.left().describe(),
        name=ledger.name,
        picture=_draw_spending(fractions) if charges else "",
        rows=verification.rows,
        shares=_fractions(charges),
        sums=_SUMS[total.notion],
        total=total,
        used=_percent(sum(fractions)),
    ).encode()


def _draw_spending(fractions: Sequence[float]) -> Markup:
    """Return the fraction of the budget that is spent after each charge; of very many, after
    some.
    """
    spent = 100 * np.concatenate([[0.0], np.cumsum(fractions)])
    charges = np.unique(np.linspace(0, spent.size - 1, _STEPS).astype(int))
    # Twice each, so that the line climbs in steps.
    steps, heights = np.repeat(charges, 2)[1:], np.repeat(spent[charges], 2)[:-1]
    line = Lines(
        title="Spending", at=tuple(steps), values=heights, across="charges", up="% of the budget"
    )
    end = float(charges[-1])
    return drawn(line, Additions(reference=((0.0, 100.0), (end, 100.0))))


def _fractions(charges: Sequence[ChargeFraction]) -> list[tuple[str, int, str, str]]:
    """Return what was spent on what, the largest share first; runs of one spec together, and
    named.
    """
    by_purpose: dict[str, tuple[int, float]] = {}
    runs: dict[str, list[str]] = {}
    for charge in charges:
        # Runs of one spec have its name with a number: count them as one purpose.
        purpose = re.sub(r"-\d+\Z", "", charge.what) or "not named"
        count, fraction = by_purpose.get(purpose, (0, 0.0))
        by_purpose[purpose] = count + 1, fraction + charge.share
        runs.setdefault(purpose, []).append(charge.what)
    ordered = sorted(by_purpose.items(), key=lambda item: -item[1][1])
    return [
        (purpose, count, _percent(fraction), _name_runs(runs[purpose]))
        for purpose, (count, fraction) in ordered
    ]


def _name_runs(names: Sequence[str]) -> str:
    """Return all names of few runs, the first and the last of many."""
    distinct = [*dict.fromkeys(names)]
    return ", ".join(distinct) if len(distinct) < _FEW else f"{distinct[0]} to {distinct[-1]}"


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.3g} %"
