r"""Calibration: the least noise, most steps or largest sample that events may have within a budget.

A *family* gives events with counts for each value of one parameter, and costs ever more, or ever
less, as it grows. What is returned was composed at that very value: its certified upper end is at
most the epsilon asked for, however the search went. The search itself is by secants in the
logarithm, first with Rényi divergences (cheap), then numerically on a grid as fine as the tolerance
needs; where secants leave their bracket it bisects.
"""

import math
from collections.abc import Callable, Sequence

import attrs

from dpcore.accountant import Accountant
from dpcore.accounting.methods.auto import AutoAccountant
from dpcore.accounting.methods.pld import PldAccountant
from dpcore.accounting.methods.renyi import RenyiAccountant
from dpcore.adjacency import Adjacency
from dpcore.errors import NoClaimError, ParameterError
from dpcore.events.base import Event
from dpcore.interval import Interval

Family = Callable[[float], Sequence[tuple[Event, int]]]
_INFINITE = 1e6  # stands for an epsilon that nobody states
_MOST_TRIES = 200
_FINEST = 2e-5  # nats: as wide as the last composition may be made


@attrs.frozen(kw_only=True)
class Calibrated:
    """A value of the family's parameter that meets the target.

    Args:
        value: The parameter; an integer where the family is one of counts.
        epsilon: What the events cost at it; its upper end is at most the target.
        beyond: The nearest value on the other side that was composed and does not certify the
            target; the best value lies between the two, as far as upper ends can tell.
    """

    value: float
    epsilon: Interval
    beyond: float


def calibrate(
    family: Family,
    *,
    adjacency: Adjacency,
    epsilon: float,
    delta: float,
    low: float,
    high: float,
    rising: bool,
    whole: bool = False,
    tolerance: float = 1e-4,
) -> Calibrated:
    """The value in [low, high] that spends most of the target and certainly no more.

    Args:
        family: Events with counts at a value; their cost is monotone in it.
        adjacency: What the target is about.
        epsilon, delta: The target; epsilon in nats, > 0; delta in (0, 1).
        low, high: The range of values, 0 < low < high.
        rising: Whether a larger value costs more (steps, a share) rather than less (noise).
        whole: Whether values are integers.
        tolerance: Relative: how near to each other `value` and `beyond` are, unless they are
            neighbouring integers; the last composition is made about as narrow as that.

    Raises:
        ParameterError: the target or the range is impossible.
        NoClaimError: even the cheapest value does not meet the target.
    """
    for name, value, good in (
        ("epsilon", epsilon, math.isfinite(epsilon) and epsilon > 0),
        ("delta", delta, 0 < delta < 1),
        ("low", low, 0 < low < high < math.inf),
    ):
        if not good:
            needed = "epsilon > 0, delta in (0, 1) and a finite range 0 < low < high"
            raise ParameterError("calibrate", needed, name, value)
    search = _Search(family, epsilon, delta, low, high, rising, whole)
    fine = max(_FINEST, min(4e-3, tolerance * epsilon / 4) / max(min(1.0, epsilon), epsilon / 20))
    coarse = PldAccountant(adjacency, width=max(fine, 4e-3))
    rough = search.run(RenyiAccountant(adjacency), math.sqrt(low * high), 0.05)
    near = search.run(_auto(adjacency, coarse), rough.value, max(tolerance, 1e-3))
    if fine >= 4e-3:
        return search.checked(near)
    return search.checked(search.run(_auto(adjacency, attrs.evolve(coarse, width=fine)), near.value,
                                     tolerance / 2))  # fmt: skip


def _auto(adjacency: Adjacency, numerical: PldAccountant) -> AutoAccountant:
    methods = AutoAccountant(adjacency).methods
    return AutoAccountant(adjacency, {**methods, "pld": numerical})


