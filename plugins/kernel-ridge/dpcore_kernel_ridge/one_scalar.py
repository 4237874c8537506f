r"""The release as printed: :math:`\pi(f(x))+b` with one Laplace scalar b for all points.

It is epsilon-differentially private for one evaluation at one point that is fixed without the data.
As a function it is not private at all: b cancels in :math:`f(x_1)-f(x_2)`.
"""

from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Event, Query, Sensitivity
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.mechanisms.noise.continuous import laplace
from dpcore.errors import NoClaimError
from dpcore.functions import Expansion, FunctionQuery, Oracle
from dpcore.functions.interactive import MOST_POINTS, function_query
from dpcore.randomness import Stream
from dpcore.rounding import up
from dpcore.sensitivity import Refuted
from dpcore_kernel_ridge.one_noise import OneNoise


class _SharedOracle(Oracle):
    def __init__(self, query: FunctionQuery, function: Expansion, shift: float) -> None:
        super().__init__(query, function, MOST_POINTS)
        self._shift = shift

    def _answer(self, fresh: NDArray[np.float64]) -> NDArray[np.float64]:
        bound = self._query.label_bound
        values: NDArray[np.float64] = np.clip(self._function(fresh), -bound, bound)
        return values + self._shift


@attrs.frozen(kw_only=True)
class OneScalar(OneNoise):
    """One Laplace scalar for every answer, as printed: a reproduction, never a release.

    Args:
        noise_multiplier: Scale of b over kappa times the sensitivity; calibrated if left out.

    Source: Nie & Wang (2017), (2) and Proposition 1.
    """

    source: ClassVar[str] = "Nie & Wang (2017), Proposition 1 (as printed)"

    def event(self, query: Query, sensitivity: Sensitivity, moved: float | None = None) -> Event:
        """Return the event that the paper claims.

        Raises:
            NoClaimError: the bound is not marked as refuted, so that this could become a guarantee.
        """
        function_query(query, self)
        # Only a bound that calls itself refuted may go with
        # this mechanism: no guarantee can come of it.
        if not isinstance(sensitivity.validity, Refuted):
            raise NoClaimError(
                "one scalar for all points publishes f(x1) - f(x2) exactly: take per_query or "
                "gaussian_process; as printed it goes with kernel_ridge.proposition_1"
            )
        return LaplaceEvent(
            shift=up(1.0, roundings=3) / self.noise_multiplier, adjacency=sensitivity.adjacency
        )

    def open(
        self, value: Expansion, query: FunctionQuery, sensitivity: Sensitivity, noise: Stream
    ) -> Oracle:
        """Open an oracle that adds one draw of b to every answer."""
        # The scale is in sup norm: the kernel's norm times kappa.
        draw = float(laplace(1, noise)[0])
        scale = self.noise_multiplier * query.kappa * sensitivity.unit
        return _SharedOracle(query, value, scale * draw)
