r"""Joint: how far all of several noisy numbers lie from the truth together, by their joint law.

Numbers that are sums of the same noise are not independent, so that bars of their joint law are
narrower than Šidák's. That law is public: it is simulated once from a public stream that never
changes. Of N draws of the largest deviation, the one with k above it is no less than the quantile,
but for a probability :math:`P(\mathrm{Bin}(N,p)\le k)\le10^{-6}`; p is lowered by as much. The
result is rounded up to 16 bits, which hides the last bits of normal quantiles.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import binom

_NORMALS = 1 << 22  # drawn in all
_MOST_DRAWS, _FEWEST_DRAWS = 1 << 15, 1 << 12
_ERROR = 1e-6
_SEED = 20_260_101
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
    # Raw words, which no version of numpy changes; from the middle of 2^53 parts of (0, 1).
    words = np.random.PCG64(_SEED).random_raw(draws * size) >> np.uint64(11)
    normals = ndtri((words.astype(np.float64) + 0.5) * 2.0**-53)
    largest = np.sort(deviation(normals.reshape(draws, size)))
    mantissa, exponent = math.frexp(float(largest[draws - 1 - above]))
    return math.ldexp(math.ceil(math.ldexp(mantissa, 16)), exponent - 16)
