r"""Rényi composition: divergences add up at every order (Mironov 2017, Proposition 1).

Concentrated composition: the rho of all events add up (Bun & Steinke 2016, Lemma 1.7).
"""

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.accountant import Accountant, UnsupportedEventError
from dpcore.adjacency import Adjacency
from dpcore.claims.accounting.conversions import renyi_to_epsilon, zcdp_to_epsilon
from dpcore.errors import NoClaimError, need, need_value
from dpcore.event import Event, label_of
from dpcore.interval import Interval
from dpcore.rounding import gamma


@attrs.frozen
class ZcdpAccountant(Accountant):
    """Covers every event with a rho; events fixed in advance (adaptive choices: the filter).

    The upper end is the conversion of Canonne, Kamath & Steinke (2020), Proposition 12, at the best
    order; no lower end is claimed.
    """

    adjacency: Adjacency
    rho: float = 0.0
    additions: int = 0

    def compose(self, event: Event, count: int = 1) -> "ZcdpAccountant":
        """Add count * rho.

        Raises:
            UnsupportedEventError: the event has no rho.
        """
        self.accept(event, count)
        rho = need_value(
            event.claims.rho, UnsupportedEventError, f"{label_of(event)} has no zCDP rho"
        )
        return attrs.evolve(
            self, rho=self.rho + count * rho, additions=self.additions + (count > 0)
        )

    def epsilon(self, delta: float) -> Interval:
        """Return the epsilon that the total rho implies at delta.

        Raises:
            NoClaimError: delta is 0.
        """
        need(0 <= delta < 1, ValueError, f"delta must be in [0, 1), got delta={delta!r}")
        if self.rho == 0:
            return Interval(0.0, 0.0)
        need(delta != 0, NoClaimError, "zCDP has no finite epsilon at delta = 0")
        # The margin covers the rounding of the sum; the conversion rounds up by itself.
        return Interval(0.0, zcdp_to_epsilon(self.rho * (1 + gamma(4 + 2 * self.additions)), delta))

    def explain(self, delta: float) -> str:
        """Return a clause with the total rho, to six digits."""
        return f"zCDP composition, rho = {self.rho:.6g}"


def default_orders() -> NDArray[np.float64]:
    """Return orders from 1.01 to 10^6: dense to 12, integers to 64, then growing by a quarter."""
    return np.concatenate(
        [
            1 + np.geomspace(0.01, 11, 90),
            np.arange(13.0, 65.0),
            np.ceil(np.geomspace(70, 256, 15)),
            np.geomspace(320, 1e6, 37),
        ]
    )


@attrs.frozen(eq=False)
class RenyiAccountant(Accountant):
    """Covers every event with Rényi divergences; events fixed in advance.

    Args:
        adjacency: What the result is about.
        orders: Increasing, each > 1, shape (k,).
    """

    adjacency: Adjacency
    orders: NDArray[np.float64] = attrs.field(factory=default_orders)
    spent: dict[Event, int] = attrs.field(factory=dict)
    _cache: dict[Event, NDArray[np.float64]] = attrs.field(factory=dict, repr=False)

    def compose(self, event: Event, count: int = 1) -> "RenyiAccountant":
        """Add the event; equal events are counted together.

        Their divergences are computed when they are needed.

        Raises:
            UnsupportedEventError: the event has no Rényi divergences.
        """
        self.accept(event, count)
        if count == 0:
            return self
        need(
            event.claims.renyi is not None,
            UnsupportedEventError,
            f"{label_of(event)} has no Rényi divergences",
        )
        return attrs.evolve(
            self, spent={**self.spent, event: self.spent.get(event, 0) + int(count)}
        )

    def _divergences(self, event: Event) -> NDArray[np.float64]:
        """Compute an event's divergences once for an accountant and all composed from it."""
        if event not in self._cache:
            self._cache[event] = need_value(
                event.claims.renyi,
                UnsupportedEventError,
                f"{label_of(event)} has no Rényi divergences",
            )(self.orders)
        return self._cache[event]

    def epsilon(self, delta: float) -> Interval:
        """Return the epsilon that the total implies at the best order; no lower end is claimed.

        Raises:
            NoClaimError: delta is 0, or no order has a finite divergence.
        """
        need(0 <= delta < 1, ValueError, f"delta must be in [0, 1), got delta={delta!r}")
        if not self.spent:
            return Interval(0.0, 0.0)
        need(delta != 0, NoClaimError, "Rényi divergences imply no finite epsilon at delta = 0")
        total = np.zeros_like(self.orders)
        for event, count in self.spent.items():
            total = total + count * self._divergences(event)
        # One margin covers the rounding of products and sums, before the conversion adds its own.
        total = total * (1 + gamma(8 + 4 * len(self.spent)))
        upper = renyi_to_epsilon(self.orders, total, delta)
        need(np.isfinite(upper), NoClaimError, "no Rényi order has a finite divergence")
        return Interval(0.0, upper)

    def explain(self, delta: float) -> str:
        """Return the name of the method; the best order is not stated."""
        return "Rényi composition"
