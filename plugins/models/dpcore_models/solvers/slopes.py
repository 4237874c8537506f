"""Derivatives of losses in one score, the first and the second, at scores and labels."""

import numpy as np
from numpy.typing import NDArray

from dpcore_models.solvers.elementary import half_tanh

Floats = NDArray[np.float64]


def square(scores: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Return the derivatives of half the squared residual; the second is at most 1."""
    return scores - labels, np.ones(len(scores))


def logistic(scores: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Return the derivatives of the logistic loss for labels -1 and 1; the second is <= 1/4."""
    halves = half_tanh(scores)
    return (halves - labels) / 2, (1 - halves * halves) / 4
