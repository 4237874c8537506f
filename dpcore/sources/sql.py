"""SQL: the rows of a query on a database that the operator has configured, read once.

No one infers a type: SQLite gives every cell the type it was stored with, PostgreSQL the types of
its columns. Messages of drivers show cells and addresses, so they go nowhere; of a server's error
the five characters of its SQLSTATE are reported.

A spec may come from others. Its text is one query of listed functions (`query_text`), and is
written where a server takes queries only. SQLite is asked to allow reading and these functions;
PostgreSQL gets it in a transaction that cannot write, from a role of few rights, where no name in
it may mean a function that somebody added.
"""

from __future__ import annotations

import contextlib
import sqlite3
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import attrs

from dpcore.errors import SourceError, need, unpassed
from dpcore.source import Columns, Location, Part, Reading, Source
from dpcore.sources.arrow_columns import BATCH, columns_of, require_types
from dpcore.sources.connections import Postgresql, Sqlite, connection
from dpcore.sources.csv.dialect import require_columns
from dpcore.sources.query_text import FUNCTIONS, POSTGRESQL, SQLITE, WAY, query_text, require_query

if TYPE_CHECKING:
    import pyarrow

_FAITHFUL = (  # PostgreSQL's names of the types whose cells the driver hands over as they are
    "boolean", "smallint", "integer", "bigint", "real", "double precision", "numeric", "text",
    "character varying", "character", "name", "date", "timestamp without time zone",
    "timestamp with time zone",
)  # fmt: skip
_TABLES = "SELECT name FROM sqlite_schema WHERE name NOT GLOB 'sqlite_*'"
_CASTS = {"money": "numeric", "oid": "bigint", "uhugeint": "DOUBLE", "bignum": "DOUBLE"}
_RICH = """
SELECT count(*) FROM pg_catalog.pg_roles AS r
JOIN pg_catalog.pg_roles AS g ON pg_catalog.pg_has_role(r.oid, g.oid, 'MEMBER')
WHERE r.rolname IN (current_user, session_user)
  AND (g.rolsuper OR g.rolcreaterole OR g.rolreplication
    OR g.rolname ~ '^pg_(read_server_files|write_server_files|execute_server_program)$')
"""
# Functions that PostgreSQL does not come with, but for those of extensions that promise to change
# nothing: of an operator in a text, of a name before a parenthesis, of a row behind a point, of any
# cast where there is one, or of a domain that is named.
_ADDED = """
SELECT DISTINCT p.proname FROM pg_catalog.pg_proc AS p
LEFT JOIN pg_catalog.pg_operator AS o
  ON o.oprcode = p.oid AND pg_catalog.pg_operator_is_visible(o.oid)
WHERE p.pronamespace <> 'pg_catalog'::pg_catalog.regnamespace
  AND (p.provolatile = 'v' OR NOT EXISTS (
    SELECT FROM pg_catalog.pg_depend AS d
    WHERE d.classid = 'pg_catalog.pg_proc'::pg_catalog.regclass
      AND d.objid = p.oid AND d.deptype = 'e'))
  AND (pg_catalog.strpos({text}, o.oprname::pg_catalog.text) > 0
    OR pg_catalog.pg_function_is_visible(p.oid) AND (p.proname IN ({called})
      OR p.proname IN ({members}) AND EXISTS (
        SELECT FROM pg_catalog.pg_type AS t WHERE t.oid = p.proargtypes[0]
        AND t.typtype IN ('c', 'p', 'd')))
    OR EXISTS (SELECT FROM pg_catalog.pg_cast AS c WHERE c.castfunc = p.oid
      AND (c.castcontext = 'i' OR {text} ~* '::|cast'))
    OR EXISTS (SELECT FROM pg_catalog.pg_depend AS d
      JOIN pg_catalog.pg_constraint AS k ON d.objid = k.oid
        AND d.classid = 'pg_catalog.pg_constraint'::pg_catalog.regclass
      JOIN pg_catalog.pg_type AS t ON t.oid = k.contypid
      WHERE d.refobjid = p.oid AND d.refclassid = 'pg_catalog.pg_proc'::pg_catalog.regclass
        AND pg_catalog.strpos(pg_catalog.lower(pg_catalog.replace({text}, '""', '"')),
          pg_catalog.lower(t.typname::pg_catalog.text)) > 0))
"""
# The driver hands over moments in microseconds since 1970, which those far ahead leave backwards.
_MOMENT = (
    "CASE WHEN {cell} BETWEEN '0001-01-01 00:00Z' AND '9999-12-31 23:59:59.999999Z' "
    "THEN {cell} END AS {name}"
)
_OPERATORS = "= <> < <= > >= ~ ~* ~~ ~~* !~~ !~~* -"  # behind words: IN, BETWEEN, LIKE, NULLIF

