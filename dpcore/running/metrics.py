"""Metrics of a hold-out, and how far one record moves them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
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

    def mean(self, batches: Iterable[tuple[NDArray[Any], NDArray[Any]]]) -> float:
        """Mean of the terms, from a sum that is rounded once, however it is cut into batches.

        Args:
            batches: Predictions and labels of some records each; of one record at least.
        """
        running = RunningMean(metric=self)
        for predicted, truth in batches:
            running.add(predicted, truth)
        return running.mean

    def sensitivity(self, target: Range | Classes, records: int) -> float:
        """How far the mean over `records` moves when one is replaced, rounded up."""
        return up(float(self.reach(target) or 0.0) / records, roundings=5000)


@attrs.define(kw_only=True)
class RunningMean:
    """The mean of a metric's terms so far, from a sum that is rounded once."""

    metric: Metric
    _parts: list[float] = attrs.field(factory=list, init=False)
    _count: int = attrs.field(default=0, init=False)

    def add(self, predicted: NDArray[Any], truth: NDArray[Any]) -> None:
        """The terms of some records more."""
        self._parts = _expansion([*self._parts, *self.metric.terms(predicted, truth).tolist()])
        self._count += truth.size

    @property
    def mean(self) -> float:
        """Of one record at least."""
        return math.fsum(self._parts) / self._count

    @property
    def stated(self) -> float:
        """What is told of the mean."""
        return self.metric.stated(self.mean)


def _expansion(terms: list[float]) -> list[float]:
    """A few numbers with the very same sum: it rounded, then what is left of it."""
    found: list[float] = []
    while left := math.fsum([*terms, *(-one for one in found)]):
        found.append(left)
        if not math.isfinite(left):
            break
    return found


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
