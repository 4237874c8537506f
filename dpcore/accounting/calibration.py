r"""Calibration: the least noise, most steps or largest sample that events may have within a budget.

A *family* gives events with counts for each value of one parameter, and costs ever more, or ever
less, as it grows. What is returned was composed at that very value: its certified upper end is at
most the epsilon asked for, however the search went. The search itself is by secants in the
logarithm, first with Rényi divergences (cheap), then numerically on a coarse grid and on one as
fine as the tolerance needs, upper ends alone; where secants leave their bracket it bisects. Each
search hands on how steeply the cost moves, so that the next one seldom composes more than four
times.
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
_COARSE = 4e-3  # width of the first numerical search
_NEAR = 3e-3  # relative: where the search on a coarse grid ends
_BEYOND = 0.4  # of the tolerance: how far beyond the target a search steps on purpose
_FARTHEST = 1.0  # in the logarithm: the longest first step
_TOLD = (0.01, 1.0)  # how far apart in the logarithm two values tell a slope
_WIDER = 8  # times as wide is the composition that gives a lower end
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


@attrs.frozen
class _Found:
    """Where one search ended, and how steep the logarithm of the cost was; None if not known."""

    calibrated: Calibrated
    slope: float | None

    @property
    def value(self) -> float:
        """The best value."""
        return self.calibrated.value


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
            neighbouring integers; the interval of the cost is made about twice as wide as that.

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
    finest = PldAccountant(adjacency, width=fine, below=False)
    certified = PldAccountant(adjacency, width=_WIDER * fine)  # for the lower end
    found = search.run(RenyiAccountant(adjacency), math.sqrt(low * high), 0.05)
    if fine < _COARSE:
        coarse = _auto(adjacency, attrs.evolve(finest, width=_COARSE))
        found = search.run(coarse, found.value, max(tolerance, _NEAR), found.slope)
    ended = search.run(_auto(adjacency, finest), found.value, tolerance / 2, found.slope)
    return search.checked(ended.calibrated, _auto(adjacency, certified))


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

    def checked(self, found: Calibrated, accountant: Accountant) -> Calibrated:
        """The same with a certified lower end; refuse what does not meet the target.

        Raises:
            NoClaimError: it costs more.
        """
        if found.epsilon.upper <= self.epsilon:
            ends = self.cost(found.value, accountant)
            upper = min(ends.upper, found.epsilon.upper)
            return attrs.evolve(found, epsilon=Interval(min(ends.lower, upper), upper))
        raise NoClaimError(
            f"no value in [{self.low!r}, {self.high!r}] meets epsilon={self.epsilon!r} at "
            f"delta={self.delta!r}: the cheapest costs {found.epsilon.upper!r}"
        )

    def run(
        self, accountant: Accountant, start: float, tolerance: float, slope: float | None = None
    ) -> _Found:
        """The best value by one accountant, from a bracket around `start`."""
        known: dict[float, Interval] = {}

        def excess(value: float) -> float:
            """log(cost / target), at most 0 where it is met."""
            if value not in known:
                known[value] = self.cost(value, accountant)
            cost = min(known[value].upper, _INFINITE)
            return math.log(max(cost, 1e-12) / self.epsilon)

        ends = (self.low, self.high) if self.rising else (self.high, self.low)
        cheap, dear = self._bracket(excess, self._placed(start), *ends, tolerance, slope)
        if cheap is None:  # nothing meets it: the cheapest value says so
            found = Calibrated(value=ends[0], epsilon=known[ends[0]], beyond=ends[0])
            return _Found(found, None)
        for _ in range(_MOST_TRIES):
            if self._close(cheap, dear, tolerance):
                break
            middle = self._between(cheap, dear, excess(cheap), excess(dear), tolerance)
            if excess(middle) <= 0:
                cheap = middle
            else:
                dear = middle
        found = Calibrated(value=cheap, epsilon=known[cheap], beyond=dear)
        return _Found(found, _slope(cheap, known, slope))

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
        slope: float | None,
    ) -> tuple[float | None, float]:
        """A value that meets the target and one that does not, by ever longer steps.

        The first step is just beyond where the slope says that the target is met, the second beyond
        where the first two costs say so; each of those after it is three times as long.
        """
        away = math.copysign(1.0, math.log(dearest / cheapest))
        step, here, secant = max(2 * tolerance, 1e-3), start, False
        met = excess(here) <= 0
        if slope:
            step = min(abs(excess(here) / slope), _FARTHEST) + _BEYOND * tolerance
        while True:
            there = self._placed(here * math.exp((away if met else -away) * step))
            if there == here:
                if here in (cheapest, dearest):
                    return (here, here) if met else (None, here)
                there = here + (away if met else -away)  # whole numbers
            if (excess(there) <= 0) != met:
                return (here, there) if met else (there, here)
            steep = (excess(there) - excess(here)) / math.log(there / here)
            if secant or not steep:
                step *= 3
            else:
                step = min(abs(excess(there) / steep), _FARTHEST) + max(step / 4, tolerance)
            here, secant = there, True

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


def _slope(here: float, known: dict[float, Interval], before: float | None) -> float | None:
    """How the logarithm of the cost moves with that of the value, from the farthest known one."""
    costs = {value: cost.upper for value, cost in known.items() if 0 < cost.upper < _INFINITE}
    if here not in costs:
        return before
    apart = {value: abs(math.log(value / here)) for value in costs}
    told = [value for value in costs if _TOLD[0] <= apart[value] <= _TOLD[1]]
    if not told:
        return before
    other = max(told, key=lambda value: apart[value])
    return math.log(costs[other] / costs[here]) / math.log(other / here) or before
