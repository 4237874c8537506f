r"""The Laplace event, for any number of coordinates.

With t = l1_sensitivity / noise_scale, for 0 <= epsilon <= t (and 0 beyond),

.. math:: \delta(\epsilon) = 1 - e^{(\epsilon - t)/2}.

Source: Balle, Barthe & Gaboardi (2020), Theorem 3 (one coordinate).

**Several coordinates are no worse.** Let coordinates shift by t_1 and t_2, T = t_1 + t_2, and E =
:math:`e^{(\epsilon-T)/2}`. The product's curve is the mean over the loss l of the second coordinate
(atoms 1/2 at
t_2 and :math:`e^{-t_2}/2` at -t_2, density :math:`e^{(l-t_2)/2}/4` between) of
:math:`g(\epsilon-l)`, g the first one's curve on all reals. On [-t_1, t_1] g is
:math:`1-e^{(\cdot-t_1)/2}`, whose mean is :math:`1-E(1+t_2/2)`; elsewhere g is larger, which adds
E(epsilon - t_1 + t_2)/4 if epsilon > t_1 - t_2 and E(t_2 - epsilon - t_1)/4 if epsilon < t_2 - t_1,
together at most E t_2/2 for |epsilon| <= T. So the product's curve is at most 1 - E, that of
one coordinate that shifts by T; by induction for any number.
"""

import math
from collections.abc import Mapping
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import need_positive, positive
from dpcore.event import Claims, Direction, Event, PrivacyCurve
from dpcore.rounding import down, gamma, half_square, up


@attrs.frozen(kw_only=True)
class LaplaceEvent(Event, PrivacyCurve):
    """Independent Laplace noise with an l1 shift of at most `shift` noise scales.

    Args:
        shift: l1_sensitivity / noise_scale, > 0; the pure epsilon of the release.
        adjacency: The relation under which the shift is bounded.
    """

    symmetric: ClassVar[bool] = True
    inverses: ClassVar[Mapping[str, str]] = {"noise_multiplier": "shift"}

    shift: float = attrs.field(validator=positive)
    adjacency: Adjacency

    @classmethod
    def of_noise(cls, noise_multiplier: float, adjacency: Adjacency) -> "LaplaceEvent":
        """Return the event of noise of `noise_multiplier` sensitivities, rounded up.

        Raises:
            ParameterError: it is not finite and > 0.
        """
        need_positive("LaplaceEvent", noise_multiplier=noise_multiplier)
        return cls(shift=up(1 / noise_multiplier, roundings=1), adjacency=adjacency)

    def upper_at(self, epsilon: float, direction: Direction) -> float:
        """Return the curve above, equal in both directions."""
        return min(1.0, up(-math.expm1(min(0.0, 0.5 * (epsilon - self.shift))), roundings=4))

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the curve above at an array of epsilons >= 0, rounded up, shape (k,)."""
        value = -np.expm1(np.minimum(0.0, 0.5 * (epsilons - self.shift)))
        return np.minimum(1.0, up(value, roundings=4))

    def lower(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the curve above with its rounding error subtracted, shape (k,)."""
        return down(self.upper(epsilons, direction), roundings=20)

    @property
    def claims(self) -> Claims:
        """The shift, the largest loss; shift^2/2: Bun & Steinke (2016), Proposition 1.4."""
        return Claims(pure=self.shift, rho=half_square(self.shift), renyi=self._renyi)

    def _renyi(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        r"""Return one coordinate's divergence, which dominates that of several as the curves do.

        .. math:: \tfrac1{\alpha-1}\log\Big(\tfrac{\alpha}{2\alpha-1}e^{(\alpha-1)t}
                  +\tfrac{\alpha-1}{2\alpha-1}e^{-\alpha t}\Big)

        Source: Mironov (2017), Proposition 6. Small values lose digits, which are added back.
        """
        t = self.shift
        excess = orders - 1
        # e^{(alpha-1)t} factored out: log(1 - w (1 - e^{-(2 alpha - 1) t})), w = (alpha-1)/(2
        # alpha-1)
        fraction = excess / (2 * orders - 1)
        value = t + np.log1p(fraction * np.expm1(-(2 * orders - 1) * t)) / excess
        value = value + gamma(16) * (t + (t + 1) / excess)
        # no divergence exceeds the largest loss, or what the rho implies
        return np.minimum(np.maximum(value, 0.0), np.minimum(t, orders * half_square(t)))
