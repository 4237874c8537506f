r"""Even noise: intervals of coefficients c that were released themselves, as :math:`c^\circ+z`.

z has independent entries of standard deviation s, at most. A coefficient is off by
:math:`z_j`, a prediction at features :math:`\phi` by :math:`\phi\cdot z`, normal with standard
deviation :math:`s\|\phi\|`; at all :math:`\phi` at once by at most
:math:`s\|\phi\|\sqrt{\chi^2_d}`. On a grid entries are discrete Gaussians, no wider, and the
statistic was rounded by r: :math:`r\|\phi\|_1` is added.
"""

from statistics import NormalDist
from typing import final

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.interval import NoiseDistribution, NormalDistribution
from dpcore.models.error_bars import NoIntervals, NoiseIntervals
from dpcore.shown import in_digits


@final
@attrs.frozen(kw_only=True)
class EvenNoise(NoiseIntervals):
    """Independent noise of one size on every coefficient: exact.

    Args:
        std: s. rounding: r, how far each entry was rounded.
        longest: The length that no row of features exceeds.
    """

    std: float
    longest: float
    rounding: float = 0.0

    def coefficients(self, width: int) -> NDArray[np.float64]:
        """Return s for every coefficient, shape (width,)."""
        return np.full(width, self.std)

    def scores(self, phi: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return s times the length of each row."""
        return np.asarray(self.std * np.linalg.norm(phi, axis=1))

    def degrees(self, width: int) -> int:
        """Return `width`: the coefficients have independent noise."""
        return width

    @property
    def diameter(self) -> float:
        """The half-width of a prediction's interval at most, at 95 %."""
        return NormalDist().inv_cdf(0.975) * self.std * self.longest

    def describe(self) -> str:
        """Describe the half-widths; they are known before any record is read."""
        half, cutoff = in_digits(NormalDist().inv_cdf(0.975) * self.std), in_digits(self.diameter)
        return f"coefficients +- {half} each, predictions +- {cutoff} at most"


def even_noise(noise_distribution: NoiseDistribution | None, longest: float) -> NoiseIntervals:
    """Return intervals of released coefficients, from the noise distribution of each."""
    # Sums of normal noise are normal; for other laws no bar of a prediction is stated.
    if not isinstance(noise_distribution, NormalDistribution):
        return NoIntervals(reason="they are stated for normal noise alone (mechanism gaussian)")
    return EvenNoise(
        std=noise_distribution.std, rounding=noise_distribution.rounding, longest=longest
    )
