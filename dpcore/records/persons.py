"""Persons: which cells are the same person's id, from each cell's own content alone.

An id is a text, compared letter by letter without blanks at its ends, or a whole number, which is
the same id as its digits: 17, 17.0 and "17" are one person, "017" is another. Nothing else is an
id: no empty cell, no fraction, no truth, no date, and no float so large that whole numbers beside
it would be the same float, since two persons would be one.
"""

import math
import uuid
from decimal import Decimal
from typing import Any

import numpy as np

from dpcore.records.cells import cells
from dpcore.records.pieces import distinct, pieces_of

_BLANKS = " \t"
_LONGEST = 2000  # bits of a whole number: Python writes longer ones only where it may
_EXACT = {2: 11, 4: 24, 8: 53}  # bits of a float's whole numbers by its bytes


def persons(column: Any) -> list[str | None]:
    """The person of each cell; None where it is nobody's."""
    if (pieces := pieces_of(column)) is not None:
        return [owner for piece in pieces for owner in persons(piece)]
    if (pair := distinct(column)) is not None:
        # Each different cell is read once.
        owners = persons(pair[0])
        return [owners[place] for place in pair[1].tolist()]
    if (array := cells(column)).dtype.kind in "fiub":
        values, places = np.unique(array, return_inverse=True)
        owners = [person(value) for value in values]
        return [owners[place] for place in places.reshape(-1).tolist()]
    if array.dtype.kind != "O":  # moments
        return [None] * array.size
    return [person(cell) for cell in array.tolist()]


def person(cell: object) -> str | None:
    """The id that one cell is, or None."""
    if issubclass(kind := type(cell), bytes):
        try:
            cell = bytes.decode(cell, "utf-8")  # type: ignore[arg-type]  # bytes by their type
        except UnicodeDecodeError:
            return None
        kind = str
    if issubclass(kind, str):
        return str.strip(cell, _BLANKS) or None  # type: ignore[arg-type]  # a text by its type
    # Asked before integers, as a bool is an int to Python.
    if issubclass(kind, bool | np.bool_):
        return None
    if issubclass(kind, int | np.integer):
        integer = int(cell)  # type: ignore[call-overload]  # an integer by its type
        return str(integer) if integer.bit_length() <= _LONGEST else None
    if kind is uuid.UUID:
        return str(cell)
    if issubclass(kind, float | np.floating):
        return _of_float(cell, _EXACT.get(getattr(cell, "itemsize", 8), 0))
    return None


def letters(cell: object) -> str | None:
    """The text that one cell is, or None: an id, a truth, or a fraction as Python writes it.

    No date is a text: types hold one and the same date in several ways.
    """
    if issubclass(kind := type(cell), bool | np.bool_):
        return "true" if cell else "false"
    if issubclass(kind, Decimal) and Decimal.is_finite(cell):  # type: ignore[arg-type]
        return Decimal.__str__(cell)
    if issubclass(kind, float | np.floating):
        value = float(cell)  # type: ignore[arg-type]  # a float by its type
        return repr(value) if math.isfinite(value) and value % 1 else person(value)
    return person(cell)


def _of_float(cell: Any, bits: int) -> str | None:
    value = float(cell)
    # Beyond 2^bits two whole numbers may be one float, and two persons would be one.
    return str(int(value)) if bits and abs(value) < 2.0**bits and value == int(value) else None
