"""Cells: the entries of a column, each read by `dpcore.domain.cell`.

A column may come as a list, an array, a series of pandas or polars, or an array of pyarrow. What
one cell means never depends on its neighbours, on the container or on its length, so that changing
one record's cell moves no other record. Nothing here raises on a value, whatever it is.

A typed array of floats, integers or booleans is converted at once, since that equals the rule entry
by entry. Sums and comparisons of unknown objects are never called.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import tzinfo
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.cell import MISSING, day, is_empty, key, number, person
from dpcore.domain.moments import in_utc
from dpcore.encoding.pieces import (
    columns_of_stream,
    distinct,
    fixed_width,
    numbers_of,
    pieces_of,
    unwrap_cells,
)
from dpcore.errors import SourceError, need

Value = TypeVar("Value")
Number = TypeVar("Number", bound=np.generic)

_PLAIN = b"0123456789+-.eE,"  # a column of such texts is read at once


def columns_by_name(table: Any) -> Any:
    """Return a table as columns by name: pyarrow's tables, streams and polars' lazy frames are
    mapped.

    Raises:
        SourceError: a stream of Arrow batches fails, or pyarrow is not installed to read it.
    """
    if not isinstance(table, Mapping):
        # Tables are known by their methods, so that none of these libraries must be installed.
        if hasattr(table, "collect_schema") and hasattr(table, "collect"):
            table = table.collect()
        if hasattr(table, "column_names") and hasattr(table, "column"):
            return {name: table.column(name) for name in table.column_names}
        if hasattr(table, "__arrow_c_stream__") and not _is_frame(table):
            return columns_of_stream(table)
    return table


def _is_frame(table: Any) -> bool:
    """Return whether it gives its columns by name, cell by cell: their types need not fit
    Arrow's.
    """
    return type(table).__module__.partition(".")[0] in ("pandas", "polars")


def cells(column: Any) -> NDArray[Any]:
    """Return the cells of a column, shape (n,): floats, integers, booleans or moments, else
    objects.

    Raises:
        SourceError: the column is no sequence of cells in one dimension.
    """
    if (pieces := pieces_of(column)) is not None:
        arrays = [cells(piece) for piece in pieces]
        if len({array.dtype for array in arrays}) == 1:
            return np.concatenate(arrays)
        # The pieces are not of one type.
        column = [cell for array in arrays for cell in array]
    if not isinstance(column, np.ndarray):
        column = _unwrap(column)
    if isinstance(column, np.ndarray):
        need(column.ndim == 1, SourceError, "a column needs one dimension")
        # What lies under a mask is no cell of the table.
        if isinstance(column, np.ma.MaskedArray):
            pairs = zip(np.ma.getdata(column), np.ma.getmaskarray(column), strict=True)
            listed = [MISSING if hidden else cell for cell, hidden in pairs]
        elif column.dtype.kind in "fiubMO":
            return np.asarray(column)
        else:
            listed = list(column) if column.dtype.kind in "mVc" else column.tolist()
    elif isinstance(column, str | bytes | bytearray) or not isinstance(column, Iterable):
        raise SourceError("a column needs a sequence of cells")
    else:
        listed = column if isinstance(column, list) else list(column)
    # `np.array` would unpack cells that are sequences into further dimensions.
    return np.fromiter(listed, dtype=object, count=len(listed))


def _unwrap(column: Any) -> Any:
    """Return an array of a fixed type, or a list, out of the containers of other libraries."""
    if hasattr(column, "to_pylist"):  # pyarrow
        if hasattr(column, "dictionary_decode"):
            column = column.dictionary_decode()
        typed = fixed_width(column)
        # Numbers and truths next to nulls stay objects; moments have a null of their own.
        if typed is not None and (typed.dtype.kind == "M" or not column.null_count):
            # Its schema says whether its moments have an offset.
            has_zone = getattr(column.type, "tz", None) is not None
            return [*map(in_utc, typed)] if has_zone else typed
        return unwrap_cells(column)
    if isinstance(getattr(column, "dtype", None), np.dtype):  # pandas, a type of numpy's
        return np.asarray(column)
    if hasattr(column, "to_list"):  # pandas' own types, and polars
        return unwrap_cells(column)
    return column


def numbers(column: Any) -> NDArray[np.float64]:
    """Return the number that each cell is; NaN where it is none. Shape (n,)."""
    if (typed := numbers_of(column)) is not None:
        return typed
    if (joined := _read_parts(column, numbers, _numbers_of_distinct, np.float64)) is not None:
        return joined
    if (array := cells(column)).dtype.kind in "fiub":
        with np.errstate(over="ignore", invalid="ignore"):
            # Adding 0.0 makes -0.0 a 0.0, as `number` does.
            return array.astype(np.float64) + 0.0
    # Moments count in columns of dates only.
    if array.dtype.kind == "M":
        return np.full(array.shape, math.nan)
    listed = array.tolist()
    # A faster way to the same numbers; None where a text needs the grammar.
    plain = _plain_numbers(listed)
    return np.array(read_cells(listed, number), dtype=np.float64) if plain is None else plain


def _numbers_of_distinct(values: list[Any]) -> NDArray[np.float64]:
    """Return the same of texts, decimals and None; what is empty keeps the rest from no short
    way.
    """
    counts = np.full(len(values), math.nan)
    if filled := [place for place, value in enumerate(values) if value is not None and value != ""]:
        counts[filled] = numbers([values[place] for place in filled])
    return counts


def days(
    column: Any, zone: tzinfo | None = None, offsets: str | None = None
) -> NDArray[np.float64]:
    """Days since 1970-01-01 that each cell is by `day`; NaN where it is none. Shape (n,)."""
    return read_column(column, partial(day, zone=zone, offsets=offsets), np.float64)


def coded(
    column: Any,
    code: Mapping[Hashable, int],
    unknown: int,
    key_of: Callable[[object], Hashable] = key,
) -> NDArray[np.intp]:
    """Return the code of each cell by `key_of`; `unknown` where it has none. Shape (n,)."""
    return read_column(column, lambda cell: code.get(key_of(cell), unknown), np.intp)


def empty(column: Any) -> NDArray[np.bool_]:
    """Which cells hold nothing: None, NaN, NaT, null, and texts of blanks only. Shape (n,)."""
    if (joined := _read_parts(column, empty, empty, np.bool_)) is not None:
        return joined
    typed = numbers_of(column)
    return read_column(column if typed is None else typed, is_empty, np.bool_, np.isnan)


def persons(column: Any) -> list[str | None]:
    """Return the person of each cell by `person`; None where it is no one's."""
    owners: list[str | None] = read_column(column, person, np.object_).tolist()
    return owners


