"""Metrics of a hold-out, and how far one record moves them."""

import math
from abc import ABC, abstractmethod
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.rounding import up


class Metric(ABC):
    """A function of the mean, over the hold-out, of one term in [0, `reach`] a record.

    The mean moves by at most reach / h when one of h records is replaced. It is the mean that is
    released; what is stated is computed after.
    """

    @abstractmethod
    def reach(self, target: Range | Classes) -> float | None:
        """The largest value of a term; None if the metric is not about such a target."""

    @abstractmethod
    def terms(self, predicted: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.float64]:
        """One term a record, of predictions and labels in the file's units. Shape (n,)."""

    def stated(self, mean: float) -> float:
        """What is told of a mean: here the mean itself."""
        return mean

    def mean(self, predicted: NDArray[Any], truth: NDArray[Any]) -> float:
        """Mean of the terms, from a correctly rounded sum."""
        return math.fsum(self.terms(predicted, truth)) / truth.size

    def sensitivity(self, target: Range | Classes, records: int) -> float:
        """How far the mean over `records` moves when one is replaced, rounded up."""
        return up(float(self.reach(target) or 0.0) / records, roundings=5000)


@attrs.frozen
class PowerError(Metric):
    """A root of the mean of |prediction - label|^power, predictions clipped to the label range.

    Args:
        power: 1 or 2.
        root: Whether the square root of the mean is stated.
    """

    power: int
    root: bool = False

    def reach(self, target: Range | Classes) -> float | None:
        """(high - low)^power of a range."""
        return None if isinstance(target, Classes) else (target.high - target.low) ** self.power

    def terms(self, predicted: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.float64]:
        """|prediction - label|^power."""
        powers: NDArray[np.float64] = np.abs(predicted - truth) ** self.power
        return powers

    def stated(self, mean: float) -> float:
        """After the root; a mean that noise made negative counts as 0 there."""
        return math.sqrt(max(mean, 0.0)) if self.root else mean


@attrs.frozen
class Accuracy(Metric):
    """The share of records whose class is predicted."""

    def reach(self, target: Range | Classes) -> float | None:
        """1 for classes."""
        return 1.0 if isinstance(target, Classes) else None

    def terms(self, predicted: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.float64]:
        """1 where the classes agree, else 0."""
        return np.asarray(predicted == truth, dtype=np.float64)


METRICS: dict[str, Metric] = {
    "accuracy": Accuracy(),
    "mae": PowerError(1),
    "mse": PowerError(2),
    "rmse": PowerError(2, root=True),
}
"""Metrics by the name a spec gives."""
