"""Rates of two classes: how often the second is predicted, in all and by group."""

from abc import abstractmethod
from collections.abc import Mapping

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.metrics.base import WHOLE, HoldOutPredictions, Metric

GAP = "gap"


@attrs.frozen
class _Rate(Metric):
    """A proportion of some records, reported of all, of each group, and the largest difference."""

    def about(self, target: Range | Classes) -> bool:
        """Return whether the target has exactly two classes."""
        return isinstance(target, Classes) and target.count == 2

    def measured(self, hold_out: HoldOutPredictions) -> Mapping[str, float]:
        """PRIVATE: compute the rate of all records and of each group; NaN if no record counts."""
        assert isinstance(hold_out.target, Classes), "rates are of classes"
        second = hold_out.target.named(np.array([1]))[0]
        is_counted = self.counted(hold_out.truth == second)
        positive = hold_out.predicted == second
        rates = {
            name: float(positive[rows & is_counted].mean()) if (rows & is_counted).any() else np.nan
            for name, rows in hold_out.parts()
        }
        # The gap is that of groups in which some record counts.
        groups = [rate for name, rate in rates.items() if name != WHOLE and not np.isnan(rate)]
        return {**rates, GAP: max(groups) - min(groups)} if groups else rates

    @abstractmethod
    def counted(self, positive: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Mark the records that count, by whether their label is the second class."""


@attrs.frozen
class PositiveRate(_Rate):
    """The proportion of records for which the second of two classes is predicted."""

    def counted(self, positive: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return every record counts, shape (n,)."""
        return np.ones_like(positive)


@attrs.frozen
class TruePositiveRate(_Rate):
    """The share that is predicted of those that are of the second of two classes."""

    def counted(self, positive: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return those of the second class."""
        return positive


@attrs.frozen
class FalsePositiveRate(_Rate):
    """The share that is predicted of those that are of the first of two classes."""

    def counted(self, positive: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return those of the first class."""
        return ~positive
