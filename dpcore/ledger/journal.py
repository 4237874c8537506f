"""Journal: an append-only, hash-chained table, in a file or on a server.

Every row's digest is SHA-256 over the digest before it and the row itself, so that no row can be
changed, removed from the middle or put in between without a trace. A lost *end* of the chain (an
older copy put back) leaves none inside; the digests that published guarantees carry do, and each
machine's counter (`dpcore.ledger.file_journal`).

Every reading checks the digests of what it rests on: of all rows in order, of the latest row of a
kind with whatever came after it, or of one row with the one before it.
"""

import contextlib
import datetime
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Iterator
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any

import attrs
import msgspec

from dpcore.errors import LedgerError


class DamagedRowError(LedgerError):
    """A row was changed, is missing or cannot be read."""


@attrs.frozen
class Row:
    """One line of the journal."""

    number: int
    kind: str
    body: dict[str, Any]
    digest: str

    @property
    def comes_first(self) -> bool:
        """Whether it is a chain's first row, unchanged."""
        return self.digest == chained("", 1, self.kind, canonical(self.body))


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(data: Any) -> str:
    """JSON with sorted keys and no spaces: one text for equal data."""
    return _ENCODER.encode(data)


def chained(before: str, number: int, kind: str, body: str) -> str:
    """Return the digest of a row after the row whose digest is `before`."""
    first, second, third = map(encode_basestring_ascii, (before, kind, body))
    text = (
        f"[{first},{number},{second},{third}]"  # `canonical` of the four: texts by itself are quick
    )
    return hashlib.sha256(text.encode()).hexdigest()


def now() -> str:
    """Return the time of a row: UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


@attrs.frozen
class Transaction:
    """The journal while it is this process's turn."""

    _connection: Any  # sqlite3's, or one that answers its words
    _cursors: list[Any] = attrs.field(factory=list)
    _added: list[Row] = attrs.field(factory=list)

    def close(self) -> None:
        """End every reading of rows: one that somebody stopped would hold the lock."""
        for cursor in self._cursors:
            cursor.close()

    def _select(self, query: str, parameters: tuple[Any, ...]) -> Any:
        # A cursor of its own reads row by row: a ledger may be longer than the memory.
        cursor = self._connection.cursor()
        self._cursors.append(cursor)
        return cursor.execute(query, parameters)

    def last(self, *kinds: str) -> Row | None:
        """Return the latest row of these kinds; of any, without arguments.

        Raises:
            LedgerError: it, or a row after it, does not fit the chain.
        """
        where = f"WHERE kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        query = f"SELECT max(number) FROM journal {where}"
        (number,) = self._connection.execute(query, kinds).fetchone()
        if number is None:
            return None
        latest = None
        # The rows after it are checked, too: the chain ends in what the next row is built on.
        for row in self._chain(number):
            latest = row if latest is None else latest
        return latest

    def rows(self) -> Iterator[Row]:
        """Return all rows in order.

        Raises:
            LedgerError: one of them does not fit the chain.
        """
        return self._chain(1)

    def of_kind(self, kind: str, text: str = "") -> Iterator[Row]:
        """Rows of one kind in order, or those of them whose body holds `text`.

        Raises:
            LedgerError: one of them does not fit the row before it.
        """
        query = (
            "SELECT own.*, before.digest FROM journal own LEFT JOIN journal before "
            "ON before.number = own.number - 1 WHERE own.kind = ? AND instr(own.body, ?) > 0 "
            "ORDER BY own.number"
        )
        for *columns, before in self._select(query, (kind, text)):
            yield _row(tuple(columns), before or "", columns[0])

    def _chain(self, start: int) -> Iterator[Row]:
        before = self.digest_of(start - 1) or ""
        query = "SELECT * FROM journal WHERE number >= ? ORDER BY number"
        for number, columns in enumerate(self._select(query, (start,)), start=start):
            row = _row(columns, before, number)
            yield row
            before = row.digest

    def append(self, kind: str, body: dict[str, Any]) -> Row:
        """Add a row at the end; on disk once the transaction is over.

        Raises:
            LedgerError: the last row does not fit the one before it.
        """
        # The last row is checked first: no new row may vouch for one that was changed.
        latest = self.last()
        number, before = (1, "") if latest is None else (latest.number + 1, latest.digest)
        text = canonical(body)
        digest = chained(before, number, kind, text)
        self._connection.execute(
            "INSERT INTO journal VALUES (?, ?, ?, ?)", (number, kind, text, digest)
        )
        self._added.append(Row(number, kind, body, digest))
        return self._added[-1]

    @property
    def added(self) -> Row | None:
        """The last row that this transaction added."""
        return self._added[-1] if self._added else None

    @property
    def highest(self) -> int:
        """The number of the last row as it is there, unchecked; 0 where there is none."""
        (number,) = self._connection.execute("SELECT max(number) FROM journal").fetchone()
        return number or 0

    def digest_of(self, number: int) -> str | None:
        """Return what the row of a number says its digest is; None where there is no such row."""
        query = "SELECT digest FROM journal WHERE number = ?"
        columns = self._connection.execute(query, (number,)).fetchone()
        return None if columns is None else str(columns[0])


def _row(columns: tuple[Any, ...], before: str, place: int) -> Row:
    """Return a row that is at `place` after the row whose digest is `before`.

    Raises:
        DamagedRowError: it was changed, or cannot be read.
    """
    number, kind, body, digest = columns
    # Rows are many, so that no message is written before it is needed.
    if number != place:
        raise DamagedRowError(f"row {place} is missing: the ledger is damaged")
    if not (isinstance(kind, str) and isinstance(body, str) and isinstance(digest, str)):
        raise DamagedRowError(f"row {number} was changed: it is no text; the ledger is damaged")
    if digest != chained(before, number, kind, body):
        raise DamagedRowError(
            f"row {number} does not fit the chain: row {number} was changed, or an earlier one; "
            f"the ledger is damaged"
        )
    try:
        return Row(number, kind, msgspec.json.decode(body, type=dict[str, Any]), digest)
    except (msgspec.DecodeError, UnicodeError):
        raise DamagedRowError(f"row {number} is no JSON: the ledger is damaged") from None


class Journal(ABC):
    """Where the rows of one ledger are kept, whatever keeps them.

    Nothing is kept open between calls, so that threads and forks cannot share it.

    Args:
        path: Of its file; the text NAME@postgresql where a plugin keeps it.
    """

    path: Path | str

    @abstractmethod
    def create(self, kind: str, body: dict[str, Any], *, shared: bool = False) -> Row:
        """Make the place and its first row, all of it or nothing.

        Args:
            shared: A file's folder's group may read and write it, too.

        Raises:
            LedgerError: there is one already, or it cannot be made.
        """

    @abstractmethod
    def writing(self) -> contextlib.AbstractContextManager[Transaction]:
        """Return one transaction that no other process's can come between; nothing, if it raises.

        Raises:
            LedgerError: another process holds the ledger for too long, it cannot be written, or it
                is behind this machine's counter.
        """

    @abstractmethod
    def reading(self) -> contextlib.AbstractContextManager[Transaction]:
        """Return one consistent view.

        Raises:
            LedgerError: it cannot be read, or is behind this machine's counter.
        """

    @abstractmethod
    def exists(self) -> bool:
        """Return whether there is a ledger at the place.

        Raises:
            LedgerError: this user may not know.
        """

    @abstractmethod
    def faults(self) -> list[str]:
        """Return what is wrong with the place; empty if nothing is. Anyone who reads the rows
        checks them.
        """
