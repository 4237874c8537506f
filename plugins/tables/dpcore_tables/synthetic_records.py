"""Made-up records, from released shares alone: columns independent, categories equally frequent."""

import numpy as np
from numpy.typing import NDArray

from dpcore_tables.dictionary import Dictionary
from dpcore_tables.ranks import BINS, FARTHEST

_RECORDS = 1000


def simulated_rows(dictionary: Dictionary) -> NDArray[np.float64]:
    """phi of made-up records, shape (d, 1000): always the same ones."""
    return dictionary.rows(simulated_records(dictionary, _RECORDS))


def simulated_records(dictionary: Dictionary, count: int) -> NDArray[np.float64]:
    """Encoded, shape (count, p): always the same ones."""
    drawn = np.random.Generator(np.random.PCG64(0))
    ranks, layout = dictionary.ranks, dictionary.layout
    encoded = np.zeros((count, layout.starts[-1] + max(layout.levels[-1], 1)))
    for place, (levels, start) in enumerate(zip(layout.levels, layout.starts, strict=True)):
        if levels == 0:
            number = layout.numeric.index(place)
            bins = drawn.choice(BINS, count, p=ranks.shares[number])
            z = (bins + drawn.random(count)) * (2 * FARTHEST / BINS) - FARTHEST
            encoded[:, start] = ranks.means[number] + z * ranks.widths[number]
        elif levels == 2:
            encoded[:, start] = drawn.choice([-1.0, 1.0], count)
        else:
            encoded[np.arange(count), start + drawn.integers(levels, size=count)] = 1.0
    return encoded
