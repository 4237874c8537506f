"""Made-up records, from released shares alone: columns independent, categories equally frequent."""

import numpy as np
from numpy.typing import NDArray

from dpcore_tables.dictionary import INTERCEPT, Dictionary
from dpcore_tables.ranks import BINS, FARTHEST

_RECORDS = 1000


def simulated_rows(dictionary: Dictionary) -> NDArray[np.float64]:
    """phi of made-up records, shape (d, 1000): always the same ones."""
    return dictionary.rows(simulated_records(dictionary, _RECORDS))


def usual_shortening(dictionary: Dictionary) -> float:
    """By what rows are multiplied to be at most 1 long: the median of made-up records."""
    return float(np.median(simulated_rows(dictionary)[0])) / INTERCEPT


def simulated_records(dictionary: Dictionary, count: int) -> NDArray[np.float64]:
    """Encoded, shape (count, p): always the same ones."""
    # A fixed seed: the same answers give the same model, bit by bit, and no coins are spent.
    generator = np.random.Generator(np.random.PCG64(0))
    ranks, layout = dictionary.ranks, dictionary.layout
    encoded = np.zeros((count, layout.starts[-1] + max(layout.levels[-1], 1)))
    # Columns are independent here: the release knows no joint distribution of them.
    for place, (levels, start) in enumerate(zip(layout.levels, layout.starts, strict=True)):
        if levels == 0:
            number = layout.numeric.index(place)
            bins = generator.choice(BINS, count, p=ranks.shares[number])
            z = (bins + generator.random(count)) * (2 * FARTHEST / BINS) - FARTHEST
            encoded[:, start] = ranks.means[number] + z * ranks.widths[number]
        elif levels == 2:
            encoded[:, start] = generator.choice([-1.0, 1.0], count)
        elif levels > 2:
            encoded[np.arange(count), start + generator.integers(levels, size=count)] = 1.0
    return encoded
