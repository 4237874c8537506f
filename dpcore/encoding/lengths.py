"""Lengths of rows, each a function of its own row to the last bit."""

import numpy as np
from numpy.typing import NDArray

_ENTRIES = 1 << 15  # at a time: what they need stays in a core's own cache


def row_lengths(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """l2 norms, shape (n, 1): squares are added in halves, in one order for any number of rows.

    numpy's own sums, and a matrix product's, take another order for another layout or number of
    rows. Relative error at most (3 + log2 of the width) u.
    """
    count, width = rows.shape
    if width == 0:
        return np.zeros((count, 1))
    lengths = np.empty((count, 1))
    step = max(1, _ENTRIES // width)
    for start in range(0, count, step):
        part = rows[start : start + step]
        squares = part * part
        columns_left = width
        while columns_left > 1:
            half = columns_left // 2
            # The last half is added to the first: the width alone decides the order.
            squares[:, :half] += squares[:, columns_left - half : columns_left]
            columns_left -= half
        np.sqrt(squares[:, :1], out=lengths[start : start + step])
    return lengths
