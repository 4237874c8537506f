r"""`discrete_laplace`: discrete Laplace (geometric) noise on integer statistics, which stay counts.

Exact. The event is about one coordinate. With P(k) proportional to :math:`w^{|k|}`, w =
e^{-1/noise_scale}, and an integer shift s, for 0 <= epsilon < s/noise_scale the worst event is {k
<= m}, m the largest integer below (s - epsilon noise_scale)/2, and

.. math:: \delta(\epsilon) = \max_m\; 1-\frac{w^{m+1}}{1+w} - e^{\epsilon}\frac{w^{s-m}}{1+w}.

Source: the definition; the mechanism is Ghosh, Roughgarden & Sundararajan (2012). Several
coordinates are not covered: on a fine grid their curve need not lie below one coordinate's.
"""

import math
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import positive, positive_integer
from dpcore.claims.events.randomized_response import PureEvent
from dpcore.claims.mechanisms.noise.discrete_laplace import laplace_distribution
from dpcore.claims.mechanisms.noise.release import (
    LaplaceNoise,
    OnIntegers,
    drawable,
    whole_numbers_only,
)
from dpcore.event import Claims, Direction, Event, VectorCurve
from dpcore.interval import LaplaceDistribution
from dpcore.mechanism import Arithmetic, Prepared
from dpcore.query import Query
from dpcore.rounding import down, gamma, half_square, up
from dpcore.sensitivity import Sensitivity

_ERROR = gamma(16)  # the difference of two numbers of at most 1, and their rounding


@attrs.frozen(kw_only=True)
class DiscreteLaplaceEvent(Event, VectorCurve):
    """An integer moved by at most `shift`, plus discrete Laplace noise.

    Args:
        noise_scale: In grid steps, > 0.
        shift: Sensitivity in grid steps, an integer >= 1.
        adjacency: The relation under which the shift is bounded.
    """

    symmetric: ClassVar[bool] = True

    noise_scale: float = attrs.field(validator=positive)
    shift: int = attrs.field(validator=positive_integer)
    adjacency: Adjacency

    @property
    def error(self) -> float:
        """The rounding error at the largest epsilon that costs anything, twice."""
        return float(2 * _error(self._largest))

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the curve above, rounded up, shape (k,): the largest over 3 integers near m."""
        rate = 1 / self.noise_scale
        top = self._largest
        w = math.exp(-rate)
        nearest = np.floor((self.shift - epsilons * self.noise_scale) / 2)
        best = -np.expm1(np.minimum(epsilons - self.shift * rate, 0.0)) / (1 + w)  # m = 0
        # every m is an event, and rounding may miss the best one by 1: the largest of three counts
        for offset in (-1, 0, 1):
            m = np.clip(nearest + offset, 0, self.shift)
            log_second = epsilons - (self.shift - m) * rate
            value = 1 - (np.exp(-(m + 1) * rate) + np.exp(np.minimum(log_second, 1.0))) / (1 + w)
            best = np.maximum(best, value)
        best = np.clip(up(best, roundings=20), 0.0, 1.0)
        return np.where(epsilons >= top, 0.0, np.minimum(best + _error(epsilons), 1.0))

    def lower(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the curve above minus its error bounds, at least 0, shape (k,)."""
        upper_end = down(self.upper(epsilons, direction), roundings=5000)
        # once for the error that `upper` added, once for the error that it made
        return np.maximum(upper_end - 2 * _error(epsilons), 0.0)

    @property
    def _largest(self) -> float:
        """shift / noise_scale, the largest loss, rounded up."""
        return up(self.shift / self.noise_scale, roundings=3)

    @property
    def claims(self) -> Claims:
        """The largest loss; epsilon^2/2: Bun & Steinke (2016), Proposition 1.4."""
        return Claims(pure=self._largest, rho=half_square(self._largest))


def _error(epsilons: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Bound a value's error: from terms of at most 1, and from epsilon rounded in an exponent.

    epsilon - (s - m)/scale errs by 2 u of (s - m)/scale and u of itself: by 2 u epsilon and 3 u of
    itself. An exponential of x <= 0 that is off by 3 u |x| errs by less than 2 u: |x| e^x <= 1/e.
    """
    return np.asarray(_ERROR + gamma(8) * epsilons)


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
    rule: ClassVar[tuple[str, ...]] = ("discrete_laplace", "noise_scale")

    def event(self, query: Query, sensitivity: Sensitivity, moved: float | None = None) -> Event:
        """Return the exact curve for one coordinate, any such pure release for more."""
        scale, adjacency = self.noise_scale, sensitivity.adjacency
        if query.real_size == 1:
            shift = max(1, math.floor(sensitivity.unit))  # two integers differ by an integer
            return DiscreteLaplaceEvent(noise_scale=scale, shift=shift, adjacency=adjacency)
        # several coordinates can lie above the curve of one, so only the pure epsilon is claimed
        return PureEvent(epsilon=up(sensitivity.unit / scale, roundings=3), adjacency=adjacency)

    def noise_distribution(self, query: Query, sensitivity: Sensitivity) -> LaplaceDistribution:
        """Return the law itself: nothing is rounded."""
        return LaplaceDistribution(scale=self.noise_scale, step=1.0)

    def refusal(self, query: Query) -> str:
        """Explain why the query's values are not whole numbers; empty if they are."""
        return whole_numbers_only(query)

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """Prepare the sampler's tables, which depend on the scale only."""
        return OnIntegers(
            laplace_distribution(drawable(self.noise_scale), query.real_size).symmetric
        )
