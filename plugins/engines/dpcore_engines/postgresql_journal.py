"""PostgresqlJournal: the rows of a ledger in a table of a PostgreSQL server.

A schema `dpcore_NAME` holds one ledger: the table `journal`, and triggers that refuse to change or
remove a row. The chain of hashes is the core's own, and so is every check of it.

A writer first takes an advisory lock, so that there is one at a time and others wait, and then
begins a serialisable transaction. Its snapshot is taken after the lock, so that it reads the sums
that the last writer left. Should the lock not hold (a pooler may hand the session to another
client), both would add the row of one number, which is the table's key: one of them fails.

A row counts as written once the server says that its transaction is committed, with
`synchronous_commit`, and the row is read back after it. A server with `fsync = off` may lose rows
that it has confirmed, so nothing is written to it. If the connection ends before the answer comes,
no one knows whether the row is there: the run ends, and its charge may stay spent.

Messages of the driver may show an address, so errors reveal nothing of it but an SQLSTATE.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, final

import attrs

from dpcore.errors import LedgerError, SourceError, error_kind, need
from dpcore.ledger.file_journal import Counter
from dpcore.ledger.journal import DamagedRowError, Journal, Row, Transaction
from dpcore.ledger.locations import SUFFIX, ledgers_folder
from dpcore.sources.connections import Postgresql, connection

PATIENCE = 60  # seconds to wait for another writer
_VERSION = "dpcore ledger 1"  # the table's comment: a newer dpcore writes another
_LONGEST_NAME = 56  # PostgreSQL cuts identifiers after 63 bytes, and `dpcore_` is before it
_PAGES = (1, 8, 64, 512)  # rows asked for at once; the last number for all later pages
_GUARDS = ("no_change", "no_removal")
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_SESSION = (
    # A role or a database may set any of these otherwise.
    "SET synchronous_commit = on",
    "SET default_transaction_read_only = off",
    f"SET lock_timeout = '{PATIENCE}s'",
    # A client that vanished holds its lock until the server notices.
    "SET tcp_keepalives_idle = 20",
    "SET tcp_keepalives_interval = 5",
    "SET tcp_keepalives_count = 3",
)
_TABLE = (
    "CREATE TABLE journal (number BIGINT PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL, "
    "digest TEXT NOT NULL UNIQUE)",
    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
    "$$BEGIN RAISE EXCEPTION 'a ledger is append-only'; END$$",
    "CREATE TRIGGER no_change BEFORE UPDATE OR DELETE ON journal "
    "FOR EACH ROW EXECUTE FUNCTION refuse()",
    "CREATE TRIGGER no_removal BEFORE TRUNCATE ON journal "
    "FOR EACH STATEMENT EXECUTE FUNCTION refuse()",
    f"COMMENT ON TABLE journal IS '{_VERSION}'",
)
_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE = "BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE"


@attrs.frozen
class _Answer:
    """The rows of a statement, all of them read."""

    rows: list[tuple[Any, ...]]

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the first row; None without one."""
        return self.rows[0] if self.rows else None


