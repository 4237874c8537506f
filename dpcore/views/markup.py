"""`markup`: write listings and summaries as plain text and as HTML. All text is escaped.

Nothing here looks at more than the texts that it is given.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

import attrs

from dpcore.errors import one_line
from dpcore.shown import align, number_cell

LONGEST_CELL = 400  # characters of one cell
LONGEST_PARAGRAPH = 20_000
MOST_ROWS = 60  # of one table that are shown


def html_text(text: str) -> str:
    """Text that is in a page as it is, whatever it holds."""
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
        """Make a table from cells of any kind; numbers have four digits."""
        columns = list(zip(*rows, strict=True)) or [()] * len(headings)
        numeric = tuple(
            bool(column) and all(isinstance(cell, int | float) for cell in column)
            for column in columns
        )
        return cls(
            headings=tuple(headings),
            rows=tuple(tuple(map(_format, row)) for row in rows),
            numeric=numeric,
        )

    @property
    def shown(self) -> tuple[tuple[tuple[str, ...], ...], str]:
        """The first rows, and a note on how many others there are; empty where there are none."""
        excess = len(self.rows) - MOST_ROWS
        return self.rows[:MOST_ROWS], f"{excess} more rows" if excess > 0 else ""

    def text(self) -> str:
        """Return the first rows as plain text, columns side by side, one line a row."""
        rows, note = self.shown
        cells = [self.headings, *rows] if any(self.headings) else list(rows)
        # Of shortened cells, so that one long text does not stretch the table.
        texts = [[one_line(cell, LONGEST_CELL) for cell in row] for row in cells]
        lines = align(texts, [place for place, is_number in enumerate(self.numeric) if is_number])
        return "\n".join([*lines, *([f"({note})"] if note else [])])

    def html(self) -> str:
        """Return the first rows as a `<table>`, every text escaped."""
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
    return tuple(one_line(sentence, LONGEST_PARAGRAPH) for sentence in sentences)


@attrs.frozen(kw_only=True)
class Summary:
    """A title, a table or several, and sentences below.

    Args:
        title: A few words. sentences: Each a paragraph.
    """

    title: str = attrs.field(converter=_title)
    tables: tuple[Listing, ...] = ()
    sentences: tuple[str, ...] = attrs.field(default=(), converter=_paragraphs)

    def text(self) -> str:
        """Return the whole summary as plain text, its parts divided by empty lines."""
        return "\n\n".join([self.title, *(table.text() for table in self.tables), *self.sentences])

    def html(self) -> str:
        """Return the whole summary as a `<div>`, every text escaped."""
        tables = "".join(table.html() for table in self.tables)
        paragraphs = "".join(
            f"<p>{html.escape(sentence, quote=True)}</p>" for sentence in self.sentences
        )
        return f"<div><p><strong>{html_text(self.title)}</strong></p>{tables}{paragraphs}</div>"


def facts(*pairs: tuple[str, object]) -> Listing:
    """Two columns: what, and how much."""
    return Listing(headings=("", ""), rows=tuple((name, _format(value)) for name, value in pairs))


def _format(value: object) -> str:
    return number_cell(value) if isinstance(value, float) else str(value)
