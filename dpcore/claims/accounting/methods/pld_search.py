"""The search behind numerical composition: extents, tilts, windows and steps of both ends.

`dpcore.claims.accounting.methods.pld` says what it answers. The masses come from
`dpcore.claims.accounting.losses.masses`, one measure above the curves and one below, and are
composed by `dpcore.claims.accounting.losses.convolution`.
"""

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.claims.accounting.conversions import event_epsilon
from dpcore.claims.accounting.losses.choices import attaining, together
from dpcore.claims.accounting.losses.convolution import (
    Composed,
    Group,
    Saddle,
    best_shifts,
    compose,
    total_moments,
    variance,
)
from dpcore.claims.accounting.losses.masses import (
    LIMIT,
    AsAttained,
    Extent,
    Masses,
    loss_limit,
    masses_above,
    masses_both,
)
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.errors import NoClaimError, need
from dpcore.event import Direction, Event
from dpcore.interval import Interval
from dpcore.rounding import gamma

_ROUGH_CELLS = 160
_WIDEST_WINDOW = 2**20
_MOST_MASSES = 2**17
_MOST_RESULTS = 2**15  # intermediate results kept
_COARSE = 4  # steps in one, when a direction is expected to be the lesser one
_GAP = 0.5  # width of the interval over copies * (tilt + 1) * step^2, a first guess

T = TypeVar("T")

Spent = dict[Event, int]
Array = NDArray[np.float64]


def wanted_width(width: float, epsilon: float) -> float:
    """Return the width to aim at near this epsilon; `width` is for epsilons from 1 to 20."""
    return width * max(min(1.0, epsilon), epsilon / 20) if epsilon > 0 else width


