"""Whole numbers: tables as integers, and draws of a public stream, the same on every processor.

What follows a display is computed in integers only: no last bit of a float decides about a row.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcore.randomness import Stream

Integers = NDArray[np.int64]

PLACES = 38
"""log2 of the units of a whole table: times 2^24 records they fit 63 bits."""

MOST_ROWS = 10_000_000


def in_units(table: NDArray[np.float64]) -> Integers:
    """Proportions of a table without negative cells, in units of 2^-38 of its sum, rounded down."""
    # `fsum` is rounded once, so that it does not depend on the order of the cells.
    total = math.fsum(table.ravel().tolist())
    return np.floor(np.ldexp(table / total, PLACES)).astype(np.int64)


def apportion(table: NDArray[np.float64], count: int) -> Integers:
    """Whole counts that add up to `count`, by largest remainders; ties go to the first cell.

    Args:
        count: At most `MOST_ROWS`.
    """
    proportions = in_units(table).ravel()
    quotas, remainders = np.divmod(proportions * count, proportions.sum())
    short = count - int(quotas.sum())
    quotas[np.argsort(-remainders, kind="stable")[:short]] += 1
    return quotas.reshape(table.shape)


def count_rows(columns: Sequence[Integers], shape: tuple[int, ...]) -> Integers:
    """Return how many rows are in every cell of some columns; `shape` is that of the table."""
    cells = columns[0]
    for column, side in zip(columns[1:], shape[1:], strict=True):
        cells = cells * side + column
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)


def draw_below(stream: Stream, bounds: Integers) -> Integers:
    """Uniform whole numbers from 0 to each bound less 1, without bias."""
    limits = bounds.astype(np.uint64)
    draws = np.zeros(limits.shape, dtype=np.uint64)
    places = np.arange(limits.size)
    while places.size:
        words, limit = stream.words(places.size), limits[places]
        # The lowest 2^64 mod b words would make small numbers likelier: they are drawn again.
        is_fair = words >= (np.uint64(0) - limit) % limit
        draws[places[is_fair]] = words[is_fair] % limit[is_fair]
        places = places[~is_fair]
    return draws.astype(np.int64)
