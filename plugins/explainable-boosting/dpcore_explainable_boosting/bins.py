"""Private bins of columns: cells of declared ranges, merged by their released counts.

A number has twice as many equal cells as it may have bins, a category one for each declared value.
Bins of numbers are stretches of cells, closed as soon as they hold a fair proportion of the
records; rare categories share one bin. After Nori et al. (2021), in their public code.
"""

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Categories, Domain, Range, Records
from dpcore.domain.bins import equal_edges
from dpcore.encoding.columns import cells_of
from dpcore.errors import UndeclaredError


@attrs.frozen
class Cells:
    """The cells of all declared columns, side by side.

    Args:
        names: The columns. sizes: How many cells each has. starts: Its first encoded column.
        domain: Whose columns they are.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    starts: tuple[int, ...]
    domain: Domain = attrs.field(repr=False)

    @classmethod
    def of(cls, domain: Domain, bins: int, weight: str | None = None) -> "Cells":
        """Two cells for each bin of a number, one for each category; none of the weights' column.

        Raises:
            UndeclaredError: a column is of texts.
        """
        names, sizes, starts, start = [], [], [], 0
        for name, column in domain.columns.items():
            if not isinstance(column, Range | Categories):
                raise UndeclaredError("explainable_boosting fits numbers and categories, not texts")
            if name != weight:
                names.append(name)
                sizes.append(2 * bins if isinstance(column, Range) else len(column.values))
                starts.append(start)
            start += column.width
        return cls(tuple(names), tuple(sizes), tuple(starts), domain)

    @property
    def offsets(self) -> NDArray[np.intp]:
        """Where each column's cells begin, and the number of all cells."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.intp)

    def places(self, records: Records) -> NDArray[np.intp]:
        """Which of its column's cells each record is in; shape (columns, n). Row-wise.

        A missing number counts as the middle of its range, an unknown category as the first.
        """
        places = np.zeros((len(self.sizes), len(records)), dtype=np.intp)
        # Where rows are scaled to a norm, numbers are what is left of them.
        by_edges = self.domain.cells == "nearest_double" and self.domain.norm is None
        for row, name, size, start in zip(places, self.names, self.sizes, self.starts, strict=True):
            column = self.domain.columns[name]
            if isinstance(column, Range) and by_edges:
                edges = equal_edges(column.low, column.high, size)
                cells = cells_of(records, name, column, start, edges)
                row[:] = np.where(cells < 0, size // 2, cells)
            elif isinstance(column, Range) or size == 2:  # categories are encoded as -1 and 1
                encoded = records.columns(start, start + 1)[:, 0]
                row[:] = np.clip(np.floor((encoded + 1) * (size / 2)), 0, size - 1)
            else:
                row[:] = np.argmax(records.columns(start, start + size), axis=1)
        return places


def bins_of_number(counts: NDArray[np.float64], least: float) -> NDArray[np.intp]:
    """Return the bin of each cell in order: closed once it holds `least`, what is left over joining
    the last one."""
    bins, weight, number = np.zeros(len(counts), dtype=np.intp), 0.0, 0
    for cell, count in enumerate(counts.tolist()):
        bins[cell] = number
        weight += count
        if weight >= least:
            number, weight = number + 1, 0.0
    return np.minimum(bins, max(number - 1, 0))


def bins_of_categories(counts: NDArray[np.float64], least: float) -> NDArray[np.intp]:
    """Return one bin for each category that holds `least`, and a last one for all others, which the
    smallest of the former joins where they hold less."""
    is_rare = counts < least
    if is_rare.any() and not is_rare.all() and counts[is_rare].sum() < least:
        is_rare[np.argmin(np.where(is_rare, np.inf, counts))] = True
    return np.where(is_rare, np.count_nonzero(~is_rare), np.cumsum(~is_rare) - 1)
