"""Texts: a column whose values are not public, such as diagnoses or postcodes as they were typed.

What is public is only how long a value may be. A text is its characters without blanks and tabs at
the ends, a whole number its decimal digits whatever type it came in, a truth `true` or `false`, a
fraction or decimal what Python writes of it (`dpcore.records.persons.letters`). Nothing else is a
text: no date, and no float beyond its type's exact whole numbers. A text is encoded without loss,
six bytes of UTF-8 a column, each an integer below 2^48 times 2^-51, so that every row is at most 1
long.
"""

import attrs

from dpcore.checks import is_integer
from dpcore.errors import need

BYTES = 6
"""Of a text, in one encoded column."""
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
        return -(-self.longest // BYTES)

    def describe(self) -> str:
        """The rule an entry must meet."""
        return f"a text of at most {self.longest} bytes, or missing"
