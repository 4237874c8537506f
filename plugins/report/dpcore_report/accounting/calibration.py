r"""Calibration: the least noise, most steps or largest sample that events may have within a budget.

A *family* gives events with counts for each value of one parameter, and costs ever more, or ever
less, as it grows. What is returned was composed at that very value: its certified upper end is at
most the epsilon asked for, however the search went. The search itself is by secants in the
logarithm, first with Rényi divergences (cheap), then numerically on a coarse grid and on one as
fine as the tolerance needs, upper ends only; where secants leave their bracket it bisects. Each
search hands on how steeply the cost moves, so that the next one seldom composes more than four
times.
"""

import math
from collections.abc import Callable, Sequence

import attrs

from dpcore import Accountant, Adjacency, Event
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.accounting.methods.pld import PldAccountant
from dpcore.claims.accounting.methods.renyi import RenyiAccountant
from dpcore.errors import NoClaimError, need
from dpcore.interval import Interval
from dpcore.shown import in_digits

Family = Callable[[float], Sequence[tuple[Event, int]]]
_INFINITE = 1e6  # represents an epsilon that no one states
_MOST_TRIES = 200
_COARSE = 4e-3  # width of the first numerical search
_NEAR = 3e-3  # relative: where the search on a coarse grid ends
_BEYOND = 0.4  # of the tolerance: how far beyond the target a search steps on purpose
_LIMIT = 1.0  # in the logarithm: the longest first step
_SPACING = (0.01, 1.0)  # how far apart in the logarithm two values say a slope
_WIDER = 8  # times as wide is the composition that gives a lower end
_FINEST = 2e-5  # nats: as wide as the last composition may be made


@attrs.frozen(kw_only=True)
class Calibrated:
    """A value of the family's parameter that meets the target.

    Args:
        value: The parameter; an integer where the family is one of counts.
        epsilon: What the events cost at it; its upper end is at most the target.
        beyond: The nearest value on the other side that was composed and does not certify the
            target; the best value lies between the two, as far as upper ends can say.
    """

    value: float
    epsilon: Interval
    beyond: float


