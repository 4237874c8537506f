r"""From a privacy curve to masses on a grid of privacy losses, one from above and one from below.

Write :math:`H(a)=\delta(\log a)`. It is convex and nonincreasing on a > 0, tends to 1 at 0, and for
a < 1 follows from the other direction: :math:`H(a)=1-a+a\,H_{rev}(1/a)`. Finite masses p_k at
losses
:math:`\epsilon_k` and :math:`p_\infty` at infinity have the curve

.. math:: h(a) = p_\infty + \sum_k p_k\,(1 - a e^{-\epsilon_k})_+ ,

a convex polygon in a with kinks at :math:`e^{\epsilon_k}` only.

**Composition is monotone.** For positive measures the composed curve is
:math:`\iint(1-ae^{-x-y})_+\,dp_1dp_2=\int h_1(ae^{-y})\,dp_2(y)`, linear and nondecreasing in h_1
pointwise, and symmetric. So a polygon above H composes to upper bounds, a polygon below H to lower
bounds, and a relative error c in each of n polygons to a relative error (1+c)^n in the result;
neither needs to be normalised. (Zhu, Dong & Wang 2022, arXiv:2106.08567, Theorem 10, is the case of
probability distributions.)

* From above: the chords of H between the knots ("connect the dots": Doroshenko, Ghazi, Kamath,
  Kumar & Manurangsi 2022, arXiv:2207.04380); the chord over (0, first knot) starts at (0, 1), and
  what the curve keeps beyond the last knot is infinite. Knots above the lower convex hull are
  dropped: the hull of upper bounds of a convex function is one too.
* From below: on each interval a line below H. A chord, extended beyond its two knots, lies below a
  convex function, so between two knots H is above the chords of both neighbouring intervals; the
  line parallel to the interval's chord through the lowest point of their maximum is the one taken.
  The polygon through the smaller of the two lines' values at each knot lies below all of them, and
  so does its convex hull. Both gaps are of second order in the step.
"""

import math

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import NoClaimError, need
from dpcore.event import (
    CompoundEvent,
    Direction,
    Event,
    VectorCurve,
    extended_curve,
    label_of,
    largest_loss,
)
from dpcore.rounding import down, gamma

_PASSES = 40  # over all points; then points are dropped one by one
_FEW, _FRACTION = 4, 400  # so many points, or a proportion of all, are dropped one by one
LIMIT = 600.0  # e^loss and its reciprocal stay far from overflow
_WIDEST = 4.0  # nats: over a wider step a slope's rounding error exceeds what lines are lowered by
Array = NDArray[np.float64]


@attrs.frozen(eq=False)
class Masses:
    """A positive measure on the losses first, first + step, ... and at infinity.

    Args:
        first: Smallest loss, nats.
        step: Distance of the losses, nats.
        mass: Shape (k,), nonnegative.
        infinite: Mass at infinity.
        rounding: Relative rounding error of the curve, at most.
    """

    first: float
    step: float
    mass: Array
    infinite: float
    rounding: float

    @property
    def last(self) -> float:
        """The largest finite loss of the grid, nats."""
        return self.first + self.step * (len(self.mass) - 1)


def loss_limit(event: Event, direction: Direction, tail: float) -> float:
    """Return a loss > 0 beyond which the curve is at most `tail`, or has stopped falling."""
    if (largest_finite_loss := largest_loss(event, direction)) is not None:
        return largest_finite_loss
    # How far is only a question of time: what the curve keeps beyond counts as an infinite loss.
    powers = 2.0 ** np.arange(-44.0, 9.25, 0.25)
    values = extended_curve(event, powers, direction, lower=False)
    candidates = np.nonzero(values <= max(tail, float(values[-1]) * (1 + 1e-9)))[0]
    if (index := int(candidates[0])) == 0:
        return float(powers[0])
    finer = np.linspace(powers[index - 1], powers[index], 9)[1:]
    values = event.curve.upper(finer, direction)
    candidates = np.nonzero(values <= tail)[0]
    return float(finer[candidates[0]] if len(candidates) else finer[-1])


