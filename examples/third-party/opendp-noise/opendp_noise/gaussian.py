"""The Gaussian measurement of OpenDP, with a field that a spec can set."""

from typing import Any, ClassVar

import attrs
from numpy.typing import NDArray
from opendp.domains import atom_domain, vector_domain
from opendp.measurements import make_gaussian
from opendp.metrics import l2_distance
from opendp.mod import Measurement, enable_features

from dpcore import Distance, Event, Mechanism, Query, Sensitivity
from dpcore.checks import positive
from dpcore.mechanism import Arithmetic, Needs, free
from dpcore.randomness import Stream
from dpcore_bridges.opendp import FromOpenDP


def _gaussian(scale: float, size: int) -> Measurement:
    enable_features("contrib")
    vectors = vector_domain(atom_domain(T=float, nan=False), size=size)
    return make_gaussian(vectors, l2_distance(T=float), scale=scale)


@attrs.frozen(kw_only=True)
class OpenDPGaussian(Mechanism):
    """Discrete Gaussian noise on OpenDP's fine grid, accounted by its zCDP map.

    Args:
        noise_scale: Standard deviation, in the units of the statistic; calibrated if left out.
    """

    needs: ClassVar[Needs] = Needs(distance=Distance.L2, stream=False)
    arithmetic: ClassVar[Arithmetic] = "exact"
    source: ClassVar[str] = "OpenDP, make_gaussian"

    noise_scale: float = free(validator=positive)

    def _wrapped(self) -> FromOpenDP:
        return FromOpenDP(make=_gaussian, noise_scale=self.noise_scale, arithmetic="exact")

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "OpenDPGaussian":
        """noise_scale = scale * l2_sensitivity, so that one query costs rho = 1/(2 scale^2)."""
        return attrs.evolve(self, noise_scale=scale * sensitivity.unit)

    def event(self, query: Query, sensitivity: Sensitivity, moved: float | None = None) -> Event:
        """What OpenDP's map says."""
        return self._wrapped().event(query, sensitivity)

    def release(
        self, value: NDArray[Any], query: Query, sensitivity: Sensitivity, noise: Stream
    ) -> NDArray[Any]:
        """OpenDP's answer."""
        return self._wrapped().release(value, query, sensitivity, noise)
