r"""Event: the privacy curve of one release, and the representations an accountant may use.

The least an event offers is its hockey-stick curve

.. math:: \delta_d(\epsilon) = \sup_E\; P(E) - e^{\epsilon} Q(E)

for the two directions d of a worst neighbouring pair. Everything else is optional and must
dominate the truth: an event never looks less lossy through one method than it is.
"""

import enum
import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.errors import NoClaimError
from dpcore.interval import Interval


class Direction(enum.Enum):
    """Which neighbour stands first in the hockey-stick divergence.

    Under add/remove: `REMOVE` compares the larger dataset against the smaller, `ADD` the smaller
    against the larger. Under a replacement relation the names only tell the two orders apart.
    """

    REMOVE = "remove"
    ADD = "add"


class Event(ABC):
    """One application of a mechanism, for one adjacency. Immutable; equal events are `==`."""

    adjacency: Adjacency

    @abstractmethod
    def delta(self, epsilon: float, direction: Direction) -> float:
        """Upper end of the curve at `epsilon` >= 0 (nats), in [0, 1]; nonincreasing in epsilon."""

    @property
    def delta_error(self) -> float:
        """How far `delta` may lie above the truth (absolute); 0 up to a few ulps by default."""
        return 0.0

    def delta_lower(self, epsilon: float, direction: Direction) -> float:
        """Lower end of the curve: `delta - delta_error`, less a relative 2^-40 for its rounding."""
        return max(0.0, (self.delta(epsilon, direction) - self.delta_error) * (1 - 2.0**-40))

    def pure_epsilon(self) -> float | None:
        """The epsilon at which both curves reach 0, or None when there is none."""
        return None

    def gaussian_mu(self) -> float | None:
        """mu when the event *is* a Gaussian of that shift (exact Gaussian DP), else None."""
        return None

    def zcdp_rho(self) -> float | None:
        """The least rho known for which the event is rho-zCDP, or None when there is none."""
        return None

    def renyi(self, orders: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Upper bounds on the Rényi divergence at `orders` > 1, both directions, or None.

        Defaults to `orders * rho` where a rho is known (Bun & Steinke 2016, Definition 1.1).
        """
        rho = self.zcdp_rho()
        return None if rho is None else orders * rho

    def epsilon(self, delta: float) -> Interval:
        """Where the curve of this one event falls to `delta`, both directions (in nats).

        By bisection on `delta(epsilon, direction)`; the upper end errs upwards, the lower end
        comes from `delta_lower`.

        Raises:
            NoClaimError: the curve does not fall to `delta` at any epsilon up to 1e6.
        """
        upper = max(self._crossing(direction, delta, lower=False) for direction in Direction)
        lower = max(self._crossing(direction, delta, lower=True) for direction in Direction)
        return Interval(min(lower, upper), upper)

    def _crossing(self, direction: Direction, delta: float, *, lower: bool) -> float:
        """One end of the least epsilon with curve <= delta, by doubling and bisection."""

        def met(epsilon: float) -> bool:
            value = (self.delta_lower if lower else self.delta)(epsilon, direction)
            if math.isnan(value):
                raise NoClaimError(f"{self!r}: the curve is not a number at epsilon={epsilon!r}")
            return value <= delta

        if met(0.0):
            return 0.0
        below, above = 0.0, 1.0
        while not met(above):
            below, above = above, 2 * above
            if above > 1e6:
                if lower:
                    return below
                raise NoClaimError(f"{self!r}: no epsilon up to 1e6 has delta <= {delta!r}")
        while True:
            middle = 0.5 * (below + above)
            if not below < middle < above:
                return below if lower else above
            if met(middle):
                above = middle
            else:
                below = middle
