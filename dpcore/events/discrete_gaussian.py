r"""Discrete Gaussian noise on the integers, one coordinate.

With P(k) proportional to :math:`e^{-k^2/(2\sigma^2)}`, an integer shift s and tails T(m) = sum
over k >= m,

.. math:: \delta(\epsilon) = T(m-s) - e^{\epsilon}\,T(m), \qquad
          m = \lfloor \epsilon\sigma^2/s + s/2\rfloor + 1 .

Source: Canonne, Kamath & Steinke (2020), arXiv:2004.00010v4, Theorem 7; rho = s^2/(2 sigma^2) is
Theorem 4. Several coordinates, and widths above 2^16 steps, go through the Gaussian event by the
smoothing lemma instead.
"""

import math
from functools import cached_property
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import need_field, positive, positive_integer
from dpcore.events.base import Direction, TwoEnds
from dpcore.rounding import gamma, half_square, up

_WIDEST = 2.0**16
_EXPONENTS = 6000  # roundings: an exponent of at most 745 errs by 3 u, in a tail and in the total
_DENORMAL = 2.0**-960  # more than all masses that are no normal numbers
_REACH = 38.5  # beyond this many widths the masses are below 1e-322


@attrs.frozen(kw_only=True, slots=False)
class DiscreteGaussianEvent(TwoEnds):
    """An integer moved by at most `shift`, plus discrete Gaussian noise.

    Args:
        noise_width: sigma in grid steps, in (0, 2^16].
        shift: Sensitivity in grid steps, an integer in [1, 2^20].
        adjacency: The relation under which the shift is bounded.
    """

    symmetric: ClassVar[bool] = True

    noise_width: float = attrs.field(validator=positive)
    shift: int = attrs.field(validator=positive_integer)
    adjacency: Adjacency

    def __attrs_post_init__(self) -> None:
        need_field(
            self.noise_width <= _WIDEST,
            self,
            "noise_width",
            "a noise_width of at most 65536 steps (wider: the Gaussian event)",
        )
        need_field(self.shift <= 2**20, self, "shift", "a shift of at most 2^20 steps")

    @cached_property
    def _tails(self) -> NDArray[np.float64]:
        """T(m) for m = -reach ... reach + 1."""
        reach = math.ceil(_REACH * self.noise_width) + 1
        k = np.arange(-reach, reach + 1.0)
        with np.errstate(over="ignore"):
            mass = np.exp(np.maximum(-0.5 * (k / self.noise_width) ** 2, -745.0))
        # summed from the smallest masses on, so that a tail keeps its relative accuracy
        tails = np.cumsum(mass[::-1])[::-1]
        return np.concatenate([tails / tails[0], [0.0]])

    def _tail(self, m: NDArray[np.float64]) -> NDArray[np.float64]:
        reach = (len(self._tails) - 2) // 2
        return np.asarray(self._tails[np.clip(m + reach, 0, len(self._tails) - 1).astype(np.int64)])

    def ends(
        self, epsilons: NDArray[np.float64], direction: Direction, *, lower: bool
    ) -> NDArray[np.float64]:
        """The curve above with its rounding errors; the same in both directions."""
        with np.errstate(over="ignore"):
            cut = epsilons * self.noise_width * (self.noise_width / self.shift) + self.shift / 2
        m = np.floor(np.minimum(cut, 1e15)) + 1
        error = gamma(_EXPONENTS + 4 * len(self._tails))
        first, second = self._tail(m - self.shift), self._tail(m)
        growth = np.exp(np.minimum(epsilons, 700.0))
        if lower:  # any m is an event; beyond the largest exponent no lower end is claimed
            value = first * (1 - error) - growth * (second * (1 + error) + _DENORMAL)
            return np.where(epsilons > 700.0, 0.0, np.clip(value, 0.0, 1.0))
        # where `cut` is an integer to its rounding, m may be one off: by a term whose losses cancel
        # to the relative rounding of epsilon + s^2/(2 sigma^2)
        size = epsilons + half_square(self.shift / self.noise_width)
        off = np.minimum(gamma(16) * size, 1.0) * self._tail(m - self.shift - 1)
        value = (first + off) * (1 + error)
        value -= growth * np.maximum(second * (1 - error) - _DENORMAL, 0.0)
        return np.clip(value, 1e-300, 1.0)

    def zcdp_rho(self) -> float:
        """s^2/(2 sigma^2), as of a Gaussian."""
        return up(half_square(self.shift / self.noise_width), roundings=4)
