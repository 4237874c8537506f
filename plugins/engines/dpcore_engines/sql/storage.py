"""Storage: files that DuckDB reads where they lie, and how the core reads the same."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import pyarrow
from pyarrow import parquet
from sqlglot import exp

from dpcore.errors import RequestError, SourceError, need
from dpcore.source import Columns
from dpcore.sources.csv.dialect import LONGEST, read_header
from dpcore.sources.csv_file import CsvSource
from dpcore.sources.parquet import ParquetPart, ParquetSource
from dpcore_engines.duckdb_file import CLOSED, DuckDbPart, connect, lock
from dpcore_engines.sql.servers import CELLS

_CHUNK = 8 << 20  # bytes
_MARKS = '"\r\n\0'
_PLAIN_LINES = (
    "the sql engine reads CSV files in which every line is a record: no quotes, carriage returns "
    "or empty lines, and as many cells as the header; write Parquet, or use the local engine"
)


class Storage(ABC):
    """Files of one sort, with the declared columns in them; a source of the core's `source`."""

    source: Any

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold the records: the one of the source."""
        return (self.source.path,)

    @property
    @abstractmethod
    def schema(self) -> pyarrow.Schema:
        """The declared columns, with the types by which the core reads them."""

    def connect(self, files: Sequence[Path], settings: Mapping[str, str]) -> Any:
        """Return a connection that reads these files and no other, and keeps to its settings."""
        import duckdb

        connection = duckdb.connect(":memory:")
        connection.execute(f"SET allowed_paths = [{', '.join(map(_literal, files))}]")
        lock(connection, {**CLOSED, **settings})
        return connection

    @abstractmethod
    def relation(self, files: Sequence[Path]) -> str:
        """Return a SELECT of all rows of such files."""

    @abstractmethod
    def write(self, path: Path, table: pyarrow.Table) -> None:
        """Write rows to such a file."""

    def read(self, path: Path) -> Sequence[Columns]:
        """Return what the core's own reader reads of such a file."""
        parts = attrs.evolve(self.source, path=path).parts()
        return [batch for part in parts for batch in part.batches()]

    def doubt(self, count: int) -> str:  # rows need none
        """PRIVATE: why DuckDB may have found other records than the core would, or nothing.

        Args:
            count: How many it found.
        """
        return ""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ParquetStorage(Storage):
    """Parquet files, whose columns have types."""

    source: ParquetSource

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that hold a row group."""
        # The source lists each file with its types checked, as any engine would read it.
        parts = [part for part in self.source.parts() if isinstance(part, ParquetPart)]
        files = tuple(dict.fromkeys(part.path for part in parts))
        need(files, RequestError, "the Parquet files hold no row group: use the local engine")
        return files

    @property
    def schema(self) -> pyarrow.Schema:
        """The declared columns of the files, which all have the same types.

        Raises:
            RequestError: they have several, or names that differ by case only.
        """
        names, schemas = self.source.reading.names, []
        for path in self.files:
            schema = parquet.read_schema(path)
            folded = [name.casefold() for name in schema.names]
            is_plain = len({*folded}) == len(folded)
            need(is_plain, RequestError, f"{path.name}: DuckDB needs names that differ beyond case")
            schemas.append(pyarrow.schema([schema.field(name).remove_metadata() for name in names]))
        is_one = all(schema.equals(schemas[0]) for schema in schemas)
        need(is_one, RequestError, "the sql engine needs files whose columns have the same types")
        return schemas[0]

    def relation(self, files: Sequence[Path]) -> str:
        """Return all rows; neither columns nor rows come from names of folders."""
        names = ", ".join(_literal(path) for path in files)
        return f"SELECT * FROM read_parquet([{names}], hive_partitioning = false)"

    def write(self, path: Path, table: pyarrow.Table) -> None:
        """Columns of the table's types."""
        parquet.write_table(table, path)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class CsvStorage(Storage):
    """A CSV file in which every line is a record.

    DuckDB and dpcore differ in quotes, carriage returns, empty lines, and a delimiter at the end of
    a line: in lines that end in CR LF where LF is declared, DuckDB 2.0.0 finds no record, and says
    nothing. So no quote means anything to it here, and a file with one of these ends the run: its
    bytes are looked at, and it must have as many lines as DuckDB found records.

    Args:
        header: The first line, with its end.
        places: Of the declared columns in a line, from 0.
    """

    source: CsvSource
    header: bytes
    width: int
    places: Mapping[str, int]

    @classmethod
    def of(cls, source: CsvSource) -> CsvStorage:
        """By the header only.

        Raises:
            RequestError: it is written in a way that DuckDB reads otherwise.
            SourceError: there is no such file, or a declared column is missing.
        """
        path, reading = source.path, source.reading
        need(path.is_file(), SourceError, f"no such file: {path}")
        with path.open("rb") as file:
            width, columns, start = read_header(file, path, reading)
            file.seek(0)
            header = file.read(start)
        is_plain = header.endswith(b"\n") and not header.endswith(b"\r\n")
        need(is_plain, RequestError, f"{path.name}: {_PLAIN_LINES}")
        need(
            reading.decimal == "." and reading.delimiter.isascii(),
            RequestError,
            f"{path.name}: DuckDB needs decimal '.', and a delimiter in ASCII",
        )
        places = {column.name: column.place for column in columns}
        return cls(source=source, header=header, width=width, places=places)

    @property
    def schema(self) -> pyarrow.Schema:
        """Texts: what each is, its own characters say."""
        return pyarrow.schema(
            [pyarrow.field(name, pyarrow.string(), metadata=CELLS) for name in self.places]
        )

    def relation(self, files: Sequence[Path]) -> str:
        """Return all lines behind the header, cut at every delimiter; nothing is inferred."""
        (path,) = files
        texts = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(self.width))
        cells = ", ".join(
            f"COALESCE(c{place}, '') AS {exp.to_identifier(name, quoted=True).sql('duckdb')}"
            for name, place in self.places.items()
        )
        return (
            f"SELECT {cells} FROM read_csv({_literal(path)}, auto_detect = false, header = false, "
            f"skip = 1, delim = {_literal(self.source.reading.delimiter)}, quote = '', "
            f"escape = '', comment = '', columns = {{{texts}}}, nullstr = '', new_line = '\\n', "
            f"strict_mode = true, null_padding = false, ignore_errors = false, "
            f"max_line_size = {LONGEST})"
        )

    def write(self, path: Path, table: pyarrow.Table) -> None:
        """Lines below the same header; what would need quotes is empty."""
        delimiter = self.source.reading.delimiter
        lines = []
        for row in table.to_pylist():
            cells = [""] * self.width
            for name, cell in row.items():
                is_plain = cell is not None and not {*cell} & {*_MARKS, delimiter}
                cells[self.places[name]] = cell if is_plain else ""
            lines.append(delimiter.join(cells))
        texts = [f"{line}\n".encode() for line in lines if line]
        path.write_bytes(b"".join([self.header, *texts]))

    def doubt(self, count: int) -> str:
        """PRIVATE: return nothing where every line is a record, and DuckDB found as many."""
        with self.source.path.open("rb") as file:
            file.seek(len(self.header))
            lines, delimiters, is_plain, end = 0, 0, True, b"\n"
            # Chunks end where a line does, unless it is longer than DuckDB's limit.
            while chunk := file.read(_CHUNK):
                chunk += file.readline(LONGEST + 1)
                marks = (mark.encode() in chunk for mark in ('"', "\r", "\0", "\n\n"))
                is_plain = is_plain and not any(marks) and end + chunk[:1] != b"\n\n"
                lines += chunk.count(b"\n")
                delimiters += chunk.count(self.source.reading.delimiter.encode())
                end = chunk[-1:]
        # DuckDB ignores one delimiter too many at the end of a line, and no other.
        lines += end != b"\n"
        is_same = is_plain and lines == count and delimiters == count * (self.width - 1)
        return "" if is_same else f"{self.source.path.name}: {_PLAIN_LINES}"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class TableStorage(Storage):
    """A table in a DuckDB file."""

    source: DuckDbPart

    def connect(self, files: Sequence[Path], settings: Mapping[str, str]) -> Any:
        """Return a connection to the file, which writes nothing."""
        return connect(files[0], settings)

    @property
    def schema(self) -> pyarrow.Schema:
        """The declared columns of the table.

        Raises:
            SourceError: one is missing, or of a type that is not read.
        """
        with self.source.opened() as (_, schema):
            names = self.source.reading.names
            return pyarrow.schema([schema.field(column) for column in names])

    def read(self, path: Path) -> Sequence[Columns]:
        """Return what the core's own reader reads of the table."""
        return [*attrs.evolve(self.source, path=path).batches()]

    def relation(self, files: Sequence[Path]) -> str:
        """Return all rows of the table, whichever file it is in."""
        return self.source.relation

    def write(self, path: Path, table: pyarrow.Table) -> None:
        """A table of the same name and types; what does not fit them is null."""
        import duckdb

        with connect(self.source.path) as opened:
            described = opened.execute(f"DESCRIBE {self.source.relation}").fetchall()
        types = {name: kind for name, kind, *_ in described if name in table.column_names}
        names = {name: exp.to_identifier(name, quoted=True).sql("duckdb") for name in types}
        cells = ", ".join(
            f"TRY_CAST({names[name]} AS {kind}) AS {names[name]}" for name, kind in types.items()
        )
        # Closing the file compresses its columns, as those of the records are.
        with duckdb.connect(str(path)) as opened:
            opened.register("synthetic_rows", table)
            name = exp.to_identifier(self.source.table, quoted=True).sql("duckdb")
            opened.execute(f"CREATE TABLE {name} AS SELECT {cells} FROM synthetic_rows")


def storage_of(source: Any) -> Storage:
    """Return the storage of a source's files.

    Raises:
        RequestError: they are written in a way that DuckDB reads otherwise.
    """
    if isinstance(source, CsvSource):
        return CsvStorage.of(source)
    if isinstance(source, DuckDbPart):
        return TableStorage(source=source)
    return ParquetStorage(source=source)


def _literal(text: object) -> str:
    return str(exp.Literal.string(str(text)).sql("duckdb"))