@attrs.frozen
class Extent:
    """Where an event's losses lie in one direction, up to a tail; independent of any grid."""

    bottom: float
    top: float
    anchored: bool

    @classmethod
    def between(cls, event: Event, direction: Direction, top: float, reverse: float) -> "Extent":
        """Make the extent from how far losses reach in the two directions (`loss_limit`).

        Raises:
            NoClaimError: losses beyond 600 nats are not negligible.
        """
        need(
            top <= LIMIT,
            NoClaimError,
            f"{label_of(event)} loses more than {LIMIT} nats: too much for a grid",
        )
        return cls(max(-reverse, -LIMIT), top, largest_loss(event, direction) is not None)

    def knots(self, top: float, step: float) -> Array:
        """Return top, top - step, ... to at most `bottom`; at least three, in increasing order."""
        count = max(2, math.ceil((top - self.bottom) / step))
        return top - step * np.arange(count, -1.0, -1.0)


def _polygon(knots: Array, values: Array, step: float, ceiling: float, infinite: float) -> Masses:
    """Return masses of the lower convex hull of (0, ceiling) and the points (e^knot, value).

    With slopes s_k = Q-probability of a loss above the interval, p_k = e^{knot}(s_{k-1}-s_k). The
    slopes telescope exactly, so that the rounding error of the curve is relative.
    """
    hull, passes = np.arange(len(knots)), 0
    grid = np.exp(knots)
    # A point without positive mass is no corner of the hull. All such points are dropped in one
    # pass while they are many; a few are dropped one by one, with the neighbours then uncovered.
    while True:
        is_complete = len(hull) == len(knots)
        a, height = (grid, values) if is_complete else (grid[hull], values[hull])
        slopes = np.empty(len(hull) + 1)
        slopes[0] = (ceiling - height[0]) / a[0]
        # expm1 of a step, and no difference of two exponentials, keeps the error relative.
        if is_complete:
            width = a[:-1] * math.expm1(step) if step < 1 else np.diff(a)
        else:
            gap = step * np.diff(hull)
            width = np.where(gap > 1, np.diff(a), a[:-1] * np.expm1(np.minimum(gap, 1.0)))
        slopes[1:-1] = (height[:-1] - height[1:]) / width
        slopes[-1] = 0.0
        mass = a * (slopes[:-1] - slopes[1:])
        is_convex = mass > 0
        # The last point ends the hull, whatever its mass.
        is_convex[-1] = True
        if np.all(is_convex):
            break
        corners = np.nonzero(~is_convex)[0]
        if passes == _PASSES or len(corners) <= _FEW + len(hull) // _FRACTION:
            hull = np.delete(hull, _above_hull(hull, a, height, step, ceiling, corners.tolist()))
        else:
            hull, passes = hull[is_convex], passes + 1
    chord_masses = np.zeros(len(knots))
    chord_masses[hull] = np.maximum(mass, 0.0)
    rounding = gamma(64 + 16 * float(np.max(np.abs(knots))))
    return Masses(float(knots[0]), step, chord_masses, infinite, rounding)


def _above_hull(
    indices: NDArray[np.int64],
    positions: Array,
    values: Array,
    step: float,
    ceiling: float,
    corners: list[int],
) -> list[int]:
    """Return the points above the hull: find them at `corners` first, then at neighbours in turn.

    A point is dropped for good, and only its two neighbours can be bad next: the time is linear in
    what is dropped, however long the run of points that one corner drops one after another.

    Args:
        indices: Indices of the points' knots, increasing, shape (k,).
        positions, values: The points, shape (k,).
        step: Distance of knots, nats.
        ceiling: The height at 0.
        corners: Places in `indices` where the polygon is not convex; never the last point.
    """
    # Links to the neighbours, where those are not the next positions any more; -1 is a = 0.
    before: dict[int, int] = {}
    after: dict[int, int] = {}
    last = len(indices) - 1

    def fall(previous: int, following: int) -> float:
        height = float(values[following])
        if previous < 0:
            return (ceiling - height) / float(positions[following])
        gap = step * int(indices[following] - indices[previous])
        start = float(positions[previous])
        width = start * math.expm1(gap) if gap <= 1 else float(positions[following]) - start
        return (float(values[previous]) - height) / width

    dropped_points: set[int] = set()

    def drop(point: int) -> tuple[int, int]:
        previous, following = before.get(point, point - 1), after.get(point, point + 1)
        dropped_points.add(point)
        after[previous], before[following] = following, previous
        return following, previous

    queue = [neighbour for point in corners for neighbour in drop(point)]
    while queue:
        point = queue.pop()
        if point in dropped_points or not 0 <= point < last:
            continue
        previous, following = before.get(point, point - 1), after.get(point, point + 1)
        if not float(positions[point]) * (fall(previous, point) - fall(point, following)) > 0:
            queue += drop(point)
    return sorted(dropped_points)


