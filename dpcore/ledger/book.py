"""Ledger: one budget for all releases about the same records, kept in a file that outlives them.

A run reserves its whole event list before its records are opened. What is reserved stays spent,
whatever becomes of the run. Entries say what was asked for, never what the records answered.
"""

import contextlib
import secrets
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import attrs
import msgspec

from dpcore.adjacency import Adjacency
from dpcore.checks import is_finite, need_positive
from dpcore.claims.events.relation_text import EventTextError, relation_of
from dpcore.errors import AdjacencyError, DpcoreError, LedgerError, need
from dpcore.guarantee import Recorded
from dpcore.ledger.analysts import (
    HOLDERS,
    RESERVED,
    SPENT,
    add_charge,
    append_limit,
    left_of,
    limits_in,
    spent_by,
)
from dpcore.ledger.charge import Charge
from dpcore.ledger.entries import CREATED, REFUSED, UNCOVERED
from dpcore.ledger.filters import BudgetExceededError
from dpcore.ledger.gaussian_cover import covered, settled
from dpcore.ledger.journal import DamagedRowError, Journal, Row, Transaction, now
from dpcore.ledger.locations import journal_at, unknown
from dpcore.ledger.recomputing import Verified, recomputed, stored
from dpcore.ledger.remaining_budget import ON_DISK, RemainingBudget
from dpcore.ledger.reservation import Reservation as Reservation, committed_guarantee
from dpcore.ledger.total import Notion, Spent, Total
from dpcore.registry.events import Catalogue, catalogue_of
from dpcore.registry.registry import Registry
from dpcore.shown import Drawn

FAILURES_FRACTION = 2.0**-6  # of delta, for leaks
TILTED_FRACTION = 2.0**-3  # of delta, for tilted leaks: epsilon falls by about 0.7 % for both


