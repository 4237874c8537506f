"""Discrete Laplace (geometric) noise on integer statistics: counts stay counts. Exact."""

import math
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import positive
from dpcore.distance import Distance
from dpcore.errors import ReleaseError
from dpcore.events.base import Event
from dpcore.events.discrete_laplace import DiscreteLaplaceEvent
from dpcore.events.randomized_response import PureEvent
from dpcore.mechanism import Arithmetic, Mechanism, Prepared, free, from_real, integers
from dpcore.mechanisms.noise.discrete_laplace import laplace_law
from dpcore.mechanisms.noise.magnitudes import Magnitudes
from dpcore.query import Query
from dpcore.randomness import Stream
from dpcore.rounding import up
from dpcore.sensitivity import Sensitivity

_WIDEST = 2.0**53


@attrs.frozen(kw_only=True)
class DiscreteLaplace(Mechanism):
    r"""Integer noise with P(z) proportional to :math:`e^{-|z|/\text{noise\_scale}}`.

    For statistics that are integers (of up to 2^53) whatever the records; others need `laplace`,
    which rounds them. The release is (l1_sensitivity / noise_scale)-DP; for one coordinate the
    event is the exact curve, for more that of any such release. Exact arithmetic.

    Args:
        noise_scale: In the units of the statistic; calibrated if left out.

    Source: Ghosh, Roughgarden & Sundararajan (2012), SIAM J. Comput. 41(6).
    """

    distance: ClassVar[Distance] = Distance.L1
    arithmetic: ClassVar[Arithmetic] = "exact"
    source: ClassVar[str] = "Ghosh, Roughgarden & Sundararajan (2012), the geometric mechanism"

    noise_scale: float | None = free(validator=positive)

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "DiscreteLaplace":
        """noise_scale = scale * l1_sensitivity, so that one ask costs epsilon = 1/scale."""
        return attrs.evolve(self, noise_scale=scale * sensitivity.unit)

    def event(self, query: Query, sensitivity: Sensitivity) -> Event:
        """The exact curve for one coordinate, any such pure release for more."""
        assert self.noise_scale is not None, "calibrate the mechanism first"
        scale, adjacency = self.noise_scale, sensitivity.adjacency
        if query.real_size == 1:
            shift = max(1, math.floor(sensitivity.unit))  # two integers differ by an integer
            return DiscreteLaplaceEvent(noise_scale=scale, shift=shift, adjacency=adjacency)
        return PureEvent(epsilon=up(sensitivity.unit / scale, roundings=3), adjacency=adjacency)

    def release(
        self, value: NDArray[Any], query: Query, sensitivity: Sensitivity, noise: Stream
    ) -> NDArray[Any]:
        """The noisy integers, as floats.

        Raises:
            ContractError: `value` does not hold integers, or has a wrong shape.
            ReleaseError: the noise is wider than 2^53.
        """
        return self.prepared(query, sensitivity)(value, query, noise)

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """With the sampler's tables, which depend on the scale alone, made once.

        Raises:
            ReleaseError: the noise is wider than 2^53.
        """
        assert self.noise_scale is not None, "calibrate the mechanism first"
        if not self.noise_scale <= _WIDEST:
            raise ReleaseError(f"noise of scale {self.noise_scale:.3g} is too wide to be exact")
        return _OnIntegers(laplace_law(self.noise_scale, query.real_size))


@attrs.frozen(eq=False)
class _OnIntegers:
    law: Magnitudes

    def __call__(self, value: NDArray[Any], query: Query, noise: Stream) -> NDArray[Any]:
        noisy = integers(value, query)
        noisy += self.law.symmetric(noisy.size, noise)
        return from_real(noisy.astype(np.float64), query)
