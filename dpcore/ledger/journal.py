"""Journal: an append-only, hash-chained table in one SQLite file that survives crashes.

Every row's digest is SHA-256 over the digest before it and the row itself, so that no row can be
changed, removed from the middle or put in between without a trace. A lost *end* of the chain (an
older copy of the file put back) leaves none inside; the digests that published guarantees carry do,
and the counter beside the file (`dpcore.ledger.counter`).

Every reading checks the digests of what it rests on: of all rows in order, of the latest row of a
kind with whatever came after it, or of one row with the one before it.

A transaction is BEGIN IMMEDIATE (one writer at a time, others wait), in rollback-journal mode with
`synchronous=EXTRA`: when `append` returns, the row, the file and the removal of the rollback
journal from its folder are on disk, and a power failure cannot take the row back.
"""

import contextlib
import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any, NoReturn

import attrs
import msgspec

from dpcore.errors import LedgerError, need
from dpcore.ledger.counter import Counter
from dpcore.ledger.disk import put_on_disk
from dpcore.ledger.sharing import SharingError, missing_access, remote, share

APPLICATION = 0x64706C67  # "dplg" in the file's header
STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE journal (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL, "
        "digest TEXT NOT NULL UNIQUE)",
        "CREATE TRIGGER no_change BEFORE UPDATE ON journal "
        "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END",
        "CREATE TRIGGER no_removal BEFORE DELETE ON journal "
        "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END",
    ),
)
"""From the empty file to each next version of the schema; a file's version is how many it has."""

PATIENCE = 60.0  # seconds to wait for another process's transaction


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
    def stands_first(self) -> bool:
        """Whether it is a chain's first row, unchanged."""
        return self.digest == chained("", 1, self.kind, canonical(self.body))


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical(data: Any) -> str:
    """JSON with sorted keys and no spaces: one text for equal data."""
    return _ENCODER.encode(data)


def chained(before: str, number: int, kind: str, body: str) -> str:
    """The digest of a row after the row whose digest is `before`."""
    first, second, third = map(encode_basestring_ascii, (before, kind, body))
    text = f"[{first},{number},{second},{third}]"  # `canonical` of the four: texts alone are quick
    return hashlib.sha256(text.encode()).hexdigest()


@attrs.frozen
class Transaction:
    """The journal while it is this process's turn."""

    _connection: sqlite3.Connection
    _cursors: list[sqlite3.Cursor] = attrs.field(factory=list)
    _added: list[Row] = attrs.field(factory=list)

    def close(self) -> None:
        """End every reading of rows: one that somebody stopped would hold the lock."""
        for cursor in self._cursors:
            cursor.close()

    def _select(self, query: str, parameters: tuple[Any, ...]) -> sqlite3.Cursor:
        cursor = self._connection.execute(query, parameters)
        self._cursors.append(cursor)
        return cursor

    def last(self, *kinds: str) -> Row | None:
        """The latest row of these kinds; of any, without arguments.

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
        """All rows in order.

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
        """The number of the last row as it stands there, unchecked; 0 where there is none."""
        (number,) = self._connection.execute("SELECT max(number) FROM journal").fetchone()
        return number or 0

    def digest_of(self, number: int) -> str | None:
        """What the row of a number says its digest is; None where there is no such row."""
        query = "SELECT digest FROM journal WHERE number = ?"
        columns = self._connection.execute(query, (number,)).fetchone()
        return None if columns is None else str(columns[0])


