"""Texts: cells of a column of texts to rows of numbers without loss, and back."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.texts import BYTES, LONGEST, Texts
from dpcore.records.cells import cells, empty, read_cells
from dpcore.records.persons import letters
from dpcore.records.pieces import read_once

_UNIT = 2.0**51


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
    """The text that an encoded row stands for, whatever its numbers are."""
    text = b""
    for part in np.nan_to_num(np.asarray(row, dtype=np.float64)).tolist():
        # Noise may have led beyond [0, 2^48): any number becomes six bytes.
        integer = min(max(int(part * _UNIT), 0), (1 << (8 * BYTES)) - 1)
        text += integer.to_bytes(BYTES)
    return text.rstrip(b"\0").decode("utf-8", "replace")


def text_lengths(column: Texts, values: Any) -> NDArray[np.intp]:
    """The bytes of each entry, 0 where it is empty; more than any column holds if it is no text."""
    return read_once(column, values, _lengths)


def _lengths(values: Any) -> NDArray[np.intp]:
    texts = read_cells(list(cells(values)), _utf8)
    lengths = [LONGEST + 1 if text is None else len(text) for text in texts]
    return np.where(empty(values), 0, lengths).astype(np.intp)


def _utf8(cell: object) -> bytes | None:
    """UTF-8 of a cell's text; None where it is none, or has a character that is not written."""
    # A zero byte pads encodings, and a surrogate alone has no UTF-8: such texts would run together.
    if (text := letters(cell)) is None or "\0" in text:
        return None
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return None
