"""Made-up records, from released shares alone: columns independent, categories equally frequent."""

import numpy as np
from numpy.typing import NDArray

from dpcore_tables.dictionary import Dictionary
from dpcore_tables.ranks import BINS, FARTHEST

_RECORDS = 1000


def simulated_rows(dictionary: Dictionary) -> NDArray[np.float64]:
    """phi of made-up records, shape (d, 1000): always the same ones."""
    drawn = np.random.Generator(np.random.PCG64(0))
    ranks, layout = dictionary.ranks, dictionary.layout
    encoded = np.zeros((_RECORDS, layout.starts[-1] + max(layout.levels[-1], 1)))
    for place, (levels, start) in enumerate(zip(layout.levels, layout.starts, strict=True)):
        if levels == 0:
            number = layout.numeric.index(place)
            bins = drawn.choice(BINS, _RECORDS, p=ranks.shares[number])
            z = (bins + drawn.random(_RECORDS)) * (2 * FARTHEST / BINS) - FARTHEST
            encoded[:, start] = ranks.means[number] + z * ranks.widths[number]
        elif levels == 2:
            encoded[:, start] = drawn.choice([-1.0, 1.0], _RECORDS)
        else:
            encoded[np.arange(_RECORDS), start + drawn.integers(levels, size=_RECORDS)] = 1.0
    return dictionary.rows(encoded)
