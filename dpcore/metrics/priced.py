"""PricedMetric: a metric that can be paid for, since one record moves its statistic a little.

Without a price it goes to the operator only. Where a spec pays for it (`evaluate.private`), its
*statistic* over the hold-out is released with noise of its sensitivity.
"""

from abc import abstractmethod

import attrs

from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.metrics.base import HoldOutPredictions, Metric


@attrs.frozen
class PricedMetric(Metric):
    """A function of one number, the statistic, in an interval of length `diameter`.

    It is the statistic that is released; what is stated is computed after.
    """

    @abstractmethod
    def diameter(self, target: Range | Classes) -> float | None:
        """Return how long the statistic's interval is; None if the metric is not about such a
        target.
        """

    @abstractmethod
    def sensitivity(self, target: Range | Classes, records: int) -> float:
        """Return how far the statistic over `records` moves when one is replaced, rounded up."""

    @abstractmethod
    def statistic(self, hold_out: HoldOutPredictions) -> float:
        """PRIVATE: of at least one record, within 8 roundings of `diameter`."""

    def source(self, name: str) -> str:
        """Why the sensitivity holds, in one clause.

        Args:
            name: Its own, in the spec.
        """
        return f"{name} over the hold-out, a statistic of bounded sensitivity"

    def stated(self, statistic: float) -> float:
        """Return what is reported of a released statistic: here the statistic itself."""
        return statistic

    def about(self, target: Range | Classes) -> bool:
        """Return whether the statistic has a reach."""
        return self.diameter(target) is not None
