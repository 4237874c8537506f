r"""Confidence intervals of a linear model, from the noise only: what the same fit without noise
would say.

Everything here is a function of released answers and public facts. Coefficients c are published as
:math:`c^\circ+z`, with :math:`c^\circ` those of the same fit on the same records without noise.

Plugins bring such intervals, each by the law of its noise.
"""

import math
from abc import ABC, abstractmethod
from statistics import NormalDist
from typing import final

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.errors import ContractError, need

NOISE_OF_FIT = (
    "noise only: where the same fit without noise would lie. It does not include sampling error, "
    "clipping, regularisation, model error, or the choice of features"
)


NONE = "no confidence intervals"


class NoiseIntervals(ABC):
    """What the noise did to a model's coefficients: public.

    Args:
        rounding: How far each coefficient lies from what was rounded to a grid, next to the noise.
    """

    rounding: float

    @abstractmethod
    def coefficients(self, width: int) -> NDArray[np.float64]:
        """Return the standard error of each coefficient, shape (width,).

        Raises:
            ContractError: nothing is known of them.
        """

    @abstractmethod
    def scores(self, phi: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the standard error of each score, shape (n,), at features of shape (n, width)."""

    @abstractmethod
    def degrees(self, width: int) -> int:
        """Return the noise's degrees of freedom: how many independent normals it is made of."""

    def half_widths(
        self, phi: NDArray[np.float64], level: float, *, together: bool
    ) -> NDArray[np.float64]:
        """Return half the width of the interval around each score, shape (n,).

        Args:
            together: Whether intervals at all features there are hold at once.
        """
        need(
            0 < level < 1,
            ContractError,
            f"the level of an interval is between 0 and 1, got {level!r}",
        )
        multiplier = NormalDist().inv_cdf((1 + level) / 2)
        if together:
            # For all phi at once: the root of the chi-square quantile, by the gamma law.
            half = self.degrees(phi.shape[1]) / 2
            multiplier = math.sqrt(2 * float(scipy.special.gammaincinv(half, level)))
        # Rounding to the grid is no noise: its worst case is added to the interval.
        return np.asarray(multiplier * self.scores(phi) + self.rounding * np.abs(phi).sum(axis=1))

    @abstractmethod
    def describe(self) -> str:
        """Return the intervals in one sentence, at 95 %."""


@final
@attrs.frozen(kw_only=True)
class NoIntervals(NoiseIntervals):
    """There are none, and why.

    Args:
        reason: A clause.
    """

    reason: str
    rounding: float = 0.0

    def coefficients(self, width: int) -> NDArray[np.float64]:
        """Always raises ContractError, with the reason."""
        raise ContractError(f"this model has no intervals: {self.reason}")

    def scores(self, phi: NDArray[np.float64]) -> NDArray[np.float64]:
        """Always raises ContractError, with the reason."""
        raise ContractError(f"this model has no intervals: {self.reason}")

    def degrees(self, width: int) -> int:
        """Always raises ContractError, with the reason."""
        raise ContractError(f"this model has no intervals: {self.reason}")

    def describe(self) -> str:
        """Say that there are no intervals, and why."""
        return f"{NONE}: {self.reason}"


UNSTATED = NoIntervals(reason="its learner does not say what the noise did to its coefficients")
