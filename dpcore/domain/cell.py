"""Cell: the value of one entry of a column, by its own content and by nothing else.

Nothing here raises on a value, whatever it is, and no operator of an unknown type is called.

* Text: blanks and tabs at the ends do not count. `[+-]?(digits[.digits] | .digits)` with an
  exponent or without is a number, correctly rounded; so is inf or infinity. `1_000`, full-width
  digits and no-break spaces are no numbers.
* Numbers: the nearest double; -0 is 0. Integers and fractions too large for one are infinite.
* Booleans: 0 or 1 in a column of numbers. In categories true and True are one spelling.
* Dates: `2020-01-31`, with a time of day or without, and the date types of Python, numpy and
  pandas. They are numbers (days since 1970) only in a column of dates. A moment with an offset
  counts in UTC, or in a declared zone; one without counts as it is.
* Missing: None, NaN, NaT, NA, and every value of any other type. It is no number, no category and
  no date.

An id of a person is a text, compared letter by letter without blanks at its ends, or a whole
number, which is the same id as its digits: 17, 17.0 and "17" are one person, "017" is another.
Nothing else is an id: no empty cell, no fraction, no truth, no date, and no float so large that
whole numbers next to it would be the same float, since two persons would be one.
"""

import math
import re
import uuid
from collections.abc import Callable, Hashable, Iterable
from datetime import date, datetime, tzinfo
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from dpcore.domain.moments import EPOCH, days_of_moment, days_of_ticks

_BLANKS = " \t"
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[iI][nN][fF](?:[iI][nN][iI][tT][yY])?)\Z"
)
_DATE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?)?\Z"
)
_TRUTHS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_LONGEST = 2000  # bits of a whole number: Python writes longer ones only where it may
_EXACT = {2: 11, 4: 24, 8: 53}  # bits of a float's whole numbers by its bytes

MISSING = None
"""The category key of what is no category."""


def _text(cell: Any) -> str | None:
    """Return a text, or bytes of UTF-8, without blanks at the ends; None where a cell is
    neither.
    """
    if issubclass(kind := type(cell), str):
        return str.strip(cell, _BLANKS)
    try:
        return bytes.decode(cell, "utf-8").strip(_BLANKS) if issubclass(kind, bytes) else None
    except UnicodeDecodeError:
        return None


def number(cell: Any) -> float:
    """Return the number that one cell is; NaN if it is none."""
    if (kind := type(cell)) is float:
        return cell + 0.0  # type: ignore[no-any-return]  # a float by its type
    # Operators are called by type, so that no subclass runs code of its own.
    if (text := _text(cell)) is not None:
        return float(text) + 0.0 if _NUMBER.match(text) else math.nan
    if issubclass(kind, int):
        return nearest(int.__add__(cell, 0))
    if issubclass(kind, float):
        return float.__add__(cell, 0.0)
    if issubclass(kind, np.bool_ | np.integer | np.floating | Decimal | Fraction):
        try:
            return nearest(cell)
        except Exception:  # a signalling NaN, or a type that somebody derived from these
            return math.nan
    return math.nan


def nearest(counted: Any) -> float:
    """Return the double nearest to a number of any type; infinite beyond the largest."""
    try:
        return float(counted) + 0.0
    except OverflowError:
        return math.inf if counted > 0 else -math.inf


def key(cell: object) -> Hashable:
    """Return what a category is compared by: a number, a truth, a date, a text, or `MISSING`.

    Two cells are equal as categories where their keys are: 1, 1.0 and "1"; true, "True" and "true".
    """
    # A truth is asked for before a number, as a bool is an int to Python.
    if issubclass(type(cell), bool | np.bool_):
        return ("truth", bool(cell))
    # Numbers come before dates, and dates before texts: each cell has one reading.
    if not math.isnan(value := number(cell)):
        return value
    if not math.isnan(moment := day(cell)):
        return ("day", moment)
    return ("truth", _TRUTHS[text]) if (text := _text(cell)) in _TRUTHS else text


def index(
    values: Iterable[object], key_of: Callable[[object], Hashable] = key
) -> dict[Hashable, int]:
    """Codes of a declared list by `key_of`; true is 1 and false is 0 where only one of them is
    listed.

    So a column of booleans has one reading, whether its container kept them or made them numbers.
    """
    codes = {key_of(value): code for code, value in enumerate(values)}
    for truth in (False, True):
        spelled, counted = ("truth", truth), float(truth)
        if spelled in codes:
            codes.setdefault(counted, codes[spelled])
        elif counted in codes:
            codes[spelled] = codes[counted]
    return codes


def day(cell: Any, zone: tzinfo | None = None, offsets: str | None = None) -> float:
    """Days since 1970-01-01 that one cell is, the time of day as a fraction; NaN if it is no date.

    A moment without an offset counts as it is, one with an offset in UTC or in `zone`.

    Args:
        offsets: `required` or `none`: what has none, or one, is no date.
    """
    if issubclass(kind := type(cell), np.datetime64):
        return math.nan if offsets == "required" else days_of_ticks(cell)
    try:
        if not issubclass(kind, date) and (text := _text(cell)) is not None:
            cell = datetime.fromisoformat(text) if _DATE.match(text) else None
        if issubclass(type(cell), datetime):
            return days_of_moment(cell, zone, offsets)
        if issubclass(kind, date) and offsets != "required":
            return float(date.toordinal(cell) - EPOCH)
    except Exception:  # a time zone is anybody's code, and NaT is a datetime without one
        return math.nan
    return math.nan


def is_empty(cell: Any) -> bool:
    """Return whether one cell holds nothing: None, NaN, NaT, null, or a text of blanks only."""
    if issubclass(kind := type(cell), str):
        return not _text(cell)
    if issubclass(kind, float | np.floating):
        return math.isnan(number(cell))
    if issubclass(kind, np.datetime64 | np.timedelta64):
        return bool(np.isnat(cell))
    return cell is None or kind.__name__ in ("NAType", "NaTType")  # pandas' two


def person(cell: Any) -> str | None:
    """Return the id that one cell is, or None."""
    if (text := _text(cell)) is not None:
        return text or None
    # Asked before integers, as a bool is an int to Python.
    if issubclass(kind := type(cell), bool | np.bool_):
        return None
    if issubclass(kind, float | np.floating):
        # Beyond 2^bits two whole numbers may be one float, and two persons would be one.
        bits, value = _EXACT.get(getattr(cell, "itemsize", 8), 0), float(cell)
        return str(int(value)) if bits and abs(value) < 2.0**bits and value % 1 == 0 else None
    if issubclass(kind, int | np.integer):
        integer = int(cell)
        return str(integer) if integer.bit_length() <= _LONGEST else None
    return str(cell) if kind is uuid.UUID else None


def letters(cell: Any) -> str | None:
    """Return the text that one cell is, or None: an id, a truth, or a fraction as Python writes it.

    No date is a text: types hold one and the same date in several ways.
    """
    if issubclass(kind := type(cell), bool | np.bool_):
        return "true" if cell else "false"
    if issubclass(kind, Decimal) and Decimal.is_finite(cell):
        return Decimal.__str__(cell)
    if issubclass(kind, float | np.floating):
        value = float(cell)
        return repr(value) if math.isfinite(value) and value % 1 else person(value)
    return person(cell)
