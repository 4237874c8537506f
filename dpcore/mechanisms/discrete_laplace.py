"""Discrete Laplace (geometric) noise on integer statistics: counts stay counts. Exact."""

import math
from typing import ClassVar

import attrs

from dpcore.events.base import Event
from dpcore.events.discrete_laplace import DiscreteLaplaceEvent
from dpcore.events.randomized_response import PureEvent
from dpcore.interval import LaplaceSpread
from dpcore.mechanism import Arithmetic, Prepared
from dpcore.mechanisms.noise.discrete_laplace import laplace_law
from dpcore.mechanisms.noise.release import LaplaceNoise, OnIntegers, drawable, whole_numbers_only
from dpcore.query import Query
from dpcore.rounding import up
from dpcore.sensitivity import Sensitivity


@attrs.frozen(kw_only=True)
class DiscreteLaplace(LaplaceNoise):
    r"""Integer noise with P(z) proportional to :math:`e^{-|z|/\text{noise\_scale}}`.

    For statistics that are integers (of up to 2^53) whatever the records; others need `laplace`,
    which rounds them. The release is (l1_sensitivity / noise_scale)-DP; for one coordinate the
    event is the exact curve, for more that of any such release. Exact arithmetic.

    Args:
        noise_scale: In the units of the statistic; calibrated if left out.

    Source: Ghosh, Roughgarden & Sundararajan (2012), SIAM J. Comput. 41(6).
    """

    arithmetic: ClassVar[Arithmetic] = "exact"
    source: ClassVar[str] = "Ghosh, Roughgarden & Sundararajan (2012), the geometric mechanism"

    def event(self, query: Query, sensitivity: Sensitivity) -> Event:
        """The exact curve for one coordinate, any such pure release for more."""
        scale, adjacency = self.noise_scale, sensitivity.adjacency
        if query.real_size == 1:
            shift = max(1, math.floor(sensitivity.unit))  # two integers differ by an integer
            return DiscreteLaplaceEvent(noise_scale=scale, shift=shift, adjacency=adjacency)
        # several coordinates can lie above the curve of one, so only the pure epsilon is claimed
        return PureEvent(epsilon=up(sensitivity.unit / scale, roundings=3), adjacency=adjacency)

    def spread(self, query: Query, sensitivity: Sensitivity) -> LaplaceSpread:
        """The law itself: nothing is rounded."""
        return LaplaceSpread(scale=self.noise_scale, step=1.0)

    def unable(self, query: Query) -> str:
        """Why the query's values are not whole numbers, or empty."""
        return whole_numbers_only(query)

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """With the sampler\'s tables, which depend on the scale alone."""
        return OnIntegers(laplace_law(drawable(self.noise_scale), query.real_size).symmetric)
