r"""Numerical composition of privacy loss distributions, with both ends certified.

Each direction by itself; equal events grouped; all exactly Gaussian events merged into one first.
The
masses come from `dpcore.losses.masses`, one measure above the curves and one below, and are
composed by
`dpcore.losses.convolution`.
"""

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar, cast

import attrs
import numpy as np

from dpcore.accountant import Accountant
from dpcore.adjacency import Adjacency
from dpcore.errors import NoClaimError
from dpcore.events.base import Direction, Event
from dpcore.events.gaussian import GaussianEvent
from dpcore.interval import Interval
from dpcore.losses.convolution import Composed, Group, Saddle, compose, log_moments, variance
from dpcore.losses.masses import Extent, Masses, masses_above, masses_below

_ULP = 2.0**-52
_ROUGH_CELLS = 160
_WIDEST_WINDOW = 2**21
_GAP = 0.5  # width of the interval over copies * (tilt + 1) * step^2, a first guess

Spent = dict[Event, int]
T = TypeVar("T")


def spend(spent: Spent, event: Event, count: int) -> Spent:
    """`spent` with `count` copies of the parts of `event` added; the argument stays as it is."""
    spent = dict(spent)
    for part, times in event.parts():
        spent[part] = spent.get(part, 0) + times * count
    return spent


@attrs.frozen(eq=False)
class PldAccountant(Accountant):
    r"""Composition of whole curves on a grid ("connect the dots"), for events fixed in advance.

    Covers every event. The step is chosen so that the interval is about `width` wide, relative to
    epsilon below 1 and absolute above, as far as 2^21 cells allow.

    Args:
        adjacency: What the result is about.
        width: Wanted width of the interval, > 0.
        step: Grid step in nats; chosen when None.

    Source: Doroshenko et al. (2022), arXiv:2207.04380 (the measure from above); Koskela, Jälkö &
    Honkela (2020), arXiv:1906.03049 (Fourier accountants); the modules of `dpcore.losses` prove
    both ends.
    """

    adjacency: Adjacency
    width: float = 4e-3
    step: float | None = None
    spent: Spent = attrs.field(factory=dict)
    _known: dict[object, object] = attrs.field(factory=dict, repr=False)

    def compose(self, event: Event, count: int = 1) -> "PldAccountant":
        """Equal events are counted together; nothing is computed yet."""
        self.accept(event, count)
        if count == 0:
            return self
        return attrs.evolve(self, spent=spend(self.spent, event, int(count)))

    def epsilon(self, delta: float) -> Interval:
        """Both ends of the composed curve.

        Raises:
            NoClaimError: delta = 0 with an event that has no pure epsilon, infinite losses are
            likelier than delta, or losses are too large for a grid.
        """
        if not 0 <= delta < 1:
            raise ValueError(f"delta must be in [0, 1), got delta={delta!r}")
        if not self.spent:
            return Interval(0.0, 0.0)
        if delta == 0:
            raise NoClaimError("numerical composition needs delta > 0")
        if len(self.spent) == 1 and sum(self.spent.values()) == 1:
            return next(iter(self.spent)).epsilon(delta)
        above, below = self._merged(+1), self._merged(-1)
        symmetric = all(event.symmetric for event in above)
        directions = (Direction.REMOVE,) if symmetric else tuple(Direction)
        ends = [self._one(above, below, direction, delta) for direction in directions]
        return Interval(max(end.lower for end in ends), max(end.upper for end in ends))

    def explain(self, delta: float) -> str:
        """The method and its kind of certificate."""
        return "numerical composition of privacy loss distributions, both ends certified"

    def _merged(self, sign: int) -> Spent:
        """All Gaussian events as one, its mu moved by the rounding error of the sum."""
        squares = 0.0
        rest: Spent = {}
        for event, count in self.spent.items():
            mu = event.gaussian_mu()
            if mu is None:
                rest[event] = count
            else:
                squares += count * mu * mu
        if squares > 0:
            mu = math.sqrt(squares) * (1 + sign * (4 + len(self.spent)) * _ULP)
            rest[GaussianEvent(mu=mu, adjacency=self.adjacency)] = 1
        return rest

    def _remembered(self, key: object, make: Callable[[], T]) -> T:
        """Computed once for an accountant and all that are composed from it."""
        if key not in self._known:
            if len(self._known) > 4096:
                self._known.clear()
            self._known[key] = make()
        return cast(T, self._known[key])

    def _one(self, above: Spent, below: Spent, direction: Direction, delta: float) -> Interval:
        """The interval of one direction."""
        copies = sum(above.values())
        # a power of 16, so that neighbouring questions share their grids
        tail = 16.0 ** math.floor(math.log(max(delta * 1e-6 / copies, 1e-280), 16.0))
        extents = {
            event: self._remembered(
                ("extent", event, direction, tail), partial(Extent.of, event, direction, tail)
            )
            for event in above
        }
        rough = [
            Group(self._rough(event, direction, extents[event]), count)
            for event, count in above.items()
        ]
        tilt = best_tilt(rough, delta)
        spread = math.sqrt(variance(rough, tilt))
        step = self.step or self._first_step(rough, copies, tilt, spread)
        if self.step is None:
            step = _aligned(step, above, extents)
        found = self._at(above, below, direction, extents, step, tilt, delta)
        wanted = self._wanted(found.upper)
        if self.step is None and found.width > 1.5 * wanted and math.isfinite(found.upper):
            finer = _rounded(max(step * math.sqrt(wanted / found.width), step / 64))
            finer = max(finer, self._least_step(rough, tilt))
            finer = _aligned(finer, above, extents)
            if finer < step:
                again = self._at(above, below, direction, extents, finer, tilt, delta)
                found = Interval(
                    min(max(found.lower, again.lower), min(found.upper, again.upper)),
                    min(found.upper, again.upper),
                )
        if not math.isfinite(found.upper):
            raise NoClaimError(f"an infinite privacy loss is likelier than delta={delta!r}")
        return found

    def _wanted(self, epsilon: float) -> float:
        return self.width * min(1.0, epsilon) if epsilon > 0 else self.width

    def _least_step(self, groups: list[Group], tilt: float) -> float:
        saddle = Saddle.of(groups, tilt)
        longest = max(group.masses.last - group.masses.first for group in groups)
        return _rounded(2 * max(saddle.high - saddle.low, longest) / _WIDEST_WINDOW)

    def _first_step(self, groups: list[Group], copies: int, tilt: float, spread: float) -> float:
        saddle = Saddle.of(groups, tilt)
        guess = math.sqrt(
            self._wanted(max(0.5 * (saddle.high + saddle.low), 0.1 * saddle.high))
            / (_GAP * copies * (tilt + 1))
        )
        step = min(guess, max(spread, 1e-12) / 16)
        return _rounded(max(step, self._least_step(groups, tilt)))

    def _rough(self, event: Event, direction: Direction, extent: Extent) -> Masses:
        step = (extent.top - extent.bottom) / _ROUGH_CELLS
        return self._remembered(
            ("rough", event, direction, extent),
            lambda: masses_above(event, direction, extent, step),
        )

    def _masses(
        self,
        events: Iterable[tuple[Event, int]],
        direction: Direction,
        extents: dict[Event, Extent],
        step: float,
        make: Callable[[Event, Direction, Extent, float], Masses | None],
    ) -> list[Group] | None:
        groups = []
        for event, count in events:
            extent = extents[event]
            masses = self._remembered(
                (make, event, direction, extent, step),
                partial(make, event, direction, extent, step),
            )
            if masses is None:
                return None
            groups.append(Group(masses, count))
        return groups

    def _at(
        self,
        above: Spent,
        below: Spent,
        direction: Direction,
        extents: dict[Event, Extent],
        step: float,
        tilt: float,
        delta: float,
    ) -> Interval:
        """Both ends at one step."""
        over = self._masses(above.items(), direction, extents, step, masses_above)
        assert over is not None
        upper = _composed(over, tilt, step).epsilon_above(delta)
        lower = 0.0
        # the merged Gaussian of the lower end has the extent of the upper end's
        matched = dict(zip(below, above, strict=True))
        reached = {event: extents[matched[event]] for event in below}
        under = self._masses(below.items(), direction, reached, step, masses_below)
        if under is not None:
            lower = _composed(under, tilt, step).epsilon_below(delta)
        return Interval(min(lower, upper), upper)


