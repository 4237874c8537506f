"""Metrics of a hold-out, and how far one record moves them."""

import math

import attrs
import numpy as np
from numpy.typing import NDArray


@attrs.frozen
class Metric:
    """A root of the mean of |prediction - label|^power, predictions clipped to the label range.

    The mean moves by at most (high - low)^power / h when one of h records is replaced, because each
    term lies in [0, (high - low)^power]. It is the mean that is released; the root is taken after.

    Args:
        power: 1 or 2.
        root: Whether the square root of the mean is stated.
    """

    power: int
    root: bool = False

    def mean(self, predicted: NDArray[np.float64], truth: NDArray[np.float64]) -> float:
        """Before the root; in the file's units to the power; correctly rounded sum."""
        return math.fsum(np.abs(predicted - truth) ** self.power) / truth.size

    def stated(self, mean: float) -> float:
        """After the root; a mean that noise made negative counts as 0 there."""
        return math.sqrt(max(mean, 0.0)) if self.root else mean

    def sensitivity(self, label_width: float, records: int) -> float:
        """How far the mean over `records` moves when one is replaced, rounded up."""
        return float(label_width**self.power / records * (1 + 2.0**-40))


METRICS = {"mae": Metric(1), "mse": Metric(2), "rmse": Metric(2, root=True)}
"""Metrics by the name a spec gives."""
