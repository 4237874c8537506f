r"""An intercept for any feature map: :math:`[w_0,\ \sqrt{1-w_0^2}\,\phi(x)/\kappa]`, norm 1."""

import math
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, PublicRandomness
from dpcore.checks import fraction
from dpcore.models import FeatureMap, Features
from dpcore.rounding import up

_ROUNDING = up(1.0, roundings=500)


@attrs.frozen(eq=False)
class _Affine(Features):
    inner: Features
    weight: float
    scale: float

    @property
    def row_wise(self) -> bool:
        """Whether each row is mapped by itself: as by the other map."""
        return self.inner.row_wise

    @property
    def linear(self) -> bool:
        """Whether the map is linear in the columns: as the other map."""
        return self.inner.linear

    def __call__(self, encoded: NDArray[Any]) -> NDArray[Any]:
        rows = self.inner(encoded)
        # w0^2 + (1 - w0^2) = 1: no row gets longer than 1,
        # so that kappa is known without the records.
        return np.hstack([np.full((rows.shape[0], 1), self.weight), self.scale * rows])

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self.inner.arrays()

    def exported(self) -> tuple[Features, dict[str, Any]]:
        """Return the other map, and what it takes to rescale its rows behind the constant."""
        return self.inner, {"constant": self.weight, "scale": self.scale}


@attrs.frozen(kw_only=True)
class Affine(FeatureMap):
    """The features of another map, rescaled, behind one constant feature: kappa = 1.

    Args:
        features: The other map.
        intercept: w0 in (0, 1): how much of a row's norm the constant has.
    """

    features: FeatureMap
    intercept: float = attrs.field(default=0.7, validator=fraction)

    def width(self, domain: Domain) -> int:
        """Return the width of the inner map plus one."""
        return 1 + self.features.width(domain)

    def norm(self, domain: Domain) -> float:
        """Return 1, with room for rounding."""
        return _ROUNDING

    def draw(self, domain: Domain, randomness: PublicRandomness) -> Features:
        """Return the other map's features, drawn from the same randomness, behind the constant."""
        scale = math.sqrt(1 - self.intercept**2) / self.features.norm(domain)
        return _Affine(self.features.draw(domain, randomness), self.intercept, scale)
