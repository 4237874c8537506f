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
