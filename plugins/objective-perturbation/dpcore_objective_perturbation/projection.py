r"""Random projection of another map's features: :math:`z(x)=M^{-1/2}G^T\phi(x)`, G normal.

With enough random Fourier features for :math:`\phi` these are M Gaussian processes of the kernel,
as in Lee, Park & Ahn (2025), arXiv:2507.17544 (abstract; nothing is coded as printed there).

Claim: rows are at most as long as those of the other map, *because they are projected on that
ball*: :math:`\|z(x)\|^2` is :math:`\|\phi(x)\|^2\chi^2_M/M` over the randomness, which no constant
bounds.
"""

import math
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, PublicRandomness
from dpcore.checks import positive_integer
from dpcore.encoding.tables import row_lengths
from dpcore.models import FeatureMap, Features
from dpcore_models.features.frequencies import shared


@attrs.frozen(eq=False)
class _Projected(Features):
    inner: Features
    matrix: NDArray[np.float64]
    longest: float

    @property
    def row_wise(self) -> bool:
        """Whether each row is mapped by itself: as by the other map."""
        return self.inner.row_wise

    def __call__(self, encoded: NDArray[Any]) -> NDArray[Any]:
        rows = np.zeros((len(encoded), self.matrix.shape[1]))
        # Entry by entry: the last bits of a matrix product would depend on the other rows.
        for column, weights in zip(self.inner(encoded).T, self.matrix, strict=True):
            rows += column[:, None] * weights
        # A margin below the ball, so that no rounding of a length or a quotient leaves it.
        rows /= np.maximum(1.0, row_lengths(rows) / (self.longest * (1 - 1e-12)))
        return rows

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {**self.inner.arrays(), "projection": self.matrix}


@attrs.frozen(kw_only=True)
class RandomProjection(FeatureMap):
    """`count` random combinations of another map's features, on that map's ball.

    Args:
        features: The other map, such as `features.cosines` with many more features.
        count: M, the number of combinations.
    """

    features: FeatureMap
    count: int = attrs.field(validator=positive_integer)

    def width(self, domain: Domain) -> int:
        """`count`, whatever the other map's width is."""
        return self.count

    def norm(self, domain: Domain) -> float:
        """Return the other map's: rows are projected on its ball."""
        return self.features.norm(domain)

    def draw(self, domain: Domain, randomness: PublicRandomness) -> Features:
        """Return the other map's features, and a normal matrix, from public randomness."""
        shape = (self.features.width(domain), self.count)
        matrix = shared(randomness.stream("projection").normal(shape) / math.sqrt(self.count))
        return _Projected(self.features.draw(domain, randomness), matrix, self.norm(domain))
