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

_EXACT = 2**53  # up to which every integer is a double
_POWERS = 22  # up to which every power of ten is
_CALENDAR = (-719162, 2932896)  # the years 1 to 9999, in days since 1970
_MILLISECONDS = 86_400_000  # of a day


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


def fixed_width(column: Any) -> NDArray[Any] | None:
    """The values of a pyarrow array of numbers, truths, dates or moments; else None. Shape (n,).

    They are taken from its buffer: pyarrow's own conversions import pandas, and whoever interrupts
    an import inside pyarrow is not heard. Under a null stands any value.
    """
    if (arrow := sys.modules.get("pyarrow")) is None or not isinstance(column, arrow.Array):
        return None
    kind, kinds = column.type, arrow.types
    if kinds.is_boolean(kind):
        return _bits(column, 1)
    letter = "f" if kinds.is_floating(kind) else "u" if kinds.is_unsigned_integer(kind) else "i"
    is_moment = kinds.is_date(kind) or kinds.is_timestamp(kind)
    if not (kinds.is_integer(kind) or kinds.is_floating(kind) or is_moment):
        return None
    values = _rows(column).view(f"{letter}{kind.bit_width // 8}").reshape(-1)
    if not is_moment:
        return values
    ticks, is_null = values.astype("i8"), _nulls(column)
    if kinds.is_date(kind):
        ticks //= 1 if kinds.is_date32(kind) else _MILLISECONDS
        # A date beyond Python's calendar is none, wherever it stands.
        is_null |= (ticks < _CALENDAR[0]) | (ticks > _CALENDAR[1])
    moments = ticks.view(f"M8[{'D' if kinds.is_date(kind) else kind.unit}]")
    moments[is_null] = np.datetime64("NaT", "D")
    return moments


def _rows(column: Any) -> NDArray[np.uint8]:
    """The bytes of every cell of a type of fixed width, shape (n, width)."""
    count, width = len(column), column.type.bit_width // 8
    # Of no cells there may be no buffer.
    content = column.buffers()[1] if count else b""
    flat = np.frombuffer(content, np.uint8, count * width, column.offset * width if count else 0)
    return flat.reshape(count, width)


def _bits(column: Any, buffer: int) -> NDArray[np.bool_]:
    """A bit for every cell: of its validity (buffer 0), or of a truth (buffer 1). Shape (n,)."""
    count, (first, start) = len(column), divmod(column.offset, 8)
    if not count:
        return np.zeros(0, np.bool_)
    window = np.frombuffer(column.buffers()[buffer], np.uint8, -(-(start + count) // 8), first)
    bits = np.unpackbits(window, bitorder="little")[start : start + count]
    return bits.astype(np.bool_)


def _nulls(column: Any) -> NDArray[np.bool_]:
    return ~_bits(column, 0) if column.null_count else np.zeros(len(column), np.bool_)


def numbers_of(column: Any) -> NDArray[np.float64] | None:
    """Numbers, decimals or truths of pyarrow at once, NaN where null; else None. Shape (n,)."""
    if (arrow := sys.modules.get("pyarrow")) is None or not isinstance(column, arrow.Array):
        return None
    if arrow.types.is_null(column.type):
        return np.full(len(column), math.nan)
    if arrow.types.is_decimal(column.type):
        numbers = _decimals(column)
    elif (values := fixed_width(column)) is None or values.dtype.kind == "M":
        return None
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            numbers = values.astype(np.float64) + 0.0
    numbers[_nulls(column)] = math.nan
    return numbers


def _decimals(column: Any) -> NDArray[np.float64]:
    r"""The double nearest to each decimal :math:`i / 10^s`, whatever its width."""
    rows, scale = _rows(column), column.type.scale
    words = rows.view(f"i{min(rows.shape[1], 8)}").astype(np.int64)
    # The lowest word says the integer alone where the higher ones repeat its sign. A quotient of
    # two doubles that are exact is rounded once, and to the nearest.
    lowest = words[:, 0]
    is_short = (words[:, 1:] == (lowest >> 63)[:, None]).all(axis=1)
    is_short &= (lowest >= -_EXACT) & (lowest <= _EXACT)
    is_short &= 0 <= scale <= _POWERS and sys.byteorder == "little"
    numbers = lowest / float(10 ** min(max(scale, 0), _POWERS))
    for place in np.flatnonzero(~is_short).tolist():
        integer = int.from_bytes(rows[place].tobytes(), sys.byteorder, signed=True)
        numbers[place] = _quotient(integer * 10 ** max(-scale, 0), 10 ** max(scale, 0))
    return numbers


def _quotient(numerator: int, denominator: int) -> float:
    try:
        # Rounded once, by Python's own law of integers; what is too small is 0, and not -0.
        return numerator / denominator + 0.0
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def distinct(column: Any) -> tuple[list[Any], NDArray[np.intp]] | None:
    """The different cells of a pyarrow array of texts or decimals, and which of them each cell is.

    None for a column of another kind. One of the cells stands for what is null.
    """
    if (arrow := sys.modules.get("pyarrow")) is None or not isinstance(column, arrow.Array):
        return None
    kinds = arrow.types
    if kinds.is_decimal(column.type):
        decimals: Any = numbers_of(column)
        different, places = np.unique(decimals, return_inverse=True)
        return different.tolist(), places.reshape(-1)
    if not kinds.is_dictionary(column.type):
        if not is_text(column.type):
            return None
        column = column.dictionary_encode()
    elif not is_text(column.type.value_type):
        return None
    # One more value stands for null, so that every cell has an index.
    values = [*_values(column.dictionary), None]
    indices = fixed_width(column.indices)
    assert indices is not None, "integers"
    places = indices.astype(np.intp)
    places[_nulls(column.indices)] = len(values) - 1
    return values, places


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
