"""Certified lower ends of a hockey-stick divergence, from draws of both sides."""

from __future__ import annotations

import math

import numpy as np
import scipy
from numpy.typing import NDArray


def certified(
    p: NDArray[np.float64], q: NDArray[np.float64], epsilon: float, level: float
) -> float:
    """A lower confidence end of sup_E P(E) - e^epsilon Q(E) over half-lines.

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
        first, second = (_shares(values, cuts, side) for values in ordered)
        gain = first - math.exp(epsilon) * second
        if gain.max() > best:
            best, event = float(gain.max()), (cuts[int(gain.argmax())], side)
    cut, side = event
    # the second half did not choose the event: plain ends hold for it
    hits_p = int((side * p[half:] >= side * cut).sum())
    hits_q = int((side * q[half:] >= side * cut).sum())
    trials = len(p) - half
    low = float(scipy.stats.beta.ppf(level, hits_p, trials - hits_p + 1)) if hits_p else 0.0
    high = (
        float(scipy.stats.beta.isf(level, hits_q + 1, trials - hits_q)) if hits_q < trials else 1.0
    )
    return low - math.exp(epsilon) * high


def _shares(
    ordered: NDArray[np.float64], cuts: NDArray[np.float64], side: float
) -> NDArray[np.float64]:
    """Of the values that are at least each cut (side 1), or at most."""
    if side > 0:
        hits = ordered.size - np.searchsorted(ordered, cuts, side="left")
    else:
        hits = np.searchsorted(ordered, cuts, side="right")
    return np.asarray(hits / ordered.size)


def smallest(draws: int, level: float) -> float:
    """The excess at epsilon = 0 that `certified` sees of an event that holds half of the time."""
    return 2 * float(scipy.stats.norm.isf(level)) * 0.5 / math.sqrt(draws / 2)
