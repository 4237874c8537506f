r"""Error bars of a linear model, from the noise alone: what the same fit without noise would say.

Everything here is a function of released answers and public facts. Coefficients c are published as
:math:`c^\circ+z`, with :math:`c^\circ` those of the same fit on the same records without noise.

Even noise: z has independent entries of standard deviation s, at most. A coefficient is off by
:math:`z_j`, a prediction at features :math:`\phi` by :math:`\phi\cdot z`, normal with standard
deviation :math:`s\|\phi\|`; at all :math:`\phi` at once by at most
:math:`s\|\phi\|\sqrt{\chi^2_d}`. On a grid entries are discrete Gaussians, no wider, and the
statistic was rounded by r: :math:`r\|\phi\|_1` is added.

Linearised noise: :math:`z\approx Rg` with g standard normal, so that :math:`\phi\cdot z` has the
standard deviation :math:`\|R^T\phi\|`. That is an approximation, for noise that is small beside
what it is added to; whoever makes such bars says when they are refused.
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
from dpcore.interval import NoiseLaw, NormalSpread
from dpcore.notebook_view import in_digits

NOISE_OF_FIT = (
    "noise only: where the same fit without noise would lie. It does not include sampling error, "
    "clipping, regularisation, model error, or the choice of features"
)


NONE = "no error bars"


class ErrorBars(ABC):
    """What the noise did to a model's coefficients: public.

    Args:
        rounding: How far each coefficient lies from what was rounded to a grid, beside the noise.
    """

    rounding: float

    @abstractmethod
    def coefficients(self, width: int) -> NDArray[np.float64]:
        """The standard error of each coefficient, shape (width,).

        Raises:
            ContractError: nothing is known of them.
        """

    @abstractmethod
    def scores(self, phi: NDArray[np.float64]) -> NDArray[np.float64]:
        """The standard error of each score, shape (n,), at features of shape (n, width)."""

    @abstractmethod
    def degrees(self, width: int) -> int:
        """Of freedom of the noise: how many independent normals it is made of."""

    def half_widths(
        self, phi: NDArray[np.float64], level: float, *, together: bool
    ) -> NDArray[np.float64]:
        """Of an interval around each score, shape (n,).

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
        """The bars in one sentence, at 95 %."""


@final
@attrs.frozen(kw_only=True)
class EvenNoise(ErrorBars):
    """Independent noise of one size on every coefficient: exact.

    Args:
        std: s. rounding: r, how far each entry was rounded.
        longest: The length that no row of features exceeds.
    """

    std: float
    longest: float
    rounding: float = 0.0

    def coefficients(self, width: int) -> NDArray[np.float64]:
        """s for every coefficient, shape (width,)."""
        return np.full(width, self.std)

    def scores(self, phi: NDArray[np.float64]) -> NDArray[np.float64]:
        """s times the length of each row."""
        return np.asarray(self.std * np.linalg.norm(phi, axis=1))

    def degrees(self, width: int) -> int:
        """One for each coefficient: their noise is independent."""
        return width

    @property
    def reach(self) -> float:
        """How far a prediction's bar goes on either side at most, at 95 %."""
        return NormalDist().inv_cdf(0.975) * self.std * self.longest

    def describe(self) -> str:
        """Known before any record is read."""
        half, reach = in_digits(NormalDist().inv_cdf(0.975) * self.std), in_digits(self.reach)
        return f"coefficients +- {half} each, predictions +- {reach} at most"


@final
@attrs.frozen(kw_only=True, eq=False)
class LinearisedNoise(ErrorBars):
    """Noise that is small beside what it was added to, and so nearly normal.

    Args:
        root: R, shape (width, degrees).
        longest: The length that no row of features exceeds.
    """

    root: NDArray[np.float64]
    longest: float
    rounding: float = 0.0

    def coefficients(self, width: int) -> NDArray[np.float64]:
        """The length of each row of R."""
        return np.asarray(np.linalg.norm(self.root, axis=1))

    def scores(self, phi: NDArray[np.float64]) -> NDArray[np.float64]:
        """The length of each row of phi R."""
        return np.asarray(np.linalg.norm(phi @ self.root, axis=1))

    def degrees(self, width: int) -> int:
        """The number of columns of R."""
        return int(self.root.shape[1])

    def describe(self) -> str:
        """The largest bar of a coefficient and of a prediction, at 95 %."""
        z = NormalDist().inv_cdf(0.975)
        bar = z * float(np.linalg.norm(self.root, axis=1).max())
        # The operator norm of R covers every row of features up to that length.
        reach = z * float(np.linalg.norm(self.root, ord=2)) * self.longest
        limits = (
            f"coefficients +- {in_digits(bar)} at most, predictions +- {in_digits(reach)} at most"
        )
        return f"{limits} (linearised)"


@final
@attrs.frozen(kw_only=True)
class NoBars(ErrorBars):
    """There are none, and why.

    Args:
        reason: A clause.
    """

    reason: str
    rounding: float = 0.0

    def coefficients(self, width: int) -> NDArray[np.float64]:
        """Always raises ContractError, with the reason."""
        raise ContractError(f"this model has no error bars: {self.reason}")

    def scores(self, phi: NDArray[np.float64]) -> NDArray[np.float64]:
        """Always raises ContractError, with the reason."""
        raise ContractError(f"this model has no error bars: {self.reason}")

    def degrees(self, width: int) -> int:
        """Always raises ContractError, with the reason."""
        raise ContractError(f"this model has no error bars: {self.reason}")

    def describe(self) -> str:
        """That there are no bars, and the reason."""
        return f"{NONE}: {self.reason}"


UNSTATED = NoBars(reason="its learner does not say what the noise did to its coefficients")


def even_noise(spread: NoiseLaw | None, longest: float) -> ErrorBars:
    """Bars of coefficients that were released themselves, by the law of the noise on each."""
    # Sums of normal noise are normal; for other laws no bar of a prediction is stated.
    if not isinstance(spread, NormalSpread):
        return NoBars(reason="they are stated for normal noise alone (mechanism gaussian)")
    return EvenNoise(std=spread.std, rounding=spread.rounding, longest=longest)