_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
PLAIN = """
SELECT pg_catalog.set_config('standard_conforming_strings', 'on', false),
  pg_catalog.set_config('client_encoding', CASE pg_catalog.current_setting('server_encoding')
    WHEN 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END, false)
"""
"""By which a text means the same to every PostgreSQL, and comes in UTF-8."""


@attrs.frozen(kw_only=True)
class SqlQuery(Location):
    """The rows of an SQL query, with the declared columns among its own.

    Args:
        sql: The query, which is published with the spec.
        connection: The name of a database in the operator's `connections.yaml`.
    """

    sql: str = attrs.field(validator=lambda query, field, sql: require_query(sql))
    connection: str

    @property
    def name(self) -> str:
        """The connection's name, with the word before it; no address."""
        return f"connection {self.connection}"

    def open(self, reading: Reading) -> Source:
        """Return the query; it is sent when its parts are read.

        Raises:
            SourceError: no such connection is configured, or its driver is not installed.
        """
        database = connection(self.connection)
        if isinstance(database, Sqlite):
            return SqlSource(rows=SqlitePart(query=self, database=database, reading=reading))
        need(
            # The driver is looked for, not imported: opening a source connects to nothing.
            find_spec("adbc_driver_postgresql"),
            SourceError,
            f"{self.name} needs a driver: pip install adbc-driver-postgresql pyarrow",
        )
        return SqlSource(rows=PostgresqlPart(query=self, database=database, reading=reading))


class SqlRows(Part):
    """The rows of a query or a table, which come in no order that could be asked for again."""

    readable_again: ClassVar[bool] = False

    @abstractmethod
    def opened(self) -> contextlib.AbstractContextManager[Any]:
        """Return what reads the rows: the database has been asked for their types, and for no
        record.

        Raises:
            SourceError: it would not give the declared columns in types that are read.
        """


@attrs.frozen(kw_only=True, repr=False)
class SqlSource(Source):
    """A query or a table, as a source of one part."""

    rows: SqlRows

    def require_schema(self) -> None:
        """Ask the database whether it would run the query; it does not, and reads no record."""
        with self.rows.opened():
            pass

    def parts(self) -> Sequence[Part]:
        """PRIVATE: return one part, which holds all rows of the query."""
        return (self.rows,)


@attrs.frozen(kw_only=True, repr=False)
class SqlitePart(SqlRows):
    """The rows of a query on SQLite, cell by cell as they were stored."""

    query: SqlQuery
    database: Sqlite
    reading: Reading

    @contextlib.contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """A connection that reads and does nothing else, and would run the query.

        Raises:
            SpecError: the text is no query of listed functions.
            SourceError: the database cannot be opened, or does not take the query.
        """
        path, name = Path(self.database.sqlite), self.query.name
        (sql, *_), denied = query_text(self.query.sql, SQLITE), list[str]()
        with (
            # `mode=ro` opens the file read-only, whatever the query says.
            unpassed(f"{name}: the query failed"),
            contextlib.closing(
                sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
            ) as handle,
        ):
            handle.text_factory = _text  # Python's own shows the cell that is no UTF-8
            # Two functions that are tables to SQLite are made while that is allowed.
            handle.execute("SELECT 1 FROM json_each('[]'), json_tree('[]')")
            tables = {str(table).lower() for (table,) in handle.execute(_TABLES)}
            handle.set_authorizer(partial(_authorize, {*tables, "json_each", "json_tree"}, denied))
            # An explanation reads no record, and only a query can be between parentheses.
            for column in ("", *self.reading.names):
                selection = f"records.{quoted(column)}" if column else "*"
                try:
                    handle.execute(f"EXPLAIN SELECT {selection} FROM (\n{sql}\n) AS records")
                except sqlite3.Error:
                    uses = f"{name}: the query uses {''.join(denied[:1])!r}: {WAY}"
                    need(not denied, SourceError, uses)
                    need(not column, SourceError, f"{name}: column {column!r} is missing")
                    raise
            yield handle

    def batches(self) -> Iterator[Columns]:
        """PRIVATE: yield the rows of the query as SQLite returns them, cell by cell."""
        with self.opened() as handle:
            cursor = handle.execute(query_text(self.query.sql, SQLITE)[0])
            names = [column[0] for column in cursor.description or ()]
            require_columns(self.query.name, names, self.reading.names)
            places = {name: names.index(name) for name in self.reading.names}
            while rows := cursor.fetchmany(BATCH):
                yield {name: [row[place] for row in rows] for name, place in places.items()}


