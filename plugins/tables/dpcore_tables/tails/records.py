r"""Synthetic records with the tails that released numbers show: a law beyond the last bin.

Released shares end with the cells of a column's ranks, three standard deviations from the mean. How
a tail goes on from there follows from the released variance: distances from the mean are those of
a Pareto law that ends with the declared range, of the index at which synthetic records have that
variance. Rows of squares are cut off at c2 in their release, and so they are here. Where the
variance is mostly noise, it is nearly that of index 2.
"""

import numpy as np
from numpy.typing import NDArray

from dpcore_tables.dictionary import Dictionary
from dpcore_tables.ranks import BINS, LIMIT, Ranks
from dpcore_tables.synthetic_records import simulated_records

BODY, TAIL = 256, 64
"""Synthetic records outside all tails, and in each of them."""

Tail = tuple[int, bool]
"""A number by its place among the numbers, and whether it is its upper tail."""

_LEAST_BODY, _MOSTLY = 0.2, 0.5
_INDICES = 2.0 ** (np.arange(-20, 25) / 8)  # 2 is the index of place 28
_USUAL, _LIKELY = 28, 0.25  # a part of what all indices make of a variance
_BEGIN = 1 - 2 / BINS  # of an end cell, where the tail's first distances are


def tailed_records(
    dictionary: Dictionary,
    variances: NDArray[np.float64],
    tails: list[Tail],
    square: float,
    noise: float,
    records: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Encoded, shape (k, p), and how many records each represents, shape (k,); always the same.

    Args:
        variances: Of numbers. tails: Of which each has `TAIL` records of its own.
        square: c2. noise: Standard deviation of a variance. records: n.
    """
    ranks, layout = dictionary.ranks, dictionary.layout
    encoded = simulated_records(dictionary, BODY + TAIL * len(tails))
    generator = np.random.Generator(np.random.PCG64(1))
    strata = [np.arange(BODY)]
    strata += [np.arange(start, start + TAIL) for start in range(BODY, len(encoded), TAIL)]
    counts, numbers = np.zeros(len(encoded)), sorted({number for number, _ in tails})
    for (number, above), rows in zip(tails, strata[1:], strict=True):
        counts[rows] = records * ranks.plain_fractions[number, _end(above)] / TAIL
    # Tails of different columns are taken to be of different records, as far as there is room.
    counts[:BODY] = max(records - counts.sum(), _LEAST_BODY * records) / BODY
    for number in numbers:
        ends = [_end(above) for owner, above in tails if owner == number]
        column = layout.starts[layout.numeric[number]]
        for rows in strata:
            order = generator.permutation(len(rows))
            encoded[rows, column] = _distribute_evenly(ranks, number, ends, order)
    for number in numbers:
        column, mean = layout.starts[layout.numeric[number]], ranks.means[number]
        squares = (encoded[:, layout.encoded] - ranks.means) ** 2
        squares[:, number] = 0.0
        others = (squares**2).sum(axis=1)
        # The column with tails of every index, and the variance that would be released of it.
        candidates = np.tile(encoded[:, column], (len(_INDICES), 1))
        for (owner, above), rows in zip(tails, strata[1:], strict=True):
            if owner == number:
                distances = _distances(*ranks.tail(number, above))
                candidates[:, rows] = mean + (distances if above else -distances)
        squares = (candidates - mean) ** 2
        short = np.minimum(1.0, square / np.sqrt(np.maximum(squares**2 + others, square**2)))
        totals = (squares * short) @ counts / counts.sum()
        likely = _LIKELY * (totals[0] - totals[-1])
        trust = 1 / (1 + (noise / likely) ** 2) if likely > 0 else 0.0
        goal = trust * variances[number] + (1 - trust) * totals[_USUAL]
        encoded[:, column] = candidates[np.argmin(np.abs(totals - goal))]
    return encoded, counts


def _end(above: bool) -> int:
    """Return the bin of a tail."""
    return BINS - 1 if above else 0


def _distribute_evenly(
    ranks: Ranks, number: int, ends: list[int], order: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Encoded numbers at evenly spaced ranks of all bins but the tails', in this order; shape (k,).

    No more of a bin is used than the declared range, as no record is elsewhere. Most records in a
    bin that the range ends in are at that end: such numbers are mostly zeros.
    """
    body = ranks.plain_fractions[number]
    body[ends] = 0.0
    below = np.concatenate([[0.0], np.cumsum(body / body.sum())])
    edges = ranks.means[number] + ranks.widths[number] * np.linspace(-LIMIT, LIMIT, BINS + 1)
    edges = np.clip(edges, -1.0, 1.0)
    for bin_ in np.flatnonzero(body > _MOSTLY * body.sum()).tolist():
        if edges[bin_] == -1.0:
            edges[bin_ + 1] = -1.0
        elif edges[bin_ + 1] == 1.0:
            edges[bin_] = 1.0
    return np.asarray(np.interp((order + 0.5) / len(order), below, edges))


def _distances(start: float, end: float) -> NDArray[np.float64]:
    """Of Pareto laws from the end cell's beginning to the range's end, shape (indices, TAIL)."""
    begin, indices = _BEGIN * start, _INDICES[:, None]
    places = (np.arange(TAIL) + 0.5) / TAIL
    return np.asarray(begin * (1 - places * (1 - (begin / end) ** indices)) ** (-1 / indices))
