r"""Clopper-Pearson: exact one-sided confidence ends of a probability, from counts.

The lower end at error rate a is the p with :math:`\Pr[\mathrm{Bin}(n,p)\ge k]=a`, the a-quantile of
Beta(k, n-k+1); the upper end the p with :math:`\Pr[\mathrm{Bin}(n,p)\le k]=a`. Either misses the
truth with probability at most a, whatever the truth and n.

Source: Clopper & Pearson (1934), Biometrika 26:404-413.
"""

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray


def at_least(hits: ArrayLike, trials: float, error: float) -> NDArray[np.float64]:
    """Lower ends, shape of `hits`. Expected counts may be fractions.

    Args:
        error: Probability that an end lies above the truth, in (0, 1).
    """
    hits = np.asarray(hits, dtype=np.float64)
    # without a hit the quantile is undefined, and the lower end is 0
    safe = np.maximum(hits, 1e-300)
    return np.where(hits > 0, scipy.special.betaincinv(safe, trials - hits + 1, error), 0.0)


def at_most(hits: ArrayLike, trials: float, error: float) -> NDArray[np.float64]:
    """Upper ends, shape of `hits`: one less the lower end of the misses."""
    hits = np.asarray(hits, dtype=np.float64)
    safe = np.maximum(trials - hits, 1e-300)
    if hasattr(scipy.special, "betainccinv"):  # from scipy 1.12 on
        ends = scipy.special.betainccinv(hits + 1, safe, error)
    else:  # the same number by symmetry, rounded up where the difference to 1 loses digits
        ends = np.nextafter(1 - scipy.special.betaincinv(safe, hits + 1, error), 1)
    return np.where(hits < trials, ends, 1.0)