@attrs.frozen(eq=False)
class Search:
    """The search for the step, the tilt and the window of a composed curve.

    Args:
        adjacency, width, step, below, spent: As of `PldAccountant`.
        results: What was computed before, shared by all that are composed from one accountant.
    """

    adjacency: Adjacency
    width: float
    step: float | None
    below: bool
    spent: Spent
    _results: dict[object, object] = attrs.field(repr=False)

    def epsilon(self, delta: float) -> Interval:
        """Invert both ends of the composed curve.

        Raises:
            NoClaimError: delta = 0 with an event that has no pure epsilon, infinite losses are
            likelier than delta, or losses are too large for a grid.
        """
        need(0 <= delta < 1, ValueError, f"delta must be in [0, 1), got delta={delta!r}")
        if not self.spent:
            return Interval(0.0, 0.0)
        need(delta != 0, NoClaimError, "numerical composition needs delta > 0")
        if len(self.spent) == 1 and sum(self.spent.values()) == 1:
            return event_epsilon(next(iter(self.spent)), delta)
        # The merged mu is rounded up for the upper end and down for the lower one.
        above, below = self._merge_gaussians(+1), self._merge_gaussians(-1)
        symmetric = all(event.curve.symmetric for event in above)
        directions = (Direction.REMOVE,) if symmetric else tuple(Direction)
        aims = [self._aim(above, below, direction, delta) for direction in directions]
        aims.sort(key=lambda aim: -aim.implied)
        interval = self._interval(aims[0])
        for aim in aims[1:]:
            if aim.implied > interval.lower:  # otherwise it is certainly not the larger one
                reverse = self._interval(aim, interval)
                interval = Interval(
                    max(interval.lower, reverse.lower), max(interval.upper, reverse.upper)
                )
        # Lower ends add up only where one pair of datasets attains every curve.
        if all(event.curve.attained for event in below):
            return interval
        return Interval(min(self._lower(delta), interval.upper), interval.upper)

    def curve_above(
        self, direction: Direction, deltas: Sequence[float], step: float
    ) -> tuple[Array, Array]:
        """Answer `PldAccountant.curve_above` out of this search."""
        above = self._merge_gaussians(+1)
        aims = [self._aim(above, above, direction, delta) for delta in sorted(deltas, reverse=True)]
        need(
            max(aim.implied for aim in aims) < LIMIT,
            NoClaimError,
            f"at delta={min(deltas)!r} the loss is more than {LIMIT} nats",
        )
        # Each tilt answers between the midpoints to its neighbours, where its window is.
        centres = np.maximum.accumulate([aim.implied for aim in aims])
        edges = [-LIMIT, *(0.5 * (centres[1:] + centres[:-1])), LIMIT]
        epsilons, heights = [], []
        for aim, low, high in zip(aims, edges, edges[1:], strict=False):
            finest = max(step, aim.least_step())
            groups = [
                Group(masses_above(event, direction, aim.extents[event], finest), count)
                for event, count in above.items()
            ]
            points, height = aim.composed(groups, finest).curve_above()
            in_range = (points > low) & (points <= high)  # each tilt where it is the best one
            epsilons.append(points[in_range])
            heights.append(height[in_range])
        return np.concatenate(epsilons), np.minimum.accumulate(np.concatenate(heights))

    def _lower(self, delta: float) -> float:
        """Return a lower end from those events that one pair is known to attain."""
        # Two events with one pair count once: leaving out events is post-processing.
        spent = self.spent.items()
        attained = {pair: n for event, n in spent if (pair := attaining(event)) is not None}
        if not attained:
            return 0.0
        try:
            # A lower end for some holds for all.
            part = attrs.evolve(self, spent=attained, width=4 * self.width, results=self._results)
            return part.epsilon(delta).lower
        except NoClaimError:
            return 0.0

    def _merge_gaussians(self, sign: int) -> Spent:
        """Merge all Gaussian events into one, its mu shifted by the sum's rounding error.

        Equal others are counted together.
        """
        squares = 0.0
        merged: Spent = {}
        for event, count in self.spent.items():
            if (mu := event.claims.mu) is None:
                merged |= together(event, count)
            else:
                squares += count * mu * mu
        if squares > 0:
            mu = math.sqrt(squares) * (1 + sign * gamma(8 + 2 * len(self.spent)))
            merged[GaussianEvent(mu=mu, adjacency=self.adjacency)] = 1
        return merged

    def _compute_once(self, key: object, make: Callable[[], T]) -> T:
        """Compute a value once for an accountant and all that are composed from it."""
        if key not in self._results:
            # All at once: nothing but time is lost, and no order of use has to be kept.
            if len(self._results) > _MOST_RESULTS:
                self._results.clear()
            self._results[key] = make()
        return cast(T, self._results[key])

    def _aim(self, above: Spent, below: Spent, direction: Direction, delta: float) -> "_Aim":
        """Choose ranges, tilt and window of one direction, from rough masses."""
        copies = sum(above.values())
        # a power of 16, so that neighbouring questions share their grids
        tail = 16.0 ** math.floor(math.log(max(delta * 1e-6 / copies, 1e-280), 16.0))
        extents = {event: self._extent(event, direction, tail) for event in above}
        rough = [
            Group(
                self._compute_once(
                    ("rough", event, direction, extents[event]),
                    partial(_rough, event, direction, extents[event]),
                ),
                count,
            )
            for event, count in above.items()
        ]
        tilt, implied = best_tilt(rough, delta)
        return _Aim(
            above=above,
            below=below,
            direction=direction,
            delta=delta,
            extents=extents,
            rough=rough,
            tilt=tilt,
            implied=implied,
            shifts=best_shifts(rough, tilt),
        )

    def _extent(self, event: Event, direction: Direction, tail: float) -> Extent:
        """Find the range of the event's losses; search an event with equal directions once."""

        def find_diameter(side: Direction) -> float:
            return self._compute_once(
                ("reach", event, side, tail), partial(loss_limit, event, side, tail)
            )

        reverse = direction if event.curve.symmetric else direction.reverse
        return Extent.between(event, direction, find_diameter(direction), find_diameter(reverse))

    def _interval(self, aim: "_Aim", rival: Interval | None = None) -> Interval:
        """Compute one direction's interval: by a first step, and a finer one if it is too wide.

        Args:
            rival: The other direction's interval, if known: an upper end at most that one's
                decides nothing, and then no lower end is computed (0 represents it).
        """
        need(
            math.isfinite(aim.implied),
            NoClaimError,
            f"an infinite privacy loss is likelier than delta={aim.delta!r}",
        )
        least_step = aim.least_step()
        step = self.step or aim.aligned(
            max(aim.first_step(partial(wanted_width, self.width)), least_step)
        )
        if rival is not None:  # a coarse step often says already that this direction is lesser
            coarse = self._interval_at(aim, aim.aligned(_COARSE * step), rival)
            if coarse.upper <= rival.upper:
                return coarse
        interval = self._interval_at(aim, step, rival)
        if rival is not None and interval.upper <= rival.upper:
            return interval
        target_width = wanted_width(self.width, interval.upper)
        is_fixed = self.step is not None or not self.below
        if not is_fixed and math.isfinite(interval.upper) and interval.width > 1.5 * target_width:
            # The gap between the ends is of second order in the step.
            finer_step = max(step * math.sqrt(target_width / interval.width), step / 64, least_step)
            finer_step = aim.aligned(_round_down(finer_step))
            if finer_step < step:
                retry = self._interval_at(aim, finer_step, rival)
                upper = min(interval.upper, retry.upper)
                interval = Interval(min(max(interval.lower, retry.lower), upper), upper)
        need(
            math.isfinite(interval.upper),
            NoClaimError,
            f"an infinite privacy loss is likelier than delta={aim.delta!r}",
        )
        return interval

    def _interval_at(self, aim: "_Aim", step: float, rival: Interval | None) -> Interval:
        """Return both ends at one step, or only the upper end if it decides nothing."""
        if not self.below:
            groups = [
                Group(masses_above(event, aim.direction, extent, step), count)
                for (event, count), extent in zip(
                    aim.above.items(), aim.extents.values(), strict=True
                )
            ]
            return Interval(0.0, aim.composed(groups, step).epsilon_above(aim.delta))
        upper_groups = [Group(above, n) for (above, _), n in self._masses(aim, aim.above, step)]
        upper = aim.composed(upper_groups, step).epsilon_above(aim.delta)
        if rival is not None and upper <= rival.upper:
            return Interval(0.0, upper)
        lower_groups = [
            Group(below, n)
            for (_, below), n in self._masses(aim, aim.below, step)
            if below is not None
        ]
        lower = 0.0
        # A lower end needs masses of every event; 0 represents it where one has none.
        if len(lower_groups) == len(upper_groups):
            lower = aim.composed(lower_groups, step).epsilon_below(aim.delta)
        return Interval(min(lower, upper), upper)

    def _masses(
        self, aim: "_Aim", spent: Spent, step: float
    ) -> list[tuple[tuple[Masses, Masses | None], int]]:
        """Return masses of all events from above and from below, with counts."""
        # The merged Gaussian of the lower end takes the extent of the upper end's. An event that is
        # not attained is taken as if it were, to measure the grid; `epsilon` certifies the rest.
        return [
            (
                self._compute_once(
                    ("both", event, aim.direction, extent, step),
                    partial(
                        masses_both,
                        event if event.curve.attained else AsAttained(event=event),
                        aim.direction,
                        extent,
                        step,
                    ),
                ),
                count,
            )
            for (event, count), extent in zip(spent.items(), aim.extents.values(), strict=True)
        ]


