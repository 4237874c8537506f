r"""The Gaussian squares to charge for a list of events, if budget remains afterwards.

A Gaussian budget of squares m is spent on a list of events, and m' stays for what follows. The
cost c is sound if

.. math:: (E \otimes G_{m'})(\epsilon) \le \lambda + (1-\lambda)\,G_{m'+c}(\epsilon)
          \quad\text{for every } \epsilon\ge0 \text{ and both directions} ,

E the list's pair, G_m a Gaussian of shift sqrt(m), lambda a leak that is paid from delta.

*Why.* Claim: whatever is chosen, what a filter lets through while m of its budget and f of its
leaks are left has a curve of at most f + G_m. Without further events that is true. Otherwise the
next list is E, and by induction what follows has at most f - lambda + G_{m'}, whatever E answered.
Composition is monotone and linear in the curve of what follows
(`dpcore.claims.accounting.losses.masses`), so that both have at most f - lambda + (E o G_{m'}) <= f
+ G_{m' + c}. With m = m' + c that is the claim.

The cost does not rise with m': composing both sides with one more Gaussian keeps the order. So a
cost that was found for a smaller *rest* holds for every larger one. A list by itself (rest 0) is
seldom as light-tailed as a Gaussian of its variance; the sum of it and what follows nearly is.

The curve of E and the rest is known from above on a fine grid (`PldAccountant.curve_above`). It is
convex in a = e^epsilon, so below its chords; the Gaussian is convex too, so above its tangents. On
each interval of the grid the chord is compared with the Gaussian's tangent at its middle: two
lines, so that their ends decide.

The rest follows the list, so that the joint curve of choices and the rest
(`dpcore.claims.accounting.losses.choices`) is lower than what their curves compose to. Both
arguments above stand: T keeps constants, and T of one more Gaussian is at most that Gaussian after
T.

A *tilted* leak (`dpcore.ledger.tilted_leak`) adds a term that falls with epsilon to the right
side. It is convex in a, too, so above its tangent. What was found for a rest holds for a larger
one: one more Gaussian raises the term as it raises that of the larger rest.
"""

import functools
import math
from collections.abc import Sequence

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import need_positive
from dpcore.claims.accounting.losses.choices import together
from dpcore.claims.accounting.methods.pld import PldAccountant
from dpcore.claims.events.gaussian import GaussianEvent, gaussian_curve
from dpcore.errors import NoClaimError, need
from dpcore.event import Direction, Event
from dpcore.ledger.tilted_leak import TiltedLeak
from dpcore.rounding import gamma

Array = NDArray[np.float64]
_FEWEST = 24  # steps of the grid in a standard deviation of the rest
_FINEST = 7  # grids, each half as wide as the one before
_SETTLED = 8e-3  # two grids whose costs differ by so little are fine enough
_PIECES = 5  # deltas around which the curve is computed
_HIGHEST = 0.2  # of them
_NEAR = 5e-4  # in the logarithm of the cost
_LITTLE, _MOST = 1e-9, 1e4  # a cost is between so many rests
_LONGEST = 600.0  # the largest exponent of a tilted leak

Events = tuple[tuple[Event, int], ...]


def smoothed_cost(
    events: Sequence[tuple[Event, int]],
    leak: float,
    remainder: float,
    *,
    adjacency: Adjacency,
    tilted: TiltedLeak | None = None,
) -> float:
    """Return the squares of mu to charge for the events, c above, rounded up.

    Args:
        events: With counts, fixed before any of them happens.
        leak: lambda, in (0, 1/2).
        remainder: A part of what is left afterwards, in squares of mu, > 0.
        adjacency: What it is about.
        tilted: One more leak, of this rest.

    Raises:
        ParameterError: `leak` or `remainder` is out of range.
        NoClaimError: losses are too large, or the cost is above 10,000 times the rest.
    """
    need(0 < leak < 0.5, "smoothed_cost", "a leak in (0, 1/2)", "leak", leak)
    need_positive("smoothed_cost", remainder=remainder)
    # A tuple, since the costs of equal lists are remembered: releases are often alike.
    return _cost(tuple(events), leak, remainder, adjacency, tilted)


@functools.lru_cache(maxsize=1024)  # a pure function: releases are often alike
def _cost(
    events: Events, leak: float, reserve: float, adjacency: Adjacency, tilted: TiltedLeak | None
) -> float:
    """Return the same: the least over grids, each finer than the one before."""
    _, symmetric = _join_reserve(events, reserve, adjacency)
    # The curve of a symmetric list is the same in both directions.
    directions = (Direction.REMOVE,) if symmetric else tuple(Direction)
    best = dict.fromkeys(directions, math.inf)
    for fineness in range(_FINEST):
        before = max(best.values())
        for side in sorted(directions, key=lambda direction: -best[direction]):
            if best[side] < max(best.values()):
                continue  # finer grids only lower it, and it is the lesser one already
            points = _points(events, leak, reserve, adjacency, side, fineness)
            best[side] = min(best[side], _least_cost(*points, leak, reserve, tilted))
        # Half the step gained less than 0.8 %: the next half is not worth its time.
        if max(best.values()) > before * (1 - _SETTLED):
            break
    if not math.isfinite(cost := max(best.values())):
        raise NoClaimError(f"these events cost more than {_MOST:g} times the rest of a budget")
    return cost


