"""Edges: where equal cells of a range begin, and which cell a number is in.

Edges are in the file's own units, and numbers are compared with them there: what a record encodes
to has been rounded, and two numbers may encode alike.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.columns import Range
from dpcore.records.records import Records


@lru_cache(maxsize=64)
def equal_edges(low: float, high: float, count: int) -> tuple[float, ...]:
    """Edges of equal cells of [low, high], one more than cells.

    Each is the double nearest to the rational low + i (high - low)/count, where low and high are
    what their digits say: 0.1 is a tenth.
    """
    first, last = (Fraction(str(end)) for end in (low, high))
    # A fraction of Python's becomes the nearest double, however large its integers are.
    return tuple(float(first + i * (last - first) / count) for i in range(count + 1))


def cells_between(edges: Sequence[float] | NDArray[Any], numbers: NDArray[Any]) -> NDArray[np.intp]:
    """The cell of each number, -1 where it is in none. Shape (n,).

    A number on an edge is in the cell that begins there; the last cell holds its upper edge too.
    """
    ends = np.asarray(edges, dtype=np.float64)
    last = len(ends) - 2
    cells = np.searchsorted(ends, numbers, side="right") - 1
    cells = np.where(numbers == ends[-1], last, cells)
    return np.where(cells <= last, cells, -1)  # NaN is sorted behind all edges


def cells_of(
    records: Records, name: str, column: Range, start: int | None, edges: Sequence[float]
) -> NDArray[np.intp]:
    """PRIVATE: the cell of every record's number, -1 where it is in none. Shape (n,).

    Of records that hold encoded columns alone, by where edges are encoded: a number on an edge is
    in the cell that begins there, and so is what encodes as the edge does.

    Args:
        start: The first encoded column; None for the target.
        edges: Increasing, in the file's units; infinite ones too.
    """
    if (numbers := records.numbers_of(name)) is not None:
        return cells_between(edges, numbers)
    ends = np.asarray(edges, dtype=np.float64)
    places = column.offset(ends) if start is None else column.position(ends)
    # Every record stands below an edge beyond the range, such as the end of a last day.
    places = np.where(ends > column.high, np.inf, places)
    if start is None:
        return cells_between(places, records.labels)
    cells = cells_between(places, records.columns(start, start + 1)[:, 0])
    if column.missing:
        cells = np.where(records.columns(start + 1, start + 2)[:, 0] < 0.5, cells, -1)
    return cells