@attrs.frozen(kw_only=True, eq=False)
class _Aim:
    """One direction of one question, and where its answer lies."""

    above: Spent
    below: Spent
    direction: Direction
    delta: float
    extents: dict[Event, Extent]
    rough: list[Group]
    tilt: float
    implied: float
    shifts: tuple[float, float]

    def composed(self, groups: list[Group], step: float) -> Composed:
        """Return the composition around the tilt."""
        return compose(groups, Saddle.of(groups, self.tilt, self.shifts), step)

    def first_step(self, width_for: Callable[[float], float]) -> float:
        """Return a step at which the interval should be about `width_for(epsilon)` wide."""
        copies = sum(self.above.values())
        guess = math.sqrt(width_for(self.implied) / (_GAP * copies * (self.tilt + 1)))
        deviation = math.sqrt(max(variance(self.rough, self.tilt), 0.0))
        # a spread below the wanted width need not be resolved
        return _round_down(min(guess, max(deviation / 16, width_for(self.implied) / (4 * copies))))

    def least_step(self) -> float:
        """Return the step at which the window takes half the cells allowed, or an event many."""
        saddle = Saddle.of(self.rough, self.tilt, self.shifts)
        longest = max(group.masses.last - group.masses.first for group in self.rough)
        return max(2 * (saddle.high - saddle.low) / _WIDEST_WINDOW, longest / _MOST_MASSES)

    def aligned(self, step: float) -> float:
        """Return the largest step up to `step` that divides the commonest anchored event's range.

        Its smallest loss, often of positive probability, then lies on the grid as its largest does.
        """
        if not (candidates := [event for event in self.above if self.extents[event].anchored]):
            return step
        commonest = max(candidates, key=lambda e: (self.above[e], self.extents[e].top))
        extent = self.extents[commonest]
        width = extent.top - extent.bottom
        return width / math.ceil(width / step) if step < width else step


def _rough(event: Event, direction: Direction, extent: Extent) -> Masses:
    return masses_above(event, direction, extent, (extent.top - extent.bottom) / _ROUGH_CELLS)


def _round_down(step: float) -> float:
    """Round down to a power of sqrt(2), so that neighbouring requests use the same grids."""
    return float(2.0 ** (math.floor(2 * math.log2(step)) / 2))


def best_tilt(groups: list[Group], delta: float) -> tuple[float, float]:
    r"""Find about where the log moments K imply the least epsilon: theta, and that epsilon.

    With :math:`\delta' = \delta - p_\infty` it minimises

    .. math:: (K(\theta)-\log\delta'+\theta\log\tfrac{\theta}{1+\theta}-\log(1+\theta))/\theta

    on a refined geometric net (Canonne, Kamath & Steinke 2020, Proposition 12, with order theta +
    1). For masses above the curves the epsilon is valid at any theta; this theta makes tilted
    masses large where epsilon is. Infinite where infinite losses are likelier than delta.
    """
    finite = delta - math.fsum(g.count * g.masses.infinite for g in groups)
    log_delta = math.log(finite if finite > 0 else delta)
    loss_span = math.fsum(g.count * (g.masses.last - g.masses.first) for g in groups)
    low, high = -12.0, math.log(max(1e3, 300 * max(1.0, -math.log(delta)) / max(loss_span, 1e-12)))
    best, implied = 1.0, math.inf
    # Three passes over a net of 24, each around the best of the one before.
    for _ in range(3):
        tilts = np.exp(np.linspace(low, high, 24))
        shape = tilts * np.log(tilts / (1 + tilts)) - np.log1p(tilts)
        values = (total_moments(groups, tilts) - log_delta + shape) / tilts
        index = int(np.argmin(values))
        best, implied = float(tilts[index]), float(values[index])
        width = (high - low) / 23
        low, high = math.log(best) - 1.5 * width, math.log(best) + 1.5 * width
    return best, max(0.0, implied + 1e-6 * (1 + abs(implied))) if finite > 0 else math.inf
