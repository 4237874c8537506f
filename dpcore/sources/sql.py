"""SQL: the rows of a query on a database that the operator has configured, read once.

Nobody infers a type: SQLite gives every cell the type it was stored with, PostgreSQL the types of
its columns. Messages of drivers show cells and addresses, so they go nowhere; of a server's error
the five characters of its SQLSTATE are told.
"""

import contextlib
import re
import sqlite3
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import attrs

from dpcore.errors import SourceError, need
from dpcore.records.location import Location, Reading
from dpcore.records.source import Columns, Part, Source
from dpcore.sources.arrow_columns import BATCH, columns_of, require_types
from dpcore.sources.connections import Postgresql, Sqlite, connection
from dpcore.sources.csv.dialect import require_columns

_DRIVER = "adbc_driver_postgresql"
_SQLSTATE = re.compile(r"[0-9A-Z]{5}\Z")


@attrs.frozen(kw_only=True)
class SqlQuery(Location):
    """The rows of an SQL query, with the declared columns among its own.

    Args:
        sql: The query, which is published with the spec.
        connection: The name of a database in the operator's `connections.yaml`.
    """

    sql: str
    connection: str

    @property
    def name(self) -> str:
        """The connection's name, with the word before it; no address."""
        return f"connection {self.connection}"

    def open(self, reading: Reading) -> Source:
        """The query; it is sent when its parts are read.

        Raises:
            SourceError: no such connection is configured, or its driver is not installed.
        """
        if isinstance(database_address := connection(self.connection), Sqlite):
            return SqlSource(
                rows=SqlitePart(query=self, database=database_address, reading=reading)
            )
        # The driver is looked for, not imported: opening a source connects to nothing.
        refusal = f"{self.name} needs a driver: pip install adbc-driver-postgresql pyarrow"
        need(find_spec(_DRIVER), SourceError, refusal)
        return SqlSource(
            rows=PostgresqlPart(query=self, database=database_address, reading=reading)
        )


@attrs.frozen(kw_only=True, repr=False)
class SqlSource(Source):
    """A query, as a source of one part: its rows come in no order that could be asked for again."""

    rows: Part

    def parts(self) -> Sequence[Part]:
        """PRIVATE: one part, which holds all rows of the query."""
        return (self.rows,)


@attrs.frozen(kw_only=True, repr=False)
class SqlitePart(Part):
    """The rows of a query on SQLite, cell by cell as they were stored."""

    query: SqlQuery
    database: Sqlite
    reading: Reading
    readable_again: ClassVar[bool] = False

    def batches(self) -> Iterator[Columns]:
        """PRIVATE: the rows of the query as SQLite returns them, cell by cell."""
        path = Path(self.database.sqlite)
        with (
            # `mode=ro` opens the file read-only, whatever the query says.
            _silence_driver(self.query.name),
            contextlib.closing(
                sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            ) as handle,
        ):
            handle.text_factory = _text  # Python's own shows the cell that is no UTF-8
            cursor = handle.execute(self.query.sql)
            names = [column[0] for column in cursor.description or ()]
            require_columns(self.query.name, names, self.reading.names)
            places = {name: names.index(name) for name in self.reading.names}
            while rows := cursor.fetchmany(BATCH):
                yield {name: [row[place] for row in rows] for name, place in places.items()}


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


@attrs.frozen(kw_only=True, repr=False)
class PostgresqlPart(Part):
    """The rows of a query on PostgreSQL, in a transaction that cannot write."""

    query: SqlQuery
    database: Postgresql
    reading: Reading
    readable_again: ClassVar[bool] = False

    def batches(self) -> Iterator[Columns]:
        """PRIVATE: the rows of the query as the server returns them, in Arrow batches."""
        from adbc_driver_postgresql import dbapi

        with (
            _silence_driver(self.query.name),
            dbapi.connect(self.database.postgresql) as handle,
            handle.cursor() as cursor,
        ):
            # A spec may come from others: its query must not change the database.
            cursor.execute("SET TRANSACTION READ ONLY")
            cursor.execute(self.query.sql)
            reader = cursor.fetch_record_batch()
            require_types(self.query.name, reader.schema, self.reading)
            for batch in reader:
                yield from columns_of(batch, self.reading)


@contextlib.contextmanager
def _silence_driver(name: str) -> Iterator[None]:
    """What a driver says of rows and addresses goes nowhere."""
    try:
        yield
    except (SourceError, MemoryError):
        raise
    except Exception as error:
        raise SourceError(f"{name}: the query failed ({error_kind(error)})") from None


def error_kind(error: Any) -> str:
    """What is told of a driver's error: its SQLSTATE, or its type."""
    # The pattern lets five characters through, and nothing else of a driver's error.
    if isinstance(state := getattr(error, "sqlstate", None), str) and _SQLSTATE.match(state):
        return f"SQLSTATE {state}"
    return type(error).__name__