def read_column(
    column: Any,
    convert: Callable[[Any], Any],
    kind: type[Number],
    of_numbers: Callable[[NDArray[Any]], NDArray[Number]] | None = None,
) -> NDArray[Number]:
    """`convert` of every cell, called once for each different text or number of a type. Shape (n,).

    Args:
        kind: Of what is read.
        of_numbers: The same of all numbers of a typed array at once.
    """
    part = partial(read_column, convert=convert, kind=kind, of_numbers=of_numbers)
    if (joined := _read_parts(column, part, part, kind)) is not None:
        return joined
    if (array := cells(column)).dtype.kind in "fiub":
        if of_numbers is not None:
            return of_numbers(array)
        values, places = np.unique(array, return_inverse=True)
        return np.array([*map(convert, values)], dtype=kind)[places.reshape(-1)]
    listed = list(array) if array.dtype.kind == "M" else array.tolist()
    return np.array(read_cells(listed, convert), dtype=kind)


def _read_parts(
    column: Any,
    of_piece: Callable[[Any], NDArray[Number]],
    of_values: Callable[[list[Any]], NDArray[Number]],
    kind: type[Number],
) -> NDArray[Number] | None:
    """A column read by its pieces, or by its different values; None where it has neither."""
    if (pieces := pieces_of(column)) is not None:
        return np.concatenate([np.zeros(0, kind), *map(of_piece, pieces)])
    if (pair := distinct(column)) is not None:
        return of_values(pair[0])[pair[1]]
    return None


def _plain_numbers(listed: list[object]) -> NDArray[np.float64] | None:
    """Texts of digits, signs, points and exponents at once; None if a cell is anything else.

    On these characters Python's own reading is the grammar, but for a point without digits after
    it.
    """
    if not all(type(cell) is str for cell in listed):
        return None
    raw = ",".join(listed).encode("ascii", "replace") + b","  # type: ignore[arg-type]  # texts
    # Python reads `1.` as a number, and the grammar does not.
    if raw.translate(None, _PLAIN) or any(end in raw for end in (b".,", b".e", b".E")):
        return None
    try:
        return np.fromiter(map(float, listed), np.float64, len(listed)) + 0.0  # type: ignore[arg-type]
    except ValueError:
        return None


def read_cells(listed: list[Any], function: Callable[[object], Value]) -> list[Value]:
    """`function` of every cell, called once for each different text, and once for None."""
    readings: dict[str | None, Value] = {}
    values = []
    for cell in listed:
        if type(cell) is not str and cell is not None:
            values.append(function(cell))
            continue
        if cell not in readings:
            readings[cell] = function(cell)
        values.append(readings[cell])
    return values