def masses_above(event: Event, direction: Direction, extent: Extent, step: float) -> Masses:
    """Return a measure whose curve is nowhere below the event's."""
    return _measure_above(*_curve_above(event, direction, extent, step), step)


def masses_both(
    event: Event, direction: Direction, extent: Extent, step: float
) -> tuple[Masses, Masses | None]:
    """Return a measure nowhere below the event's curve, and one nowhere above (None: unknown)."""
    knots, curve = _curve_above(event, direction, extent, step)
    below = _measure_below(event, direction, extent, step, curve) if event.curve.attained else None
    return _measure_above(knots, curve, step), below


@attrs.frozen
class AsAttained(CompoundEvent, VectorCurve):
    """An event's curve, as if one pair attained it.

    The measure from below is then about the curve only: it says how much of an interval is the
    grid's, and certifies nothing about the release.
    """

    def upper(self, epsilons: Array, direction: Direction) -> Array:
        """Return the upper end of the event's curve, unchanged."""
        return self.event.curve.upper(epsilons, direction)

    def lower(self, epsilons: Array, direction: Direction) -> Array:
        """Return the same curve, lowered by its rounding error."""
        return down(self.event.curve.upper(epsilons, direction), roundings=5000)

    def infinite_mass(self, direction: Direction) -> float:
        """Return the curve's value at the largest loss considered, `LIMIT`."""
        return float(self.lower(np.array([LIMIT]), direction)[0])


def _curve_above(
    event: Event, direction: Direction, extent: Extent, step: float
) -> tuple[Array, Array]:
    """Return knots up to the extent's top, and upper ends of the curve there."""
    knots = extent.knots(extent.top, step)
    return knots, np.minimum.accumulate(extended_curve(event, knots, direction, lower=False))


def _measure_above(knots: Array, curve: Array, step: float) -> Masses:
    masses = _polygon(knots, curve, step, 1.0, float(curve[-1]))
    need(
        np.any(masses.mass > 0),
        NoClaimError,
        f"no privacy loss below {LIMIT} nats has positive probability",
    )
    return masses


def _measure_below(
    event: Event, direction: Direction, extent: Extent, step: float, above: Array
) -> Masses | None:
    """Return the measure from below; `above` holds upper ends at knots up to the extent's top."""
    if step > _WIDEST:
        return None
    # An anchored curve ends at its largest loss: a line below it there makes the last interval.
    final = _last_line(event, direction, extent, step) if extent.anchored else None
    top = extent.top if final is None else final.top
    knots = extent.knots(top, step)
    if final is not None:
        # The line ends a little before the anchor. The grid follows it, and the curve is read anew.
        above = np.minimum.accumulate(extended_curve(event, knots, direction, lower=False))
    # Finite masses stay below the curve less this level, at least what the curve keeps at the top.
    level = float(above[-1]) if final is None else final.level
    below = extended_curve(event, knots, direction, lower=True)
    # The curve falls, so that a lower end farther right holds here as well.
    below = np.maximum.accumulate(below[::-1])[::-1]
    first = math.exp(knots[0])
    if first >= 1 - level:
        return None
    starts, ends = _lines(
        np.maximum(below - level, 0.0),
        np.maximum(above - level, 0.0),
        1 - level,
        np.exp(knots),
        step,
    )
    if final is not None:
        starts[-1], ends[-1] = final.height(float(knots[-2])), 0.0
    # At each knot the lower one of the two lines that meet there.
    values = np.zeros(len(knots))
    values[1:-1] = np.minimum(ends[:-1], starts[1:])
    values[0] = max(0.0, min(starts[0], (1 - level - first) * (1 - gamma(16))))
    masses = _polygon(knots, values, step, 1 - level, event.curve.infinite_mass(direction))
    return masses if np.any(masses.mass > 0) else None


