"""The encoded columns themselves."""

from typing import Any

import attrs
from numpy.typing import NDArray

from dpcore.domain.domain import Domain
from dpcore.models.features.base import FeatureMap, Features
from dpcore.randomness import PublicRandomness


class _Same(Features):
    row_wise = True
    linear = True

    def __call__(self, encoded: NDArray[Any]) -> NDArray[Any]:
        return encoded


SAME: Features = _Same()
"""The encoded columns as features."""


@attrs.frozen(kw_only=True)
class Identity(FeatureMap):
    """phi(x) = x, with kappa the domain's norm: linear models without an intercept.

    Labels are centred at the middle of their public range, which is in for the intercept.
    """

    def width(self, domain: Domain) -> int:
        """Return the number of encoded columns, which are the features."""
        return domain.width

    def norm(self, domain: Domain) -> float:
        """Return the l2 bound that the domain itself keeps every encoded row to."""
        return domain.feature_norm

    def draw(self, domain: Domain, randomness: PublicRandomness) -> Features:
        """Return the identity, without drawing a coin."""
        return SAME
