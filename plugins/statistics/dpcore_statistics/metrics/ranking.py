r"""The area under the ROC curve: how often a record of the second class is ranked above the first.

Of n records, :math:`n_1` of the second class and :math:`n_0` of the first, let :math:`c_{ij}` be 1
where record i of the second class has a higher score than j of the first, 1/2 at a tie, else 0. The
area is the mean of :math:`c_{ij}` over all pairs.

One record may be half of all pairs, so the area itself has no useful sensitivity. What is paid for
is drawn to 1/2 where a class is rare. With a public k and :math:`m=k(n-k)`,

.. math:: A=\frac12+\frac{T}{\max(n_1n_0,m)},\qquad T=\sum_{ij}(c_{ij}-\tfrac12),

which is the area wherever both classes have at least k records.

Theorem. For :math:`1\le k\le n/2`, A moves by at most :math:`S=\frac{n-1}{k(n-k)}` when one record
is replaced, and no smaller number would do.

Proof. :math:`S\ge1/k`, and :math:`n_1n_0\ge m` exactly where both classes have k records. Write
q for the denominator, q' for the neighbour's.

*The class stays*, the second, say: each of the record's :math:`n_0` pairs moves by at most 1, so A
moves by at most :math:`n_0/q`. If both classes have k records that is at most :math:`1/n_1\le1/k`;
else :math:`q=m` and :math:`n_0\le n-1`.

*The class changes*, from the second to the first, say. Let :math:`T_0` be the sum over pairs
without the record, :math:`|T_0|\le(n_1-1)n_0/2`. Its own pairs add at most :math:`n_0/2` before and
:math:`(n_1-1)/2` after, so A moves by at most

.. math:: \frac{(n_1-1)n_0}2\left|\frac1q-\frac1{q'}\right|+\frac{n_0}{2q}+\frac{n_1-1}{2q'}.

Both at m: :math:`(n-1)/2m\le S`. Neither: it is :math:`1/\min(n_1,n_0+1)\le1/k`. Only q' at m: it
is :math:`\frac{(n_1-1)(n_0+1)}{2m}-\frac12+\frac1{n_1}\le\frac1{n_1}\le\frac1k`, for
:math:`(n_1-1)(n_0+1)\le m`. Only q at m: the same with the classes exchanged.

The bound is reached where the only record of the second class goes from the lowest rank to the
highest. []
"""

import math
from collections.abc import Mapping
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.metrics.base import Curve, HoldOutPredictions
from dpcore.metrics.priced import PricedMetric
from dpcore.rounding import up
from dpcore_statistics.metrics.shares import rare, small_fraction

_POINTS = 200  # of a curve, at most


def pairs(scores: NDArray[np.float64], second: NDArray[np.bool_]) -> tuple[int, int]:
    """PRIVATE: compute twice the sum of c_ij, and n_1 n_0, exactly.

    Args:
        scores: Shape (n,). second: Which records are of the second class, shape (n,).
    """
    high, low = scores[second], np.sort(scores[~second])
    # Pairs won, plus pairs won or tied: a tie counts once in two, so that all is in integers.
    below = np.searchsorted(low, high, side="left")
    upto = np.searchsorted(low, high, side="right")
    return int(below.sum()) + int(upto.sum()), high.size * low.size


@attrs.frozen(kw_only=True)
class AreaUnderCurve(PricedMetric):
    """The area under the ROC curve, ties counted half. Paid for: drawn to 1/2 if a class is rare.

    Args:
        least: Where it is paid for, the proportion of records that each class is expected to have:
            public. Where a class has fewer, what is released is nearer to 1/2 than the area.
    """

    needs_probabilities: ClassVar[bool] = True

    least: float = attrs.field(default=0.1, validator=small_fraction)

    def diameter(self, target: Range | Classes) -> float | None:
        """Return 1 for two classes; None for any other target."""
        return 1.0 if isinstance(target, Classes) and target.count == 2 else None

    def sensitivity(self, target: Range | Classes, records: int) -> float:
        """Return S above; 1 for a single record."""
        if records < 2:
            return 1.0
        # S of the theorem, from public numbers only, and rounded up.
        k = rare(self.least, records)
        return min(1.0, up((records - 1) / (k * (records - k)), roundings=8))

    def source(self, name: str) -> str:
        """Describe, in one clause, the area that the theorem above is about."""
        return f"{name}: area under the curve on the hold-out, drawn to 1/2 if a class is rare"

    def statistic(self, hold_out: HoldOutPredictions) -> float:
        """PRIVATE: compute a above; 1/2 if all records are of one class."""
        n, (double_sum, product) = hold_out.truth.size, pairs(hold_out.scores, hold_out.second())
        # A in integers up to the one division; the 1 serves a hold-out of a single record.
        k = rare(self.least, n)
        return 0.5 + (double_sum - product) / (2 * max(product, k * (n - k), 1))

    def measured(self, hold_out: HoldOutPredictions) -> Mapping[str, float]:
        """PRIVATE: compute the area of all records and of each group; NaN if it has one class."""
        scores, second, areas = hold_out.scores, hold_out.second(), {}
        for name, rows in hold_out.parts():
            double_sum, product = pairs(scores[rows], second[rows])
            areas[name] = double_sum / (2 * product) if product else math.nan
        return areas

    def curve(self, hold_out: HoldOutPredictions) -> Curve | None:
        """PRIVATE: compute the ROC curve; None if all records are of one class."""
        second = hold_out.second()
        order = np.argsort(-hold_out.scores, kind="stable")
        ranked, hits = hold_out.scores[order], second[order]
        if not hits.any() or hits.all():
            return None
        # One point for each different score: records that tie have no order.
        ends = np.append(np.flatnonzero(np.diff(ranked)), ranked.size - 1)
        hit_rates = np.cumsum(hits)[ends] / hits.sum()
        false_rates = np.cumsum(~hits)[ends] / (~hits).sum()
        # A long curve is thinned for drawing; its two ends stay.
        sample = np.unique(np.linspace(0, ends.size - 1, min(ends.size, _POINTS)).astype(np.intp))
        return Curve(
            across="false positive rate",
            up="true positive rate",
            diagonal="scores that reveal nothing",
            points=np.array(
                [(0.0, 0.0), *zip(false_rates[sample], hit_rates[sample], strict=True)]
            ),
        )
