r"""A last look at a fit of numbers: by what to shift and to multiply it, with a wide clip.

A descent on clipped residuals ends near a median, and few steps and a prior leave effects too
small. Labels with a long tail are then fitted too low. Along one direction or two that is cheap to
mend. With f the fit less its constant and h a public reach, a record has
:math:`\chi=1`, or from records times mu of 1300 on
:math:`\chi=[1,\mathrm{clip}(f/h,\pm1)]/\sqrt2`, at most 1 long. Released are, of two directions,
:math:`\sum\chi\chi^T`, then :math:`\sum\mathrm{clip}(r/C,\pm1)\chi` of the residuals r: a Gram
matrix and a gradient as of every round, with their bounds, whatever h and C are. Then c is the
posterior mean given

.. math:: g=Hc+N(0,s^2I+\sigma^2H),\qquad c\sim N(0,T)

with H the Gram matrix as far as its noise allows, and the fit becomes :math:`f-\chi^Tc`.
"""

import math

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_tables.dictionary import INTERCEPT

FRACTIONS = {"slope.directions": 0.015, "slope.sums": 0.05}
SHIFT_FRACTION = 0.03
"""Of one direction only, which needs no Gram matrix."""

LEAST_SIGNAL = 300.0
"""Records times mu below which such an evaluation would find noise."""

_WIDER = 2.0  # of a clip, in units of sigma where records times mu are 100
_LEAST_SIGMA, _LEAST_SHIFTED = 0.5, 0.25  # of the labels' deviation: a quantile sees no long tail
_LEAST_DIAMETER = 1e-3
_USUAL, _USUAL_DEVIATION, _LEANING = 0.4, 0.2, 0.2  # of mean squares and means of the fit over h
_SHIFT, _ONLY_SHIFT, _FACTOR = 0.3, 0.4, 0.3
_NARROWEST, _WIDEST = 0.3, 3.0


def size_of(sigma: float, deviation: float, width: int) -> float:
    """About how large residuals are.

    Args:
        sigma: By a quantile. deviation: Of labels. width: How many directions there are.
    """
    return max(sigma, (_LEAST_SIGMA if width > 1 else _LEAST_SHIFTED) * deviation)


def clip_of(signal: float, size: float) -> float:
    """C, wide enough for most tails, and wider where there is more signal."""
    return min(_WIDER * math.sqrt(signal / 100) * size, 1.0)


def diameter_of(weights: NDArray[np.float64], sizes: NDArray[np.float64]) -> float:
    """h: the fit's deviation, were its functions independent.

    Args:
        weights: Shape (d, 1). sizes: Shape (d - 1,).
    """
    return max(math.sqrt(float(np.sum((weights[1:, 0] * sizes) ** 2))), _LEAST_DIAMETER)


def directions(fitted: NDArray[np.float64], cutoff: float, width: int) -> NDArray[np.float64]:
    """chi of records, at most 1 long; shapes (n,) to (1, n) or (2, n)."""
    chi = np.ones((width, len(fitted)))
    chi[1:] = np.clip(fitted / cutoff, -1.0, 1.0)
    return chi / math.sqrt(width)


@attrs.frozen(kw_only=True, eq=False)
class Calibration:
    """What is added to a fit's constant, and by what its functions are multiplied.

    Args:
        deviation: What the gradient's noise moved both by, shape (2, 2).
    """

    shift: float = 0.0
    factor: float = 1.0
    deviation: NDArray[np.float64] = attrs.field(factory=lambda: np.zeros((2, 2)))

    @classmethod
    def of(
        cls,
        gradient: NDArray[np.float64],
        noise: float,
        curvature: NDArray[np.float64],
        *,
        size: float,
        sigma: float,
        deviation: float,
        cutoff: float,
    ) -> "Calibration":
        """From the last answer.

        Args:
            gradient: Of one direction or two, shape (k,). noise: Its standard deviation.
            curvature: H, shape (k, k). size, sigma: Of residuals. deviation: Of labels.
        """
        # In units of a shift of the constant, and of a factor of the fit.
        width = len(gradient)
        units = np.array([1.0, 1.0 / cutoff])[:width] / math.sqrt(width)
        shift = _SHIFT * deviation if width > 1 else _ONLY_SHIFT * size
        prior = np.diag((np.array([shift, _FACTOR])[:width] / units) ** 2)
        model = curvature @ prior @ curvature + noise**2 * np.eye(width) + sigma**2 * curvature
        gain = -units[:, None] * (prior @ curvature @ np.linalg.inv(model))
        change, covariance = np.zeros(2), np.zeros((2, 2))
        change[:width] = gain @ gradient
        covariance[:width, :width] = noise**2 * gain @ gain.T
        factor = min(max(1 + float(change[1]), _NARROWEST), _WIDEST)
        return cls(shift=float(change[0]), factor=factor, deviation=covariance)

    def weights(self, fitted: NDArray[np.float64]) -> NDArray[np.float64]:
        """Multiplied, but for the intercept's; shape (d, 1)."""
        return np.concatenate([fitted[:1], self.factor * fitted[1:]])

    def moved(
        self, covariance: NDArray[np.float64], fitted: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return how much the noise moved the weights: what it moved the fit by, multiplied, and
        what it moved both changes by. That they take back some of the former is not counted; shape
        (d, d).

        Args:
            deviation: Of the fit's weights, shape (d, d). fitted: Its weights, shape (d, 1).
        """
        factors = np.append(1.0, np.full(len(fitted) - 1, self.factor))
        # A shift of the constant is one of the intercept's weight over its function.
        changes = np.zeros((len(fitted), 2))
        changes[0, 0], changes[1:, 1] = 1 / INTERCEPT, fitted[1:, 0]
        return np.asarray(
            factors[:, None] * covariance * factors + changes @ self.deviation @ changes.T
        )


def curvature_of(
    gram_matrix: NDArray[np.float64], noise: float, records: float
) -> NDArray[np.float64]:
    """H of two directions, from their noisy Gram matrix: what is usual of a fit where noise is
    large; shape (2, 2).

    Args:
        gram_matrix: Shape (2, 2). noise: On its diagonal.
    """
    error = noise / records
    usual, deviation, leaning = _USUAL / 2, _USUAL_DEVIATION / 2, _LEANING / 2
    trust = deviation**2 / (deviation**2 + error**2)
    square = usual + trust * (float(gram_matrix[1, 1]) / records - usual)
    square = min(max(square, usual / 4), 0.5)
    cross = float(gram_matrix[0, 1]) / records * leaning**2 / (leaning**2 + error**2 / 2)
    most = 0.9 * math.sqrt(square / 2)
    cross = min(max(cross, -most), most)
    return records * np.array([[0.5, cross], [cross, square]])
