"""Layout: tables and lines that break between words only, at the width that there is.

A table whose columns do not fit at their longest words is given row by row. Where no one watches (a
file, a pipe) nothing has to fit, so that lines stay whole and tables are as wide as they need.
"""

from __future__ import annotations

import os
import shutil
import textwrap
from typing import TYPE_CHECKING, TextIO

import attrs
from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.table import Table

_WIDE = 120  # of what is written to a file
_WITH = 3  # spaces between two columns


class Page:
    """Standard output or error: lines break between words, and none is cut off.

    Args:
        stream: Where it is written; nowhere if None. A file or a pipe gets whole lines, so that
            other programs can read them, unless FORCE_COLOR says that a terminal shows them.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        is_forced = bool(os.environ.get("FORCE_COLOR"))
        self.is_terminal = stream is not None and (is_forced or stream.isatty())
        width = shutil.get_terminal_size().columns
        self.width = width if self.is_terminal else max(width, _WIDE)

    def print(self, item: str | Listing = "") -> None:
        """A text or a table; a word longer than a line is left to the terminal."""
        if isinstance(item, Listing):
            from rich.console import (
                Console,
            )  # a text is reported without Rich, whose import is dear

            console = Console(file=self._stream, width=self.width, highlight=False)
            console.print(item, soft_wrap=True)
        elif self.is_terminal:
            print("\n".join(lines(item, self.width)), file=self._stream)
        else:
            print(item, file=self._stream)


def lines(text: str, width: int) -> list[str]:
    """The lines of a text that goes on under its own indentation; paragraphs are filled anew."""
    output = []
    raw_lines = text.split("\n")
    # One paragraph without indentation may be filled anew; indented lines keep their breaks.
    if all(map(cell_len, raw_lines)) and not any(line[:1].isspace() for line in raw_lines):
        raw_lines = [" ".join(raw_lines)] if max(map(cell_len, raw_lines)) > width else raw_lines
    elif "\n\n" in text:
        return "\n\n".join(
            "\n".join(lines(paragraph, width)) for paragraph in text.split("\n\n")
        ).split("\n")
    for line in raw_lines:
        if cell_len(line) <= width:
            output.append(line)
            continue
        indent = line[: len(line) - len(line.lstrip())]
        output += textwrap.wrap(
            line,
            width,
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
        )
    return output


@attrs.define(kw_only=True)
class Listing:
    """A table: headings, a title above, and rows of texts without markup."""

    headings: tuple[str, ...]
    title: str | None = None
    rows: list[tuple[str, ...]] = attrs.field(factory=list)

    def add_row(self, *cells: str) -> None:
        """One more row, a cell for each heading."""
        self.rows.append(cells)

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        from rich.text import Text

        width, fits = options.max_width, console.is_terminal
        if self.title:
            title = "\n".join(lines(self.title, width)) if fits else self.title
            yield Text(title, style="table.title", no_wrap=True, overflow="ignore")
        edges = _WITH * len(self.headings) + 1
        cells = [*zip(self.headings, *self.rows, strict=True)]
        # Three widths decide: what cells want, what their longest words need, and what there is.
        natural = [max(map(cell_len, "\n".join(column).split("\n"))) for column in cells]
        minimum = [max([0, *map(cell_len, " ".join(column).split())]) for column in cells]
        if sum(natural) + edges <= width:
            yield self._table(natural)
        elif sum(minimum) + edges <= width:
            yield self._table(_proportion_width(minimum, natural, width - edges))
        elif not fits:
            table = self._table(minimum)
            table.width = sum(minimum) + edges
            yield table
        else:
            yield from self._row_by_row(width)

    def _table(self, widths: Sequence[int]) -> Table:
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading, width in zip(self.headings, widths, strict=True):
            table.add_column(Text(heading), overflow="fold", width=width)
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table

    def _row_by_row(self, width: int) -> Iterator[RenderableType]:
        from rich.text import Text

        for row in self.rows:
            yield Text()
            for heading, cell in zip(self.headings, row, strict=True):
                first, *tail = lines(f"{heading}: {cell}" if heading else cell, width - 2)
                for number, line in enumerate([first, *lines("\n".join(tail), width - 4)]):
                    if line:
                        text = Text(("    " if number else "") + line)
                        text.no_wrap, text.overflow = True, "ignore"
                        yield text
        yield Text()


def _proportion_width(minimum: Sequence[int], natural: Sequence[int], total: int) -> list[int]:
    """Widths that add up to `total`: what a column lacks is given to the least needy first."""
    widths, remainder = list(minimum), total - sum(minimum)
    order = sorted(range(len(widths)), key=lambda i: natural[i] - minimum[i])
    # Each column gets at most an equal part of what remains, so the neediest take what others
    # leave.
    for place, i in enumerate(order):
        extra = min(natural[i] - minimum[i], remainder // (len(order) - place))
        widths[i], remainder = widths[i] + extra, remainder - extra
    return widths
