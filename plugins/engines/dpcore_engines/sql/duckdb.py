"""DuckDb: Parquet files, read by DuckDB in this process."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pyarrow
from pyarrow import parquet
from sqlglot import exp

from dpcore.errors import RequestError, need
from dpcore.sources.parquet import ParquetPart, ParquetSource
from dpcore_engines.sql.servers import FailureError, Rows, Server, Synthetic, unpassed
from dpcore_engines.sql.statement import Dialect

_SETTINGS = {
    # DuckDB 2.0.0 answers comparisons from a file's least and greatest values, NaN left out.
    "disabled_optimizers": "statistics_propagation,filter_pushdown,row_group_pruner",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "enable_progress_bar": "false",
}
_PATTERNS = "*?[]{}"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class DuckDb(Server):
    """A connection in memory, and the files.

    Args:
        files: With what the system says of each: a file that changes ends the run.
    """

    dialect: ClassVar[Dialect] = Dialect(name="duckdb", fenced=False)

    connection: Any
    source: ParquetSource
    files: tuple[Path, ...]
    marks: tuple[tuple[int, ...], ...]
    spool: Path | None

    @classmethod
    def of(cls, source: ParquetSource, *, memory: int | None, spool: Path | None) -> DuckDb:
        """The files of a source, and a connection that reads nothing else.

        Raises:
            RequestError: DuckDB is not installed, or a name could mean several files.
        """
        try:
            import duckdb
        except ImportError:
            refusal = "duckdb is not installed: pip install duckdb sqlglot pyarrow"
            raise RequestError(refusal) from None
        # The source lists each file with its types checked, as any engine would read it.
        parts = [part for part in source.parts() if isinstance(part, ParquetPart)]
        files = tuple(dict.fromkeys(part.path for part in parts))
        is_plain = not any(mark in str(path) for path in files for mark in _PATTERNS)
        names = f"file names without any of {_PATTERNS}, which mean several files to DuckDB"
        need(is_plain, RequestError, f"the sql engine needs {names}")
        need(files, RequestError, "the Parquet files hold no row group: use the local engine")
        connection = duckdb.connect(":memory:")
        for name, value in _SETTINGS.items():
            connection.execute(f"SET {name} = '{value}'")
        if memory is not None:
            connection.execute(f"SET memory_limit = '{memory // 2} bytes'")
        return cls(
            connection=connection, source=source, files=files, marks=_marks(files), spool=spool
        )

    @property
    def name(self) -> str:
        """DuckDB, and which version of it."""
        import duckdb

        return f"DuckDB {duckdb.__version__}"

    @property
    def relation(self) -> str:
        """All rows of the files."""
        return _relation(self.files)

    @property
    def schema(self) -> pyarrow.Schema:
        """The declared columns of the files, which all have the same types.

        Raises:
            RequestError: they have several, or names that differ by case alone.
        """
        names, schemas = self.source.reading.names, []
        for path in self.files:
            schema = parquet.read_schema(path)
            folded = [name.casefold() for name in schema.names]
            is_plain = len({*folded}) == len(folded)
            need(is_plain, RequestError, f"{path.name}: DuckDB needs names that differ beyond case")
            schemas.append(pyarrow.schema([schema.field(name) for name in names]).remove_metadata())
        is_one = all(schema.equals(schemas[0]) for schema in schemas)
        need(is_one, RequestError, "the sql engine needs files whose columns have the same types")
        return schemas[0]

    def execute(self, statement: str) -> Rows:
        """PRIVATE: the rows; the files are those that were opened."""
        rows = self._fetch(statement)
        with unpassed():
            is_same = _marks(self.files) == self.marks
        need(is_same, FailureError, "a file changed")
        return rows

    def _fetch(self, statement: str) -> Rows:
        with unpassed():
            rows: Rows = self.connection.execute(statement).fetchall()
        return rows

    @contextlib.contextmanager
    def written(self, tables: Sequence[pyarrow.Table]) -> Iterator[list[Synthetic]]:
        """A Parquet file for each table, in the run's folder."""
        with tempfile.TemporaryDirectory(dir=self.spool, prefix="synthetic-") as folder:
            yield [self._write(Path(folder) / f"{n}.parquet", t) for n, t in enumerate(tables)]

    def _write(self, path: Path, table: pyarrow.Table) -> Synthetic:
        parquet.write_table(table, path)
        parts = attrs.evolve(self.source, path=path).parts()
        batches = [batch for part in parts for batch in part.batches()]
        return Synthetic(relation=_relation([path]), batches=batches, execute=self._fetch)

    def close(self) -> None:
        """Close the connection in memory."""
        self.connection.close()


def _relation(files: Sequence[Path]) -> str:
    names = ", ".join(exp.Literal.string(str(path)).sql("duckdb") for path in files)
    # Neither columns nor rows may come from names of folders.
    return f"SELECT * FROM read_parquet([{names}], hive_partitioning = false)"


def _marks(files: Sequence[Path]) -> tuple[tuple[int, ...], ...]:
    stats = [os.stat(path) for path in files]
    return tuple((s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in stats)