@attrs.frozen
class _SearchEnd:
    """Where one search ended, and how steep the logarithm of the cost was; None if not known."""

    calibrated: Calibrated
    slope: float | None

    @property
    def value(self) -> float:
        """The best value that this search found, which meets the target."""
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
    """Return the value in [low, high] that spends most of the target and certainly no more.

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
    requirement = "epsilon > 0, delta in (0, 1) and a finite range 0 < low < high"
    for name, value, is_valid in (
        ("epsilon", epsilon, math.isfinite(epsilon) and epsilon > 0),
        ("delta", delta, 0 < delta < 1),
        ("low", low, 0 < low < high < math.inf),
    ):
        need(is_valid, "calibrate", requirement, name, value)
    search = _Search(family, epsilon, delta, low, high, rising, whole)
    # `PldAccountant` multiplies its width by a factor of epsilon. Divided by it, the interval at
    # the target is about a quarter of the tolerance wide.
    fine_width = max(
        _FINEST, min(4e-3, tolerance * epsilon / 4) / max(min(1.0, epsilon), epsilon / 20)
    )
    fine_accountant = PldAccountant(adjacency, width=fine_width, below=False)
    two_sided = PldAccountant(adjacency, width=_WIDER * fine_width)  # for the lower end
    # Each search starts where a cheaper one ended. Only the last one decides what is returned.
    rough = search.run(RenyiAccountant(adjacency), math.sqrt(low * high), 0.05)
    if fine_width < _COARSE:
        coarse_accountant = _auto(adjacency, attrs.evolve(fine_accountant, width=_COARSE))
        rough = search.run(coarse_accountant, rough.value, max(tolerance, _NEAR), rough.slope)
    final = search.run(_auto(adjacency, fine_accountant), rough.value, tolerance / 2, rough.slope)
    # The numerical searches computed upper ends only. The lower end is reported next to them,
    # and no claim rests on it.
    return search.certify(final.calibrated, _auto(adjacency, two_sided))


def _auto(adjacency: Adjacency, numerical: PldAccountant) -> AutoAccountant:
    return AutoAccountant(adjacency, {**AutoAccountant(adjacency).methods, "pld": numerical})


@attrs.frozen
class _Search:
    """One target, and how a value's cost compares with it."""

    family: Family
    epsilon: float
    delta: float
    low: float
    high: float
    rising: bool
    integral: bool

    def cost(self, value: float, accountant: Accountant) -> Interval:
        """Return what the events at a value cost; infinite where nothing is stated."""
        try:
            return accountant.compose_all(self.family(value)).epsilon(self.delta)
        # A refusal counts as an infinite cost, so that the search turns back instead of failing.
        except NoClaimError:
            return Interval(0.0, math.inf)

    def certify(self, calibrated: Calibrated, accountant: Accountant) -> Calibrated:
        """Return the same with a certified lower end; refuse what does not meet the target.

        Raises:
            NoClaimError: it costs more.
        """
        if calibrated.epsilon.upper <= self.epsilon:
            ends = self.cost(calibrated.value, accountant)
            upper = min(ends.upper, calibrated.epsilon.upper)
            return attrs.evolve(calibrated, epsilon=Interval(min(ends.lower, upper), upper))
        raise NoClaimError(
            f"no value in [{self.low!r}, {self.high!r}] meets epsilon={self.epsilon!r} at delta="
            f"{self.delta!r}: the cheapest costs {in_digits(calibrated.epsilon.upper, direction=1)}"
        )

    def run(
        self, accountant: Accountant, start: float, tolerance: float, slope: float | None = None
    ) -> _SearchEnd:
        """The best value by one accountant, from a bracket around `start`."""
        costs: dict[float, Interval] = {}

        def excess(value: float) -> float:
            """log(cost / target), at most 0 where it is met."""
            if value not in costs:
                costs[value] = self.cost(value, accountant)
            cost = min(costs[value].upper, _INFINITE)
            return math.log(max(cost, 1e-12) / self.epsilon)

        # The cheapest value comes first, whichever way the cost moves.
        ends = (self.low, self.high) if self.rising else (self.high, self.low)
        cheap, dear = self._bracket(excess, self._clamp(start), *ends, tolerance, slope)
        if cheap is None:  # nothing meets it: the cheapest value says so
            calibrated = Calibrated(value=ends[0], epsilon=costs[ends[0]], beyond=ends[0])
            return _SearchEnd(calibrated, None)
        # Invariant: `cheap` was composed and meets the target, `dear` was composed and does not.
        # They are equal where the dearest value of the range meets it.
        for _ in range(_MOST_TRIES):
            if self._are_close(cheap, dear, tolerance):
                break
            middle = self._next_value(cheap, dear, excess(cheap), excess(dear), tolerance)
            cheap, dear = (middle, dear) if excess(middle) <= 0 else (cheap, middle)
        calibrated = Calibrated(value=cheap, epsilon=costs[cheap], beyond=dear)
        return _SearchEnd(calibrated, _slope(cheap, costs, slope))

    def _clamp(self, value: float) -> float:
        value = min(max(value, self.low), self.high)
        return float(round(value)) if self.integral else value

    def _are_close(self, first: float, second: float, tolerance: float) -> bool:
        gap = abs(first - second)
        return gap <= (1 if self.integral else 0) or gap <= tolerance * min(first, second)

    def _bracket(
        self,
        excess: Callable[[float], float],
        start: float,
        cheapest: float,
        dearest: float,
        tolerance: float,
        slope: float | None,
    ) -> tuple[float | None, float]:
        """Return a value that meets the target and one that does not, by ever longer steps.

        The first step is just beyond where the slope says that the target is met, the second beyond
        where the first two costs say so; each of those after it is three times as long.
        """
        direction = math.copysign(1.0, math.log(dearest / cheapest))
        step, value, has_secant = max(2 * tolerance, 1e-3), start, False
        is_met = excess(value) <= 0
        if slope:
            step = min(abs(excess(value) / slope), _LIMIT) + _BEYOND * tolerance
        # Towards dearer values while the target is met, towards cheaper ones while it is not.
        while True:
            candidate = self._clamp(value * math.exp((direction if is_met else -direction) * step))
            # Nothing moved: an end of the range was reached, or the step rounds to 0.
            if candidate == value:
                if value in (cheapest, dearest):
                    return (value, value) if is_met else (None, value)
                candidate = value + (direction if is_met else -direction)  # whole numbers
            if (excess(candidate) <= 0) != is_met:
                return (value, candidate) if is_met else (candidate, value)
            steepness = (excess(candidate) - excess(value)) / math.log(candidate / value)
            if has_secant or not steepness:
                step *= 3
            else:
                step = min(abs(excess(candidate) / steepness), _LIMIT) + max(step / 4, tolerance)
            value, has_secant = candidate, True

    def _next_value(
        self, cheap: float, dear: float, deficit: float, surplus: float, tolerance: float
    ) -> float:
        """By the secant in logarithms, a hair to the cheap side; else the middle."""
        width = math.log(dear / cheap)
        # A secant is trusted only where both costs are finite, ordered and near to each other.
        usable = (
            surplus < math.log(_INFINITE / self.epsilon) and deficit < surplus and abs(width) < 1
        )
        fraction = min(max(-deficit / (surplus - deficit), 0.0), 1.0) if usable else 0.5
        if usable:  # just on the cheap side of the root, or beyond it once cheap is near
            hair = min(0.4 * tolerance / abs(width), 0.3)
            fraction = (
                fraction - hair
                if fraction > 2 * hair
                else min(fraction + hair, 0.5 * (1 + fraction))
            )
            # A twentieth at least, so that the bracket shrinks even where the secant is flat.
            fraction = min(max(fraction, 0.05), 0.95)
        middle = cheap * math.exp(fraction * width)
        if not self.integral:
            return middle
        # An integer strictly inside the bracket: neighbours have ended the loop already.
        ends = sorted((cheap, dear))
        return min(max(float(round(middle)), ends[0] + 1), ends[1] - 1)


def _slope(end: float, intervals: dict[float, Interval], previous: float | None) -> float | None:
    """Return how the logarithm of the cost moves with that of the value, from the most distant
    known one.
    """
    costs = {value: cost.upper for value, cost in intervals.items() if 0 < cost.upper < _INFINITE}
    if end not in costs:
        return previous
    distances = {value: abs(math.log(value / end)) for value in costs}
    # Near values differ by less than their intervals are wide; far ones hide a curved cost.
    candidates = [value for value in costs if _SPACING[0] <= distances[value] <= _SPACING[1]]
    if not candidates:
        return previous
    diameter = max(candidates, key=lambda value: distances[value])
    return math.log(costs[diameter] / costs[end]) / math.log(diameter / end) or previous