def _row(columns: tuple[Any, ...], before: str, place: int) -> Row:
    """A row that stands at `place` after the row whose digest is `before`.

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


@attrs.frozen
class Journal:
    """One file. Nothing is kept open between calls, so that threads and forks cannot share it."""

    path: Path

    @classmethod
    def create(
        cls, path: Path, kind: str, body: dict[str, Any], *, shared: bool = False
    ) -> tuple["Journal", Row]:
        """A new file and its first row, readable by its owner alone; all of it or nothing.

        Args:
            shared: The folder's group may read and write it, too.

        Raises:
            LedgerError: it exists, or cannot be written; its folder is on another machine, or not
                fit for sharing.
        """
        if kind_of_system := remote(path):
            raise LedgerError(
                f"{path}: on a network file system ({kind_of_system}), whose locks cannot be "
                f"relied on: keep the ledger on a local disk"
            )
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            try:
                with cls(temporary)._connected(new=True) as connection:
                    connection.execute(f"PRAGMA application_id = {APPLICATION}")
                    _upgrade(connection)
                if shared:
                    share(temporary)
                with cls(temporary)._appending() as transaction:
                    first = transaction.append(kind, body)
                os.link(temporary, path)  # unlike a renaming, never over an existing file
            finally:
                temporary.unlink(missing_ok=True)
            cls(path)._count(first)
            put_on_disk(path.parent)
        except SharingError as error:
            raise LedgerError(f"{path}: {error}") from None
        except FileExistsError:
            raise LedgerError(f"{path}: there is a ledger already; take another name") from None
        except OSError as error:
            raise LedgerError(f"{path}: cannot be created ({error.strerror})") from None
        return cls(path), first

    @contextlib.contextmanager
    def writing(self) -> Iterator[Transaction]:
        """One transaction that no other process's can come between; nothing, if it raises.

        Raises:
            LedgerError: another process holds the ledger for too long, it cannot be written, or it
                is behind its counter.
        """
        with self._appending() as transaction:
            try:
                self._require_latest(transaction)
            except PermissionError:
                raise LedgerError(
                    f"{self.path}: the ledger cannot be used: the file or its counter may not be "
                    f"written by this user{missing_access(self.path)}"
                ) from None
            yield transaction
        if transaction.added is not None:
            self._count(transaction.added)

    @contextlib.contextmanager
    def _appending(self) -> Iterator[Transaction]:
        with self._connected() as connection:
            # The write lock comes first: what is read in here cannot change before it is written.
            connection.execute("BEGIN IMMEDIATE")
            transaction = Transaction(connection)
            try:
                yield transaction
                transaction.close()
                connection.execute("COMMIT")
            except BaseException:
                transaction.close()
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def reading(self) -> Iterator[Transaction]:
        """One consistent view.

        Raises:
            LedgerError: the file cannot be read, or is behind its counter.
        """
        with self._connected() as connection:
            connection.execute("PRAGMA query_only = ON")
            connection.execute("BEGIN")
            transaction = Transaction(connection)
            try:
                with contextlib.suppress(PermissionError):  # a reader may not know the counter
                    self._require_latest(transaction)
                yield transaction
            finally:
                transaction.close()

    def _require_latest(self, transaction: Transaction) -> None:
        """Raise `DamagedRowError` where the file is behind its counter."""
        if fault := Counter(self.path).fault(transaction.digest_of):
            raise DamagedRowError(f"{self.path}: {fault}")

    def _count(self, row: Row) -> None:
        """Note the latest row beside the file, unless another process has noted a later one."""
        try:
            Counter(self.path).advance(row.number, row.digest, self.path.stat().st_mode & 0o777)
        except OSError as error:
            raise LedgerError(
                f"{self.path}: the row is written, but its counter beside it is not "
                f"({error.strerror}): what was reserved stays spent"
            ) from None

    def faults(self) -> list[str]:
        """What is wrong with the file; empty if nothing is. Whoever reads the rows checks them."""
        with self._connected() as connection:
            messages = [row[0] for row in connection.execute("PRAGMA integrity_check")]
            if messages != ["ok"]:
                return messages
            guards = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
            if missing := sorted({"no_change", "no_removal"} - guards):
                return [f"the guard {missing[0]} against changes is gone"]
        return []

    def exists(self) -> bool:
        """Whether there is such a file.

        Raises:
            LedgerError: this user may not know.
        """
        try:
            self.path.stat()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise LedgerError(f"{self.path}: cannot be used ({error.strerror})") from None
        return True

    @contextlib.contextmanager
    def _connected(self, *, new: bool = False) -> Iterator[sqlite3.Connection]:
        try:
            uri = f"{self.path.absolute().as_uri()}?mode=rw"
            connection = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)
        except sqlite3.Error as error:
            self._refuse(error)
        with contextlib.closing(connection):
            try:
                connection.text_factory = _text
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("PRAGMA synchronous = EXTRA")
                if not new:
                    self._require_version(connection)
                yield connection
            except sqlite3.Error as error:
                self._refuse(error)

    def _require_version(self, connection: sqlite3.Connection) -> None:
        """Refuse what is no ledger or a newer one; bring an older one up to date."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        is_ledger = application == APPLICATION and version >= 1
        need(is_ledger, LedgerError, f"{self.path}: not a ledger, or damaged")
        need(
            version <= len(STEPS),
            LedgerError,
            f"{self.path}: made by a newer dpcore (ledger version {version}, this one knows "
            f"{len(STEPS)}): upgrade dpcore",
        )
        if version < len(STEPS):
            _upgrade(connection)

    def _refuse(self, error: sqlite3.Error) -> NoReturn:
        name = getattr(error, "sqlite_errorname", "")
        hint = next((text for start, text in _HINTS.items() if name.startswith(start)), "")
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            hint += missing_access(self.path)
        raise LedgerError(f"{self.path}: the ledger cannot be used ({error}){hint}") from None


_HINTS = {
    "SQLITE_BUSY": f"; another process has held it for {PATIENCE:g} seconds",
    "SQLITE_FULL": "; make room and run again",
    "SQLITE_IOERR": "; is the disk full, or a size limit reached?",
    "SQLITE_READONLY": "; the file or its folder may not be written by this user",
    "SQLITE_CANTOPEN": "; it is gone, or its folder may not be written by this user",
    "SQLITE_CORRUPT": "; it is damaged: keep it, and consider all of it spent",
    "SQLITE_NOTADB": "; it is damaged: keep it, and consider all of it spent",
}


def _upgrade(connection: sqlite3.Connection) -> None:
    """Take the steps that the file has not had, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    for step in STEPS[version:]:
        for statement in step:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {max(version, len(STEPS))}")
    connection.execute("COMMIT")


def _text(raw: bytes) -> str | bytes:
    """Text, or its bytes where it is damaged: sqlite3 would quote it in a message."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw
