"""Metrics that are functions of a mean, and how far one record moves it."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.metrics.base import HoldOutPredictions
from dpcore.metrics.priced import PricedMetric
from dpcore.rounding import up


@attrs.frozen
class MeanMetric(PricedMetric):
    """A function of the mean, over the hold-out, of one term in [0, `diameter`] a record.

    The mean moves by at most reach / h when one of h records is replaced. It is the mean that is
    released; what is stated is computed after.
    """

    @abstractmethod
    def terms(self, predicted: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.float64]:
        """Compute a term a record, of predictions and labels in the file's units. Shape (n,)."""

    def source(self, name: str) -> str:
        """State in a clause that the statistic is a mean of terms in a public range."""
        return f"mean of {name} terms over the hold-out, each in a public range"

    def statistic(self, hold_out: HoldOutPredictions) -> float:
        """PRIVATE: return the mean of the terms."""
        return self.mean(hold_out.predicted, hold_out.truth)

    def mean(self, predicted: NDArray[Any], truth: NDArray[Any]) -> float:
        """Mean of the terms, from a correctly rounded sum."""
        return math.fsum(self.terms(predicted, truth)) / truth.size

    def sensitivity(self, target: Range | Classes, records: int) -> float:
        """Return how far the mean over `records` moves when one is replaced, rounded up."""
        # A replaced record changes one term of the mean; there is ample room for its rounding.
        return up(float(self.diameter(target) or 0.0) / records, roundings=5000)

    def measured(self, hold_out: HoldOutPredictions) -> Mapping[str, float]:
        """PRIVATE: of all records, and of each group."""
        return {
            name: self.stated(self.mean(hold_out.predicted[rows], hold_out.truth[rows]))
            for name, rows in hold_out.parts()
        }


@attrs.frozen
class _PowerMean(MeanMetric):
    """The mean of a power of |prediction - label|, predictions clipped to the label range."""

    power: ClassVar[int]
    """Of the error, in a term."""

    def diameter(self, target: Range | Classes) -> float | None:
        """(high - low)^power of a range."""
        return None if isinstance(target, Classes) else (target.high - target.low) ** self.power

    def terms(self, predicted: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.float64]:
        """|prediction - label|^power for each record, shape (n,)."""
        return np.asarray(np.abs(predicted - truth) ** self.power)


@attrs.frozen
class MeanAbsoluteError(_PowerMean):
    """The mean of |prediction - label|, predictions clipped to the label range."""

    power: ClassVar[int] = 1


@attrs.frozen
class MeanSquaredError(_PowerMean):
    """The mean of (prediction - label)^2, predictions clipped to the label range."""

    power: ClassVar[int] = 2


@attrs.frozen
class RootMeanSquaredError(_PowerMean):
    """The square root of `mse`."""

    power: ClassVar[int] = 2

    def stated(self, statistic: float) -> float:
        """After the root; a mean that noise made negative counts as 0 there."""
        # This comes after the release: a function of a released number costs nothing.
        return math.sqrt(max(statistic, 0.0))


@attrs.frozen
class Accuracy(MeanMetric):
    """The proportion of records whose class is predicted."""

    def diameter(self, target: Range | Classes) -> float | None:
        """1 for classes; None for a range."""
        return 1.0 if isinstance(target, Classes) else None

    def terms(self, predicted: NDArray[Any], truth: NDArray[Any]) -> NDArray[np.float64]:
        """1 where the classes agree, else 0."""
        return np.asarray(predicted == truth, dtype=np.float64)
