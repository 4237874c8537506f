"""Markup: what an object says of itself, as plain text and HTML. All text is escaped.

Notebooks ask an object for `_repr_html_`, terminals that show objects for `_repr_pretty_`. Nothing
here looks at more than the texts that it is given.
"""

from __future__ import annotations

import html
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import attrs

from dpcore.errors import one_line

LONGEST_CELL = 400  # characters of one cell
LONGEST_PARAGRAPH = 20_000
MOST_ROWS = 60  # of one table that are shown

NO_NUMBER = "-"
"""What stands in place of a number where none is known."""


def in_digits(value: float, digits: int = 4, *, direction: int = 0) -> str:
    """A number as text with so many significant digits, and without them all only below 10^6.

    What is no number is a dash, and who prints it says why; what is infinite has no end.

    Args:
        direction: 0 for the nearest text, 1 for one that is never below the number, such as an
            epsilon that is claimed, -1 for one that is never above it, such as a budget that is
            left.
    """
    if not math.isfinite(value):
        return NO_NUMBER if math.isnan(value) else "no end"
    text = f"{value:.{digits}g}"
    if direction * (float(text) - value) < 0:
        # Rounding lost at most half a unit of the last digit: one unit is enough.
        unit = 10.0 ** (int(f"{value:e}".split("e")[1]) - digits + 1)
        text = f"{value + direction * unit:.{digits}g}"
    # 5.988e+04 is read as 59880, and as a number of so many digits all the same.
    exponent = int(text.partition("e+")[2] or 0)
    return f"{float(text):.0f}" if 0 < exponent <= max(5, digits + 1) else text


def digits_within(low: float, high: float, least: int = 4) -> int:
    """How many significant digits tell apart what lies in an interval: `least`, or more.

    The last one is that of the half-width's first digit: 2015.48 where that is 0.04.
    """
    half, largest = (high - low) / 2, max(abs(low), abs(high))
    if not 0 < half < largest < math.inf:
        return least
    return max(least, min(15, 1 + math.floor(math.log10(largest)) - math.floor(math.log10(half))))


def interval_cells(value: float, low: float, high: float) -> tuple[str, str, str]:
    """A number and the ends of its interval, these rounded outwards, by the digits it allows."""
    digits = digits_within(low, high)
    low_end, high_end = (in_digits(x, digits, direction=d) for x, d in ((low, -1), (high, 1)))
    return in_digits(value, digits), low_end, high_end


def number_cell(value: float, direction: int = 0, digits: int = 4) -> str:
    """A whole number in full, such as a count; any other by so many digits.

    Args:
        direction: As for `in_digits`: -1 for a low end and 1 for a high one, so that an interval
            as it is printed holds what it covers.
    """
    is_whole = abs(value) < 1e15 and value == int(value)
    return f"{value:.0f}" if is_whole else in_digits(value, digits, direction=direction)


def html_text(text: str) -> str:
    """Text that stands in a page as it is, whatever it holds."""
    return html.escape(one_line(text, LONGEST_CELL), quote=True)


@attrs.frozen(kw_only=True)
class Listing:
    """Headings and rows of texts, of one width.

    Args:
        numeric: Which columns hold numbers, and stand to the right.
    """

    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...] = ()

    @classmethod
    def of(cls, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> Listing:
        """From cells of any kind; numbers are told by four digits."""
        columns = list(zip(*rows, strict=True)) or [()] * len(headings)
        numeric = tuple(
            bool(column) and all(isinstance(cell, int | float) for cell in column)
            for column in columns
        )
        cells = tuple(tuple(map(_format, row)) for row in rows)
        return cls(headings=tuple(headings), rows=cells, numeric=numeric)

    @property
    def shown(self) -> tuple[tuple[tuple[str, ...], ...], str]:
        """The first rows, and a note on how many others there are; empty where there are none."""
        excess = len(self.rows) - MOST_ROWS
        return self.rows[:MOST_ROWS], f"{excess} more rows" if excess > 0 else ""

    def text(self) -> str:
        """The first rows as plain text, columns side by side, one line a row."""
        rows, note = self.shown
        cells = [self.headings, *rows] if any(self.headings) else list(rows)
        texts = [[one_line(cell, LONGEST_CELL) for cell in row] for row in cells]
        # Of shortened cells, so that one long text does not stretch the table.
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        lines = [
            "  ".join(
                cell.rjust(width) if self._right(place) else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in texts
        ]
        return "\n".join([*lines, *([f"({note})"] if note else [])])

    def html(self) -> str:
        """The first rows as a `<table>`, every text escaped."""
        rows, note = self.shown
        head = "".join(
            self._cell(heading, place, "th") for place, heading in enumerate(self.headings)
        )
        above = f"<thead><tr>{head}</tr></thead>" if any(self.headings) else ""
        body = "".join(f"<tr>{''.join(map(self._cell, row, range(len(row))))}</tr>" for row in rows)
        foot = f"<p>{html_text(note)}</p>" if note else ""
        return f"<table>{above}<tbody>{body}</tbody></table>{foot}"

    def _right(self, place: int) -> bool:
        return place < len(self.numeric) and self.numeric[place]

    def _cell(self, cell: str, place: int, tag: str = "td") -> str:
        side = "right" if self._right(place) else "left"  # a notebook puts all to the right
        return f'<{tag} style="text-align: {side}">{html_text(cell)}</{tag}>'


def _title(text: str) -> str:
    return one_line(text, LONGEST_CELL)


def _paragraphs(sentences: Sequence[str]) -> tuple[str, ...]:
    """Printable text, each of one line."""
    return tuple(one_line(sentence, LONGEST_PARAGRAPH) for sentence in sentences)


@attrs.frozen(kw_only=True)
class Sheet:
    """A title, a table or several, and sentences below.

    Args:
        title: A few words. sentences: Each a paragraph.
    """

    title: str = attrs.field(converter=_title)
    tables: tuple[Listing, ...] = ()
    sentences: tuple[str, ...] = attrs.field(default=(), converter=_paragraphs)

    def text(self) -> str:
        """The whole sheet as plain text, its parts divided by empty lines."""
        return "\n\n".join([self.title, *(table.text() for table in self.tables), *self.sentences])

    def html(self) -> str:
        """The whole sheet as a `<div>`, every text escaped."""
        tables = "".join(table.html() for table in self.tables)
        paragraphs = "".join(
            f"<p>{html.escape(sentence, quote=True)}</p>" for sentence in self.sentences
        )
        return f"<div><p><strong>{html_text(self.title)}</strong></p>{tables}{paragraphs}</div>"


class Shown(ABC):
    """An object that notebooks and terminals show by its public `sheet`."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Each class has the method of its own: IPython takes a class's own `__repr__` before a
        base's `_repr_pretty_`."""
        super().__init_subclass__(**options)
        cls._repr_pretty_ = Shown._repr_pretty_  # type: ignore[method-assign]

    @abstractmethod
    def sheet(self) -> Sheet:
        """What a notebook shows of it: public facts alone."""

    def text(self) -> str:
        """What a terminal shows of it, as plain text."""
        return self.sheet().text()

    def _repr_html_(self) -> str:
        return self.sheet().html()

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text("..." if cycle else self.text())


def facts(*pairs: tuple[str, object]) -> Listing:
    """Two columns: what, and how much."""
    return Listing(headings=("", ""), rows=tuple((name, _format(value)) for name, value in pairs))


def _format(value: object) -> str:
    return number_cell(value) if isinstance(value, float) else str(value)