@attrs.define
class _Pages:
    """A cursor on the server, whose rows come in pages of growing length."""

    session: _Session
    name: str

    def execute(self, query: str, parameters: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        """Return the rows of a query, for as long as the transaction lasts."""
        # Declared now, not at the first row: what is read is what the transaction saw here.
        self.session.execute(f"DECLARE {self.name} NO SCROLL CURSOR FOR {query}", parameters)
        return self._fetch()

    def _fetch(self) -> Iterator[tuple[Any, ...]]:
        page = 0
        while True:
            length = _PAGES[min(page, len(_PAGES) - 1)]
            rows = self.session.execute(f"FETCH {length} FROM {self.name}").rows
            yield from rows
            if len(rows) < length:
                return
            page += 1

    def close(self) -> None:
        """Nothing: the cursor ends with its transaction, which may have failed already."""


@attrs.define
class _Session:
    """One connection, in the words of `sqlite3` that `Transaction` speaks."""

    handle: Any
    cursors: int = 0

    def cursor(self) -> _Pages:
        """Return a new cursor on the server."""
        self.cursors += 1
        return _Pages(self, f"rows_{self.cursors}")

    def execute(self, query: str, parameters: tuple[Any, ...] = ()) -> _Answer:
        """Send a statement of SQLite's that PostgreSQL has in other words, and read its rows."""
        words = query.replace("instr(", "strpos(")
        for number in range(1, len(parameters) + 1):
            words = words.replace("?", f"${number}", 1)
        with self.handle.cursor() as cursor:
            # The driver would copy rows out of any statement, which FETCH and SHOW do not let it.
            cursor.adbc_statement.set_options(**{"adbc.postgresql.use_copy": "false"})
            cursor.execute(words, parameters or None)
            # All rows are read: one stream that is left open would block the connection.
            return _Answer(cursor.fetchall() if cursor.description else [])


@final
@attrs.frozen
class PostgresqlJournal(Journal):
    """The rows of one ledger on the server that the operator's connection of its name names.

    Args:
        name: The ledger's, at most 56 letters, digits, - and _.
    """

    name: str = attrs.field()

    @name.validator
    def _check_name(self, attribute: object, name: str) -> None:
        fits = _NAME.fullmatch(name) and len(name) <= _LONGEST_NAME
        wording = f"at most {_LONGEST_NAME} letters, digits, - and _"
        need(fits, "a ledger on PostgreSQL", wording, "name", name)

    @property
    def path(self) -> str:  # type: ignore[override]  # it is read alone
        """What opens the ledger: NAME@postgresql."""
        return f"{self.name}@postgresql"

    @property
    def schema(self) -> str:
        """The schema that holds the ledger, as grants name it."""
        return f'"dpcore_{self.name}"'

    @property
    def counter(self) -> Counter:
        """How far this machine has seen the ledger come."""
        return Counter(ledgers_folder() / f"{self.path}{SUFFIX}")

    def create(self, kind: str, body: dict[str, Any], *, shared: bool = False) -> Row:
        """Return a new schema with its table, triggers and first row, in one transaction.

        Raises:
            LedgerError: there is one, the role may not make it, or `shared`, which is for files.
        """
        way = f"GRANT USAGE ON SCHEMA {self.schema} and SELECT, INSERT ON its table journal"
        need(
            not shared,
            LedgerError,
            f"{self.path}: roles of the server share it, not the group of a folder: {way}",
        )
        with self._connected() as session:
            self._require_durable(session)
            session.execute(_WRITE)
            session.execute(f"CREATE SCHEMA {self.schema}")
            for statement in _TABLE:
                session.execute(statement)
            row = Transaction(session).append(kind, body)
            self._commit(session, row)
        self._count(row)
        return row

    @contextlib.contextmanager
    def writing(self) -> Iterator[Transaction]:
        """One transaction, begun after this process got the lock.

        Raises:
            LedgerError: as `Journal.writing` says, or the server may lose what it confirms.
        """
        with self._connected() as session:
            self._require_durable(session)
            # Before BEGIN: a snapshot that is older than the lock would miss the last writer's row.
            session.execute("SELECT pg_advisory_lock($1)", (self._lock,))
            transaction = self._begin(session, _WRITE)
            yield transaction
            if transaction.added is not None:
                self._commit(session, transaction.added)
        # A connection that ends rolls back, and lets the lock go.
        if transaction.added is not None:
            self._count(transaction.added)

    @contextlib.contextmanager
    def reading(self) -> Iterator[Transaction]:
        """One snapshot, in a transaction that cannot write.

        Raises:
            LedgerError: as `Journal.reading` says.
        """
        with self._connected() as session:
            yield self._begin(session, _READ)

    def exists(self) -> bool:
        """Return whether the server has such a table.

        Raises:
            LedgerError: no one answers, or the role may not know.
        """
        with self._connected() as session:
            schema = "SELECT oid FROM pg_namespace WHERE nspname = $1"
            return bool(session.execute(schema, (self.schema.strip('"'),)).rows)

    def faults(self) -> list[str]:
        """Return a trigger that is gone or disabled, as sentences; empty if both stand."""
        query = (
            "SELECT tgname::text FROM pg_trigger "
            "WHERE tgrelid = to_regclass('journal') AND tgenabled IN ('O', 'A')"
        )
        with self._connected() as session:
            guards = {name for (name,) in session.execute(query).rows}
        missing = sorted({*_GUARDS} - guards)
        return [f"the guard {missing[0]} against changes is gone"] if missing else []

    @property
    def _lock(self) -> int:
        """The ledger's advisory lock in its database, a signed integer of 64 bits."""
        return int.from_bytes(hashlib.sha256(self.path.encode()).digest()[:8], signed=True)

    def _begin(self, session: _Session, statement: str) -> Transaction:
        """A transaction, once the table is a ledger's and not behind this machine's counter."""
        # By its full name: a role that may not use the schema is given so.
        query = "SELECT obj_description(to_regclass($1), 'pg_class')"
        (comment,) = session.execute(query, (f"{self.schema}.journal",)).fetchone() or (None,)
        need(
            comment == _VERSION,
            LedgerError,
            f"{self.path}: schema {self.schema} holds no ledger that this dpcore knows: it is "
            f"damaged, or a newer dpcore's",
        )
        session.execute(statement)
        transaction = Transaction(session)
        # The first query takes the snapshot, after the counter was read: else the counter could
        # name a row that another process has added since.
        if fault := self.counter.fault(transaction.digest_of):
            raise DamagedRowError(f"{self.path}: {fault}")
        return transaction

    def _require_durable(self, session: _Session) -> None:
        """Refuse a server that may lose what it has confirmed."""
        settings = "SELECT current_setting('fsync'), current_setting('full_page_writes')"
        need(
            session.execute(settings).rows == [("on", "on")],
            LedgerError,
            f"{self.path}: the server runs with fsync or full_page_writes off: a crash could take "
            f"back what was spent. Turn both on",
        )

    def _commit(self, session: _Session, row: Row) -> None:
        """Commit, and read the row back: a server answers COMMIT where it rolled back, too."""
        session.execute("COMMIT")
        need(
            Transaction(session).digest_of(row.number) == row.digest,
            LedgerError,
            f"{self.path}: row {row.number} is not there after its transaction",
        )

    def _count(self, row: Row) -> None:
        """Note the latest row on this machine, so that an older copy of the server is noticed."""
        try:
            ledgers_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
            self.counter.advance(row.number, row.digest, 0o600)
        except OSError as error:
            raise LedgerError(
                f"{self.path}: the row is written, but this machine's counter {self.counter.path} "
                f"is not ({error.strerror}): what was reserved stays spent"
            ) from None

    @contextlib.contextmanager
    def _connected(self) -> Iterator[_Session]:
        """A connection of its own, in the ledger's schema.

        Raises:
            LedgerError: it is not configured, no one answers, or a statement failed.
        """
        refusal = "pip install adbc-driver-postgresql pyarrow"
        driver = find_spec("adbc_driver_postgresql")
        need(driver, LedgerError, f"{self.path} needs a driver: {refusal}")
        try:
            database = connection(self.name)
        except SourceError as error:
            raise LedgerError(f"{self.path}: {error.message}") from None
        if not isinstance(database, Postgresql):
            raise LedgerError(
                f"{self.path}: connection {self.name!r} is no {{postgresql: ADDRESS}}"
            )
        from adbc_driver_postgresql import dbapi

        try:
            with contextlib.closing(dbapi.connect(database.postgresql, autocommit=True)) as handle:
                session = _Session(handle)
                # Temporary tables come last: none may represent the journal.
                session.execute(f"SET search_path = {self.schema}, pg_temp")
                for statement in _SESSION:
                    session.execute(statement)
                yield session
            return
        except dbapi.Error as error:
            kind = error_kind(error)
        # Raised after the `except`: the driver's own error would be chained to it.
        hints = {
            "55P03": f"another process has held it for {PATIENCE} seconds",
            "42501": f"the role needs USAGE on schema {self.schema}, SELECT and INSERT on its "
            f"table journal, and CREATE on the database to make a ledger",
            "42P06": "there is a ledger already; take another name",
            "40001": "another process came between, and nothing was written: run again",
            "23505": "another process came between, and nothing was written: run again",
            "25006": "this server takes no writes: name the primary",
            "0A000": "this server takes no writes: name the primary",
            "53100": "its disk is full; make room and run again",
        }
        unknown = "the server does not answer, or has stopped; what was reserved may stay spent"
        hint = hints.get(kind.removeprefix("SQLSTATE "), "") or (
            unknown if not kind.startswith("SQLSTATE") else "the statement failed"
        )
        raise LedgerError(f"{self.path}: the ledger cannot be used ({kind}): {hint}")
