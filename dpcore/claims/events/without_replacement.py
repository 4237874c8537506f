r"""Sampling without replacement: a subset of fixed size. Replacement relations only.

With q = sample size / number of records and a = e^epsilon >= 1,

.. math:: \delta(a) \le q\,\delta^{base}\big(1+\tfrac{a-1}{q}\big),

the larger of the base's two directions. Not attained in general.

Source: Balle, Barthe & Gaboardi (2018), arXiv:1807.01647, the theorem on sampling without
replacement under substitution.
"""

import math
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import need_field, positive_integer
from dpcore.errors import need
from dpcore.event import Claims, CompoundEvent, Direction, VectorCurve, largest_loss
from dpcore.rounding import gamma, up


@attrs.frozen(kw_only=True)
class WithoutReplacementEvent(CompoundEvent, VectorCurve):
    """`event`, applied to a uniformly random subset of `size` of `records` records.

    Args:
        event: What the release costs on the subset, for a replacement relation.
        size: Size of the subset, in [1, records].
        records: Public number of records.
    """

    symmetric: ClassVar[bool] = True
    attained: ClassVar[bool] = False  # an upper bound

    size: int = attrs.field(validator=positive_integer)
    records: int = attrs.field(validator=positive_integer)

    def __attrs_post_init__(self) -> None:
        need_field(self.size <= self.records, self, "size", "a size of at most records")
        need(
            self.event.adjacency.replaces,
            "WithoutReplacementEvent",
            "an event for a replacement relation (Poisson sampling is for add_remove)",
            "adjacency",
            str(self.event.adjacency),
        )

    @property
    def _fraction(self) -> float:
        return self.size / self.records

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the bound above at an array of epsilons >= 0, rounded up, shape (k,)."""
        # q is rounded up and the inner loss down: both raise the bound
        q = min(1.0, up(self._fraction, roundings=1))
        with np.errstate(over="ignore"):
            ratio = np.expm1(np.minimum(epsilons, 700.0)) / q
        base_epsilons = np.where(np.isfinite(ratio), np.log1p(ratio), epsilons - math.log(q))
        base_epsilons = base_epsilons * (1 - gamma(32))
        # the theorem is for the larger of the base's two directions
        directions = (direction,) if self.event.curve.symmetric else tuple(Direction)
        value = np.max([self.event.curve.upper(base_epsilons, way) for way in directions], axis=0)
        return np.asarray(np.minimum(up(q * value, roundings=3), 1.0))

    def largest_loss(self, direction: Direction) -> float | None:
        """Return the base's, moved as the losses are."""
        if (base := largest_loss(self.event, direction)) is None or base > 500:
            return None
        return up(math.log1p(self._fraction * math.expm1(base)), roundings=6)

    @property
    def claims(self) -> Claims:
        """log(1 + q (e^epsilon - 1)); mu only when all records are taken; else the base's claims.

        Mixtures with equal weights are no farther apart (quasi-convexity).
        """
        base = self.event.claims
        pure = base.pure
        if pure is not None and pure <= 500:
            pure = up(math.log1p(self._fraction * math.expm1(pure)), roundings=6)
        mu = base.mu if self.size == self.records else None
        return Claims(pure=pure, mu=mu, rho=base.rho, renyi=base.renyi)