def _composed(groups: list[Group], tilt: float, step: float) -> Composed:
    return compose(groups, Saddle.of(groups, tilt), step)


def _aligned(step: float, spent: Spent, extents: dict[Event, Extent]) -> float:
    """The largest step up to `step` that divides the range of the commonest anchored event.

    Its smallest loss, often of positive probability, then lies on the grid as its largest does.
    """
    anchored = [event for event in spent if extents[event].anchored]
    if not anchored:
        return step
    extent = extents[max(anchored, key=lambda event: spent[event])]
    width = extent.top - extent.bottom
    return width / math.ceil(width / step) if step < width else step


def _rounded(step: float) -> float:
    """Down to a power of sqrt(2), so that neighbouring questions share their grids."""
    return float(2.0 ** (math.floor(2 * math.log2(step)) / 2))


def best_tilt(groups: list[Group], delta: float) -> float:
    r"""About the theta at which the log moments K imply the least epsilon at `delta`.

    It minimises
    :math:`(K(\theta)-\log\delta+\theta\log\tfrac{\theta}{1+\theta}-\log(1+\theta))/\theta`
    (Canonne, Kamath & Steinke 2020, Proposition 12, with order theta + 1), on a refined geometric
    grid. Any value is
    sound; this one makes the tilted masses large where epsilon is.
    """
    reach = math.fsum(g.count * (g.masses.last - g.masses.first) for g in groups)
    low, high = -12.0, math.log(max(1e3, 300 * max(1.0, -math.log(delta)) / max(reach, 1e-12)))
    best = 1.0
    for _ in range(3):
        tilts = np.exp(np.linspace(low, high, 24))
        moments = np.zeros_like(tilts)
        for group in groups:
            moments += group.count * log_moments(group.masses, tilts)
        implied = (
            moments - math.log(delta) + tilts * np.log(tilts / (1 + tilts)) - np.log1p(tilts)
        ) / tilts
        at = int(np.argmin(implied))
        best = float(tilts[at])
        width = (high - low) / 23
        low, high = math.log(best) - 1.5 * width, math.log(best) + 1.5 * width
    return best
