"""Cells: the value of one entry of a column, by its own content and by nothing else.

A column may come as a list, an array, a series of pandas or polars, or an array of pyarrow. What
one cell means never depends on its neighbours, on the container or on its length, so that changing
one record's cell moves no other record. Nothing here raises on a value, whatever it is.

* Text: blanks and tabs at the ends do not count. `[+-]?(digits[.digits] | .digits)` with an
  exponent or without is a number, correctly rounded; so is inf or infinity. `1_000`, full-width
  digits and no-break spaces are no numbers.
* Numbers: the nearest double; -0 is 0. Integers and fractions too large for one are infinite.
* Booleans: 0 or 1 in a column of numbers. In categories true and True are one spelling.
* Dates: `2020-01-31`, with a time of day or without, and the date types of Python, numpy and
  pandas. They are numbers (days since 1970) only in a column of dates. A moment with an offset
  counts in UTC, or in a declared zone; one without counts as it stands.
* Missing: None, NaN, NaT, NA, and every value of any other type. It is no number, no category and
  no date.

A typed array of floats, integers or booleans is converted at once, since that equals the rule entry
by entry. Sums and comparisons of unknown objects are never called.
"""

import functools
import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import date, datetime, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpcore.errors import SourceError, need
from dpcore.records.moments import EPOCH, days_of_moment, days_of_ticks, in_utc
from dpcore.records.pieces import (
    columns_of_stream,
    distinct,
    fixed_width,
    nearest,
    numbers_of,
    pieces_of,
)

Value = TypeVar("Value")
Number = TypeVar("Number", bound=np.generic)

_BLANKS = " \t"
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)\Z"
)
_DATE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?\Z"
)
_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_PLAIN = b"0123456789+-.eE,"  # a column of such texts is read at once

MISSING = None
"""The category key of what is no category."""


def named(table: Any) -> Any:
    """A table as columns by name: pyarrow's tables, streams and polars' lazy frames are mapped.

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
    """Whether it gives its columns by name, cell by cell: their types need not fit Arrow's."""
    return type(table).__module__.partition(".")[0] in ("pandas", "polars")


def cells(column: Any) -> NDArray[Any]:
    """The cells of a column, shape (n,): floats, integers, booleans or moments, else objects.

    Raises:
        SourceError: the column is no sequence of cells in one dimension.
    """
    if (pieces := pieces_of(column)) is not None:
        return _join_pieces([cells(piece) for piece in pieces])
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


def _join_pieces(pieces: list[NDArray[Any]]) -> NDArray[Any]:
    """One array of the cells of all pieces; of objects, where the pieces are not of one type."""
    if len({piece.dtype for piece in pieces}) == 1:
        return np.concatenate(pieces)
    listed = [cell for piece in pieces for cell in piece]
    return np.fromiter(listed, dtype=object, count=len(listed))


def _unwrap(column: Any) -> Any:
    """An array of a fixed type, or a list, out of the containers of other libraries."""
    if hasattr(column, "to_pylist"):  # pyarrow
        if hasattr(column, "dictionary_decode"):
            column = column.dictionary_decode()
        typed = fixed_width(column)
        # Numbers and truths beside nulls stay objects; moments have a null of their own.
        if typed is not None and (typed.dtype.kind == "M" or not column.null_count):
            # Its schema says whether its moments have an offset.
            has_zone = getattr(column.type, "tz", None) is not None
            return [*map(in_utc, typed)] if has_zone else typed
        return _unwrap_cells(column.to_pylist, len(column), lambda i: column[i].as_py())
    if isinstance(getattr(column, "dtype", None), np.dtype):  # pandas, a type of numpy's
        return np.asarray(column)
    if hasattr(column, "to_list"):  # pandas' own types, and polars
        return _unwrap_cells(column.to_list, len(column), lambda i: column[i])
    return column


def _unwrap_cells(read_all: Callable[[], Any], count: int, entry: Callable[[int], object]) -> Any:
    """All cells at once, or one by one where a cell is none of Python's values (the year 10000)."""
    try:
        return read_all()
    except (ValueError, OverflowError):
        values: list[object] = []
        for place in range(count):
            try:
                values.append(entry(place))
            except (ValueError, OverflowError):
                values.append(MISSING)
        return values


