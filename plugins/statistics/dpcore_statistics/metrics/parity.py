r"""Parity: how far the laws of predictions in two groups lie apart (Kolmogorov & Smirnov), exactly.

The distance is the largest difference of the two distribution functions, found by sorting. It is
the same after any increasing function of the predictions, so that it says nothing of their size:
noise by itself has a parity, that of :math:`\varphi^Tz`, which holds no record. Where the groups
are equal the expected distance of samples of n_1 and n_2 is about :math:`.8687\sqrt{1/n_1+1/n_2}`:
a
*sampling floor*, reported next to it.
"""

import itertools
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.metrics.base import WHOLE, HoldOutPredictions, Metric

FLOOR = math.sqrt(math.pi / 2) * math.log(2)
"""The mean of Kolmogorov's law: .8687."""


def distance(one: NDArray[Any], other: NDArray[Any]) -> float:
    """Return the Kolmogorov distance of two samples; 0 if one is empty."""
    if not one.size or not other.size:
        return 0.0
    # Both functions are steps at sample points, so that the maximum is at one of them.
    places = np.concatenate([one, other])
    proportions = [np.searchsorted(np.sort(a), places, side="right") / a.size for a in (one, other)]
    return float(np.abs(proportions[0] - proportions[1]).max())


def floor(one: int, other: int) -> float:
    """Approximate the expected distance of two samples of one law: .8687 sqrt(1/n + 1/m)."""
    return min(1.0, FLOOR * math.sqrt(1 / one + 1 / other))


def tail(found: float, one: int, other: int) -> float:
    """Approximate the p value of a distance between samples of one law (Kolmogorov's law)."""
    return float(scipy.special.kolmogorov(found * math.sqrt(one * other / (one + other))))


@attrs.frozen
class Parity(Metric):
    """The largest distance of two groups' predictions, with its sampling floor. Exact.

    Of classes it is the largest difference of the groups' proportions of one class. Stated next to
    it are the floor, and how often groups that do not differ would show as much (`p`).
    """

    needs_groups: ClassVar[bool] = True

    def about(self, target: Range | Classes) -> bool:
        """Return True: numbers and classes both have laws to compare."""
        return True

    def measured(self, hold_out: HoldOutPredictions) -> Mapping[str, float]:
        """PRIVATE: find the largest distance over all pairs of groups with records."""
        parts = [hold_out.predicted[rows] for _, rows in hold_out.members()]
        result = {WHOLE: 0.0, "floor": 0.0, "p": 1.0}
        for first, second in itertools.combinations(parts, 2):
            gap = self._pair_distance(first, second, hold_out.target)
            # The floor and p are those of the pair that lies most distant apart.
            if gap >= result[WHOLE]:
                result = {
                    WHOLE: gap,
                    "floor": floor(first.size, second.size),
                    "p": tail(gap, first.size, second.size),
                }
        return result

    def _pair_distance(
        self, first: NDArray[Any], second: NDArray[Any], target: Range | Classes
    ) -> float:
        if not isinstance(target, Classes):
            return distance(first, second)
        return max(abs(float((first == v).mean() - (second == v).mean())) for v in target.values)
