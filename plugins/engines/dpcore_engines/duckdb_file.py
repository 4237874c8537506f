"""DuckDbFile: a table in a DuckDB file, as a source for any engine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from dpcore.errors import SourceError, need, unpassed
from dpcore.source import Columns, Location, Reading, Source
from dpcore.sources.arrow_columns import columns_of, needs_arrow, require_types
from dpcore.sources.sql import SqlRows, SqlSource, quoted, require_faithful

if TYPE_CHECKING:
    import pyarrow

CLOSED: Mapping[str, str] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_external_access": "false",
}
"""Settings by which DuckDB reads no other file and loads nothing."""

_FAITHFUL = (  # what DuckDB calls the types whose cells it hands over as they are
    "boolean", "tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint",
    "uinteger", "ubigint", "float", "double", "decimal", "varchar", "uuid", "enum", "date",
    "timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone",
    "timestamptz_ns", "null",
)  # fmt: skip


@attrs.frozen(kw_only=True)
class DuckDbFile(Location):
    """A table or a view in a DuckDB file; its own types decide.

    Args:
        duckdb: The file's path, relative to the spec.
        table: The name of the table or view.
    """

    duckdb: str
    table: str

    @property
    def name(self) -> str:
        """The file's name, without its folders."""
        return Path(self.duckdb).name

    def open(self, reading: Reading) -> Source:
        """Return the table; the file is opened when its parts are read.

        Raises:
            SourceError: there is no such file, or DuckDB is not installed.
        """
        needs_arrow("a DuckDB file")
        need(find_spec("duckdb"), SourceError, "a DuckDB file needs duckdb: pip install duckdb")
        path = reading.path(self.duckdb)
        need(path.is_file(), SourceError, f"no such file: {path}")
        return SqlSource(rows=DuckDbPart(path=path, table=self.table, reading=reading))

    @classmethod
    def write_table(cls, table: Mapping[str, list[Any]], folder: Path) -> DuckDbFile:
        """Return a file of synthetic records, for the laws of sources and engines: no run calls it.

        Args:
            table: Numbers, texts or None, by column.
        """
        import duckdb
        import pyarrow

        path = folder / "table.db"
        with duckdb.connect(str(path)) as opened:
            opened.register("synthetic_rows", pyarrow.table(dict(table)))
            opened.execute("CREATE TABLE records AS SELECT * FROM synthetic_rows")
        return cls(duckdb=str(path), table="records")


@attrs.frozen(kw_only=True)
class DuckDbPart(SqlRows):
    """The rows of a table in a file that is opened to be read."""

    path: Path
    table: str
    reading: Reading

    @property
    def relation(self) -> str:
        """A SELECT of all rows."""
        return f"SELECT * FROM {quoted(self.table)}"

    @contextlib.contextmanager
    def opened(self) -> Iterator[tuple[Any, pyarrow.Schema]]:
        """All rows, of which none is read yet, and the types of the columns.

        Raises:
            SourceError: there is no such table, or a declared column is missing or of a type that
                is not read.
        """
        import pyarrow

        name, reading = self.path.name, self.reading
        with unpassed(f"{name}: the table cannot be read"), connect(self.path) as opened:
            rows = opened.sql(one_select(opened, self.relation))
            kinds = dict(zip(rows.columns, (kind.id for kind in rows.types), strict=True))
            types = {column: kinds[column] for column in reading.names if column in kinds}
            require_faithful(name, types, _FAITHFUL)
            schema = pyarrow.RecordBatchReader.from_stream(rows.limit(0)).schema
            require_types(name, schema, reading)
            yield rows, schema

    def batches(self) -> Iterator[Columns]:
        """PRIVATE: yield the rows as DuckDB returns them, in Arrow batches."""
        import pyarrow

        with self.opened() as (rows, _):
            for batch in pyarrow.RecordBatchReader.from_stream(rows):
                yield from columns_of(batch, self.reading)


def connect(path: Path, settings: Mapping[str, str] | None = None) -> Any:
    """Return a connection that writes nothing and reads no other file: a view may come from others.

    Args:
        settings: As for `lock`, for all connections to the file while this one is open.
    """
    import duckdb

    connection = duckdb.connect(str(path), read_only=True, config=dict(CLOSED))
    # Connections to one file share their settings, which the first one locks.
    if not connection.execute("SELECT current_setting('lock_configuration')").fetchall()[0][0]:
        lock(connection, settings or {})
    return connection


def lock(connection: Any, settings: Mapping[str, str]) -> None:
    """Change settings for the last time."""
    for name, value in {**settings, "lock_configuration": "true"}.items():
        connection.execute(f"SET {name} = '{value}'")


def one_select(connection: Any, text: str) -> Any:
    """Return a statement, if a text is one SELECT and nothing else.

    Raises:
        SourceError: it is not.
    """
    kinds = [statement.type.name for statement in connection.extract_statements(text)]
    need(kinds == ["SELECT"], SourceError, "DuckDB is sent nothing but a SELECT")
    return text
