r"""Calibration: how far stated probabilities lie from the shares that were found, by bin.

With r the stated probability of the second class less whether it was it, summed by equal bins of
that probability, the error is the sum of the bins' :math:`|\sum r|`, over n. A record has
:math:`|r|\le1` and is in one bin, so that replacing it changes :math:`\sum_b|\sum r|` by at most
:math:`|r|+|r'|\le2`: the error moves by at most 2/n. (Two records that each draw their bin back to
0 reach that.)
"""

import math
from collections.abc import Mapping
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import positive_integer
from dpcore.domain.bins import cells_between, equal_edges
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.metrics.base import Curve, HoldOutPredictions
from dpcore.metrics.priced import PricedMetric
from dpcore.rounding import up


@attrs.frozen(kw_only=True)
class CalibrationError(PricedMetric):
    """How far stated probabilities lie from the proportion of the second class, a mean over equal
    bins.

    Args:
        bins: Of [0, 1].
    """

    needs_probabilities: ClassVar[bool] = True

    bins: int = attrs.field(default=10, validator=positive_integer)

    def diameter(self, target: Range | Classes) -> float | None:
        """Return 1 for two classes; None for any other target."""
        return 1.0 if isinstance(target, Classes) and target.count == 2 else None

    def sensitivity(self, target: Range | Classes, records: int) -> float:
        """Return 2 / records, as shown above; rounded up."""
        return up(2.0 / records, roundings=8)

    def source(self, name: str) -> str:
        """Describe, in one clause, the bins that the bound above is about."""
        return f"{name}: probabilities less shares on the hold-out, by bin"

    def statistic(self, hold_out: HoldOutPredictions) -> float:
        """PRIVATE: sum over bins of |sum of probabilities - number of the second class| / n."""
        bins, residuals = self._bins(hold_out.scores), hold_out.scores - hold_out.second()
        # `fsum` rounds correctly, so that the order of records changes no bit.
        total = math.fsum(
            abs(math.fsum(residuals[bins == bin_number])) for bin_number in np.unique(bins)
        )
        return min(total / hold_out.truth.size, 1.0)

    def measured(self, hold_out: HoldOutPredictions) -> Mapping[str, float]:
        """PRIVATE: compute the error of all records, and of each group."""
        bins, residuals = self._bins(hold_out.scores), hold_out.scores - hold_out.second()
        return {
            name: float(
                np.abs(np.bincount(bins[rows], residuals[rows], self.bins)).sum() / rows.sum()
            )
            for name, rows in hold_out.parts()
        }

    def curve(self, hold_out: HoldOutPredictions) -> Curve | None:
        """PRIVATE: return the mean probability and the proportion of every bin with records."""
        bins = self._bins(hold_out.scores)
        counts = np.bincount(bins, minlength=self.bins)
        present = counts > 0
        probabilities, proportions = (
            np.bincount(bins, values, self.bins)[present] / counts[present]
            for values in (hold_out.scores, hold_out.second())
        )
        return Curve(
            across="stated probability of the second class",
            up="proportion of the second class",
            diagonal="probabilities that are right on average",
            points=np.column_stack([probabilities, proportions]),
        )

    def _bins(self, scores: NDArray[np.float64]) -> NDArray[np.intp]:
        return cells_between(equal_edges(0, 1, self.bins), scores)
