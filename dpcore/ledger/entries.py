"""Entries: what a ledger recorded, in words, and how much of its budget each charge took."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import attrs

from dpcore.ledger.analysts import LIMITED, RESERVED, SPENT
from dpcore.ledger.journal import Row
from dpcore.ledger.recomputing import COMMITTED, stored
from dpcore.ledger.remaining_budget import RemainingBudget
from dpcore.ledger.total import Total

CREATED, REFUSED, UNCOVERED = "created", "refused", "uncovered"


@attrs.frozen(kw_only=True)
class Entry:
    """A row of a ledger, and the guarantee that came of it.

    Args:
        guarantee: None while there is none.
    """

    row: Row
    guarantee: dict[str, Any] | None = None

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """Row, time, what was done, its events, and what came of it."""
        body = self.row.body
        purpose = f"{body['analyst']}: {body['what']}" if "analyst" in body else body["what"]
        return str(self.row.number), body["time"], purpose, self.cost, self.status

    @property
    def cost(self) -> str:
        """`691 x gaussian, 1 x laplace`; nothing for an uncovered look."""
        kinds: dict[str, int] = {}
        for event in self.row.body.get("events", ()):
            kinds[event["kind"]] = kinds.get(event["kind"], 0) + event["count"]
        return ", ".join(f"{count} x {kind}" for kind, count in kinds.items())

    @property
    def status(self) -> str:
        """The guarantee in short, or why there is none."""
        row, guarantee = self.row, self.guarantee
        if row.kind == RESERVED:
            evaluations = "".join(
                f"; uncovered: {evaluation}" for evaluation in row.body["uncovered"]
            )
            if guarantee is None:
                return f"spent without a guarantee{evaluations}"
            epsilon, delta = guarantee["epsilon"], guarantee["delta"]
            return f"({epsilon:.6g}, {delta:g}), {guarantee['status']}{evaluations}"
        words = {
            SPENT: "spent by other code",
            UNCOVERED: "uncovered, not charged",
            LIMITED: "inside the ledger's own, for ever",
        }
        return words.get(row.kind) or f"refused: {row.body['reason']}"


def latest(rows: Iterable[Row], last: int) -> tuple[list[Entry], int]:
    """Return the `last` latest entries, in order, and how many there are in all."""
    recent_rows: deque[Row] = deque(maxlen=last)
    guarantees: dict[str, Any] = {}
    count = 0
    for row in rows:
        if row.kind == COMMITTED:
            guarantees[row.body["reservation"]] = row.body["guarantee"]
        elif row.kind != CREATED:
            count += 1
            # A row that falls out takes its guarantee along: a ledger may outgrow the memory.
            if len(recent_rows) == last:
                guarantees.pop(recent_rows[0].digest, None)
            recent_rows.append(row)
    return [Entry(row=row, guarantee=guarantees.get(row.digest)) for row in recent_rows], count


@attrs.frozen(kw_only=True)
class ChargeFraction:
    """One charge: what it took of the budget, and what it left.

    Args:
        row: Its number. what: As recorded.
        fraction: Of the whole budget, in [0, 1]: of the squares of mu where those add up, else of
            epsilon.
        left: Afterwards.
    """

    row: int
    what: str
    share: float
    left: RemainingBudget


def charge_fractions(total: Total, rows: Iterable[Row]) -> Iterator[ChargeFraction]:
    """Yield every charge, in order, as the sums of its row say.

    Raises:
        LedgerError: a row says none.
    """
    start = total.start()
    budget = previous = start.left()
    for row in rows:
        if row.kind in (RESERVED, SPENT):
            left = stored(start, row).left()
            # Rounding may make it look as if a charge gave something back: then it took nothing.
            fraction = max(0.0, _fraction_spent(budget, left) - _fraction_spent(budget, previous))
            yield ChargeFraction(row=row.number, what=row.body["what"], share=fraction, left=left)
            previous = left


def _fraction_spent(budget: RemainingBudget, remaining: RemainingBudget) -> float:
    """Which fraction of the budget is spent where `remaining` is left of it, in [0, 1]."""
    # Squares of mu are what adds up (what a Rényi budget has left is put as a mu, too).
    if budget.mu > 0:
        return 1 - (remaining.mu / budget.mu) ** 2
    return 1 - remaining.epsilon / budget.epsilon if budget.epsilon > 0 else 1.0
