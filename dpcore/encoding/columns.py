"""Columns: the cells of one column to numbers and back, by what is declared of it.

Nothing here is computed from other cells: what an entry counts as is the rule of
`dpcore.domain.cell`, from its own content only, and every cell encodes to something.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.bins import Binned, cells_between
from dpcore.domain.cell import index, letters
from dpcore.domain.classes import Classes
from dpcore.domain.columns import (
    BYTES,
    LONGEST,
    Categories,
    Dates,
    Range,
    Texts,
    moment_of,
    reading,
)
from dpcore.domain.domain import Column, People
from dpcore.domain.moments import zone_named
from dpcore.encoding.cells import cells, coded, days, empty, numbers, persons, read_cells
from dpcore.encoding.pieces import read_once
from dpcore.records import Records

_UNIT = 2.0**51  # an encoded text is whole multiples of its inverse


def read_numbers(column: Range, values: Any) -> NDArray[np.float64]:
    """Return what entries count as, days of dates; NaN for what is no number or no date. Shape
    (n,).
    """
    convert: Callable[[Any], NDArray[np.float64]] = numbers
    if isinstance(column, Dates):
        convert = partial(days, zone=zone_named(column.zone), offsets=column.offsets)
    return read_once(column, values, convert)


def project_numbers(column: Range, values: Any) -> NDArray[np.float64]:
    """Numbers of the range that entries count as; NaN where one stays missing. Shape (n, 1)."""
    counts = read_numbers(column, values)[:, None]
    return np.where(column.missing & np.isnan(counts), np.nan, column.clip(counts))


def read_codes(rule: Categories | Classes, values: Any) -> NDArray[np.intp]:
    """Index of each entry's category, class or bin, the default's for an unknown one, else -1.

    Shape (n,).
    """
    if isinstance(rule, Binned):
        return _bins(rule, values)
    key = reading(rule)
    # Indexed together, so that a truth has one reading among values and spellings.
    places = index([*rule.values, *(cell for cell, _ in rule.spellings)], key)
    targets = [*range(len(rule.values)), *(places[key(value)] for _, value in rule.spellings)]
    unknown = -1 if rule.default is None else places[key(rule.default)]
    code = {cell: targets[place] for cell, place in places.items()}
    return read_once(rule, values, partial(coded, code=code, unknown=unknown, key_of=key))


def _bins(rule: Binned, values: Any) -> NDArray[np.intp]:
    counted = read_numbers(rule.range, values)
    # Moments of a last day stand behind its beginning, which may be the last edge.
    bins = cells_between(rule.edges, np.minimum(counted, rule.edges[-1]))
    codes = np.where(rule.range.holds(counted), bins, -1).astype(np.intp)
    if (absent := np.isnan(counted)).any():
        names = index(rule.values)
        unknown = -1 if rule.default is None else rule.values.index(rule.default)
        codes[absent] = coded(cells(values)[absent], names, unknown)
    return codes


def encode_column(column: Column, values: Any) -> NDArray[np.float64]:
    """Encoded entries, every one in [-1, 1] and every row at most 1 long. Shape (n, width).

    Of categories -1/+1 or a one-hot, zeros where one is unknown and without default; zeros where
    there is no text.
    """
    if isinstance(column, Texts):
        return encode_texts(column, values)
    if isinstance(column, Categories):
        codes = read_codes(column, values)
        if len(column.values) == 2:
            return _signs(codes)[:, None]
        # Code -1 picks the last row of the identity, which is 0 in all columns but the last.
        one_hot: NDArray[np.float64] = np.eye(len(column.values) + 1)[codes, :-1]
        return one_hot
    counts = read_numbers(column, values)
    position = column.position(counts)
    if not column.missing:
        return position[:, None]
    absent = np.isnan(counts)
    # A row is (position, 0) or (0, 1), so that it is at most 1 long.
    return np.column_stack([np.where(absent, 0.0, position), absent.astype(np.float64)])


def _signs(codes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Of two values -1 and +1; an unknown one has code -1, and lies in the middle."""
    return np.where(codes < 0, 0.0, 2.0 * codes - 1)


def centre_labels(labels: Range | Classes, values: Any) -> NDArray[np.float64]:
    """Entries of a target as labels: clipped, then in [-M, M] around the centre. Shape (n,).

    Of two classes -1, 0 or +1; of more, codes.
    """
    if isinstance(labels, Range):
        return labels.offset(read_numbers(labels, values))
    codes = read_codes(labels, values)
    return codes.astype(np.float64) if labels.count > 2 else _signs(codes)


