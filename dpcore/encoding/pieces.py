"""Pieces: a column that was read piece by piece, and arrays of pyarrow without a cell one by one.

What a cell means never depends on its container, so each piece may come in another one: numbers in
one chunk of a file, texts in the next. An array of pyarrow is either typed, so that it converts at
once, or its different cells are few, so that each of them is looked at once.
"""

import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.cell import nearest
from dpcore.errors import SourceError
from dpcore.records import unwritable

_EXACT = 2**53  # up to which every integer is a double
_POWERS = 22  # up to which every power of ten is


@attrs.frozen(eq=False)
class Pieces:
    """A column of several pieces, in order.

    Args:
        pieces: Columns of any kind, one after the other.
    """

    pieces: tuple[Any, ...]

    def __iter__(self) -> Iterator[Any]:
        for piece in self.pieces:
            yield from piece

    def __len__(self) -> int:
        return sum(map(len, self.pieces))


@attrs.frozen(eq=False)
class KeptColumn(Pieces):
    """A column that keeps what a declared rule has read of its cells, read-only.

    Rules know it (`read_once`); to everybody else it is a column of pieces.
    """

    readings: dict[int, tuple[object, NDArray[Any]]] = attrs.field(factory=dict, init=False)


def read_once(rule: object, column: Any, convert: Callable[[Any], NDArray[Any]]) -> NDArray[Any]:
    """Return what `convert` makes of a column's cells for the very object `rule`: of kept ones,
    once.
    """
    if not isinstance(column, KeptColumn):
        return convert(column)
    # With the rule, so that no other object has its id. Read-only, as every question to come rests
    # on it.
    if id(rule) not in column.readings:
        column.readings[id(rule)] = rule, unwritable(convert(column.pieces[0]))
    return column.readings[id(rule)][1]


def pieces_of(column: Any) -> tuple[Any, ...] | None:
    """Return the pieces of a column that has some: of ours, and the chunks of a pyarrow array."""
    if isinstance(column, Pieces):
        return column.pieces
    # A column can be pyarrow's only if somebody has imported pyarrow already.
    if (arrow := sys.modules.get("pyarrow")) is not None and isinstance(column, arrow.ChunkedArray):
        return tuple(column.chunks)
    return None


def fixed_width(column: Any) -> NDArray[Any] | None:
    """Return the values of a pyarrow array of numbers, truths or moments; else None. Shape (n,).

    They are taken from its buffer: pyarrow's own conversions import pandas, and drop an interrupt
    that comes meanwhile. Under a null is any value, and no moment.
    """
    if (arrow := sys.modules.get("pyarrow")) is None or not isinstance(column, arrow.Array):
        return None
    kind, kinds = column.type, arrow.types
    if kinds.is_boolean(kind):
        return _values_as("?", column.cast("int8"))
    if kinds.is_timestamp(kind):
        moments = _values_as(f"M8[{kind.unit}]", column).copy()
        moments[_nulls(column)] = np.datetime64("NaT", kind.unit)
        return moments
    if not (kinds.is_integer(kind) or kinds.is_floating(kind)):
        return None
    letter = "f" if kinds.is_floating(kind) else str(kind)[0]  # of int or uint
    return _values_as(f"{letter}{kind.bit_width // 8}", column)


def _values_as(kind: str, column: Any) -> NDArray[Any]:
    """Return what is in the buffer of an array of fixed width, from its offset on. Shape (n,)."""
    # Of no cells there may be no buffer.
    content, start = column.buffers()[1] or b"", column.offset * np.dtype(kind).itemsize
    return np.frombuffer(content, kind, len(column), start if len(column) else 0)


def _nulls(column: Any) -> NDArray[np.bool_]:
    return _values_as("?", column.is_null().cast("int8"))


def numbers_of(column: Any) -> NDArray[np.float64] | None:
    """Numbers, decimals or truths of pyarrow at once, NaN where null; else None. Shape (n,)."""
    if (arrow := sys.modules.get("pyarrow")) is None or not isinstance(column, arrow.Array):
        return None
    if arrow.types.is_null(column.type):
        return np.full(len(column), math.nan)
    values = _decimals(column) if arrow.types.is_decimal(column.type) else fixed_width(column)
    if values is None or values.dtype.kind == "M":
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        numbers: NDArray[np.float64] = values.astype(np.float64) + 0.0
    if column.null_count:
        numbers[_nulls(column)] = math.nan
    return numbers


def _decimals(column: Any) -> NDArray[np.float64]:
    r"""Return the double nearest to each decimal :math:`i / 10^s`, whatever its width."""
    scale, width = column.type.scale, column.type.bit_width // 8
    integers = _values_as(f"V{width}", column)
    words = integers.view(f"i{min(width, 8)}").reshape(len(column), max(width // 8, 1))
    # The lowest word says the integer only where the higher ones repeat its sign. A quotient of
    # two doubles that are exact is rounded once, and to the nearest.
    lowest = words[:, 0].astype(np.int64)
    is_short = (words[:, 1:] == (lowest >> 63)[:, None]).all(axis=1) & (abs(lowest) <= _EXACT)
    is_short &= (lowest != np.iinfo(np.int64).min) & (sys.byteorder == "little")
    numbers = lowest / float(10 ** min(max(scale, 0), _POWERS))
    for place in np.flatnonzero(~is_short | (not 0 <= scale <= _POWERS)).tolist():
        integer = int.from_bytes(integers[place].tobytes(), sys.byteorder, signed=True)
        numbers[place] = nearest(Fraction(integer) * Fraction(10) ** -scale)
    return numbers


def distinct(column: Any) -> tuple[list[Any], NDArray[np.intp]] | None:
    """Return the different cells of a pyarrow array of texts or decimals, and which of them each
    cell is.

    None for a column of another kind. One of the cells represents what is null.
    """
    if (arrow := sys.modules.get("pyarrow")) is None or not isinstance(column, arrow.Array):
        return None
    kinds = arrow.types
    if kinds.is_decimal(column.type):
        # Of a null, NaN is among them.
        different, codes = np.unique(cast(Any, numbers_of(column)), return_inverse=True)
        return different.tolist(), codes.reshape(-1)
    if not kinds.is_dictionary(column.type):
        if not is_text(column.type):
            return None
        column = column.dictionary_encode()
    elif not is_text(column.type.value_type):
        return None
    # One more value represents null, so that every cell has an index.
    values = [*unwrap_cells(column.dictionary), None]
    places = cast(Any, fixed_width(column.indices)).astype(np.intp)
    places[_nulls(column.indices)] = len(values) - 1
    return values, places


def columns_of_stream(table: Any) -> dict[str, Any]:
    """Return all columns of an object with `__arrow_c_stream__`, by name.

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


def unwrap_cells(column: Any) -> list[Any]:
    """Return the cells of another library's column: all at once, or one by one where a cell is none
    of Python's values (the year 10000, a text that is no UTF-8), which is None."""
    is_arrow = hasattr(column, "to_pylist")
    try:
        return list(column.to_pylist() if is_arrow else column.to_list())
    except (ValueError, OverflowError):
        values: list[Any] = []
        for place in range(len(column)):
            try:
                values.append(column[place].as_py() if is_arrow else column[place])
            except (ValueError, OverflowError):
                values.append(None)
        return values


def is_text(kind: Any) -> bool:
    """Return whether a type of pyarrow is one of its three types of texts."""
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))
