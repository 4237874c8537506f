"""Writers: how the conformance suite writes a table where a kind of source reads it.

The core's kinds are written here. Another kind says so itself, by a class method that no run calls:

    @classmethod
    def write_table(cls, table, folder):
        ...  # columns of cells by name: numbers, texts, or None where a cell is missing
        return cls(...)
"""

import csv
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from dpcore.source import Location, Reading, Source
from dpcore.sources.connections import Sqlite
from dpcore.sources.opening import CsvFile
from dpcore.sources.parquet import ParquetFiles
from dpcore.sources.sklearn_data import SklearnData
from dpcore.sources.sql import SqlitePart, SqlQuery, SqlSource
from dpcore_attacks.laws.law import NotTestedError, skip_if

Table = Mapping[str, list[Any]]
Open = Callable[[Reading], Source]


def written_source(kind: type[Location], table: Table, folder: Path) -> Open:
    """Write a table in a folder; how a source of this kind is opened there.

    Raises:
        NotTestedError: no one says how such a source is written.
        NotApplicableError: its records are none of anybody's.
    """
    skip_if(kind is SklearnData, "its records are public data sets that no one writes")
    write = getattr(kind, "write_table", None)
    try:
        if write is not None:
            location: Location = write(table, folder)
            return location.open
        if kind in _WRITERS:
            return _WRITERS[kind](table, folder)
    except ImportError as error:
        raise NotTestedError(f"{error.name} is not installed: pip install {error.name}") from None
    raise NotTestedError(
        f"no one says how it is written: a class method write_table(table, folder) of "
        f"{kind.__name__} would"
    )


def _csv(table: Table, folder: Path) -> Open:
    path = folder / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [[*table], *zip(*table.values(), strict=True)]
        )
    return CsvFile(csv=str(path)).open


def _parquet(table: Table, folder: Path) -> Open:
    import pyarrow
    from pyarrow import parquet

    path = folder / "table.parquet"
    parquet.write_table(pyarrow.table(dict(table)), path, row_group_size=64)
    return ParquetFiles(parquet=str(path)).open


def _sqlite(table: Table, folder: Path) -> Open:
    """Return a query on SQLite; PostgreSQL needs a server."""
    path = folder / "table.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"CREATE TABLE records ({', '.join(table)})")
        places = ", ".join("?" * len(table))
        rows = zip(*table.values(), strict=True)
        database.executemany(f"INSERT INTO records VALUES ({places})", rows)
    query = SqlQuery(sql="SELECT * FROM records ORDER BY rowid", connection="kit")
    part = partial(SqlitePart, query=query, database=Sqlite(sqlite=str(path)))
    return lambda reading: SqlSource(rows=part(reading=reading))


_WRITERS: Mapping[type[Location], Callable[[Table, Path], Open]] = {
    CsvFile: _csv,
    ParquetFiles: _parquet,
    SqlQuery: _sqlite,
}

WRITTEN = tuple(_WRITERS)
"""The core's kinds that are written here."""
