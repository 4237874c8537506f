r"""Basic composition: epsilons and deltas add up. Valid for any event, hardly ever tight."""

import math

import attrs

from dpcore.accountant import Accountant
from dpcore.adjacency import Adjacency
from dpcore.claims.accounting.conversions import epsilon_end
from dpcore.errors import NoClaimError, need
from dpcore.event import Event
from dpcore.interval import Interval
from dpcore.rounding import down, up


@attrs.frozen(eq=False)
class BasicAccountant(Accountant):
    r"""Upper end :math:`\sum_i n_i\,\epsilon_i(\delta_i)` with :math:`\sum_i n_i\,\delta_i=\delta`.

    Events with a pure epsilon take delta_i = 0 unless nothing else needs delta; the others share
    delta equally. Lower end: a composition is no less lossy than its worst single event.

    Source: Dwork & Roth (2014), Theorem 3.16, which holds for adaptive choices within a plan.
    """

    adjacency: Adjacency
    spent: dict[Event, int] = attrs.field(factory=dict)

    def compose(self, event: Event, count: int = 1) -> "BasicAccountant":
        """Add the event; equal events are counted together."""
        self.accept(event, count)
        if count == 0:
            return self
        return attrs.evolve(
            self, spent={**self.spent, event: self.spent.get(event, 0) + int(count)}
        )

    def epsilon(self, delta: float) -> Interval:
        """Add the epsilons at which each event's own curve falls to its part of `delta`."""
        need(0 <= delta < 1, ValueError, f"delta must be in [0, 1), got delta={delta!r}")
        if not self.spent:
            return Interval(0.0, 0.0)
        pure_costs = [(event.claims.pure, count) for event, count in self.spent.items()]
        # Anyone who has a pure epsilon takes no delta; the others share all of it.
        fractions = sum(count for epsilon, count in pure_costs if epsilon is None)
        need(
            not fractions or delta != 0,
            NoClaimError,
            "at delta = 0 every event needs a pure epsilon, and one has none",
        )
        costs = [epsilon * count for epsilon, count in pure_costs if epsilon is not None]
        part = down(delta / (fractions or sum(self.spent.values())), roundings=3)
        lower = 0.0
        # The lower end is that of one event: leaving out the others is post-processing.
        for (event, count), (epsilon, _) in zip(self.spent.items(), pure_costs, strict=True):
            if epsilon is None:
                costs.append(count * epsilon_end(event, part, lower=False))
            lower = max(lower, epsilon_end(event, delta, lower=True))
        upper = up(math.fsum(costs), roundings=5000)  # fsum: any number of kinds
        # Where all are pure, their approximate claims are a second valid sum: the lesser one holds.
        if not fractions and delta > 0:
            shared_cost = math.fsum(
                count * epsilon_end(event, part, lower=False) for event, count in self.spent.items()
            )
            upper = min(upper, up(shared_cost, roundings=5000))
        return Interval(min(lower, upper), upper)

    def explain(self, delta: float) -> str:
        """Name the composition rule in a clause."""
        return "basic composition (epsilons and deltas add up)"