def _authorize(
    tables: set[str], denied: list[str], action: int, first: str | None, second: str | None, *_: Any
) -> int:
    """SQLite's question what a statement may do: read tables of the file, and compute."""
    name = (second if action == sqlite3.SQLITE_FUNCTION else first) or ""
    is_read = action == sqlite3.SQLITE_READ and (not second or name.lower() in tables)
    computes = action == sqlite3.SQLITE_FUNCTION and name.lower() in FUNCTIONS
    if is_read or computes or action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE):
        return sqlite3.SQLITE_OK
    denied.append(name)
    return sqlite3.SQLITE_DENY


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return None


@attrs.frozen(kw_only=True, repr=False)
class PostgresqlPart(SqlRows):
    """The rows of a query on PostgreSQL, in a transaction that cannot write."""

    query: SqlQuery
    database: Postgresql
    reading: Reading

    @contextlib.contextmanager
    def opened(self) -> Iterator[tuple[Any, str, pyarrow.Schema]]:
        """A connection in one snapshot that cannot write, a SELECT of the declared columns, and
        their types.

        Raises:
            SpecError: the text is no query of listed functions.
            SourceError: the role has many rights, a name in the query may mean what somebody added
                to the server, a column is missing or of a type that is not read, or no one answers.
        """
        from adbc_driver_postgresql import dbapi

        name, (sql, *names) = self.query.name, query_text(self.query.sql, POSTGRESQL)
        with (
            unpassed(f"{name}: the query failed"),
            dbapi.connect(self.database.postgresql) as handle,
            handle.cursor() as cursor,
        ):
            for statement in (_SNAPSHOT, PLAIN, _RICH):
                cursor.execute(statement)
            need(
                self.reading.rich_role or not cursor.fetchall()[0][0],
                SourceError,
                f"{name}: its role is or may become one that is a superuser, makes roles, "
                f"replicates, or reads, writes or executes on the server: connect as one that may "
                f"read a view, or say --rich-role",
            )
            called, members = (
                ", ".join(quoted(text, "'") for text in ("", *group)) for group in names
            )
            text = quoted(f"{_OPERATORS} {sql}", "'")
            cursor.execute(_ADDED.format(text=text, called=called, members=members))
            added = sorted(str(row[0]) for row in cursor.fetchall())
            need(
                not added,
                SourceError,
                f"{name}: somebody added a function {added[:1]} that the query may mean: {WAY}",
            )
            query = f"(\n{sql}\n) AS records"
            schema = cursor.adbc_execute_schema(f"SELECT * FROM {query}")
            single = [name for name in self.reading.names if schema.names.count(name) == 1]
            cells = {name: f"records.{quoted(name)}" for name in single}
            # A column's base type, of a row that is not the query's.
            kinds = [f", pg_catalog.pg_typeof(COALESCE({cell}, NULL))" for cell in cells.values()]
            probe = "::pg_catalog.text".join(("SELECT 0", *kinds, ""))
            cursor.execute(f"{probe} FROM (VALUES (0)) AS one LEFT JOIN {query} ON false")
            types = dict(zip(single, cursor.fetchall()[0][1:], strict=True))
            require_faithful(name, types, _FAITHFUL)
            require_types(name, schema, self.reading)
            for column, cell in cells.items():
                if types[column].startswith("timestamp"):
                    cells[column] = _MOMENT.format(cell=cell, name=quoted(column))
            yield handle, f"SELECT {', '.join(cells.values())} FROM {query}", schema

    def batches(self) -> Iterator[Columns]:
        """PRIVATE: yield the rows of the query as the server returns them, in Arrow batches."""
        with self.opened() as (handle, relation, _), handle.cursor() as cursor:
            cursor.execute(relation)
            for batch in cursor.fetch_record_batch():
                yield from columns_of(batch, self.reading)


def require_faithful(name: str, types: Mapping[str, str], faithful: Iterable[str]) -> None:
    """Raise `SourceError` for a column of a type that a driver hands over as something else.

    Args:
        types: The database's own names of them, by column.
    """
    for column, kind in types.items():
        need(
            kind in faithful,
            SourceError,
            f"{name}: column {column!r} has the type {kind}, which is not read as it is: cast it, "
            f"CAST({column} AS {_CASTS.get(kind, 'text')}) AS {column}",
        )


def quoted(text: str, mark: str = '"') -> str:
    """Return a name as databases write it; between other marks a text."""
    return f"{mark}{text.replace(mark, 2 * mark)}{mark}"
