"""Noise on the real part of complex coefficients only, as Algorithm 1 prints it: not private."""

from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Distance, Event, Query, Sensitivity
from dpcore.checks import positive
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.mechanisms.noise.release import Executed, InFloats
from dpcore.errors import NoClaimError
from dpcore.mechanism import Arithmetic, Needs, Prepared, free
from dpcore.randomness import Stream
from dpcore.rounding import up
from dpcore.sensitivity import Refuted


@attrs.frozen(kw_only=True)
class RealNoise(Executed):
    """Gaussian noise on real parts only: a reproduction, never a release.

    Args:
        noise_multiplier: Noise standard deviation over l2 sensitivity; calibrated if left out.

    Source: Liao, Needell, Schaeffer & Xue (2025), Algorithm 1, steps 2 and 3.
    """

    needs: ClassVar[Needs] = Needs(distance=Distance.L2)
    source: ClassVar[str] = "Liao, Needell, Schaeffer & Xue (2025), Algorithm 1 (as printed)"
    arithmetic: ClassVar[Arithmetic] = "real"

    noise_multiplier: float = free(validator=positive)

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "RealNoise":
        """This mechanism with `noise_multiplier` = `scale`."""
        return attrs.evolve(self, noise_multiplier=scale)

    def event(self, query: Query, sensitivity: Sensitivity, moved: float | None = None) -> Event:
        """Return what the paper claims.

        Raises:
            NoClaimError: the bound is not marked as refuted, so that this could become a guarantee.
        """
        # Only a bound that calls itself refuted may go with
        # this mechanism: no guarantee can come of it.
        if not isinstance(sensitivity.validity, Refuted):
            raise NoClaimError(
                "noise on the real part by itself publishes the imaginary part exactly: take "
                "gaussian; "
                "as printed it goes with random_features.algorithm_1"
            )
        mu = up(1.0, roundings=3) / self.noise_multiplier
        return GaussianEvent(mu=mu, adjacency=sensitivity.adjacency)

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """Noise on the real parts only."""
        std, step = self.noise_multiplier * sensitivity.unit, 2 if query.field == "complex" else 1

        def draw(count: int, noise: Stream) -> NDArray[np.float64]:
            draws = np.zeros(count)
            # Coordinates alternate between real and imaginary parts, which get no noise.
            draws[::step] = std * noise.normal(count // step)
            return draws

        return InFloats(draw)
