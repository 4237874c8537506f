"""Discrete Gaussian noise on integer statistics: counts stay counts. Exact."""

import math
from typing import ClassVar

import attrs

from dpcore.checks import positive
from dpcore.distance import Distance
from dpcore.events.base import Event
from dpcore.events.discrete_gaussian import DiscreteGaussianEvent
from dpcore.events.gaussian import GaussianEvent
from dpcore.interval import NormalSpread
from dpcore.mechanism import Arithmetic, Prepared, free
from dpcore.mechanisms.noise.discrete_gaussian import gaussian_law
from dpcore.mechanisms.noise.release import Executed, OnIntegers, drawable, whole_numbers_only
from dpcore.query import Query
from dpcore.rounding import up
from dpcore.sensitivity import Sensitivity

_EXACT = (3.0, 2.0**16)  # widths, and
_FARTHEST = 2**20  # shifts, for which the exact curve of one coordinate is used
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

    distance: ClassVar[Distance] = Distance.L2
    additive: ClassVar[bool] = True
    by_person: ClassVar[bool] = True
    takes_integers: ClassVar[bool] = True
    arithmetic: ClassVar[Arithmetic] = "exact"
    source: ClassVar[str] = "Canonne, Kamath & Steinke (2020), arXiv:2004.00010v4, Theorems 4 and 7"

    noise_width: float = free(validator=positive)

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "DiscreteGaussian":
        """noise_width = scale * l2_sensitivity, so that mu is about 1/scale."""
        return attrs.evolve(self, noise_width=scale * sensitivity.unit)

    def event(self, query: Query, sensitivity: Sensitivity) -> Event:
        """The tightest of the three claims above that applies."""
        width, far, adjacency = self.noise_width, sensitivity.unit, sensitivity.adjacency
        if query.real_size == 1 and _EXACT[0] <= width <= _EXACT[1] and far <= _FARTHEST:
            shift = max(1, math.floor(far))  # two integers differ by an integer
            return DiscreteGaussianEvent(noise_width=width, shift=shift, adjacency=adjacency)
        # any number of coordinates: the Gaussian of the smoothing lemma, or else the zCDP claim
        if width >= _SMOOTH:
            mu = up(far / width / math.sqrt(1 - (3 / width) ** 2), roundings=5)
            return GaussianEvent(mu=mu, adjacency=adjacency)
        from dpcore.events.concentrated import ZcdpEvent

        return ZcdpEvent(rho=up(0.5 * (far / width) ** 2, roundings=3), adjacency=adjacency)

    def spread(self, query: Query, sensitivity: Sensitivity) -> NormalSpread:
        """The law itself: nothing is rounded."""
        return NormalSpread(width=self.noise_width, step=1.0)

    def unable(self, query: Query) -> str:
        """Why the query's values are not whole numbers, or empty."""
        return whole_numbers_only(query)

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """With the sampler\'s tables, which depend on the width alone."""
        return OnIntegers(gaussian_law(drawable(self.noise_width), query.real_size).symmetric)
