"""Pieces: a column that was read piece by piece, and arrays of pyarrow without a cell one by one.

What a cell means never depends on its container, so each piece may come in another one: numbers in
one chunk of a file, texts in the next. An array of pyarrow is either typed, so that it converts at
once, or its different cells are few, so that each of them is looked at once.
"""

import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import SourceError


def unwritable(array: NDArray[Any]) -> NDArray[Any]:
    """The same numbers as an array that can never be made to write to them."""
    buffer: Any = np.ascontiguousarray(array)  # a buffer, which numpy's types do not say
    # numpy's own flag can be set back; a read-only buffer cannot.
    return np.asarray(memoryview(buffer).toreadonly())


@attrs.frozen(eq=False)
class Pieces:
    """A column of several pieces, in order.

    Args:
        held: Columns of any kind, one after the other.
    """

    held: tuple[Any, ...]

    def __iter__(self) -> Iterator[Any]:
        for piece in self.held:
            yield from piece

    def __len__(self) -> int:
        return sum(map(len, self.held))


@attrs.frozen(eq=False)
class KeptColumn(Pieces):
    """A column that keeps what a declared rule has read of its cells, read-only.

    Rules know it (`read_once`); to everybody else it is a column of pieces.
    """

    readings: dict[int, tuple[object, NDArray[Any]]] = attrs.field(factory=dict, init=False)


def read_once(rule: object, column: Any, read: Callable[[Any], NDArray[Any]]) -> NDArray[Any]:
    """What `read` makes of a column's cells for the very object `rule`: of kept ones, once."""
    if not isinstance(column, KeptColumn):
        return read(column)
    # With the rule, so that no other object has its id. Read-only, as every question to come rests
    # on it.
    if id(rule) not in column.readings:
        column.readings[id(rule)] = rule, unwritable(read(column.held[0]))
    return column.readings[id(rule)][1]


def pieces_of(column: Any) -> tuple[Any, ...] | None:
    """The pieces of a column that has some: of ours, and the chunks of a pyarrow array."""
    if isinstance(column, Pieces):
        return column.held
    # A column can be pyarrow's only if somebody has imported pyarrow already.
    if (arrow := sys.modules.get("pyarrow")) is not None and isinstance(column, arrow.ChunkedArray):
        return tuple(column.chunks)
    return None


def numbers_of(column: Any) -> NDArray[np.float64] | None:
    """An array of numbers or booleans of pyarrow at once, NaN where null; else None. Shape (n,)."""
    if (arrow := sys.modules.get("pyarrow")) is None or not isinstance(column, arrow.Array):
        return None
    kind, kinds = column.type, arrow.types
    if kinds.is_null(kind):
        return np.full(len(column), math.nan)
    if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
        return None
    filled = (
        column.fill_null(False if kinds.is_boolean(kind) else 0) if column.null_count else column
    )
    with np.errstate(over="ignore", invalid="ignore"):
        array: NDArray[np.float64] = filled.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
    if column.null_count:
        # Nulls were filled so that the rest converts at once.
        array[column.is_null().to_numpy(zero_copy_only=False)] = math.nan
    return array


def distinct(column: Any) -> tuple[list[Any], NDArray[np.intp]] | None:
    """The different cells of a pyarrow array of texts or decimals, and which of them each cell is.

    None for a column of another kind. The last of the cells is None, for what is null.
    """
    if (arrow := sys.modules.get("pyarrow")) is None or not isinstance(column, arrow.Array):
        return None
    kinds = arrow.types
    if not kinds.is_dictionary(column.type):
        if not (is_text(column.type) or kinds.is_decimal(column.type)):
            return None
        column = column.dictionary_encode()
    elif not is_text(column.type.value_type):
        return None
    # One more value stands for null, so that every cell has an index.
    values = [*_values(column.dictionary), None]
    places = column.indices.fill_null(len(values) - 1) if column.null_count else column.indices
    return values, places.to_numpy(zero_copy_only=False).astype(np.intp)


def columns_of_stream(table: Any) -> dict[str, Any]:
    """All columns of an object with `__arrow_c_stream__`, by name.

    Raises:
        SourceError: pyarrow is not installed, or the stream fails; no message shows a cell.
    """
    try:
        import pyarrow
    except ImportError:
        raise SourceError("a stream of records needs pyarrow: pip install pyarrow") from None
    try:
        arrow_table = pyarrow.RecordBatchReader.from_stream(table).read_all()
    except Exception as error:  # whatever its maker raises; it may show a cell
        raise SourceError(
            f"the stream of records cannot be read ({type(error).__name__})"
        ) from None
    return {name: arrow_table.column(name) for name in arrow_table.column_names}


def _values(dictionary: Any) -> list[Any]:
    """Python's values; None for a text that is no UTF-8."""
    try:
        return list(dictionary.to_pylist())
    except UnicodeDecodeError:
        # One text that is no UTF-8 fails the conversion of all: the others are read alone.
        return [_value(cell) for cell in dictionary]


def _value(cell: Any) -> Any:
    try:
        return cell.as_py()
    except UnicodeDecodeError:
        return None


def is_text(kind: Any) -> bool:
    """Whether a type of pyarrow is one of its three types of texts."""
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))
