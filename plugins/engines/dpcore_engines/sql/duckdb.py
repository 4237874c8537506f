"""DuckDb: Parquet and CSV files and DuckDB's own, read by DuckDB in this process."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pyarrow

from dpcore.errors import RequestError, need
from dpcore_engines.duckdb_file import one_select
from dpcore_engines.sql.servers import FailureError, Rows, Server, Synthetic, unpassed
from dpcore_engines.sql.statement import Dialect
from dpcore_engines.sql.storage import Storage

_SETTINGS = {
    # DuckDB 2.0.0 answers comparisons from a file's least and greatest values, NaN left out.
    "disabled_optimizers": "statistics_propagation,filter_pushdown,row_group_pruner",
    "enable_progress_bar": "false",
}
_PATTERNS = "*?[]{}"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class DuckDb(Server):
    """A connection, and the files.

    Args:
        files: With what the system says of each: a file that changes ends the run.
    """

    dialect: ClassVar[Dialect] = Dialect(name="duckdb", fenced=False)

    name: str
    connection: Any
    storage: Storage
    relation: str
    schema: pyarrow.Schema
    files: tuple[Path, ...]
    marks: tuple[tuple[int, ...], ...]
    spool: Path | None

    @classmethod
    def of(cls, storage: Storage, *, memory: int | None, spool: Path | None) -> DuckDb:
        """Return the files, and a connection that reads nothing else.

        Raises:
            RequestError: DuckDB is not installed, or a name could mean several files.
        """
        need(
            find_spec("duckdb"),
            RequestError,
            "duckdb is not installed: pip install duckdb sqlglot pyarrow",
        )
        import duckdb

        files = storage.files
        is_plain = not any(mark in str(path) for path in files for mark in _PATTERNS)
        need(
            is_plain,
            RequestError,
            f"the sql engine needs file names without any of {_PATTERNS}, which mean several files "
            f"to DuckDB",
        )
        room = {} if memory is None else {"memory_limit": f"{memory // 2} bytes"}
        connection = storage.connect(files, {**_SETTINGS, **room})
        return cls(
            name=f"DuckDB {duckdb.__version__}", connection=connection, storage=storage,
            relation=storage.relation(files), schema=storage.schema, files=files,
            marks=_marks(files), spool=spool,
        )  # fmt: skip

    def doubt(self, count: int) -> str:
        """PRIVATE: why the storage doubts the records that were found, or nothing."""
        return self.storage.doubt(count)

    def execute(self, statement: str) -> Rows:
        """PRIVATE: return the rows; the files are those that were opened."""
        rows = _fetch(self.connection, statement)
        with unpassed():
            is_same = _marks(self.files) == self.marks
        need(is_same, FailureError, "a file changed")
        return rows

    @contextlib.contextmanager
    def written(self, tables: Sequence[pyarrow.Table]) -> Iterator[list[Synthetic]]:
        """A file of the same sort for each table, in the run's folder."""
        with (
            tempfile.TemporaryDirectory(dir=self.spool, prefix="synthetic-") as folder,
            contextlib.ExitStack() as stack,
        ):
            yield [
                self._write(Path(folder) / f"{number}", table, stack)
                for number, table in enumerate(tables)
            ]

    def _write(self, path: Path, table: pyarrow.Table, stack: contextlib.ExitStack) -> Synthetic:
        self.storage.write(path, table)
        connection = stack.enter_context(self.storage.connect([path], _SETTINGS))
        return Synthetic(
            relation=self.storage.relation([path]), batches=self.storage.read(path),
            execute=functools.partial(_fetch, connection),
        )  # fmt: skip

    def close(self) -> None:
        """Close the connection, which holds no record."""
        self.connection.close()


def _fetch(connection: Any, statement: str) -> Rows:
    with unpassed():
        rows: Rows = connection.execute(one_select(connection, statement)).fetchall()
    return rows


def _marks(files: Sequence[Path]) -> tuple[tuple[int, ...], ...]:
    stats = [os.stat(path) for path in files]
    return tuple((s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns) for s in stats)
