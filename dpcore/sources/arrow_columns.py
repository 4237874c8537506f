"""Arrow columns: which types of columns are read, wherever Arrow batches come from.

The file's or the server's own types decide, never the records. A type that is not listed is refused
by name. Messages of pyarrow and of drivers show cells, so they go nowhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dpcore.domain.columns import Holds
from dpcore.encoding.admission import is_read_in_files, type_called
from dpcore.errors import SourceError, need
from dpcore.source import Columns, Reading

if TYPE_CHECKING:
    import pyarrow

BATCH = 1 << 14  # records


def needs_arrow(subject: str) -> None:
    """Raise `SourceError` with the extra's name where pyarrow is not installed."""
    need(find_spec("pyarrow"), SourceError, f"{subject} needs pyarrow: pip install pyarrow")


def require_types(name: str, schema: pyarrow.Schema, reading: Reading) -> None:
    """Raise `SourceError` unless every declared column is there once, of a type that is read."""
    for column, holds in reading.columns.items():
        count = schema.names.count(column)
        need(
            count == 1,
            SourceError,
            f"{name}: column {column!r} is {'there twice' if count else 'missing'}",
        )
        # The schema decides how a column is read, never a record.
        kind = _storage_type(schema.field(column).type)
        types = "dates and texts" if holds is Holds.DATES else "numbers, booleans and texts"
        dated = "; dates are read in a column that declares dates" * is_read_in_files(
            kind, Holds.DATES
        )
        need(
            is_read_in_files(kind, holds),
            SourceError,
            f"{name}: column {column!r} has the type {type_called(kind)}; {types} are read{dated}",
        )


def columns_of(batch: pyarrow.RecordBatch, reading: Reading) -> Iterator[Columns]:
    """Yield the declared columns of a batch, some records at a time."""
    for first in range(0, batch.num_rows, BATCH):
        # A slice is a view: a big batch is not copied.
        piece = batch.slice(first, BATCH)
        yield {name: _plain(piece.column(name)) for name in reading.names}


def _storage_type(kind: pyarrow.DataType) -> pyarrow.DataType:
    """Return the type of the texts that a server's decimals come as; else the type itself."""
    import pyarrow

    # The PostgreSQL driver hands over numerics as opaque texts.
    opaque = isinstance(kind, pyarrow.OpaqueType) and kind.type_name == "numeric"
    return kind.storage_type if opaque else kind


def _plain(column: pyarrow.Array) -> pyarrow.Array:
    return column if _storage_type(column.type) == column.type else column.storage
