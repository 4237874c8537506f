r"""Basic composition: epsilons and deltas add up. Valid for any event, hardly ever tight."""

import attrs

from dpcore.accountant import Accountant
from dpcore.adjacency import Adjacency
from dpcore.errors import NoClaimError
from dpcore.events.base import Event
from dpcore.interval import Interval

_ROUND_UP = 1 + 2.0**-40  # covers the rounding of sums of up to 10^3 kinds of events


@attrs.frozen
class BasicAccountant(Accountant):
    r"""Upper end :math:`\sum_i n_i\,\epsilon_i(\delta_i)` with :math:`\sum_i n_i\,\delta_i=\delta`.

    Events with a pure epsilon take delta_i = 0 unless nothing else needs delta; the others share
    delta equally. Lower end: a composition is no less lossy than its worst single event.

    Source: Dwork & Roth (2014), Theorem 3.16, which holds for adaptive choices within a plan.
    """

    adjacency: Adjacency
    spent: tuple[tuple[Event, int], ...] = ()

    def compose(self, event: Event, count: int = 1) -> "BasicAccountant":
        """Equal events are counted together."""
        self.accept(event, count)
        if count == 0:
            return self
        spent = dict(self.spent)
        spent[event] = spent.get(event, 0) + int(count)
        return attrs.evolve(self, spent=tuple(spent.items()))

    def epsilon(self, delta: float) -> Interval:
        """By inverting each event's own curve at its part of `delta`."""
        if not 0 <= delta < 1:
            raise ValueError(f"delta must be in [0, 1), got delta={delta!r}")
        if not self.spent:
            return Interval(0.0, 0.0)
        pure = [(event.pure_epsilon(), count) for event, count in self.spent]
        sharing = sum(count for epsilon, count in pure if epsilon is None)
        if sharing and delta == 0:
            raise NoClaimError("at delta = 0 every event needs a pure epsilon, and one has none")
        upper = sum(epsilon * count for epsilon, count in pure if epsilon is not None)
        part = delta / (sharing or sum(count for _, count in self.spent)) * (1 - 2.0**-50)
        lower = 0.0
        for (event, count), (epsilon, _) in zip(self.spent, pure, strict=True):
            if epsilon is None:
                upper += count * event.epsilon(part).upper
            lower = max(lower, event.epsilon(delta).lower)
        upper *= _ROUND_UP
        if not sharing and delta > 0:
            shared = sum(c * event.epsilon(part).upper for event, c in self.spent) * _ROUND_UP
            upper = min(upper, shared)
        return Interval(min(lower, upper), upper)

    def explain(self, delta: float) -> str:
        """How the parts were added."""
        return "basic composition (epsilons and deltas add up)"
