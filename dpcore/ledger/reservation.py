"""Reservation: a charge that is spent, and the one guarantee that may come of it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from dpcore.errors import ContractError, need
from dpcore.guarantee import Guarantee, Recorded, Status
from dpcore.ledger.charge import Charge
from dpcore.ledger.journal import Transaction
from dpcore.ledger.recomputing import COMMITTED
from dpcore.single_use import SingleUse


class Reservation(SingleUse):
    """A charge that is spent, waiting for the run it was made for, in this process.

    Args:
        writing: A transaction on the ledger that was charged.
        recorded: What the run's guarantee will say about the ledger.
        warning: That it takes most of what was left, or empty.
    """

    def __init__(
        self,
        *,
        writing: Callable[[], AbstractContextManager[Transaction]],
        charge: Charge,
        recorded: Recorded,
        warning: str = "",
    ) -> None:
        super().__init__()
        self._writing, self.charge, self.recorded = writing, charge, recorded
        self.warning = warning

    def begin(self, charge: Charge) -> None:
        """Begin the run that this was reserved for.

        Raises:
            ContractError: it was reserved for something else or by another process, or has begun.
        """
        need(
            charge == self.charge,
            ContractError,
            "the reservation was made for another plan: reserve for this one",
        )
        self._serve("this reservation has served a run: make another")

    def commit(self, guarantee: Guarantee) -> Guarantee:
        """Put the guarantee into the ledger, and return it with the ledger's entry named in it.

        Raises:
            ContractError: nothing is guaranteed, the entry has a guarantee already, or another
                process made the reservation.
            LedgerError: the ledger cannot be written; the charge stays spent.
        """
        self._require_here(ContractError)
        need(
            guarantee.status is not Status.NONE,
            ContractError,
            "only a guarantee is committed: what has none stays spent without",
        )
        recorded_guarantee = guarantee.with_provenance(recorded=self.recorded)
        with self._writing() as transaction:
            # One guarantee an entry: a second run could else claim the same charge.
            need(
                committed_guarantee(transaction, self.recorded.digest) is None,
                ContractError,
                f"entry {self.recorded.entry} has a guarantee already",
            )
            body = {"reservation": self.recorded.digest, "guarantee": recorded_guarantee.to_dict()}
            transaction.append(COMMITTED, body)
        return recorded_guarantee


def committed_guarantee(transaction: Transaction, digest: str) -> dict[str, Any] | None:
    """Return the guarantee that was committed for a reservation, by its digest; None without
    one.
    """
    rows = transaction.of_kind(COMMITTED, digest)
    return next((row.body["guarantee"] for row in rows if row.body["reservation"] == digest), None)
