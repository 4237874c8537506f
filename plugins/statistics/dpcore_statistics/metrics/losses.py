r"""Losses of stated probabilities: means of one term a record, so that they have a price.

With p the probability that a model states for a record's class, log loss is the mean of
:math:`-\ln\max(p,c)` with a public c: each term is in :math:`[0,\ln(1/c)]`, so the mean moves by at
most :math:`\ln(1/c)/h` when one of h records is replaced. Without c no bound would hold.

The Brier score is the mean of :math:`\frac12\sum_k(p_k-[k=y])^2`, in [0, 1]: of two classes
:math:`(p_2-[y=2])^2`. (Half of the squared distance of two points of the simplex is at most 1.) It
moves by at most 1/h.
"""

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Range
from dpcore.domain import Classes
from dpcore.metrics import HoldOutPredictions, PricedMetric
from dpcore.rounding import up
from dpcore_statistics.metrics.shares import small_fraction


@attrs.frozen(kw_only=True)
class _MeanLoss(PricedMetric):
    """The mean of one term in [0, `diameter`] a record."""

    needs_probabilities: ClassVar[bool] = True

    @abstractmethod
    def terms(self, hold_out: HoldOutPredictions) -> NDArray[np.float64]:
        """PRIVATE: return one term per record, shape (n,)."""

    def sensitivity(self, target: Range | Classes, records: int) -> float:
        """Return the mean's change when one record is replaced: diameter / records, rounded up."""
        # A replaced record changes one term of the mean, which stays in [0, reach].
        return up(float(self.diameter(target) or 0.0) / records, roundings=8)

    def source(self, name: str) -> str:
        """State, in one clause, that the statistic is a mean of terms in a public range."""
        return f"mean of {name} terms over the hold-out, each in a public range"

    def statistic(self, hold_out: HoldOutPredictions) -> float:
        """PRIVATE: compute the mean from a correctly rounded sum."""
        return math.fsum(self.terms(hold_out)) / hold_out.truth.size

    def measured(self, hold_out: HoldOutPredictions) -> Mapping[str, float]:
        """PRIVATE: compute the mean of all records, and of each group."""
        terms = self.terms(hold_out)
        return {name: math.fsum(terms[rows]) / int(rows.sum()) for name, rows in hold_out.parts()}


@attrs.frozen(kw_only=True)
class LogLoss(_MeanLoss):
    """The mean of -ln of the probability that the model states for the record's class.

    Args:
        clip: Smaller probabilities count as this one: public, chosen before anything is seen.
    """

    clip: float = attrs.field(default=0.01, validator=small_fraction)

    def diameter(self, target: Range | Classes) -> float | None:
        """Return ln(1/clip) for classes, rounded up; None for a range."""
        return up(-math.log(self.clip), roundings=4) if isinstance(target, Classes) else None

    def terms(self, hold_out: HoldOutPredictions) -> NDArray[np.float64]:
        """PRIVATE: return -ln max(p, clip), at most `diameter`."""
        # Clipping comes before the logarithm: the public c is what bounds a term.
        assert hold_out.probabilities is not None, "there are probabilities"
        chances = hold_out.probabilities[np.arange(hold_out.truth.size), hold_out.classes()]
        return np.asarray(-np.log(np.maximum(chances, self.clip)))


@attrs.frozen(kw_only=True)
class BrierScore(_MeanLoss):
    """Half the mean squared distance of stated probabilities and the class that it was."""

    def diameter(self, target: Range | Classes) -> float | None:
        """Return 1 for classes; None for a range."""
        return 1.0 if isinstance(target, Classes) else None

    def terms(self, hold_out: HoldOutPredictions) -> NDArray[np.float64]:
        """PRIVATE: return half the squared distance, summed over classes."""
        assert hold_out.probabilities is not None, "there are probabilities"
        # Half the squared distance of two points of the simplex is at most 1.
        residuals = (
            hold_out.probabilities - np.eye(hold_out.probabilities.shape[1])[hold_out.classes()]
        )
        return np.asarray(np.minimum((residuals**2).sum(axis=1) / 2, 1.0))
