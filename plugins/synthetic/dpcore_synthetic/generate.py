"""Generate: from a display to rows of cells, by public randomness and whole numbers only.

Of very many rows, fewer are made and then copied: a sweep over all of them would take long. Copies
have the proportions of the rows that they are of, and are as near to the display.
"""

import numpy as np

from dpcore.randomness import Stream
from dpcore_statistics.marginals.display import Display
from dpcore_synthetic.descent import descend
from dpcore_synthetic.network import first_rows
from dpcore_synthetic.whole_numbers import Integers, apportion

_WORK = 1 << 26  # rows times squared columns of a sweep, and times three for each triple
_FEWEST = 1 << 14


def generate(display: Display, count: int, sweeps: int, stream: Stream) -> Integers:
    """Cells of so many rows, shape (count, columns), columns in the order of their numbers."""
    columns = sorted(display.one_way)
    sizes = [display.one_way[column].size for column in columns]
    most = max(_FEWEST, _WORK // (len(columns) ** 2 + 3 * len(display.triples)))
    copies = -(-count // most)
    rows = first_rows(display, -(-count // copies), stream)
    rows = _nearer(display, rows, sizes, sweeps, most, stream)
    if copies > 1:
        rows = np.repeat(rows, copies, axis=0)[stream.subset(len(rows) * copies, count)]
    return rows


def _nearer(
    display: Display, rows: Integers, sizes: list[int], sweeps: int, most: int, stream: Stream
) -> Integers:
    """Return the same rows, their tables nearer to those of the display."""
    place = {column: number for number, column in enumerate(sorted(display.one_way))}
    targets = {
        tuple(place[i] for i in columns): apportion(table, len(rows))
        for columns, table in (*display.pairs.items(), *display.triples.items())
    }
    return descend(rows, sizes, targets, sweeps, stream, most)[0]