def find_misfits(rule: Column | Classes | People, values: Any) -> NDArray[np.bool_]:
    """Return which entries break a rule, and no default replaces them. Shape (n,).

    They lie outside the range, are none of the categories or classes, are no text or a longer one,
    or say whose a record is of no one.
    """
    if isinstance(rule, Texts):
        return read_once(rule, values, _text_lengths) > rule.longest
    if isinstance(rule, People):
        return np.array([person is None for person in persons(values)], dtype=np.bool_)
    if not isinstance(rule, Range):
        return read_codes(rule, values) < 0
    counts = read_numbers(rule, values)
    inside = rule.holds(counts)
    # A default, or the column that marks missing entries, gives such a cell a meaning.
    is_replaced = rule.default is not None or rule.missing
    return ~(inside | np.isnan(counts) if is_replaced else inside)


def write_cells(column: Range, counted: NDArray[np.float64]) -> NDArray[Any]:
    """Entries that count as these numbers, as a file would hold them. Shape (n,).

    Of dates, texts with a time of day.
    """
    if not isinstance(column, Dates):
        return counted
    zone = zone_named(column.zone or "UTC") if column.offsets == "required" else None
    texts = [str(moment_of(count).replace(tzinfo=zone)) for count in counted.tolist()]
    return np.array(texts, dtype=object)


def cells_of(
    records: Records, name: str, column: Range, start: int | None, edges: Sequence[float]
) -> NDArray[np.intp]:
    """PRIVATE: return the cell of every record's number, -1 where it is in none. Shape (n,).

    Of records that hold encoded columns only, by where edges are encoded: a number on an edge is
    in the cell that begins there, and so is what encodes as the edge does.

    Args:
        start: The first encoded column; None for the target.
        edges: Increasing, in the file's units; infinite ones too.
    """
    if (numbers := records.numbers_of(name)) is not None:
        return cells_between(edges, numbers)
    ends = np.asarray(edges, dtype=np.float64)
    places = column.offset(ends) if start is None else column.position(ends)
    # Every record is below an edge beyond the range, such as the end of a last day.
    places = np.where(ends > column.high, np.inf, places)
    if start is None:
        return cells_between(places, records.labels)
    cells = cells_between(places, records.columns(start, start + 1)[:, 0])
    if column.missing:
        cells = np.where(records.columns(start + 1, start + 2)[:, 0] < 0.5, cells, -1)
    return cells


def encode_texts(column: Texts, values: Any) -> NDArray[np.float64]:
    """Shape (n, width), every row at most 1 long; zeros where there is no text."""

    def cut(cell: object) -> bytes:
        """UTF-8 of a cell, cut off between two characters; empty where it is no text."""
        # A character that the cut would split is dropped as a whole.
        return (_utf8(cell) or b"")[: column.longest].decode("utf-8", "ignore").encode("utf-8")

    places: dict[bytes, int] = {}
    texts = read_cells(list(cells(values)), cut)
    codes = [places.setdefault(text, len(places)) for text in texts]
    # Texts hold no zero byte, so that padding with them is undone without doubt.
    padded = (text.ljust(BYTES * column.width, b"\0") for text in places)
    integers = [
        [int.from_bytes(text[start : start + BYTES]) for start in range(0, len(text), BYTES)]
        for text in padded
    ]
    encodings = np.array(integers, dtype=np.float64).reshape(-1, column.width) / _UNIT
    return encodings[np.array(codes, dtype=np.intp)]


def decode_text(row: NDArray[np.float64]) -> str:
    """Return the text that an encoded row represents, whatever its numbers are."""
    text = b""
    for part in np.nan_to_num(np.asarray(row, dtype=np.float64)).tolist():
        # Noise may have led beyond [0, 2^48): any number becomes six bytes.
        integer = min(max(int(part * _UNIT), 0), (1 << (8 * BYTES)) - 1)
        text += integer.to_bytes(BYTES)
    return text.rstrip(b"\0").decode("utf-8", "replace")


def _text_lengths(values: Any) -> NDArray[np.intp]:
    """Return the bytes of each entry, 0 where it is empty; more than any column holds if it is no
    text.
    """
    texts = read_cells(list(cells(values)), _utf8)
    lengths = [LONGEST + 1 if text is None else len(text) for text in texts]
    return np.where(empty(values), 0, lengths).astype(np.intp)


def _utf8(cell: object) -> bytes | None:
    """UTF-8 of a cell's text; None where it is none, or has a character that is not written."""
    # A zero byte pads encodings, and a surrogate by itself has no UTF-8: such texts would run
    # together.
    if (text := letters(cell)) is None or "\0" in text:
        return None
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return None
