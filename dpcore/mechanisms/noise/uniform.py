"""Uniform integers below a bound, exact: words past the last whole multiple are drawn again."""

import numpy as np
from numpy.typing import NDArray

from dpcore.errors import need
from dpcore.randomness import Stream


def uniform_below(bound: int, count: int, stream: Stream) -> NDArray[np.int64]:
    """Independent uniform draws from range(bound), shape (count,).

    Raises:
        ValueError: `bound` is not in [1, 2^63].
    """
    need(1 <= bound <= 1 << 63, ValueError, f"bound must be in [1, 2^63], got bound={bound!r}")
    last = np.uint64((1 << 64) // bound * bound - 1)  # words beyond it would favour small results
    words = stream.words(count).copy()
    while (rejects := np.flatnonzero(words > last)).size:
        words[rejects] = stream.words(rejects.size)
    words %= np.uint64(bound)
    return words.view(np.int64)