def numbers(column: Any) -> NDArray[np.float64]:
    """The number that each cell is; NaN where it is none. Shape (n,)."""
    if (typed := numbers_of(column)) is not None:
        return typed
    if (joined := _read_parts(column, numbers, _numbers_of_distinct, np.float64)) is not None:
        return joined
    if (array := cells(column)).dtype.kind in "fiub":
        with np.errstate(over="ignore", invalid="ignore"):
            # Adding 0.0 makes -0.0 a 0.0, as `number` does.
            return array.astype(np.float64) + 0.0
    # Moments count in columns of dates alone.
    if array.dtype.kind == "M":
        return np.full(array.shape, math.nan)
    listed = array.tolist()
    # A faster way to the same numbers; None where a text needs the grammar.
    if (plain_numbers := _plain_numbers(listed)) is not None:
        return plain_numbers
    return np.array(read_cells(listed, number), dtype=np.float64)


def _numbers_of_distinct(values: list[Any]) -> NDArray[np.float64]:
    """The same of texts, decimals and None; what is empty keeps the rest from no short way."""
    counts = np.full(len(values), math.nan)
    if filled := [place for place, value in enumerate(values) if value is not None and value != ""]:
        counts[filled] = numbers([values[place] for place in filled])
    return counts


def days(
    column: Any, zone: tzinfo | None = None, offsets: str | None = None
) -> NDArray[np.float64]:
    """Days since 1970-01-01 that each cell is by `day`; NaN where it is none. Shape (n,)."""
    read_part = functools.partial(days, zone=zone, offsets=offsets)
    if (joined := _read_parts(column, read_part, read_part, np.float64)) is not None:
        return joined
    if (array := cells(column)).dtype.kind in "fiub":
        return np.full(array.shape, math.nan)
    listed = list(array) if array.dtype.kind == "M" else array.tolist()
    read = functools.partial(day, zone=zone, offsets=offsets)
    return np.array(read_cells(listed, read), dtype=np.float64)


def coded(
    column: Any,
    code: Mapping[Hashable, int],
    unknown: int,
    read: Callable[[object], Hashable] | None = None,
) -> NDArray[np.intp]:
    """The code of each cell by `read`, or its `key`; `unknown` where it has none. Shape (n,)."""
    code_part = functools.partial(coded, code=code, unknown=unknown, read=read)
    if (joined := _read_parts(column, code_part, code_part, np.intp)) is not None:
        return joined
    if (array := cells(column)).dtype.kind in "fiub":
        values, places = np.unique(array, return_inverse=True)
        # The rule is asked once for each different value.
        codes = [code.get((read or key)(value), unknown) for value in values]
        return np.array(codes, dtype=np.intp)[places.reshape(-1)]
    listed = list(array) if array.dtype.kind == "M" else array.tolist()
    codes = read_cells(listed, lambda cell: code.get((read or key)(cell), unknown))
    return np.array(codes, dtype=np.intp)


def empty(column: Any) -> NDArray[np.bool_]:
    """Which cells hold nothing: None, NaN, NaT, null, and texts of blanks alone. Shape (n,)."""
    if (joined := _read_parts(column, empty, empty, np.bool_)) is not None:
        return joined
    typed = numbers_of(column)
    array = cells(column) if typed is None else typed
    if array.dtype.kind == "M":
        return np.isnat(array)
    if array.dtype.kind in "fiub":
        return np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, np.bool_)
    return np.array(read_cells(array.tolist(), _holds_nothing), dtype=np.bool_)


def _holds_nothing(cell: object) -> bool:
    if issubclass(kind := type(cell), str):
        return not str.strip(cell, _BLANKS)  # type: ignore[arg-type]  # a text by its type
    if issubclass(kind, float | np.floating):
        return math.isnan(number(cell))
    if issubclass(kind, np.datetime64 | np.timedelta64):
        return bool(np.isnat(cell))  # type: ignore[call-overload]  # a moment by its type
    return cell is None or kind.__name__ in ("NAType", "NaTType")  # pandas' two


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


def number(cell: object) -> float:
    """The number that one cell is; NaN if it is none."""
    if issubclass(kind := type(cell), str):
        text = str.strip(cell, _BLANKS)  # type: ignore[arg-type]  # a text by its type
        return float(text) + 0.0 if _NUMBER.match(text) else math.nan
    # Operators are called by type below, so that no subclass runs code of its own.
    if kind is float:
        return cell + 0.0  # type: ignore[operator]  # a float by its type
    if issubclass(kind, bytes):
        return number(_decode(cell))
    if issubclass(kind, int):
        return nearest(int.__add__(cell, 0))  # type: ignore[operator]  # an int by its type
    if issubclass(kind, float):
        value: float = float.__add__(cell, 0.0)  # type: ignore[operator]  # a float by its type
        return value
    if issubclass(kind, np.bool_ | np.integer | np.floating | Decimal | Fraction):
        try:
            return nearest(cell)
        except Exception:  # a signalling NaN, or a type that somebody derived from these
            return math.nan
    return math.nan


