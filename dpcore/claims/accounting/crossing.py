"""`crossing`: find where the curve of one event falls to a delta, by doubling and bisection."""

import math

import numpy as np
import scipy

from dpcore.errors import NoClaimError
from dpcore.event import Direction, Event, bisect, label_of
from dpcore.interval import Interval


def event_epsilon(event: Event, delta: float) -> Interval:
    """Where the curve of this one event falls to `delta`, both directions (in nats).

    By bisection on `delta(epsilon, direction)`; the upper end errs upwards, the lower end
    comes from `delta_lower`.

    Raises:
        NoClaimError: the curve does not fall to `delta` at any epsilon up to 1e6.
    """
    upper = epsilon_end(event, delta, lower=False)
    # the upper end is the claim: where rounding makes the two ends cross, it stays
    return Interval(min(epsilon_end(event, delta, lower=True), upper), upper)


def epsilon_end(event: Event, delta: float, *, lower: bool) -> float:
    """One end of `event_epsilon`, for who needs no other: each costs many values of the curve.

    Raises:
        NoClaimError: the upper end has none up to 1e6.
    """
    # a claim holds for both orders of the neighbours, so the worse direction counts
    directions = (Direction.REMOVE,) if event.symmetric else tuple(Direction)
    return max(_crossing(event, direction, delta, lower=lower) for direction in directions)


def _crossing(event: Event, direction: Direction, delta: float, *, lower: bool) -> float:
    """One end of the least epsilon with curve <= delta, by doubling and bisection."""
    curve = event.delta_lower if lower else event.delta

    def is_below_delta(epsilon: float) -> bool:
        value = curve(epsilon, direction)
        if math.isnan(value):
            raise NoClaimError(f"{event!r}: the curve is not a number at epsilon={epsilon!r}")
        return value <= delta

    if is_below_delta(0.0):
        return 0.0
    # from here on the curve is above delta at `below`; the loop moves `above` until it is not
    below, above = 0.0, 1.0
    while not is_below_delta(above):
        below, above = above, 2 * above
        if above > 1e6:
            # no crossing was found, yet the least epsilon is surely above `below`
            if lower:
                return below
            raise NoClaimError(
                f"{label_of(event)}: no epsilon up to 1e6 has delta <= {delta!r}: it gives up "
                f"{event.delta(below, direction):.4g} at every epsilon. Lower the key that sets "
                "this (truncation, of truncated_laplace), or take gaussian"
            )
    if event.is_costly:
        below, above = _interpolated(event, direction, delta, below, above)
    elif type(event).curve is not Event.curve:  # vectorised: 64 parts at a time
        values = event.curve_lower if lower else event.curve
        # each round keeps one of 64 parts of the bracket, and six rounds keep 2^-36
        for _ in range(6):
            points = np.linspace(below, above, 65)
            fits = values(points[1:-1], direction) <= delta
            # the first inner point at which the curve is low enough ends the part that holds the
            # crossing
            first = int(np.argmax(fits)) if np.any(fits) else len(fits)
            below, above = float(points[first]), float(points[first + 1])
    # bisection to the last bit: the curve is at most delta at the upper end that is returned,
    # and above delta at the lower one
    below, above = bisect(is_below_delta, below, above)
    return below if lower else above


def _interpolated(
    event: Event, direction: Direction, delta: float, below: float, above: float
) -> tuple[float, float]:
    """A narrower bracket of the upper end's crossing, or the given one where none is proved."""

    def excess(epsilon: float) -> float:
        return math.log(max(event.delta(epsilon, direction), 1e-300) / delta)

    root = scipy.optimize.brentq(excess, below, above, xtol=1e-12, rtol=1e-12)
    near, far = max(below, root * (1 - 1e-11)), min(above, root * (1 + 1e-11))
    # interpolation proves nothing: the bracket is taken if the curve crosses delta within it
    if excess(near) > 0 >= excess(far):
        return near, far
    return below, above