def _lines(
    below: Array, above: Array, ceiling: float, a: Array, step: float
) -> tuple[Array, Array]:
    """Return, per interval, the two end values of a line below the curve.

    The curve itself lies above ceiling - a.

    The coordinate in an interval is x = a / e^{left knot} - 1, from 0 to e^step - 1.
    """
    width = math.expm1(step)
    before = np.concatenate([[ceiling], above[:-2]])  # upper end one knot to the left
    # A chord of the neighbouring interval, extended: from upper ends down to a lower one, so that
    # it is as steep as the curve may be.
    left_slope = -(before - below[:-1]) / -math.expm1(-step)
    # left of the first knot is a = 0, farther than a step: its chord is flatter
    left_slope[0] = -(ceiling - below[0])
    after = np.concatenate([above[2:], [0.0]])
    right_slope = np.minimum(-(below[1:] - after) / (math.exp(step) * width), 0.0)
    right_slope[-1] = 0.0
    chord = (below[1:] - below[:-1]) / width
    bend = right_slope - left_slope
    with np.errstate(divide="ignore", invalid="ignore"):
        vertex = (below[:-1] - below[1:] + right_slope * width) / bend
    vertex = np.clip(np.where(bend > 0, vertex, 0.0), 0.0, width)

    def larger_chord(x: Array | float) -> Array:
        return np.asarray(
            np.maximum(below[:-1] + left_slope * x, below[1:] + right_slope * (x - width))
        )

    margin = gamma(64) * before
    at_vertex = larger_chord(vertex) - margin
    start = np.minimum(larger_chord(0.0), larger_chord(width) - chord * width) - margin
    start = np.maximum(np.minimum(start, at_vertex - chord * vertex), 0.0)
    end = start + chord * width
    # a line that would end below 0 is turned about the vertex until it ends at 0
    is_negative = end < 0
    room = width - vertex
    with np.errstate(divide="ignore", invalid="ignore"):
        pivot = np.where((room > 0) & (at_vertex > 0), at_vertex * width / room, 0.0)
    start = np.where(is_negative, np.minimum(pivot * (1 - gamma(16)), below[:-1]), start)
    end = np.where(is_negative, 0.0, end)
    # one that would start below ceiling - a is turned until it starts there, or is that line
    floor = (ceiling - a) * (1 - gamma(16))
    is_low = start < floor[:-1]
    floor_at_vertex = floor[:-1] + (floor[1:] - floor[:-1]) * (vertex / width)
    with np.errstate(divide="ignore", invalid="ignore"):
        pivot = floor[:-1] + (at_vertex - floor[:-1]) * (width / vertex) - margin
        pivot = np.where((vertex > 0) & (at_vertex > floor_at_vertex), pivot, floor[1:])
    pivot = np.minimum(pivot, below[1:])
    is_low &= ~is_negative & (pivot >= 0)  # where both cannot be had, the line stays as it is
    return np.where(is_low, floor[:-1], start), np.where(is_low, pivot, end)


@attrs.frozen
class _LastLine:
    """A line below the curve near its anchor, zero at `top`, over the level kept at infinity."""

    top: float
    level: float
    slope: float

    def height(self, loss: float) -> float:
        """Return the line's height over the level at a loss, rounded down."""
        return self.slope * math.exp(self.top) * -math.expm1(loss - self.top) * (1 - gamma(128))


def _last_line(event: Event, direction: Direction, extent: Extent, step: float) -> _LastLine | None:
    """Return a secant close to the anchor, lowered below the curve.

    Outside its two points an extended chord lies below a convex function; between them the curve is
    below the chord by at most twice what it is in the middle.
    """
    # Three points in the last 32nd of a step: the first and the last make the secant.
    spacing = min(step, extent.top) / 64
    points = np.array([extent.top - 2 * spacing, extent.top - 1.5 * spacing, extent.top - spacing])
    if not (points[0] < points[1] < points[2] < extent.top):
        return None
    high = extended_curve(event, points, direction, lower=False)
    low = extended_curve(event, points, direction, lower=True)
    level = float(extended_curve(event, np.array([extent.top]), direction, lower=False)[0])
    a = np.exp(points - points[0])
    if not a[0] < a[1] < a[2]:
        return None  # nearer than exponentials distinguish
    slope = (high[0] - low[2]) / (a[2] - a[0])
    middle = high[0] + (high[2] - high[0]) * (a[1] - a[0]) / (a[2] - a[0])
    # Twice what the chord is above the curve in the middle, with every interval's width.
    sag = (
        2 * max(0.0, float(middle - low[1]))
        + 256 * float(np.max(high - low))
        + gamma(128) * float(high[0])
    )
    # Lowered, the line must still be above the level at its last point.
    rise = float(low[2]) - level - sag
    if not (rise > 0 and slope > 0):
        return None
    top = float(points[2]) + math.log1p(rise / (slope * a[2]))
    return _LastLine(min(top, extent.top), level, float(slope) * math.exp(-points[0]))
