"""Predictions from exported values: cells of records are read and encoded as dpcore does.

Python and numpy only, for this module's text is a part of every exported file.
"""

import json
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from csv import DictReader
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

_ENTRIES = 1 << 22  # of a matrix of features that are held at a time
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf(?:inity)?)\Z", re.IGNORECASE
)
_DATE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?\Z"
)
_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def cells_of(column: Any) -> list[Any]:
    """Return the cells of a list, an array, or a column of a data frame."""
    array = np.asarray(column) if hasattr(column, "dtype") else None
    if array is None or getattr(column.dtype, "time_zone", None):  # of polars
        return list(column)
    cells = array.astype("datetime64[us]") if array.dtype.kind == "M" else array
    return list(cells.tolist())


def number(cell: Any) -> float:
    """Return the number that a cell is; NaN if it is none."""
    if isinstance(cell, str):
        text = cell.strip(" \t")
        return float(text) + 0.0 if text.isascii() and _NUMBER.match(text) else math.nan
    if not isinstance(cell, int | float):
        return math.nan
    try:
        return float(cell) + 0.0
    except OverflowError:
        return math.inf if cell > 0 else -math.inf


def day(cell: Any, zone: str | None = None, offsets: str | None = None) -> float:
    """Days since 1970-01-01, the time of day as a fraction; NaN if a cell is no date.

    A moment with an offset counts in UTC or in a zone, one without as it is.

    Args:
        offsets: `required` or `none`: what has none, or one, is no date.
    """
    try:
        if isinstance(cell, str):
            text = cell.strip(" \t")
            cell = datetime.fromisoformat(text) if _DATE.match(text) else None
        if isinstance(cell, datetime):
            shift = cell.utcoffset()
            if offsets == ("required" if shift is None else "none"):
                return math.nan
            midnight = datetime(cell.year, cell.month, cell.day)
            # Whole microseconds: an offset may lead out of the calendar, and numbers do not.
            duration = cell.replace(tzinfo=None) - midnight - (shift or timedelta())
            if shift is not None and zone is not None:
                moment = midnight.replace(tzinfo=ZoneInfo(zone)) + duration
                return day(ZoneInfo(zone).fromutc(moment).replace(tzinfo=None))
            days, rest = divmod(duration, timedelta(1))
            days += cell.toordinal() - date(1970, 1, 1).toordinal()
            return min(days + rest / timedelta(1), math.nextafter(days + 1, -math.inf))
    except (ValueError, OverflowError):
        return math.nan
    is_day = isinstance(cell, date) and offsets != "required"
    return float(cell.toordinal() - date(1970, 1, 1).toordinal()) if is_day else math.nan


def key(cell: Any) -> Any:
    """Return what a category is compared by: a truth, a number, a date or a text; None if
    missing.
    """
    if isinstance(cell, bool):
        return ("truth", cell)
    if not math.isnan(value := number(cell)):
        return value
    if not math.isnan(moment := day(cell)):
        return ("day", moment)
    if not isinstance(cell, str):
        return None
    text = cell.strip(" \t")
    return ("truth", _TRUTHS[text]) if text in _TRUTHS else text


def letters(cell: Any) -> str | None:
    """Return the text that a cell is; None if it is none."""
    if isinstance(cell, str):
        return cell.strip(" \t") or None
    if isinstance(cell, float) and abs(cell) < 2**53 and cell % 1 == 0:
        cell = int(cell)
    is_text = isinstance(cell, int) or (isinstance(cell, float) and cell % 1 > 0)
    return str(cell).lower() if is_text else None


def codes(column: Mapping[str, Any], cells: Sequence[Any]) -> Any:
    """Return the place of each cell's category; the default's for an unknown one, else -1."""
    reading = letters if column.get("as") == "text" else key
    places = {reading(value): place for place, value in enumerate(column["categories"])}
    places |= {reading(cell): places[reading(value)] for cell, value in column.get("map", ())}
    for truth in (False, True):
        spelled, counted = ("truth", truth), float(truth)
        # A column of truths has one reading, whether it was kept as truths or as numbers.
        if spelled in places:
            places.setdefault(counted, places[spelled])
        elif counted in places:
            places[spelled] = places[counted]
    default = column["default"]
    unknown = -1 if default is None else places[reading(default)]
    categories = np.array([places.get(reading(cell), unknown) for cell in cells], dtype=np.intp)
    if "edges" not in column:
        return categories
    edges, counts = column["edges"], counts_of(column["range"], cells)
    bins = np.minimum(np.searchsorted(edges, counts, side="right") - 1, len(edges) - 2)
    is_inside = (counts >= column["range"]["low"]) & (counts < column["range"]["end"])
    return np.where(np.isnan(counts), categories, np.where(is_inside, bins, -1))


