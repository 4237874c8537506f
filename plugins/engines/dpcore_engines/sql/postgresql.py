"""PostgreSql: a query on a PostgreSQL server, in one snapshot that cannot write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import attrs
import pyarrow
import sqlglot
from sqlglot import exp

from dpcore.errors import RequestError, need
from dpcore.sources.arrow_columns import columns_of, require_types
from dpcore.sources.sql import PostgresqlPart
from dpcore_engines.sql.servers import FailureError, Rows, Server, Synthetic, unpassed
from dpcore_engines.sql.statement import Dialect

_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
_TABLE = "dpcore_synthetic"
_GRANT = (
    "the role may not make a temporary table, so nobody can tell whether this server adds dpcore's "
    "integers: GRANT TEMPORARY ON DATABASE name TO role; it reads no record and holds dpcore's "
    "synthetic rows while the law sql.same-integer runs"
)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PostgreSql(Server):
    """A connection whose transaction is one snapshot of the records."""

    dialect: ClassVar[Dialect] = Dialect(name="postgres", fenced=True)

    part: PostgresqlPart
    connection: Any
    version: str
    schema: pyarrow.Schema

    @classmethod
    def of(cls, part: PostgresqlPart) -> PostgreSql:
        """Connect, and ask for the types of the query's columns.

        Raises:
            RequestError: the query is not one SELECT, or nobody answers.
            SourceError: a declared column is missing, or of a type that is not read.
        """
        from adbc_driver_postgresql import dbapi

        # It is written into another statement, which it must not end.
        try:
            is_select = isinstance(sqlglot.parse_one(part.query.sql, dialect="postgres"), exp.Query)
        except sqlglot.errors.SqlglotError:
            is_select = False
        need(is_select, RequestError, f"{part.query.name}: the sql engine needs one SELECT")
        asked = f"SELECT * FROM (\n{part.query.sql}\n) AS records LIMIT 0"
        with contextlib.ExitStack() as stack:
            try:
                with unpassed():
                    connection = stack.enter_context(dbapi.connect(part.database.postgresql))
                    cursor = stack.enter_context(connection.cursor())
                    cursor.execute(_SNAPSHOT)
                    cursor.execute("SELECT current_setting('server_version')")
                    version = str(cursor.fetchall()[0][0]).split()[0]
                    cursor.execute(asked)
                    schema = cursor.fetch_record_batch().schema
            except FailureError as failure:
                why = f"the server does not answer ({failure.kind}); no record was opened"
                raise RequestError(f"{part.query.name}: {why}") from None
            require_types(part.query.name, schema, part.reading)
            columns = pyarrow.schema([schema.field(name) for name in part.reading.names])
            cursor.close()
            stack.pop_all()
        return cls(part=part, connection=connection, version=version, schema=columns)

    @property
    def name(self) -> str:
        """PostgreSQL, and which version of it."""
        return f"PostgreSQL {self.version}"

    @property
    def relation(self) -> str:
        """The query, as the spec writes it."""
        return self.part.query.sql

    def execute(self, statement: str) -> Rows:
        """PRIVATE: the rows, of the snapshot that was taken when the server was opened."""
        with unpassed(), self.connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    @contextlib.contextmanager
    def written(self, tables: Sequence[pyarrow.Table]) -> Iterator[list[Synthetic]]:
        """A temporary table for each, in a session of its own."""
        from adbc_driver_postgresql import dbapi

        with contextlib.ExitStack() as stack:
            try:
                with unpassed():
                    address = self.part.database.postgresql
                    session = stack.enter_context(dbapi.connect(address, autocommit=True))
                    cursor = stack.enter_context(session.cursor())
                    made = [self._fill(cursor, n, table) for n, table in enumerate(tables)]
            except FailureError as failure:
                is_refused = failure.kind == "SQLSTATE 42501"
                why = _GRANT if is_refused else f"synthetic rows cannot be written ({failure.kind})"
                raise RequestError(f"{self.part.query.name}: {why}") from None
            yield made

    def _fill(self, cursor: Any, number: int, table: pyarrow.Table) -> Synthetic:
        """Rows that the columns' types take; one that does not fit is left out."""
        names = ", ".join(
            exp.to_identifier(n, quoted=True).sql("postgres") for n in self.schema.names
        )
        name = f"{_TABLE}_{number}"
        source = f"SELECT {names} FROM (\n{self.relation}\n) AS records"
        cursor.execute(f"CREATE TEMPORARY TABLE {name} AS {source} WITH NO DATA")
        rows = [", ".join(map(_literal, row.values())) for row in table.to_pylist()]
        for row in rows:
            with contextlib.suppress(Exception):
                cursor.execute(f"INSERT INTO pg_temp.{name} ({names}) VALUES ({row})")
        relation = f"SELECT * FROM pg_temp.{name}"
        cursor.execute(relation)
        reading = self.part.reading
        batches = [c for b in cursor.fetch_record_batch() for c in columns_of(b, reading)]

        def execute(statement: str) -> Rows:
            with unpassed():
                cursor.execute(statement)
                return list(cursor.fetchall())

        return Synthetic(relation=relation, batches=batches, execute=execute)

    def close(self) -> None:
        """End the transaction and the connection."""
        with contextlib.suppress(Exception):
            self.connection.close()


def _literal(cell: Any) -> str:
    """A cell as a text that the server casts to its column's type."""
    return "NULL" if cell is None else exp.Literal.string(str(cell)).sql("postgres")
