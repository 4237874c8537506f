r"""Concentrated composition: the rho of all events add up (Bun & Steinke 2016, Lemma 1.7)."""

import attrs

from dpcore.accountant import Accountant, UnsupportedEventError
from dpcore.adjacency import Adjacency
from dpcore.claims.accounting.conversions import zcdp_to_epsilon
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
        """Return what the total implies.

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
        """One clause with the total rho, to six digits."""
        return f"zCDP composition, rho = {self.rho:.6g}"
