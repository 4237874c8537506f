"""PostgreSql: a query on a PostgreSQL server, in one snapshot that cannot write."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import attrs
import pyarrow
from sqlglot import exp

from dpcore.errors import RequestError
from dpcore.sources.arrow_columns import columns_of
from dpcore.sources.sql import PLAIN, PostgresqlPart
from dpcore_engines.sql.servers import FailureError, Rows, Server, Synthetic, unpassed
from dpcore_engines.sql.statement import Dialect

_TABLE = "dpcore_synthetic"
_GRANT = (
    "the role may not make a temporary table, so no one can say whether this server adds dpcore's "
    "integers: GRANT TEMPORARY ON DATABASE name TO role; it reads no record and holds dpcore's "
    "synthetic rows while the law sql.same-integer runs"
)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PostgreSql(Server):
    """A connection whose transaction is one snapshot of the records."""

    dialect: ClassVar[Dialect] = Dialect(name="postgres", fenced=True)

    part: PostgresqlPart
    session: contextlib.ExitStack
    connection: Any
    name: str
    relation: str
    schema: pyarrow.Schema

    @classmethod
    def of(cls, part: PostgresqlPart) -> PostgreSql:
        """Connect, and ask for the types of the query's columns.

        Raises:
            SpecError, SourceError: as `PostgresqlPart.opened`.
        """
        with contextlib.ExitStack() as stack:
            connection, relation, schema = stack.enter_context(part.opened())
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_catalog.current_setting('server_version')")
                version = str(cursor.fetchall()[0][0]).split()[0]
            columns = pyarrow.schema([schema.field(name) for name in part.reading.names])
            session = stack.pop_all()
        return cls(
            part=part, session=session, connection=connection, name=f"PostgreSQL {version}",
            relation=relation, schema=columns,
        )  # fmt: skip

    def execute(self, statement: str) -> Rows:
        """PRIVATE: return the rows, of the snapshot that was taken when the server was opened."""
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
                    cursor.execute(PLAIN)
                    made = [self._fill(cursor, n, table) for n, table in enumerate(tables)]
            except FailureError as failure:
                is_refused = str(failure) == "SQLSTATE 42501"
                why = _GRANT if is_refused else f"synthetic rows cannot be written ({failure})"
                raise RequestError(f"{self.part.query.name}: {why}") from None
            yield made

    def _fill(self, cursor: Any, number: int, table: pyarrow.Table) -> Synthetic:
        """Rows that the columns' types take; one that does not fit is left out."""
        names = ", ".join(
            exp.to_identifier(n, quoted=True).sql("postgres") for n in self.schema.names
        )
        name = f"{_TABLE}_{number}"
        cursor.execute(f"CREATE TEMPORARY TABLE {name} AS {self.relation} WITH NO DATA")
        for row in table.to_pylist():
            cells = ", ".join(map(_literal, row.values()))
            with contextlib.suppress(Exception):
                cursor.execute(f"INSERT INTO pg_temp.{name} ({names}) VALUES ({cells})")
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
            self.session.close()


def _literal(cell: Any) -> str:
    """Return a cell as a text that the server casts to its column's type."""
    return "NULL" if cell is None else exp.Literal.string(str(cell)).sql("postgres")
