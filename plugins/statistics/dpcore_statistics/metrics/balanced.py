r"""Balanced accuracy: the mean, over classes, of the proportion of a class that is predicted right.

Let :math:`r_c` of the :math:`n_c` records of class c be predicted right. What is paid for counts a
rare class as k records at least, with a public k:

.. math:: B=\frac1K\sum_c\frac{r_c}{\max(n_c,k)},

the balanced accuracy wherever every class has k records.

Theorem. B moves by at most :math:`2/Kk` when one record is replaced, of K classes.

Proof. Taking one record out of a class moves its term by at most 1/k: if :math:`n_c\le k` its
denominator stays; else
:math:`r/n` becomes :math:`r/(n-1)` or :math:`(r-1)/(n-1)`, which differ from it by
:math:`r/n(n-1)` where :math:`r\le n-1`, and :math:`(n-r)/n(n-1)`: at most :math:`1/n\le1/k`. A
replacement takes a record out of one class and puts one into another: two terms; or it stays in
its class, where :math:`r_c` moves by 1. []
"""

import math
from collections.abc import Mapping

import attrs
import numpy as np

from dpcore import Range
from dpcore.domain import Classes
from dpcore.metrics import HoldOutPredictions, PricedMetric
from dpcore.rounding import up
from dpcore_statistics.metrics.shares import rare, small_fraction


@attrs.frozen(kw_only=True)
class BalancedAccuracy(PricedMetric):
    """The mean over classes of the share that is predicted right.

    Args:
        least: Where it is paid for, the proportion of records that each class is expected to have:
            public. Where a class has fewer, its share counts for less.
    """

    least: float = attrs.field(default=0.1, validator=small_fraction)

    def diameter(self, target: Range | Classes) -> float | None:
        """Return 1 for classes, since it is a mean of proportions; None for a range."""
        return 1.0 if isinstance(target, Classes) else None

    def sensitivity(self, target: Range | Classes, records: int) -> float:
        """Return 2 / (K k) of the theorem above, rounded up; at most 1."""
        assert isinstance(target, Classes), "it is about classes"
        return min(1.0, up(2.0 / (target.count * rare(self.least, records)), roundings=8))

    def source(self, name: str) -> str:
        """Describe, in one clause, the proportions that the theorem above is about."""
        return f"{name}: shares predicted right on the hold-out, by class"

    def statistic(self, hold_out: HoldOutPredictions) -> float:
        """PRIVATE: compute B above, which counts a rare class as k records."""
        assert isinstance(hold_out.target, Classes), "it is about classes"
        classes, right = hold_out.classes(), hold_out.predicted == hold_out.truth
        counts = np.bincount(classes, minlength=hold_out.target.count)
        hits = np.bincount(classes[right], minlength=hold_out.target.count)
        # The k in the denominator bounds what one record moves (the theorem above).
        proportions = hits / np.maximum(counts, rare(self.least, hold_out.truth.size))
        return min(math.fsum(proportions) / hold_out.target.count, 1.0)

    def measured(self, hold_out: HoldOutPredictions) -> Mapping[str, float]:
        """PRIVATE: average over classes with records, for all records and for each group."""
        assert isinstance(hold_out.target, Classes), "it is about classes"
        classes, right = hold_out.classes(), hold_out.predicted == hold_out.truth
        means = {}
        for name, rows in hold_out.parts():
            counts = np.bincount(classes[rows], minlength=hold_out.target.count)
            hits = np.bincount(classes[rows & right], minlength=hold_out.target.count)
            # This goes to the operator: a class without records has no share to be averaged.
            present = counts > 0
            means[name] = float(np.mean(hits[present] / counts[present]))
        return means
