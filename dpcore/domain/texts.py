"""Texts: a column whose values are not public, such as diagnoses or postcodes as they were typed.

What is public is only how long a value may be. A text is its characters without blanks and tabs at
the ends, a whole number its decimal digits whatever type it came in, a truth `true` or `false`, a
fraction or decimal what Python writes of it (`dpcore.records.persons.letters`). Nothing else is a
text: no date, and no float beyond its type's exact whole numbers. A text is encoded without loss,
six bytes of UTF-8 a column, each an integer below 2^48 times 2^-51, so that every row is at most 1
long.
"""

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import is_integer
from dpcore.errors import need
from dpcore.records.cells import cells, empty, read_cells
from dpcore.records.persons import letters
from dpcore.records.pieces import read_once

_BYTES, _UNIT = 6, 2.0**51
LONGEST = 384
"""Bytes: 64 columns, each below 1/8."""


@attrs.frozen
class Texts:
    """A column of texts that nobody listed.

    Args:
        longest: Bytes of a text in UTF-8 that are kept, 1 to 384; the rest is cut off.
    """

    longest: int

    def __attrs_post_init__(self) -> None:
        need(
            is_integer(self.longest) and self.longest <= LONGEST,
            "texts",
            f"1 to {LONGEST} bytes",
            "texts",
            self.longest,
        )

    @property
    def width(self) -> int:
        """The number of encoded columns: six bytes each, the last maybe fewer."""
        return -(-self.longest // _BYTES)

    def encode(self, values: Any) -> NDArray[np.float64]:
        """Shape (n, width), every row at most 1 long; zeros where there is no text."""
        places: dict[bytes, int] = {}
        texts = read_cells(list(cells(values)), self._bytes)
        codes = [places.setdefault(text, len(places)) for text in texts]
        # Texts hold no zero byte, so that padding with them is undone without doubt.
        padded = (text.ljust(_BYTES * self.width, b"\0") for text in places)
        integers = [
            [int.from_bytes(text[start : start + _BYTES]) for start in range(0, len(text), _BYTES)]
            for text in padded
        ]
        encodings = np.array(integers, dtype=np.float64).reshape(-1, self.width) / _UNIT
        return encodings[np.array(codes, dtype=np.intp)]

    def decoded(self, row: NDArray[np.float64]) -> str:
        """The text that an encoded row stands for, whatever its numbers are."""
        text = b""
        for part in np.nan_to_num(np.asarray(row, dtype=np.float64)).tolist():
            # Noise may have led beyond [0, 2^48): any number becomes six bytes.
            integer = min(max(int(part * _UNIT), 0), (1 << (8 * _BYTES)) - 1)
            text += integer.to_bytes(_BYTES)
        return text.rstrip(b"\0").decode("utf-8", "replace")

    def _bytes(self, cell: object) -> bytes:
        """UTF-8 of a cell, cut off between two characters; empty where it is no text."""
        # A character that the cut would split is dropped as a whole.
        return (_utf8(cell) or b"")[: self.longest].decode("utf-8", "ignore").encode("utf-8")

    def misfits(self, values: Any) -> NDArray[np.bool_]:
        """Which entries are no text, or a longer one. Shape (n,)."""
        return read_once(self, values, self._lengths) > self.longest

    def _lengths(self, values: Any) -> NDArray[np.intp]:
        texts = read_cells(list(cells(values)), _utf8)
        lengths = [LONGEST + 1 if text is None else len(text) for text in texts]
        return np.where(empty(values), 0, lengths).astype(np.intp)

    def describe(self) -> str:
        """The rule an entry must meet."""
        return f"a text of at most {self.longest} bytes, or missing"


def _utf8(cell: object) -> bytes | None:
    """UTF-8 of a cell's text; None where it is none, or has a character that is not written."""
    # A zero byte pads encodings, and a surrogate alone has no UTF-8: such texts would run together.
    if (text := letters(cell)) is None or "\0" in text:
        return None
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return None
