r"""Logistic noise, whose log-density has a slope of at most 1/s: a loss of at most l1/s.

The density of one coordinate is :math:`e^{-z/s} / (s (1+e^{-z/s})^2)`, and the derivative of its
logarithm is :math:`-\tanh(z/2s)/s`.
"""

import math
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Adjacency, Distance, Event, Mechanism, Query, Sensitivity
from dpcore.checks import positive
from dpcore.event import Claims, Direction, PrivacyCurve
from dpcore.mechanism import Needs, free, from_real, to_real
from dpcore.randomness import Stream
from dpcore.rounding import up


@attrs.frozen(kw_only=True)
class BoundedLoss(Event, PrivacyCurve):
    r"""A release with a privacy loss of at most `loss`, dominated by randomized response.

    .. math:: \delta(\epsilon) = \max(0, (e^{loss} - e^{\epsilon}) / (1 + e^{loss}))

    Source: Kairouz, Oh & Viswanath (2015), Theorem 2.
    """

    loss: float = attrs.field(validator=positive)
    adjacency: Adjacency

    def upper_at(self, epsilon: float, direction: Direction) -> float:
        """The curve above, the same in both directions."""
        if epsilon >= self.loss:
            return 0.0
        fraction = -math.expm1(epsilon - self.loss) / (1 + math.exp(-self.loss))
        return up(fraction, roundings=6)

    @property
    def claims(self) -> Claims:
        """`loss`, the largest; loss^2/2: Bun & Steinke (2016), Proposition 1.4."""
        return Claims(pure=self.loss, rho=0.5 * self.loss * self.loss)


@attrs.frozen(kw_only=True)
class Logistic(Mechanism):
    """Add logistic noise of scale s to every real coordinate, in real arithmetic.

    Args:
        noise_scale: s, in the units of the statistic; calibrated if left out.
    """

    needs: ClassVar[Needs] = Needs(distance=Distance.L1)
    arithmetic: ClassVar[Literal["exact", "real"]] = "real"
    source: ClassVar[str] = "acme-private-bins, slope of the logistic log-density"

    noise_scale: float = free(validator=positive)

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "Logistic":
        """A loss of 1/scale."""
        return attrs.evolve(self, noise_scale=scale * sensitivity.unit)

    def event(
        self, query: Query, sensitivity: Sensitivity, moved: float | None = None
    ) -> BoundedLoss:
        """A loss of l1_sensitivity / s, rounded up."""
        loss = up(sensitivity.unit / self.noise_scale, roundings=3)
        return BoundedLoss(loss=loss, adjacency=sensitivity.adjacency)

    def release(
        self, value: NDArray[Any], query: Query, sensitivity: Sensitivity, noise: Stream
    ) -> NDArray[Any]:
        """The value plus s log(u/(1-u)) per coordinate."""
        uniform = noise.uniform(query.real_size)
        draws = np.log(uniform) - np.log1p(-uniform)
        return from_real(to_real(value) + self.noise_scale * draws, query)
