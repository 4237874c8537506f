r"""The cells of pairs: where a record is in the tables of two columns.

A number has 32 parts of equal rank, by released histograms, and a category its levels. Which pairs
may become tables is public: those with a category, as two numbers have products of smooth
functions, and with as many cells as the signal can distinguish.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcore_tables.layout import Layout
from dpcore_tables.ranks import Ranks

PIECES = 32
"""Parts of a number."""

MOST_TABLES = 4
"""At once."""

_MOST, _FEWEST = 2500, 90
"""Cells of all tables together, and of one: smaller tables are sums of few products as well."""

_SIGNAL = 2.0  # per cell, at least

Pair = tuple[int, int]
"""Declared columns by their places, in order."""


def possible_pairs(layout: Layout, signal: float) -> list[Pair]:
    """Pairs that may become tables."""
    pairs = [
        (i, j)
        for i in range(layout.columns)
        for j in range(i + 1, layout.columns)
        if layout.has_pair(i, j) and (layout.levels[i] or layout.levels[j])
    ]
    most = min(_MOST, int(signal / _SIGNAL))
    return [pair for pair in pairs if _FEWEST <= _size(layout, pair) <= most]


def most_cells(layout: Layout, signal: float) -> int:
    """Return how many cells tables have together, at most."""
    sizes = sorted((_size(layout, pair) for pair in possible_pairs(layout, signal)), reverse=True)
    return min(sum(sizes[:MOST_TABLES]), _MOST)


def first_that_fit(layout: Layout, pairs: Sequence[Pair]) -> list[Pair]:
    """Of these pairs, in order, those for which there is room: errors of shapes take time with
    the square of a table's cells."""
    room, fitting = _MOST, list[Pair]()
    for pair in pairs:
        if len(fitting) < MOST_TABLES and _size(layout, pair) <= room:
            room -= _size(layout, pair)
            fitting.append(pair)
    return fitting


def sides(layout: Layout, pair: Pair) -> tuple[int, int]:
    """Return how many cells each column of a pair has."""
    first, second = (layout.levels[column] or PIECES for column in pair)
    return first, second


def _size(layout: Layout, pair: Pair) -> int:
    first, second = sides(layout, pair)
    return first * second


def column_cells(
    layout: Layout, column: int, encoded: NDArray[np.float64], ranks: Ranks | None = None
) -> NDArray[np.intp]:
    """Which cell of one column each encoded row is in, shape (n,); row-wise in the records.

    Args:
        ranks: Of numbers, which need them.
    """
    start, levels = layout.starts[column], layout.levels[column]
    if levels == 0:
        assert ranks is not None, "parts of a number are of equal rank"
        single = ranks.only(layout.numeric.index(column))
        return np.asarray(single.parts(encoded[:, [start]], PIECES)[0])
    if levels == 2:
        return np.asarray(encoded[:, start] > 0, dtype=np.intp)
    return np.asarray(np.argmax(encoded[:, start : start + levels], axis=1), dtype=np.intp)


def cells_of(
    layout: Layout, ranks: Ranks, pairs: NDArray[np.intp], encoded: NDArray[np.float64]
) -> NDArray[np.intp]:
    """Which cell of every pair each row is in, counted through all tables; (n, p) to (J, n)."""
    columns = {
        column: column_cells(layout, column, encoded, ranks)
        for column in sorted({*pairs.ravel().tolist()})
    }
    places, first = np.empty((len(pairs), len(encoded)), dtype=np.intp), 0
    for row, (i, j) in zip(places, pairs.tolist(), strict=True):
        row[:] = first + columns[i] * sides(layout, (i, j))[1] + columns[j]
        first += _size(layout, (i, j))
    return places
