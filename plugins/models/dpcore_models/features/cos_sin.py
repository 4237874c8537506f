r"""Stacked cosines and sines: :math:`[\cos w_k^T x,\ \sin w_k^T x]_k/\sqrt N`, norm exactly 1."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, PublicRandomness
from dpcore.checks import positive, positive_integer
from dpcore.models import FeatureMap, Features
from dpcore_models.features.frequencies import ROUNDING, gaussian_frequencies
from dpcore_models.features.turns import Turns, cosines, sines


@attrs.frozen(eq=False)
class _CosSin(Features):
    frequencies: NDArray[np.float64]
    turns: Turns
    row_wise: ClassVar[bool] = True

    def __call__(self, encoded: NDArray[Any]) -> NDArray[Any]:
        angles = self.turns.at(encoded)
        # `cosines` overwrites its argument, and the sines need the same angles.
        stacked: NDArray[Any] = np.hstack([cosines(angles.copy()), sines(angles)])
        stacked /= math.sqrt(self.frequencies.shape[1])
        return stacked

    def columns(self, encoded: NDArray[Any]) -> Iterator[NDArray[Any]]:
        # Columns come in the order of a call: all cosines, then all sines.
        for wave in (cosines, sines):
            for angles in self.turns.blocks(encoded):
                waves = wave(angles)
                waves /= math.sqrt(self.frequencies.shape[1])
                yield waves

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"frequencies": self.frequencies}

    def exported(self) -> tuple[None, dict[str, Any]]:
        """Return no other map, and the exact angles that waves are computed from."""
        return None, {"turns": self.turns.matrix, "phases": False}


@attrs.frozen(kw_only=True)
class CosSin(FeatureMap):
    """`count` frequencies of the Gaussian kernel with `bandwidth`: 2 count features, kappa = 1.

    The real form of complex exponentials: cos^2 + sin^2 = 1 makes the norm 1 for every row; as
    computed, each wave is within 2^-49 of its value, and the norm below 1 + 2^-46.

    Source: T2 in docs/theorems-noise.md.

    Args:
        count: How many frequencies are drawn, from public randomness.
        bandwidth: Of the Gaussian kernel, in encoded units.
    """

    count: int = attrs.field(validator=positive_integer)
    bandwidth: float = attrs.field(default=1.0, validator=positive)

    def width(self, domain: Domain) -> int:
        """Return 2 `count`: a cosine and a sine of each frequency."""
        return 2 * self.count

    def norm(self, domain: Domain) -> float:
        """Return 1, with room for rounding."""
        return ROUNDING

    def draw(self, domain: Domain, randomness: PublicRandomness) -> Features:
        """Draw frequencies from the Gaussian's spectrum."""
        stream = randomness.stream("features")
        frequencies = gaussian_frequencies(stream, domain.width, self.count, self.bandwidth)
        return _CosSin(frequencies, Turns(frequencies, None))
