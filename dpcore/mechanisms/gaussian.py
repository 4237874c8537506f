"""The Gaussian mechanism, calibrated on its exact curve for any epsilon."""

from typing import Any, ClassVar, Literal

import attrs
from numpy.typing import NDArray

from dpcore.checks import positive
from dpcore.distance import Distance
from dpcore.events.gaussian import GaussianEvent
from dpcore.mechanism import Mechanism, free, from_real, to_real
from dpcore.query import Query
from dpcore.randomness import Stream
from dpcore.sensitivity import Sensitivity


@attrs.frozen(kw_only=True)
class Gaussian(Mechanism):
    """Add N(0, (noise_multiplier * l2_sensitivity)^2) to every real coordinate.

    A complex entry is two real coordinates and gets independent noise on both. The claim holds in
    real arithmetic: float noise can leak through its low bits (Mironov 2012).

    Args:
        noise_multiplier: Noise standard deviation over l2 sensitivity; calibrated if left out.

    Source: Balle & Wang (2018), arXiv:1805.06530v2, Theorem 8.
    """

    distance: ClassVar[Distance] = Distance.L2
    arithmetic: ClassVar[Literal["exact", "real"]] = "real"
    source: ClassVar[str] = "Balle & Wang (2018), arXiv:1805.06530v2, Theorem 8"

    noise_multiplier: float | None = free(validator=positive)

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "Gaussian":
        """mu = 1/noise_multiplier exactly, so noise_multiplier = scale."""
        return attrs.evolve(self, noise_multiplier=scale)

    def noise_std(self, sensitivity: Sensitivity) -> float:
        """Standard deviation per real coordinate, in the units of the statistic."""
        assert self.noise_multiplier is not None, "calibrate the mechanism first"
        return self.noise_multiplier * sensitivity.unit

    def event(self, query: Query, sensitivity: Sensitivity) -> GaussianEvent:
        """A Gaussian of mu = 1/noise_multiplier, rounded up."""
        assert self.noise_multiplier is not None, "calibrate the mechanism first"
        mu = (1 + 2.0**-52) / self.noise_multiplier
        return GaussianEvent(mu=mu, adjacency=sensitivity.adjacency)

    def release(
        self, value: NDArray[Any], query: Query, sensitivity: Sensitivity, noise: Stream
    ) -> NDArray[Any]:
        """value + N(0, noise_std^2 I)."""
        draws = noise.normal(query.real_size)
        return from_real(to_real(value) + self.noise_std(sensitivity) * draws, query)
