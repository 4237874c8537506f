"""DuckDb: Parquet and CSV files, read by DuckDB in this process."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pyarrow

from dpcore.errors import RequestError, need
from dpcore_engines.sql.columns import Kind
from dpcore_engines.sql.servers import FailureError, Rows, Server, Synthetic, unpassed
from dpcore_engines.sql.statement import Dialect
from dpcore_engines.sql.storage import Storage

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
    storage: Storage
    files: tuple[Path, ...]
    marks: tuple[tuple[int, ...], ...]
    spool: Path | None

    @classmethod
    def of(cls, storage: Storage, *, memory: int | None, spool: Path | None) -> DuckDb:
        """The files, and a connection that reads nothing else.

        Raises:
            RequestError: DuckDB is not installed, or a name could mean several files.
        """
        try:
            import duckdb
        except ImportError:
            refusal = "duckdb is not installed: pip install duckdb sqlglot pyarrow"
            raise RequestError(refusal) from None
        files = storage.files
        is_plain = not any(mark in str(path) for path in files for mark in _PATTERNS)
        names = f"file names without any of {_PATTERNS}, which mean several files to DuckDB"
        need(is_plain, RequestError, f"the sql engine needs {names}")
        connection = duckdb.connect(":memory:")
        for name, value in _SETTINGS.items():
            connection.execute(f"SET {name} = '{value}'")
        if memory is not None:
            connection.execute(f"SET memory_limit = '{memory // 2} bytes'")
        return cls(
            connection=connection, storage=storage, files=files, marks=_marks(files), spool=spool
        )

    @property
    def name(self) -> str:
        """DuckDB, and which version of it."""
        import duckdb

        return f"DuckDB {duckdb.__version__}"

    @property
    def relation(self) -> str:
        """All rows of the files."""
        return self.storage.relation(self.files)

    @property
    def schema(self) -> pyarrow.Schema:
        """The declared columns of the files."""
        return self.storage.schema

    @property
    def kinds(self) -> Mapping[str, Kind | None]:
        """What the columns hold, as their storage says."""
        return self.storage.kinds

    def doubt(self, count: int) -> str:
        """PRIVATE: why the storage doubts the records that were found, or nothing."""
        return self.storage.doubt(count)

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
        """A file of the same sort for each table, in the run's folder."""
        with tempfile.TemporaryDirectory(dir=self.spool, prefix="synthetic-") as folder:
            yield [self._write(Path(folder) / f"{n}", t) for n, t in enumerate(tables)]

    def _write(self, path: Path, table: pyarrow.Table) -> Synthetic:
        batches, relation = self.storage.write(path, table), self.storage.relation([path])
        return Synthetic(relation=relation, batches=batches, execute=self._fetch)

    def close(self) -> None:
        """Close the connection in memory."""
        self.connection.close()


def _marks(files: Sequence[Path]) -> tuple[tuple[int, ...], ...]:
    stats = [os.stat(path) for path in files]
    return tuple((s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in stats)
