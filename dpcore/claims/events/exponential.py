r"""The exponential mechanism: bounded range, which is better than its pure epsilon.

An outcome y is chosen with probability proportional to
:math:`\exp(\epsilon_0 u(y)/(2\Delta))`, Delta the sensitivity of u. Its losses lie in an interval
of length epsilon_0, and over the worst place t of that interval

.. math:: \delta(\epsilon)=\max_t \frac{e^{\epsilon_0}-e^t}{e^{\epsilon_0}-1}(1-e^{\epsilon-t})
          = \frac{(e^{\epsilon_0/2}-e^{\epsilon/2})^2}{e^{\epsilon_0}-1}, \quad
          \epsilon\le\epsilon_0 .

As a maximum of convex functions it is a curve that dominates, and composes; no single pair attains
all of it. Several choices and lower ends: `dpcore.claims.accounting.losses.choices`.

Given t, the likelihood ratio has mean 1 under Q and lies in [e^{t-epsilon_0}, e^t]; a convex
function of it is largest for the two-point law on the ends, which is the pair in the maximum. And
K(x) = log E_Q e^{xL} has K(0) = K(1) = 0 and K'' <= epsilon_0^2/4 (Hoeffding), so
K(alpha)/(alpha-1) <= alpha epsilon_0^2/8.

Source: Dong, Durfee & Rogers (2020), arXiv:1909.13830 (bounded range and its pairs); Cesar & Rogers
(2021), arXiv:2004.07223 (zCDP).
"""

import math
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import positive
from dpcore.event import Claims, Direction, Event, VectorCurve
from dpcore.rounding import down, half_square, up


@attrs.frozen(kw_only=True)
class ExponentialMechanismEvent(Event, VectorCurve):
    """One choice, epsilon_0-bounded range.

    Args:
        epsilon: epsilon_0, > 0.
        adjacency: Under which u changes by at most Delta.
    """

    symmetric: ClassVar[bool] = True
    attained: ClassVar[bool] = False  # each epsilon has a worst pair of its own

    epsilon_0: float = attrs.field(validator=positive, alias="epsilon")
    adjacency: Adjacency

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the curve above at an array of epsilons >= 0, rounded up, shape (k,)."""
        # the formula divided by e^{epsilon_0} above and below, which cannot overflow
        root = np.expm1(np.minimum(0.5 * (epsilons - self.epsilon_0), 0.0))
        value = root * root / -math.expm1(-self.epsilon_0)
        return np.minimum(up(value, roundings=20), 1.0)

    def lower_at(self, epsilon: float, direction: Direction) -> float:
        """Return the upper end rounded down: at one epsilon, the pair in the maximum attains it."""
        return down(self.upper_at(epsilon, direction), roundings=100)

    @property
    def claims(self) -> Claims:
        """No loss or divergence exceeds epsilon_0; rho = epsilon_0^2/8 by Hoeffding's lemma."""
        rho = up(half_square(self.epsilon_0) / 4, roundings=3)
        return Claims(
            pure=self.epsilon_0,
            rho=rho,
            renyi=lambda orders: np.minimum(orders * rho, self.epsilon_0),
        )