def _decode(cell: object) -> object:
    try:
        return bytes.decode(cell, "utf-8")  # type: ignore[arg-type]  # bytes by their type
    except UnicodeDecodeError:
        return MISSING


def key(cell: object) -> Hashable:
    """What a category is compared by: a number, a truth, a date, a text, or `MISSING`.

    Two cells are equal as categories where their keys are: 1, 1.0 and "1"; true, "True" and "true".
    """
    if issubclass(kind := type(cell), bytes):
        cell = _decode(cell)
        kind = type(cell)
    # A truth is asked for before a number, as a bool is an int to Python.
    if issubclass(kind, bool | np.bool_):
        return ("truth", bool(cell))
    if not math.isnan(value := number(cell)):
        return value
    # Numbers come before dates, and dates before texts: each cell has one reading.
    if not math.isnan(moment := day(cell)):
        return ("day", moment)
    if not issubclass(kind, str):
        return MISSING
    text = str.strip(cell, _BLANKS)  # type: ignore[arg-type]  # a text by its type
    return ("truth", _TRUTHS[text]) if text in _TRUTHS else text


def index(
    values: Iterable[object], read: Callable[[object], Hashable] | None = None
) -> dict[Hashable, int]:
    """Codes of a declared list by `read`, or by `key`; true is 1 and false is 0 where only one of
    them is listed.

    So a column of booleans has one reading, whether its container kept them or made them numbers.
    """
    codes = {(read or key)(value): code for code, value in enumerate(values)}
    for truth in (False, True):
        spelled, counted = ("truth", truth), float(truth)
        if spelled in codes:
            codes.setdefault(counted, codes[spelled])
        elif counted in codes:
            codes[spelled] = codes[counted]
    return codes


def day(cell: object, zone: tzinfo | None = None, offsets: str | None = None) -> float:
    """Days since 1970-01-01 that one cell is, the time of day as a fraction; NaN if it is no date.

    A moment without an offset counts as it stands, one with an offset in UTC or in `zone`.

    Args:
        offsets: `required` or `none`: what has none, or one, is no date.
    """
    if issubclass(kind := type(cell), np.datetime64):
        return math.nan if offsets == "required" else days_of_ticks(cell)
    if issubclass(kind, bytes):
        cell = _decode(cell)
        kind = type(cell)
    try:
        if issubclass(kind, str):
            text = str.strip(cell, _BLANKS)  # type: ignore[arg-type]  # a text by its type
            if not _DATE.match(text):
                return math.nan
            return days_of_moment(datetime.fromisoformat(text), zone, offsets)
        if issubclass(kind, datetime):
            return days_of_moment(cell, zone, offsets)
        if issubclass(kind, date) and offsets != "required":
            return float(date.toordinal(cell) - EPOCH)  # type: ignore[arg-type]  # by its type
    except Exception:  # a time zone is anybody's code, and NaT is a datetime without one
        return math.nan
    return math.nan


def _plain_numbers(listed: list[object]) -> NDArray[np.float64] | None:
    """Texts of digits, signs, points and exponents at once; None if a cell is anything else.

    On these characters Python's own reading is the grammar, but for a point without digits after
    it.
    """
    if not all(type(cell) is str for cell in listed):
        return None
    joined = ",".join(listed)  # type: ignore[arg-type]  # texts, by their types
    if not joined.isascii():
        return None
    raw = joined.encode("ascii")
    # Python reads `1.` as a number, and the grammar does not.
    if raw.translate(None, _PLAIN) or any(end in raw for end in (b".,", b".e", b".E")):
        return None
    if raw.endswith(b"."):
        return None
    try:
        return np.fromiter(map(float, listed), np.float64, len(listed)) + 0.0  # type: ignore[arg-type]
    except ValueError:
        return None


def read_cells(listed: list[Any], function: Callable[[object], Value]) -> list[Value]:
    """`function` of every cell, called once for each different text."""
    readings: dict[str, Value] = {}
    values = []
    for cell in listed:
        if type(cell) is not str:
            values.append(function(cell))
            continue
        if cell not in readings:
            readings[cell] = function(cell)
        values.append(readings[cell])
    return values