@attrs.frozen
class _Search:
    """One target, and how a value's cost compares with it."""

    family: Family
    epsilon: float
    delta: float
    low: float
    high: float
    rising: bool
    whole: bool

    def cost(self, value: float, accountant: Accountant) -> Interval:
        """What the events at a value cost; infinite where nothing is stated."""
        try:
            for event, count in self.family(value):
                accountant = accountant.compose(event, count)
            return accountant.epsilon(self.delta)
        except NoClaimError:
            return Interval(0.0, math.inf)

    def checked(self, found: Calibrated) -> Calibrated:
        """Refuse what does not meet the target.

        Raises:
            NoClaimError: it costs more.
        """
        if found.epsilon.upper <= self.epsilon:
            return found
        raise NoClaimError(
            f"no value in [{self.low!r}, {self.high!r}] meets epsilon={self.epsilon!r} at "
            f"delta={self.delta!r}: the cheapest costs {found.epsilon.upper!r}"
        )

    def run(self, accountant: Accountant, start: float, tolerance: float) -> Calibrated:
        """The best value by one accountant, from a bracket around `start`."""
        known: dict[float, Interval] = {}

        def excess(value: float) -> float:
            """log(cost / target), at most 0 where it is met."""
            if value not in known:
                known[value] = self.cost(value, accountant)
            cost = min(known[value].upper, _INFINITE)
            return math.log(max(cost, 1e-12) / self.epsilon)

        ends = (self.low, self.high) if self.rising else (self.high, self.low)
        cheap, dear = self._bracket(excess, self._placed(start), *ends, tolerance)
        if cheap is None:  # nothing meets it: the cheapest value says so
            return Calibrated(value=ends[0], epsilon=known[ends[0]], beyond=ends[0])
        for _ in range(_MOST_TRIES):
            if self._close(cheap, dear, tolerance):
                break
            middle = self._between(cheap, dear, excess(cheap), excess(dear), tolerance)
            if excess(middle) <= 0:
                cheap = middle
            else:
                dear = middle
        return Calibrated(value=cheap, epsilon=known[cheap], beyond=dear)

    def _placed(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        return float(round(value)) if self.whole else value

    def _close(self, one: float, other: float, tolerance: float) -> bool:
        apart = abs(one - other)
        return apart <= (1 if self.whole else 0) or apart <= tolerance * min(one, other)

    def _bracket(
        self,
        excess: Callable[[float], float],
        start: float,
        cheapest: float,
        dearest: float,
        tolerance: float,
    ) -> tuple[float | None, float]:
        """A value that meets the target and one that does not, by ever longer steps."""
        away = math.copysign(1.0, math.log(dearest / cheapest))
        step, here = max(2 * tolerance, 1e-3), start
        met = excess(here) <= 0
        while True:
            there = self._placed(here * math.exp((away if met else -away) * step))
            if there == here:
                if here in (cheapest, dearest):
                    return (here, here) if met else (None, here)
                there = here + (away if met else -away)  # whole numbers
            if (excess(there) <= 0) != met:
                return (here, there) if met else (there, here)
            here, step = there, 3 * step

    def _between(
        self, cheap: float, dear: float, under: float, over: float, tolerance: float
    ) -> float:
        """By the secant in logarithms, a hair to the cheap side; else the middle."""
        width = math.log(dear / cheap)
        usable = over < math.log(_INFINITE / self.epsilon) and under < over and abs(width) < 1
        share = min(max(-under / (over - under), 0.0), 1.0) if usable else 0.5
        if usable:  # just on the cheap side of the root, or beyond it once cheap is near
            hair = min(0.4 * tolerance / abs(width), 0.3)
            share = share - hair if share > 2 * hair else min(share + hair, 0.5 * (1 + share))
            share = min(max(share, 0.05), 0.95)
        middle = cheap * math.exp(share * width)
        if not self.whole:
            return middle
        inside = sorted((cheap, dear))
        return min(max(float(round(middle)), inside[0] + 1), inside[1] - 1)