@functools.lru_cache(maxsize=64)
def _join_reserve(
    events: Events, reserve: float, adjacency: Adjacency
) -> tuple[PldAccountant, bool]:
    """The list and the rest, and whether the list is the same in both directions."""
    accountant = PldAccountant(adjacency).compose_all(events)
    symmetric = all(event.curve.symmetric for event in accountant.spent)
    # Rounded up: a larger rest only raises the left side of the inequality.
    mu = math.sqrt(reserve) * (1 + gamma(4))
    # The rest follows the list, so that choices of one kind are joined to it.
    for event, count in accountant.spent.items():
        if event not in (joint := together(event, count, mu)):
            counts = {key: n for key, n in accountant.spent.items() if key != event}
            return attrs.evolve(accountant, spent=counts | joint), symmetric
    return accountant.compose(GaussianEvent(mu=mu, adjacency=adjacency)), symmetric


@functools.lru_cache(maxsize=64)  # the same points serve tilted leaks of several sizes
def _points(
    events: Events,
    leak: float,
    reserve: float,
    adjacency: Adjacency,
    direction: Direction,
    fineness: int,
) -> tuple[Array, Array]:
    """Return the points of one direction on one grid."""
    accountant, _ = _join_reserve(events, reserve, adjacency)
    step = 2.0 ** (math.floor(math.log2(math.sqrt(reserve) / _FEWEST)) - fineness)
    deltas = np.geomspace(_HIGHEST, leak, _PIECES).tolist()
    return _informative_points(*accountant.curve_above(direction, deltas, step), leak)


def _informative_points(epsilons: Array, heights: Array, leak: float) -> tuple[Array, Array]:
    """Return the points that say of epsilon >= 0, as far as the leak by itself does not cover the
    curve.
    """
    first = max(0, int(np.searchsorted(epsilons, 0.0, side="right")) - 1)
    last = int(np.searchsorted(-heights, -leak)) + 1  # the first that the leak covers, included
    need(
        last <= len(epsilons),
        NoClaimError,
        f"no finite epsilon is known of these events at delta = {leak:g}",
    )
    last = max(last, first + 2)  # two points at least: a leak may cover the curve everywhere
    return epsilons[first:last], heights[first:last] * (1 + gamma(8))


def _least_cost(
    epsilons: Array, heights: Array, leak: float, reserve: float, tilted: TiltedLeak | None = None
) -> float:
    """The least cost at which the Gaussian and leaks lie above the points and their chords."""
    if epsilons[0] > 0 or len(epsilons) < 2:
        return math.inf  # the grid is too coarse to say of epsilon = 0
    middle = 0.5 * (epsilons[:-1] + epsilons[1:])
    before = -np.expm1(epsilons[:-1] - middle)
    after = np.expm1(epsilons[1:] - middle)

    def falls_short(cost: float) -> bool:
        # Rounded down, so that the Gaussian on the right side is no taller than stated.
        mu = math.sqrt(reserve + cost) * (1 - gamma(4))
        # Chord and tangent are lines in a = e^epsilon: the two ends of an interval decide.
        value = gaussian_curve(middle, mu, lower=True)
        log_tail = scipy.special.log_ndtr(-middle / mu - mu / 2)
        slope = np.exp(middle + log_tail)
        relative_error = gamma(64) * (1 + np.abs(middle) + np.abs(log_tail))
        start = value + slope * (1 - relative_error) * before
        end = value - slope * (1 + relative_error) * after
        cover_ends = [leak + (1 - leak) * line for line in (start, end)]  # lines, also below 0
        margins = [gamma(16) * (leak + value + np.abs(line)) for line in (start, end)]
        if tilted is not None:
            tilt_height, theta = _height(tilted, middle, cost), tilted.slope
            cover_ends = [
                cover_ends[0] + tilt_height * (1 + theta * before),
                cover_ends[1] + tilt_height * (1 - theta * after),
            ]
            margins = [
                margin + gamma(32) * tilt_height * (1 + theta * side)
                for margin, side in zip(margins, (before, after), strict=True)
            ]
        start_is_short = bool(np.any(heights[:-1] > cover_ends[0] - margins[0]))
        return start_is_short or bool(np.any(heights[1:] > cover_ends[1] - margins[1]))

    # Invariant: the cost at `high` covers, so that what is returned was checked itself.
    low, high = math.log(reserve * _LITTLE), math.log(reserve * _MOST)
    if falls_short(math.exp(high)):
        return math.inf
    while high - low > _NEAR:
        middle_cost = 0.5 * (low + high)
        low, high = (
            (middle_cost, high) if falls_short(math.exp(middle_cost)) else (low, middle_cost)
        )
    return math.exp(high)


def _height(tilted: TiltedLeak, epsilons: Array, cost: float) -> Array:
    """Return the tilted leak, rounded down."""
    theta = float(tilted.slope)
    raised, falls = theta * (theta + 1) / 2 * cost, theta * epsilons
    errs = gamma(16) * (abs(tilted.height) + raised + np.abs(falls))
    return np.exp(np.minimum(tilted.height + raised - falls - errs, _LONGEST))
