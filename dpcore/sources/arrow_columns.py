"""Arrow columns: which types of columns are read, wherever Arrow batches come from.

The file's or the server's own types decide, never the records. A type that is not listed is refused
by name. Messages of pyarrow and of drivers show cells, so they go nowhere.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dpcore.errors import DpcoreError, SourceError, need
from dpcore.records.location import Holds, Reading
from dpcore.records.pieces import is_text
from dpcore.records.source import Columns

if TYPE_CHECKING:
    import pyarrow

BATCH = 1 << 14  # records


def needs_arrow(what: str) -> None:
    """Raise `SourceError` with the extra's name where pyarrow is not installed."""
    need(find_spec("pyarrow"), SourceError, f"{what} needs pyarrow: pip install pyarrow")


@contextlib.contextmanager
def unpassed(what: str) -> Iterator[None]:
    """What a library says of records goes nowhere: it may show a cell."""
    try:
        yield
    # A full memory is no fault of the source.
    except (DpcoreError, MemoryError):
        raise
    except Exception as error:
        raise SourceError(f"{what} ({type(error).__name__})") from None


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
        if not _is_read(kind, holds):
            dated = "; dates are read in a column that declares dates" if _is_date(kind) else ""
            raise SourceError(
                f"{name}: column {column!r} has the type {_name(kind)}; integers, floats, "
                f"decimals, booleans and texts are read{dated}"
            )


def columns_of(batch: pyarrow.RecordBatch, reading: Reading) -> Iterator[Columns]:
    """The declared columns of a batch, some records at a time."""
    for first in range(0, batch.num_rows, BATCH):
        # A slice is a view: a big batch is not copied.
        piece = batch.slice(first, BATCH)
        yield {name: _plain(piece.column(name)) for name in reading.names}


def _storage_type(kind: pyarrow.DataType) -> pyarrow.DataType:
    """The type of the texts that a server's decimals come as; else the type itself."""
    import pyarrow

    # The PostgreSQL driver hands over numerics as opaque texts.
    opaque = isinstance(kind, pyarrow.OpaqueType) and kind.type_name == "numeric"
    return kind.storage_type if opaque else kind


def _plain(column: pyarrow.Array) -> pyarrow.Array:
    return column if _storage_type(column.type) == column.type else column.storage


def _is_read(kind: pyarrow.DataType, holds: Holds) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        return is_text(kind.value_type)
    plain = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null)
    dated = holds is Holds.DATES and _is_date(kind)
    return any(test(kind) for test in plain) or is_text(kind) or dated


def _is_date(kind: pyarrow.DataType) -> bool:
    from pyarrow import types

    return any(test(kind) for test in (types.is_date, types.is_timestamp))


def _name(kind: pyarrow.DataType) -> str:
    """The name of a type without its inner names, which a file chooses."""
    from pyarrow import types

    return "nested" if types.is_nested(kind) else str(kind).partition("<")[0].partition("[")[0]
