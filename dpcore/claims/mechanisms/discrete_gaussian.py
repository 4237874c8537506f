r"""`discrete_gaussian`: discrete Gaussian noise on integer statistics: counts stay counts. Exact.

The event is about one coordinate. With P(k) proportional to :math:`e^{-k^2/(2\sigma^2)}`, an
integer shift s and tails T(m) = sum over k >= m,

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
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.mechanisms.noise.magnitudes import gaussian_distribution
from dpcore.claims.mechanisms.noise.release import (
    Executed,
    OnIntegers,
    drawable,
    whole_numbers_only,
)
from dpcore.event import Claims, Direction, Event, TwoEnds
from dpcore.interval import NormalDistribution
from dpcore.mechanism import Arithmetic, Needs, Prepared, free
from dpcore.query import Query
from dpcore.rounding import gamma, half_square, up
from dpcore.sensitivity import Distance, Sensitivity

_WIDEST = 2.0**16
_EXPONENTS = 6000  # roundings: an exponent of at most 745 errs by 3 u, in a tail and in the total
_DENORMAL = 2.0**-960  # more than all masses that are no normal numbers
_CUTOFF = 38.5  # beyond this many widths the masses are below 1e-322


@attrs.frozen(kw_only=True, slots=False)
class DiscreteGaussianEvent(Event, TwoEnds):
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
        cutoff = math.ceil(_CUTOFF * self.noise_width) + 1
        k = np.arange(-cutoff, cutoff + 1.0)
        with np.errstate(over="ignore"):
            mass = np.exp(np.maximum(-0.5 * (k / self.noise_width) ** 2, -745.0))
        # summed from the smallest masses on, so that a tail keeps its relative accuracy
        tails = np.cumsum(mass[::-1])[::-1]
        return np.concatenate([tails / tails[0], [0.0]])

    def _tail(self, m: NDArray[np.float64]) -> NDArray[np.float64]:
        cutoff = (len(self._tails) - 2) // 2
        return np.asarray(
            self._tails[np.clip(m + cutoff, 0, len(self._tails) - 1).astype(np.int64)]
        )

    def ends(
        self, epsilons: NDArray[np.float64], direction: Direction, *, lower: bool
    ) -> NDArray[np.float64]:
        """Return the curve above with its rounding errors, equal in both directions."""
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

    @property
    def claims(self) -> Claims:
        """s^2/(2 sigma^2), as of a Gaussian."""
        return Claims(rho=up(half_square(self.shift / self.noise_width), roundings=4))


_EXACT = (3.0, 2.0**16)  # widths, and
_LIMIT = 2**20  # shifts, for which the exact curve of one coordinate is used
_SMOOTH = 300.0  # the smoothing lemma costs less than 1e-4 of mu from here on


@attrs.frozen(kw_only=True)
class DiscreteGaussian(Executed):
    r"""Integer noise with P(z) proportional to :math:`e^{-z^2/(2\,\text{noise\_width}^2)}`.

    For statistics that are integers (of up to 2^53) whatever the records; others need `gaussian`,
    which rounds them. With Delta the l2 sensitivity and s the width, the event is

    * the exact curve, for one coordinate, 3 <= s <= 2^16 and Delta at most 2^20 (below s = 3 that
      curve can rise as the noise grows, which calibration must not meet);
    * else, for s of at least 300, a Gaussian of :math:`\mu=\Delta/\sqrt{s^2-9}` (T13);
    * else :math:`\Delta^2/(2s^2)`-zCDP, for any number of coordinates.

    Exact arithmetic.

    Args:
        noise_width: s, in the units of the statistic; calibrated if left out.

    Source: Canonne, Kamath & Steinke (2020), arXiv:2004.00010v4, Theorems 4 and 7; T13.
    """

    needs: ClassVar[Needs] = Needs(distance=Distance.L2, integers=True, additive=True, persons=True)
    arithmetic: ClassVar[Arithmetic] = "exact"
    source: ClassVar[str] = "Canonne, Kamath & Steinke (2020), arXiv:2004.00010v4, Theorems 4 and 7"
    rule: ClassVar[tuple[str, ...]] = ("discrete_gaussian", "noise_width")

    noise_width: float = free(validator=positive)

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "DiscreteGaussian":
        """Set noise_width = scale * l2_sensitivity, so that mu is about 1/scale."""
        return attrs.evolve(self, noise_width=scale * sensitivity.unit)

    def event(self, query: Query, sensitivity: Sensitivity, moved: float | None = None) -> Event:
        """Return the tightest of the three claims above that applies."""
        width, tail, adjacency = self.noise_width, sensitivity.unit, sensitivity.adjacency
        if query.real_size == 1 and _EXACT[0] <= width <= _EXACT[1] and tail <= _LIMIT:
            shift = max(1, math.floor(tail))  # two integers differ by an integer
            return DiscreteGaussianEvent(noise_width=width, shift=shift, adjacency=adjacency)
        # any number of coordinates: the Gaussian of the smoothing lemma, or else the zCDP claim
        if width >= _SMOOTH:
            mu = up(tail / width / math.sqrt(1 - (3 / width) ** 2), roundings=5)
            return GaussianEvent(mu=mu, adjacency=adjacency)
        from dpcore.claims.events.concentrated import ZcdpEvent

        return ZcdpEvent(rho=up(0.5 * (tail / width) ** 2, roundings=3), adjacency=adjacency)

    def noise_distribution(self, query: Query, sensitivity: Sensitivity) -> NormalDistribution:
        """Return the law itself: nothing is rounded."""
        return NormalDistribution(width=self.noise_width, step=1.0)

    def refusal(self, query: Query) -> str:
        """Explain why the query's values are not whole numbers; empty if they are."""
        return whole_numbers_only(query)

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """Prepare the sampler's tables, which depend on the width only."""
        return OnIntegers(
            gaussian_distribution(drawable(self.noise_width), query.real_size).symmetric
        )
