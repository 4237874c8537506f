"""DuckDbFile: a table in a DuckDB file, as a source for any engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import attrs

from dpcore.errors import SourceError, need, unpassed
from dpcore.records.location import Location, Reading
from dpcore.records.source import Columns, Part, Source
from dpcore.sources.arrow_columns import columns_of, needs_arrow, require_types


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
        """The table; the file is opened when its parts are read.

        Raises:
            SourceError: there is no such file, or DuckDB is not installed.
        """
        needs_arrow("a DuckDB file")
        need(find_spec("duckdb"), SourceError, "a DuckDB file needs duckdb: pip install duckdb")
        path = reading.path(self.duckdb)
        need(path.is_file(), SourceError, f"no such file: {path}")
        return DuckDbSource(path=path, table=self.table, reading=reading)

    @classmethod
    def write_table(cls, table: Mapping[str, list[Any]], folder: Path) -> DuckDbFile:
        """A file of synthetic records, for the laws of sources and engines: no run calls it.

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
class DuckDbSource(Source):
    """A table, as a source of one part: its rows come in no order that could be asked for again."""

    path: Path
    table: str
    reading: Reading

    @property
    def relation(self) -> str:
        """A SELECT of all rows."""
        name = self.table.replace('"', '""')
        return f'SELECT * FROM "{name}"'

    def parts(self) -> Sequence[Part]:
        """PRIVATE: one part, which holds all rows."""
        return (DuckDbPart(source=self),)


@attrs.frozen(kw_only=True)
class DuckDbPart(Part):
    """The rows of a table in a file that is opened to be read."""

    source: DuckDbSource
    readable_again: ClassVar[bool] = False

    def batches(self) -> Iterator[Columns]:
        """PRIVATE: the rows as DuckDB returns them, in Arrow batches."""
        import pyarrow

        name, reading = self.source.path.name, self.source.reading
        with unpassed(f"{name}: the table cannot be read"), connect(self.source.path) as opened:
            reader = pyarrow.RecordBatchReader.from_stream(opened.sql(self.source.relation))
            require_types(name, reader.schema, reading)
            for batch in reader:
                yield from columns_of(batch, reading)


def connect(path: Path) -> Any:
    """A connection that writes nothing, and reads no other file: a view may come from others."""
    import duckdb

    return duckdb.connect(str(path), read_only=True, config={"enable_external_access": "false"})
