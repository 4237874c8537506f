r"""Linearised noise: :math:`z\approx Rg` with g standard normal.

So :math:`\phi\cdot z` has the standard deviation :math:`\|R^T\phi\|`. That is an approximation, for
noise that is small next to what it is added to; anyone who makes such intervals says when they are
refused.
"""

from statistics import NormalDist
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.models.error_bars import NoiseIntervals
from dpcore.shown import in_digits


@final
@attrs.frozen(kw_only=True, eq=False)
class LinearisedNoise(NoiseIntervals):
    """Noise that is small next to what it was added to, and so nearly normal.

    Args:
        root: R, shape (width, degrees).
        longest: The length that no row of features exceeds.
    """

    root: NDArray[np.float64]
    longest: float
    rounding: float = 0.0

    def coefficients(self, width: int) -> NDArray[np.float64]:
        """Return the length of each row of R."""
        return np.asarray(np.linalg.norm(self.root, axis=1))

    def scores(self, phi: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the length of each row of phi R."""
        return np.asarray(np.linalg.norm(phi @ self.root, axis=1))

    def degrees(self, width: int) -> int:
        """Return the number of columns of R."""
        return int(self.root.shape[1])

    def describe(self) -> str:
        """Describe the widest interval of a coefficient and of a prediction, at 95 %."""
        z = NormalDist().inv_cdf(0.975)
        half_width = z * float(np.linalg.norm(self.root, axis=1).max())
        # The operator norm of R covers every row of features up to that length.
        cutoff = z * float(np.linalg.norm(self.root, ord=2)) * self.longest
        coefficient, prediction = in_digits(half_width), in_digits(cutoff)
        limits = f"coefficients +- {coefficient} at most, predictions +- {prediction} at most"
        return f"{limits} (linearised)"
