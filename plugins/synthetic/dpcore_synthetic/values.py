"""Values: what the file of a column would hold, from the cells of rows.

A number is drawn evenly among those of so many decimals that lie in its cell, by public randomness:
no more is known of it than the cell. A row in no cell of a column has none there.
"""

from __future__ import annotations

import math
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.bins import cells_between
from dpcore.domain.columns import Dates
from dpcore.encoding.columns import read_numbers, write_cells
from dpcore.errors import need
from dpcore.randomness import Stream
from dpcore_statistics.columns import Cells, NumberColumn
from dpcore_synthetic.whole_numbers import Integers, draw_below

_FINEST = 12  # decimals
_NUMBERS = 1000  # in the narrowest cell, where no one says how many decimals


@attrs.frozen(kw_only=True, eq=False)
class NumberGrid:
    """Numbers of so many decimals in the cells of a range.

    Args:
        first, last: Of every cell, in units of the last decimal.
    """

    column: NumberColumn
    decimals: int
    first: Integers
    last: Integers

    @classmethod
    def of(cls, cells: Cells, decimals: int | None) -> NumberGrid:
        """Return the numbers of a column's cells; days of a range of dates.

        Args:
            decimals: If left out, as few as make 1,000 numbers in the narrowest cell.

        Raises:
            ParameterError: a cell has no such number, cells leave some of the range out, or numbers
                in units of the last decimal are beyond 64 bits.
        """
        column, edges = cells.column, np.array(cells.edges)
        assert isinstance(column, NumberColumn), "categories are texts"
        name = column.name
        covers = "edges from the low end of the range to its high end"
        need(cells.spans_range, name, covers, "edges", len(edges))
        ends = edges if cells.places is None else column.value(cells.places)
        if decimals is None:
            width = float(np.diff(ends).min())
            finest = 0 if isinstance(column.column, Dates) and width >= 1 else _FINEST
            enough = (k for k in range(finest) if width * 10**k >= _NUMBERS)
            decimals = next(enough, finest)
        # Rounded products may lie one number off: the records' own comparison decides.
        limits = ends * 10**decimals
        # The numbers between two such ends fit 63 bits, as they are drawn.
        need(
            np.abs(limits).max() < 2.0**62,
            name,
            "a range within 2^62 units of the last decimal",
            "decimals",
            decimals,
        )
        grid = cls(
            column=column,
            decimals=decimals,
            first=np.ceil(limits[:-1]).astype(np.int64) - 1,
            last=np.ceil(limits[1:]).astype(np.int64) + 1,
        )
        for bounds, step in ((grid.first, 1), (grid.last, -1)):
            for _ in range(3):
                bounds += step * (grid._cell(cells, bounds) != np.arange(bounds.size))
        is_somewhere = bool((grid.first <= grid.last).all())
        holds = "decimals of which every cell has a number"
        need(is_somewhere, name, holds, "decimals", decimals)
        return grid

    def numbers(self, units: Integers) -> NDArray[np.float64]:
        """Whole numbers of the last decimal as numbers of the column, inside its range."""
        ends = self.column.column
        return np.asarray(np.clip(units / 10**self.decimals, ends.low, ends.high))

    def _cell(self, cells: Cells, units: Integers) -> NDArray[np.intp]:
        """Return the cell of each, as a record's; -1 beyond the range."""
        ends, numbers = self.column.column, units / 10**self.decimals
        inside = (numbers >= ends.low) & (numbers <= ends.high)
        # As the file will hold them: of dates, no more than microseconds.
        numbers = read_numbers(ends, write_cells(ends, self.numbers(units)).tolist())
        codes = cells_between(cells.edges, numbers)
        if cells.places is not None:
            codes = cells_between(cells.places, self.column.position(numbers))
        return np.where(inside, codes, -1)

    def draw(self, codes: Integers, stream: Stream) -> NDArray[Any]:
        """Return a number for every row, evenly in its cell; of dates as texts."""
        present = codes < self.first.size
        cells = codes[present]
        first = self.first[cells]
        units = first + draw_below(stream, self.last[cells] - first + 1)
        numbers = np.full(codes.size, math.nan)
        numbers[present] = self.numbers(units)
        if not isinstance(self.column.column, Dates):
            return numbers
        texts = np.full(codes.size, "", dtype=object)
        days = write_cells(self.column.column, numbers[present])
        texts[present] = [str(text).removesuffix(" 00:00:00") for text in days]
        return texts.astype(np.str_)


def values_of(cells: Cells, codes: Integers, decimals: int | None, stream: Stream) -> NDArray[Any]:
    """Return a column's values: numbers, NaN where there is none; texts, empty where there is
    none.
    """
    if isinstance(cells.column, NumberColumn):
        return NumberGrid.of(cells, decimals).draw(codes, stream)
    return np.array([*map(str, cells.labels), ""])[codes]
