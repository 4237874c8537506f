r"""Proportions of classes from noisy ones: their mean, given these, if all shares were alike
likely.

Few records leave shares with noise of their own size, and where a share is taken to be 0 a record
of its class costs much. The mean of a Gaussian of mean a and deviation s on [0, 1] is what two
classes have. Of several each has that of :math:`a_k-t`, with t such that they add up to 1.
"""

import numpy as np
from numpy.typing import NDArray

_LIMIT, _POINTS, _ROUNDS = 8.0, 201, 60


def likely_proportions(released: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Shares above 0: of several classes, which add up to 1, or of two the second's; shape (m,).

    Args:
        noise: Standard deviation of each released share.
    """
    if len(released) == 1:
        return _means(released, noise)
    low, high = -1.0 - _LIMIT * noise, float(released.max()) + _LIMIT * noise
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        is_low = _means(released - middle, noise).sum() > 1
        low, high = (middle, high) if is_low else (low, middle)
    proportions = _means(released - low, noise)
    return np.asarray(proportions / proportions.sum())


def _means(centres: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Of Gaussians on [0, 1], shape (m,)."""
    starts = np.clip(centres - _LIMIT * noise, 0.0, 1.0)
    ends = np.minimum(starts + 2 * _LIMIT * noise, 1.0)
    places = (np.arange(_POINTS) + 0.5) / _POINTS
    points = starts[:, None] + (ends - starts)[:, None] * places
    logarithms = -(((points - centres[:, None]) / noise) ** 2) / 2
    weights = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    return np.asarray(np.sum(weights * points, axis=1) / weights.sum(axis=1))
