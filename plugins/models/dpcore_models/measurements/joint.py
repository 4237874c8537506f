r"""Joint: how far all of several noisy numbers lie from the truth together, by their joint law.

Numbers that are sums of the same noise are not independent, so that bars of their joint law are
narrower than Šidák's. That law is public: it is simulated once from a public stream that never
changes. Of N draws of the largest deviation, the one with k above it is no less than the quantile,
but for a probability :math:`P(\mathrm{Bin}(N,p)\le k)\le10^{-6}`; p is lowered by as much.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from dpcore.randomness import Stream

_NORMALS = 1 << 22  # drawn in all
_MOST_DRAWS, _FEWEST_DRAWS = 1 << 15, 1 << 12
_ERROR = 1e-6
MOST_SIMULATED = _NORMALS // _FEWEST_DRAWS


def simulated_quantile(
    deviation: Callable[[NDArray[np.float64]], NDArray[np.float64]], size: int, miss: float
) -> float | None:
    """z such that the largest deviation is at most z, but for a probability of `miss`.

    Args:
        deviation: The largest deviation of every row, from standard normal draws, shape (m, size).
        size: How many independent noises there are.

    Returns:
        None where the draws would be too few, or the miss too small for them.
    """
    draws = min(_MOST_DRAWS, _NORMALS // max(size, 1))
    if draws < _FEWEST_DRAWS or miss <= _ERROR:
        return None
    # The largest k whose order statistic is no less than the quantile, but for the error.
    above = int(binom.ppf(_ERROR, draws, miss - _ERROR)) - 1
    if above < 0:
        return None
    stream = Stream(b"public", (0, "joint bars"))
    largest = np.sort(deviation(stream.normal((draws, size))))
    return float(largest[draws - 1 - above])