def counts_of(column: Mapping[str, Any], cells: Sequence[Any]) -> Any:
    """Return the number or day that each cell is; NaN where it is none."""
    date_rule = partial(day, zone=column.get("zone"), offsets=column.get("offsets"))
    reading = date_rule if column["dates"] else number
    return np.array([reading(cell) for cell in cells], dtype=np.float64)


def encode_column(column: Mapping[str, Any], cells: Sequence[Any]) -> Any:
    """Return the encoded columns of one declared column, each entry in [-1, 1]."""
    if "categories" in column:
        places, count = codes(column, cells), len(column["categories"])
        if count == 2:
            return np.where(places < 0, 0.0, 2.0 * places - 1)[:, None]
        return np.eye(count + 1)[places, :-1]
    low, high, default = column["low"], column["high"], column["default"]
    counts = counts_of(column, cells)
    stand_in = low + (high - low) / 2 if default is None else default
    inside = np.clip(np.where(np.isnan(counts), stand_in, counts), low, high)
    position = np.clip(2 * (inside - low) / (high - low) - 1, -1, 1)
    if not column["missing"]:
        return position[:, None]
    absent = np.isnan(counts)
    return np.column_stack([np.where(absent, 0.0, position), absent.astype(np.float64)])


def encode(model: Mapping[str, Any], table: Any) -> Any:
    """Encoded rows of a table, columns by name; shape (n, width)."""
    blocks = [encode_column(c, cells_of(table[c["name"]])) for c in model["columns"]]
    encoded = np.hstack(blocks)
    norm = model["norm"]
    if norm is None:
        return encoded
    lengths = row_lengths(encoded)
    too_long = lengths > norm["longest"]
    return encoded * np.where(too_long, norm["shrunk"] / np.where(too_long, lengths, 1.0), 1.0)


def row_lengths(rows: Any) -> Any:
    """Lengths of rows, shape (n, 1): squares are added in halves, in one order."""
    squares, columns_left = rows * rows, rows.shape[1]
    while columns_left > 1:
        half = columns_left // 2
        squares[:, :half] += squares[:, columns_left - half : columns_left]
        columns_left -= half
    return np.sqrt(squares[:, :1])


def in_blocks(score: Callable[[Any], Any], rows: Any, width: int) -> Any:
    """Scores of some rows at a time: as many as dpcore takes, so that sums round alike."""
    step = max(1, _ENTRIES // max(1, width))
    starts = range(0, max(1, len(rows)), step)
    return np.concatenate([score(rows[start : start + step]) for start in starts])


def named_target(target: Mapping[str, Any], scores: Any) -> Any:
    """Scores in the file's units, clipped to the range; or classes."""
    if "classes" not in target:
        low, high = target["low"], target["high"]
        return np.clip(scores + (low + (high - low) / 2), low, high)
    classes = target["classes"]
    places = scores >= 0 if len(classes) == 2 else np.clip(np.rint(scores), 0, len(classes) - 1)
    is_numeric = all(isinstance(value, int | float) for value in classes)
    return np.array(classes if is_numeric else [*map(str, classes)])[places.astype(np.intp)]


def predictions(
    model: Mapping[str, Any], score: Callable[[Any, Mapping[str, Any]], Any], table: Any
) -> Any:
    """Predictions at a table, columns by name: numbers in the file's units, or classes."""
    values = model["values"]
    scores = in_blocks(lambda rows: score(rows, values), encode(model, table), model["width"])
    return named_target(model["target"], scores)


def from_csv(lines: Iterator[str]) -> dict[str, list[str]]:
    """Columns of a CSV file by name."""
    rows = [*DictReader(lines)]
    # Blanks at the ends of a name count only where it is declared with them.
    names = [(form(name), name) for form in (str.strip, str) for name in (rows[0] if rows else ())]
    return {name: [row[raw] for row in rows] for name, raw in names}


def main(model: str, score: Callable[[Any, Mapping[str, Any]], Any]) -> None:
    """Predictions of a CSV file on standard input, one a line."""
    for value in predictions(json.loads(model), score, from_csv(iter(sys.stdin))).tolist():
        print(value)
