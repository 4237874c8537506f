"""Synthetic records, from released shares only: columns independent, and categories equally
frequent but where their shares are given."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcore_tables.dictionary import INTERCEPT, Dictionary
from dpcore_tables.ranks import BINS, LIMIT

_RECORDS = 1000


def simulated_rows(
    dictionary: Dictionary, levels: Sequence[NDArray[np.float64]] = ()
) -> NDArray[np.float64]:
    """phi of synthetic records, shape (d, 1000): always the same ones; arguments of
    `simulated_records`."""
    return dictionary.rows(simulated_records(dictionary, _RECORDS, levels))


def usual_shortening(dictionary: Dictionary) -> float:
    """By what rows are multiplied to be at most 1 long: the median of synthetic records."""
    return float(np.median(simulated_rows(dictionary)[0])) / INTERCEPT


def simulated_records(
    dictionary: Dictionary, count: int, proportions: Sequence[NDArray[np.float64]] = ()
) -> NDArray[np.float64]:
    """Encoded, shape (count, p): always the same ones.

    Args:
        proportions: Of every declared column's categories, of which as many records are made;
            equally frequent ones are drawn if it is empty.
    """
    # A fixed seed: the same answers give the same model, bit by bit, and no randomness is spent.
    generator = np.random.Generator(np.random.PCG64(0))
    ranks, layout = dictionary.ranks, dictionary.layout
    encoded = np.zeros((count, layout.starts[-1] + max(layout.levels[-1], 1)))
    # Columns are independent here: the release knows no joint distribution of them.
    for place, (levels, start) in enumerate(zip(layout.levels, layout.starts, strict=True)):
        if levels == 0:
            number = layout.numeric.index(place)
            bins = generator.choice(BINS, count, p=ranks.shares[number])
            z = (bins + generator.random(count)) * (2 * LIMIT / BINS) - LIMIT
            encoded[:, start] = ranks.means[number] + z * ranks.widths[number]
        elif levels > 0:
            if proportions:
                ranks_of_records = (generator.permutation(count) + 0.5) / count
                codes = np.searchsorted(np.cumsum(proportions[place])[:-1], ranks_of_records)
            elif levels == 2:
                codes = generator.choice(2, count)
            else:
                codes = generator.integers(levels, size=count)
            if levels == 2:
                encoded[:, start] = 2.0 * codes - 1
            else:
                encoded[np.arange(count), start + codes] = 1.0
    return encoded
