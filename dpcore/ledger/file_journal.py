"""`file_journal`: the rows of a ledger in one SQLite file that survives crashes.

A transaction is BEGIN IMMEDIATE (one writer at a time, others wait), in rollback-journal mode with
`synchronous=EXTRA`: when `append` returns, the row, the file and the removal of the rollback
journal from its folder are on disk, and a power failure cannot take the row back.
"""

import contextlib
import os
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn, final

import attrs
import msgspec

from dpcore.errors import LedgerError, need
from dpcore.ledger.journal import DamagedRowError, Journal, Row, Transaction
from dpcore.ledger.sharing import SharingError, missing_access, remote, share
from dpcore.published.files import put_on_disk
from dpcore.yaml.located import open_regular, require_regular

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


@final
@attrs.frozen
class FileJournal(Journal):
    """One file on a disk of this machine."""

    path: Path

    def create(self, kind: str, body: dict[str, Any], *, shared: bool = False) -> Row:
        """Create a file with its first row, readable by its owner only; all of it or nothing.

        Args:
            shared: The folder's group may read and write it, too.

        Raises:
            LedgerError: it exists, or cannot be written; its folder is on another machine, or not
                fit for sharing.
        """
        if kind_of_system := remote(self.path):
            raise LedgerError(
                f"{self.path}: on a network file system ({kind_of_system}), whose locks cannot be "
                f"relied on: keep the ledger on a local disk, or on a server as NAME@postgresql"
            )
        temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            try:
                with FileJournal(temporary)._connected(new=True) as connection:
                    connection.execute(f"PRAGMA application_id = {APPLICATION}")
                    _upgrade(connection)
                if shared:
                    share(temporary)
                with FileJournal(temporary)._appending() as transaction:
                    first = transaction.append(kind, body)
                os.link(temporary, self.path)  # unlike a renaming, never over an existing file
            finally:
                temporary.unlink(missing_ok=True)
            self._count(first)
            put_on_disk(self.path.parent)
        except SharingError as error:
            raise LedgerError(f"{self.path}: {error}") from None
        except FileExistsError:
            raise LedgerError(
                f"{self.path}: there is a ledger already; take another name"
            ) from None
        except OSError as error:
            raise LedgerError(f"{self.path}: cannot be created ({error.strerror})") from None
        return first

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
        """Note the latest row next to the file, unless another process has noted a later one."""
        try:
            Counter(self.path).advance(row.number, row.digest, self.path.stat().st_mode & 0o777)
        except OSError as error:
            raise LedgerError(
                f"{self.path}: the row is written, but its counter next to it is not "
                f"({error.strerror}): what was reserved stays spent"
            ) from None

    def faults(self) -> list[str]:
        """Return what is wrong with the file; empty if nothing is. Anyone who reads the rows checks
        them.
        """
        with self._connected() as connection:
            messages = [row[0] for row in connection.execute("PRAGMA integrity_check")]
            if messages != ["ok"]:
                return messages
            guards = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
            if missing := sorted({"no_change", "no_removal"} - guards):
                return [f"the guard {missing[0]} against changes is gone"]
        return []

    def exists(self) -> bool:
        """Return whether there is such a file.

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
            # SQLite would wait for a pipe in the place of its own files.
            for suffix in ("", "-journal", "-wal", "-shm"):
                require_regular(self.path.with_name(f"{self.path.name}{suffix}"))
        except OSError as error:
            text = f"{error.filename}: cannot be used ({error.strerror})"
            raise LedgerError(f"{text}{missing_access(self.path)}") from None
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


_LARGEST = 1000  # bytes, far more than a counter has


class Mark(msgspec.Struct, forbid_unknown_fields=True):
    """What a counter's file holds: number and digest of the latest row that was written."""

    number: int
    digest: str


@attrs.frozen
class Counter:
    """How far a ledger has come, in a small file next to it, so that an older copy is noticed.

    The file `.NAME.ledger.seen` holds the number and the digest of the latest row. It is written
    after every transaction, and is on disk before it has its name; so after a crash it may be
    behind, which is no fault, and is never empty. A ledger that is behind its counter, or has
    another row at that place, was replaced by an older or another copy.

    What it is not: anyone who restores or changes both files, or removes the counter, is not
    noticed. The digests in published guarantees are the stronger witness (`dpcore ledger verify
    --run`).
    """

    ledger: Path

    @property
    def path(self) -> Path:
        """Where the counter is kept: `.NAME.ledger.seen` next to the ledger."""
        return self.ledger.with_name(f".{self.ledger.name}.seen")

    def fault(self, digest_of: Callable[[int], str | None]) -> str:
        """Return what is wrong with the ledger, going by the counter; empty if nothing is.

        Args:
            digest_of: The digest of the row of a number; None where there is no such row.

        Raises:
            PermissionError: the file may not be read.
        """
        try:
            mark = self._load()
        except PermissionError:
            raise
        except (msgspec.DecodeError, UnicodeError, OSError):  # an empty one, or no file, too
            return (
                f"its counter {self.path} is damaged: remove it once `dpcore ledger verify --run` "
                f"finds the runs that were published"
            )
        # No counter is no fault: a user may have removed it, as the messages here advise.
        if mark is None or (digest := digest_of(mark.number)) == mark.digest:
            return ""
        state = "ends before that" if digest is None else "has another one there"
        return (
            f"an older or another copy was put in its place: row {mark.number} was written, and "
            f"this file {state}. Put the latest copy back. If there is none, consider all of it "
            f"spent; to go on nevertheless, remove {self.path}"
        )

    def _load(self) -> Mark | None:
        """Return what the file holds; None without one."""
        try:
            with open_regular(self.path) as file:
                return msgspec.json.decode(file.read(_LARGEST), type=Mark)
        except FileNotFoundError:
            return None

    def advance(self, number: int, digest: str, mode: int) -> None:
        """Note the latest row, unless a later one is noted.

        Args:
            mode: Of the file, as `os.chmod` takes it.

        Raises:
            OSError: it cannot be written.
        """
        # Row 1 is a new ledger's, whatever counter an older file of that name left behind.
        if number > 1 and (mark := self._load()) is not None and mark.number >= number:
            return  # another process came in between
        # Written next to and renamed, so that no one reads half a counter.
        temporary = self.path.with_name(f"{self.path.name}.{secrets.token_hex(8)}")
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(msgspec.json.encode(Mark(number=number, digest=digest)))
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, mode)
            os.replace(temporary, self.path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
