"""Certified lower ends of a hockey-stick divergence, from draws of both sides."""

import math

import numpy as np
import scipy
from numpy.typing import NDArray


def certified(
    p: NDArray[np.float64], q: NDArray[np.float64], epsilon: float, level: float
) -> float:
    """Return a lower confidence end of sup_E P(E) - e^epsilon Q(E) over half-lines.

    The half-line is chosen on the first half of the draws and tested on the second, by
    Clopper-Pearson ends of error rate `level` each.
    """
    half = len(p) // 2
    cuts = np.unique(np.concatenate([p[:half], q[:half]]))
    # fewer cuts cost power, and nothing else
    cuts = cuts[:: max(1, len(cuts) // 200)]
    best, event = -math.inf, (cuts[0], 1.0)
    ordered = np.sort(p[:half]), np.sort(q[:half])
    for side in (1.0, -1.0):
        first, second = (mixture_weights(values, cuts, side) for values in ordered)
        gain = first - math.exp(epsilon) * second
        if gain.max() > best:
            best, event = float(gain.max()), (cuts[int(gain.argmax())], side)
    cut, side = event
    # the second half did not choose the event: plain ends hold for it
    hits_p = int((side * p[half:] >= side * cut).sum())
    hits_q = int((side * q[half:] >= side * cut).sum())
    trials = len(p) - half
    low, high = binomial_ends(hits_p, trials, level)[0], binomial_ends(hits_q, trials, level)[1]
    return low - math.exp(epsilon) * high


def mixture_weights(
    ordered: NDArray[np.float64], cuts: NDArray[np.float64], side: float
) -> NDArray[np.float64]:
    """Of sorted values, those that are at least each cut (side 1), at most (-1) or equal (0)."""
    below = np.searchsorted(ordered, cuts, side="left")
    upto = np.searchsorted(ordered, cuts, side="right")
    hits = {1.0: ordered.size - below, -1.0: upto, 0.0: upto - below}[side]
    return np.asarray(hits / ordered.size)


def binomial_ends(hits: int, trials: int, level: float) -> tuple[float, float]:
    """Clopper-Pearson ends of a probability; each errs with probability `level`."""
    low = float(scipy.stats.beta.ppf(level, hits, trials - hits + 1)) if hits else 0.0
    high = float(scipy.stats.beta.isf(level, hits + 1, trials - hits)) if hits < trials else 1.0
    return low, high


def smallest(draws: int, level: float) -> float:
    """Return the excess at epsilon = 0 that `certified` sees of an event that holds half of the
    time.
    """
    return 2 * float(scipy.stats.norm.isf(level)) * 0.5 / math.sqrt(draws / 2)
