"""Noise of density exp(-||b||_2 / scale): pure differential privacy from an l2 sensitivity."""

import math
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import positive
from dpcore.distance import Distance
from dpcore.events.base import Event
from dpcore.events.l2_gamma import L2GammaEvent
from dpcore.events.laplace import LaplaceEvent
from dpcore.mechanism import Arithmetic, Prepared, free
from dpcore.mechanisms.noise.continuous import direction, gamma
from dpcore.mechanisms.noise.release import Executed, InFloats
from dpcore.query import Query
from dpcore.randomness import Stream
from dpcore.rounding import up
from dpcore.sensitivity import Sensitivity


@attrs.frozen(kw_only=True)
class L2Gamma(Executed):
    r"""A vector of uniform direction and length Gamma(d) * noise_scale, d real coordinates.

    Its density is proportional to :math:`e^{-\|b\|_2/\text{noise\_scale}}`, so that the release is
    epsilon-DP for :math:`\epsilon=\Delta/\text{noise\_scale}`, exactly; at delta > 0 it costs about
    what a Gaussian of :math:`\mu=\epsilon/\sqrt d` does (T8). A complex entry is two real
    coordinates. With one coordinate it is the Laplace mechanism. Real arithmetic: float noise can
    leak through its low bits (Mironov 2012).

    Args:
        noise_scale: 1/xi of T8, in the units of the statistic; calibrated if left out.

    Source: Hardt & Talwar (2010), arXiv:0907.3754; theorem T8.
    """

    distance: ClassVar[Distance] = Distance.L2
    additive: ClassVar[bool] = True
    by_person: ClassVar[bool] = True
    arithmetic: ClassVar[Arithmetic] = "real"
    source: ClassVar[str] = "Hardt & Talwar (2010), arXiv:0907.3754; curve T8"

    noise_scale: float = free(validator=positive)

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "L2Gamma":
        """epsilon = sqrt(d)/scale, which costs about mu = 1/scale at delta > 0."""
        return attrs.evolve(self, noise_scale=scale * sensitivity.unit / math.sqrt(query.real_size))

    def event(self, query: Query, sensitivity: Sensitivity) -> Event:
        """The curve of the longest shift; a Laplace event for one coordinate."""
        epsilon = up(sensitivity.unit / self.noise_scale, roundings=3)
        if query.real_size == 1:
            return LaplaceEvent(shift=epsilon, adjacency=sensitivity.adjacency)
        return L2GammaEvent(
            epsilon=epsilon, dimension=query.real_size, adjacency=sensitivity.adjacency
        )

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """noise_scale r u, r ~ Gamma(d), u uniform on the sphere."""
        scale = self.noise_scale

        def draw(count: int, noise: Stream) -> NDArray[np.float64]:
            length = scale * float(gamma(np.array([float(count)]), noise)[0])
            return length * direction(count, noise)

        return InFloats(draw)
