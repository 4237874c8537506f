r"""The noises of the paper's experiments, and what they lose. Nothing here is private.

Each is a formula of the paper, with a sensitivity that does not bound what a record moves.

Source: github.com/liaochunyang/DPRFM at 7470664; Table 2 has no code.
"""

import math
from collections.abc import Callable
from typing import Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.claims.events.gaussian import least_epsilon

Floats = NDArray[np.float64]
Deviation = Callable[[float, float, float, int], float]
"""A standard deviation from epsilon, delta, movement and N."""


class Fit(Protocol):
    """What a formula of noise asks of a fit."""

    coefficients: Floats


@attrs.frozen(eq=False)
class ScaledNoise:
    """Independent normal noise whose variance is known, so that gaps have a closed form.

    Its arguments: `movement`, as Delta is this over sqrt(N), such as 4 for eta = 3/8; `features`,
    N, whatever is fitted, or the number of coefficients if left out.
    """

    noise_distribution: Deviation

    def __call__(
        self,
        fit: Fit,
        randomness: np.random.Generator,
        count: int,
        *,
        epsilon: float,
        delta: float,
        movement: float,
        features: int | None = None,
    ) -> Floats:
        """Shape (count, coefficients)."""
        # N of the formula may differ from what was fitted:
        # the paper gives both models the same noise.
        std = self.noise_distribution(epsilon, delta, movement, features or fit.coefficients.size)
        return std * randomness.standard_normal((count, fit.coefficients.size))

    def variance(
        self,
        fit: Fit,
        *,
        epsilon: float,
        delta: float,
        movement: float,
        features: int | None = None,
    ) -> float:
        """Return the variance of one coordinate of the noise."""
        # A number that is given leaves the coefficients unsolved.
        return (
            self.noise_distribution(epsilon, delta, movement, features or fit.coefficients.size)
            ** 2
        )

    def loss(
        self,
        fit: Fit,
        moved: Floats,
        *,
        epsilon: float,
        delta: float,
        movement: float,
        features: int | None = None,
    ) -> float:
        """Return the least epsilon at delta of two outputs that are `moved` apart."""
        noise_distribution = self.noise_distribution(
            epsilon, delta, movement, features or fit.coefficients.size
        )
        return least_epsilon(float(np.linalg.norm(moved)), noise_distribution, delta)


@attrs.frozen(eq=False)
class GammaNoise:
    r"""Noise of density :math:`\exp(-\epsilon\|z\|/\Delta)`: Gamma(N) along a uniform direction."""

    def __call__(
        self,
        fit: Fit,
        randomness: np.random.Generator,
        count: int,
        *,
        epsilon: float,
        delta: float,
        movement: float,
    ) -> Floats:
        """Shape (count, N); Delta is `movement` over sqrt(N)."""
        size = fit.coefficients.size
        # A normal vector over its length is uniform on the sphere; the length is drawn apart.
        directions = randomness.standard_normal((count, size))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        lengths = randomness.gamma(size, movement / (math.sqrt(size) * epsilon), size=count)
        noise: Floats = lengths[:, None] * directions
        return noise

    def loss(
        self, fit: Fit, moved: Floats, *, epsilon: float, delta: float, movement: float
    ) -> float:
        r"""At delta = 0, as this noise claims: :math:`\epsilon\|c'-c\|/\Delta`, along a ray."""
        size = fit.coefficients.size
        return epsilon * float(np.linalg.norm(moved)) * math.sqrt(size) / movement


def _of_figures(epsilon: float, delta: float, movement: float, features: int) -> float:
    r""":math:`5\Delta/\sqrt{2\epsilon}`, as the code of Figures 7 and 8 has it."""
    return 5 * movement / math.sqrt(features) / math.sqrt(2 * epsilon)


def _of_algorithm(epsilon: float, delta: float, movement: float, features: int) -> float:
    r""":math:`\sqrt{2\ln(1.25/\delta)}\,\Delta/\epsilon`, as Algorithm 1 has it."""
    return math.sqrt(2 * math.log(1.25 / delta)) * movement / (math.sqrt(features) * epsilon)


GAP_NOISE = ScaledNoise(_of_figures)
ALGORITHM_NOISE = ScaledNoise(_of_algorithm)
GAMMA_NOISE = GammaNoise()
