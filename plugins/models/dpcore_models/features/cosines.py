r"""Random-phase cosines: :math:`\sqrt{2/N}\cos(w_k^T x + b_k)`, rows rescaled to norm at most 1."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, PublicRandomness
from dpcore.checks import positive, positive_integer
from dpcore.encoding.tables import row_lengths
from dpcore.models import FeatureMap, Features
from dpcore_models.features.frequencies import ROUNDING, gaussian_frequencies, shared
from dpcore_models.features.turns import Turns, cosines


@attrs.frozen(eq=False)
class _Cosines(Features):
    frequencies: NDArray[np.float64]
    phases: NDArray[np.float64]
    turns: Turns
    rescaled: ClassVar[bool] = True
    row_wise: ClassVar[bool] = True

    def __call__(self, encoded: NDArray[Any]) -> NDArray[Any]:
        waves: NDArray[Any] = cosines(self.turns.at(encoded))
        waves *= math.sqrt(2 / self.phases.size)
        # `row_lengths` is row-wise to the last bit, so that a row by itself is rescaled alike.
        waves /= np.maximum(1.0, row_lengths(waves))
        return waves

    def columns(self, encoded: NDArray[Any]) -> Iterator[NDArray[Any]]:
        for angles in self.turns.blocks(encoded):
            waves = cosines(angles)
            # Not rescaled here: a row's length is known after its last column (see `rescaled`).
            waves *= math.sqrt(2 / self.phases.size)
            yield waves

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"frequencies": self.frequencies, "phases": self.phases}

    def exported(self) -> tuple[None, dict[str, Any]]:
        """Return no other map, and the exact angles that waves are computed from."""
        return None, {"turns": self.turns.matrix, "phases": True}


@attrs.frozen(kw_only=True)
class Cosines(FeatureMap):
    """`count` cosines of the Gaussian kernel with `bandwidth`, kappa = 1.

    Without rescaling the worst-case norm is sqrt(2), though typical rows are near 1; every row is
    therefore divided by max(1, its norm), in the fit and in prediction alike.

    Source: Rahimi & Recht (2007), Figure 1; the rescaling is T2's remark in docs/theorems-noise.md.

    Args:
        count: How many frequencies are drawn, from public randomness.
        bandwidth: Of the Gaussian kernel, in encoded units.
    """

    count: int = attrs.field(validator=positive_integer)
    bandwidth: float = attrs.field(default=1.0, validator=positive)

    def width(self, domain: Domain) -> int:
        """Return `count`: one cosine of each frequency."""
        return self.count

    def norm(self, domain: Domain) -> float:
        """Return 1, with room for rounding."""
        return ROUNDING

    def draw(self, domain: Domain, randomness: PublicRandomness) -> Features:
        """Draw frequencies from the Gaussian's spectrum, phases uniform on [0, 2 pi)."""
        stream = randomness.stream("features")
        frequencies = gaussian_frequencies(stream, domain.width, self.count, self.bandwidth)
        phases = shared(2 * math.pi * stream.uniform(self.count))
        return _Cosines(frequencies, phases, Turns(frequencies, phases))