@attrs.frozen(kw_only=True)
class Ledger(Drawn):
    """A budget that outlives its runs. Any number of processes may spend it at once.

    Args:
        name: As it was created.
        total: What everything together may cost.
        journal: Its rows, in a file or on a server.
        origin: Digest of its first row, by which a file put in its place is noticed.
        analyst: Who spends, in a ledger with limits (`dpcore.ledger.analysts`).
        events: Names the events that it stores.
    """

    name: str
    total: Total
    journal: Journal
    origin: str
    analyst: str | None = None
    events: Catalogue = attrs.field(factory=catalogue_of, eq=False, repr=False)

    @classmethod
    def create(
        cls,
        place: str | Path,
        *,
        epsilon: float,
        delta: float,
        adjacency: Adjacency | str,
        notion: Notion | None = None,
        failures: float | None = None,
        order: float | None = None,
        shared: bool = False,
        registry: Registry | None = None,
    ) -> "Ledger":
        """Create a ledger, by name among the user's, at a path, or on a server.

        Args:
            place: A name, the path of a new file, or NAME@postgresql.
            epsilon, delta, adjacency: What everything together may cost, for ever.
            notion: How costs add up, as in `Total`; by default `gaussian`, and `basic` where delta
                is 0.
            failures: Part of delta kept for failure probabilities, as in `Total`; by default a
                sixteenth of it where the notion is `gaussian`, so that counts and training runs
                can be covered (`dpcore.ledger.gaussian_cover`).
            order: Of the notion `renyi`.
            shared: Whether the group of the ledger's folder may spend from it, too; by default it
                is its owner's only.
            registry: Whose plugins' events it stores; the default one if None.

        Raises:
            ParameterError: an argument is out of its range.
            LedgerError: it exists already, or cannot be written.
        """
        # Gaussians add up exactly, but at delta = 0 they have no claim: only pure epsilons add up.
        need_positive("ledger", epsilon=epsilon)
        need(is_finite(delta), "ledger", "a delta in [0, 1)", "delta", delta)
        kind: Notion = notion or ("gaussian" if delta > 0 else "basic")
        tilted = 0.0
        if failures is None and kind == "gaussian":
            failures, tilted = delta * FAILURES_FRACTION, delta * TILTED_FRACTION
        options: dict[str, Any] = {"failures": failures, "order": order}
        total = Total(
            epsilon=epsilon,
            delta=delta,
            adjacency=relation_of(adjacency),
            notion=kind,
            tilted=tilted,
            **{name: value for name, value in options.items() if value is not None},
        )
        name, journal = journal_at(place)
        body = {
            "name": name,
            # Two ledgers of one name, budget and second still differ in their first row.
            "id": secrets.token_hex(16),
            "time": now(),
            "dpcore": metadata.version("dpcore"),
            **total.written(),
        }
        # The first row fixes the budget: no later row can change what is promised.
        first = journal.create(CREATED, body, shared=shared)
        return cls(
            name=name, total=total, journal=journal, origin=first.digest,
            events=catalogue_of(registry),
        )  # fmt: skip

    @classmethod
    def open(
        cls, place: str | Path, registry: Registry | None = None, analyst: str | None = None
    ) -> "Ledger":
        """Open an existing ledger, by name, path or NAME@postgresql. No event's plugin is needed.

        Args:
            registry: As in `create`.
            analyst: Who spends from it, where it has limits.

        Raises:
            UnknownLedgerError: there is none.
            LedgerError: the file is no ledger, damaged, of a newer version, or a copy of another.
        """
        name, journal = journal_at(place)
        if not journal.exists():
            raise unknown(place)
        with journal.reading() as transaction:
            first = next(transaction.rows(), None)
        # The promise is read from the first row only, and its digest is checked before.
        if first is None or not first.comes_first:
            raise LedgerError(f"{journal.path}: the ledger's first row is missing or was changed")
        try:
            first_name, total = str(first.body["name"]), Total.read(first.body)
        except (KeyError, TypeError, EventTextError, DpcoreError) as error:
            raise LedgerError(
                f"{journal.path}: the ledger's first row is damaged: {error}"
            ) from None
        need(
            first_name == name,
            LedgerError,
            f"{journal.path}: this file was created as {first_name!r}; a copy would be a second "
            f"budget for the same records",
        )
        return cls(
            name=name, total=total, journal=journal, origin=first.digest, analyst=analyst,
            events=catalogue_of(registry),
        )  # fmt: skip

    def limit(self, analyst: str, *, epsilon: float, delta: float) -> None:
        """Give an analyst a limit inside the ledger, for ever; from then on charges name one.

        Raises:
            ParameterError: the name or a number is out of range.
            LedgerError: the analyst has a limit, or the ledger cannot be written.
        """
        with self.writing() as transaction:
            append_limit(transaction, self.total, analyst, epsilon, delta)

    def reserve(
        self, charge: Charge, what: str = "", uncovered: tuple[str, ...] = ()
    ) -> Reservation:
        """Spend a whole charge, before the records are opened; on disk when this returns.

        Args:
            charge: All events, as planned.
            what: What it is for, in a few public words.
            uncovered: Looks at records that the run will take and that nothing accounts for.

        Raises:
            BudgetExceededError: it does not fit, its claims do not cover the ledger's adjacency, or
                it is stated for another frame than earlier ones; the refusal is recorded.
            ContractError: an event is of a class that no admitted plugin provides.
            LedgerError: the ledger cannot be written: the run may not go on.
        """
        # On disk before this returns, and the caller opens its records afterwards. So a crash can
        # waste budget, and never leaves an answer that no one paid for.
        row, old_sums, new_sums, assumptions = self._charge(RESERVED, charge, what, uncovered)
        recorded = Recorded(
            ledger=self.name,
            entry=new_sums.charges,
            digest=row.digest,
            epsilon=self.total.epsilon,
            delta=self.total.delta,
            adjacency=str(self.total.adjacency),
            assumptions=assumptions,
            left=new_sums.left().describe(ON_DISK),
        )
        warning = old_sums.left().most_taken_by(new_sums.left())
        return Reservation(writing=self.writing, charge=charge, recorded=recorded, warning=warning)

    def spend(self, charge: Charge, what: str = "") -> RemainingBudget:
        """Spend a charge of other code than a plan's, and return what is left.

        The ledger's promise then rests on that code, too.

        Raises: as `reserve`.
        """
        row, _, sums, _ = self._charge(SPENT, charge, what, ())
        return left_of(limits_in(row), self.analyst, sums.left())

    def remaining_after(self, charge: Charge) -> RemainingBudget:
        """Return what would be left after a charge; nothing is spent or recorded.

        Raises:
            BudgetExceededError: it would be refused.
            ContractError: as `reserve`.
        """
        # It raises what `reserve` would raise of an event that no admitted plugin provides.
        charge.written(self.events)
        try:
            with self._reading() as transaction:
                self._require_frame(transaction, charge)
                latest_row = transaction.last(*HOLDERS)
                remainder = settled(self._sums_after(latest_row), charge)[0].left()
                fraction = add_charge(limits_in(latest_row), self.analyst, charge, self.events)
                return left_of(fraction.get("analysts", {}), self.analyst, remainder)
        except (BudgetExceededError, AdjacencyError) as error:
            raise BudgetExceededError(f"the ledger {self.name!r} would refuse: {error}") from None

    def spent(self) -> Spent:
        """Return the sums of everything that the ledger has let through so far."""
        with self._reading() as transaction:
            return self._sums_after(transaction.last(*HOLDERS))

    def left(self) -> RemainingBudget:
        """Return what the ledger would still let through, of the analyst where it is opened for
        one.
        """
        with self._reading() as transaction:
            row = transaction.last(*HOLDERS)
        return left_of(limits_in(row), self.analyst, self._sums_after(row).left())

    def limits(self) -> dict[str, Spent]:
        """Return each analyst's limit, and what was spent of it."""
        with self._reading() as transaction:
            entries = limits_in(transaction.last(*HOLDERS))
        return {analyst: spent_by(entries, analyst) for analyst in entries}

    def note(self, what: str) -> None:
        """Record an evaluation at the records that nothing accounts for; nothing is charged."""
        with self.writing() as transaction:
            transaction.append(UNCOVERED, {"time": now(), "what": what})

    def rows(self) -> tuple[Row, ...]:
        """Return every row that the ledger records, in order, in memory at once."""
        return tuple(self.iterate_rows())

    def iterate_rows(self) -> Iterator[Row]:
        """Yield every row in order, one by one: a ledger may be longer than the memory."""
        with self._reading() as transaction:
            yield from transaction.rows()

    def faults(self) -> list[str]:
        """Sentences on what is wrong with the file, its chain or its sums; empty if nothing is.

        Raises: as `verified`.
        """
        return list(self.verified().faults)

    def verified(self, progress: Callable[[int, int], None] | None = None) -> Verified:
        """Return the faults, the number of rows and the digest that their chain ends in, in one
        reading.

        Args:
            progress: Called with how many rows were right so far, and how many there are.

        Raises:
            LedgerError: the plugin of an event is missing or not admitted: nothing is recomputed.
        """
        try:
            with self._reading() as transaction:
                # A damaged file comes first: its rows may be read wrongly.
                if damages := self.journal.faults():
                    return Verified(faults=tuple(damages))
                last, tell = transaction.highest, progress or (lambda n, last: None)
                return recomputed(
                    self.total, transaction.rows(), self.events, lambda n: tell(n, last)
                )
        except DamagedRowError as error:
            return Verified(faults=(error.message,))

    def export(self) -> Iterator[bytes]:
        """Export everything recorded, as the text of one JSON object, piece by piece."""
        opening = msgspec.json.encode(self.name).decode()
        yield f'{{\n  "ledger": {opening},\n  "rows": ['.encode()
        for number, row in enumerate(self.iterate_rows()):
            line = {"number": row.number, "kind": row.kind, "body": row.body, "digest": row.digest}
            text = msgspec.json.format(msgspec.json.encode(line), indent=2)
            yield (b",\n    " if number else b"\n    ") + text.replace(b"\n", b"\n    ")
        yield b"\n  ]\n}\n"

    def guarantee_of(self, digest: str) -> dict[str, Any] | None:
        """Return the guarantee that was committed for a reservation, by its digest; None without
        one.
        """
        with self._reading() as transaction:
            return committed_guarantee(transaction, digest)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Transaction]:
        """A transaction on the very file that was opened.

        Raises:
            LedgerError: another file is in its place, or it cannot be written.
        """
        with self.journal.writing() as transaction:
            self._require_origin(transaction)
            yield transaction

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Transaction]:
        with self.journal.reading() as transaction:
            self._require_origin(transaction)
            yield transaction

    def _require_origin(self, transaction: Transaction) -> None:
        first = next(transaction.rows(), None)
        # A file put in its place would be a second budget for the same records.
        need(
            first is not None and first.digest == self.origin,
            LedgerError,
            f"{self.journal.path}: another ledger was put in its place",
        )

    def _charge(
        self, kind: str, charge: Charge, purpose: str, uncovered: tuple[str, ...]
    ) -> tuple[Row, Spent, Spent, tuple[str, ...]]:
        body = {"time": now(), "what": purpose, **charge.written(self.events)}
        body |= {} if self.analyst is None else {"analyst": self.analyst}
        sums = [spent for name, spent in self.limits().items() if name == self.analyst]
        for spent in (self.spent(), *sums):
            covered(charge, spent)  # remembered: others need not wait while it is computed
        with self.writing() as transaction:
            latest_row = transaction.last(*HOLDERS)
            # Sums are read under the write lock: no one spends between them and the new row.
            try:
                self._require_frame(transaction, charge)
                old_sums = self._sums_after(latest_row)
                new_sums, summand = settled(old_sums, charge)
                fraction = add_charge(limits_in(latest_row), self.analyst, charge, self.events)
            except (BudgetExceededError, AdjacencyError) as error:
                # A refusal follows from public events and sums, so that recording it reveals
                # nothing.
                transaction.append(REFUSED, {**body, "reason": str(error)})
                refusal: DpcoreError = error
            else:
                names = () if latest_row is None else latest_row.body["all_assumptions"]
                assumptions = tuple(sorted({*names, *charge.assumptions}))
                additions = {
                    "uncovered": list(uncovered),
                    "all_assumptions": list(assumptions),
                    "after": new_sums.state(),
                    **fraction,
                }
                # The covering Gaussian is what adds up; what was asked for is next to it.
                if summand != charge:
                    additions["stands_for"] = body["events"]
                    body |= summand.written(self.events)
                row = transaction.append(kind, {**body, **additions})
                return row, old_sums, new_sums, assumptions
        # Raised outside the transaction, which would else roll the recorded refusal back.
        is_foreign = isinstance(refusal, AdjacencyError)
        way = f"`adjacency: {self.total.adjacency}` is its own" if is_foreign else self.left().way
        raise BudgetExceededError(f"the ledger {self.name!r} refuses: {way}. {refusal}")

    def _sums_after(self, latest_row: Row | None) -> Spent:
        start = self.total.start()
        try:
            return start if latest_row is None else stored(start, latest_row)
        except LedgerError as error:
            raise LedgerError(f"{self.journal.path}: {error.message}") from None

    def _require_frame(self, transaction: Transaction, charge: Charge) -> None:
        """A relation in encoded coordinates means one thing only while the encoding stays."""
        for row in transaction.rows() if charge.framed else ():
            if row.kind in (RESERVED, SPENT) and row.body["frame"] not in ("", charge.frame):
                raise AdjacencyError(
                    f"{self.total.adjacency} is about one declared domain; row {row.number} "
                    f"declared another: columns, ranges, target and norm must be the same, or "
                    f"the column of persons and their records"
                )
