"""What an event promises: a privacy curve, and representations that never look less lossy."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from functools import cached_property, partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpcore.claims.accounting.conversions import event_epsilon
from dpcore.claims.accounting.methods.pld import PldAccountant
from dpcore.claims.events.event_text import read_event, write_event
from dpcore.claims.events.gaussian import gaussian_delta
from dpcore.errors import ContractError, NoClaimError, need_value
from dpcore.event import Direction, Event
from dpcore.registry.events import Catalogue
from dpcore_attacks.laws.law import (
    BrokenLawError,
    Law,
    NotApplicableError,
    Verdict,
    fail_if,
    judge,
    judge_all,
    skip_if,
)

PROBABILITY = Law("event.probability", "The curve is a probability at every epsilon >= 0.")
NONINCREASING = Law("event.nonincreasing", "The curve never rises with epsilon.")
CONVEX = Law(
    "event.convex", "Between its two ends the curve can be convex in e^epsilon with slope >= -1."
)
DIRECTIONS = Law(
    "event.directions-consistent",
    "At epsilon = 0 both directions can be the same total variation distance.",
)
ONE_CURVE = Law(
    "event.one-curve", "An epsilon is the same as a whole number, as a float and in an array."
)
STATED = Law(
    "event.stated-of-curve",
    "Both directions are one where that is stated, arrays hold the single values, no lower end "
    "lies above the upper one, and an infinite loss is no likelier than the curve's tail.",
)
PURE = Law("event.pure-epsilon", "At the pure epsilon both curves have reached 0.")
APPROXIMATE = Law(
    "event.approximate-claim", "At the stated epsilon both curves have fallen to the stated delta."
)
PARTS = Law("event.parts", "The parts, composed, never cost less than the event's own curve.")
MU = Law("event.gaussian-mu", "The Gaussian curve of the stated mu lies nowhere below the event's.")
RHO = Law("event.zcdp-rho", "The stated rho bounds the Rényi divergences that the curve implies.")
RENYI = Law("event.renyi", "The stated Rényi bounds dominate the divergences the curve implies.")
STORED = Law(
    "event.stored", "A ledger stores the event and rebuilds an equal one, to the last bit."
)
COMPARED = Law(
    "event.compared",
    "Some mechanism of its plugin, or an example, states the event: outputs are compared with it.",
)

LAWS = (
    PROBABILITY, NONINCREASING, CONVEX, DIRECTIONS, ONE_CURVE, STATED, PURE, APPROXIMATE, PARTS,
    MU, RHO, RENYI, STORED, COMPARED,
)  # fmt: skip

# From 0 far into the tails, finer where epsilon is small.
_EPSILONS = np.concatenate([[0.0], np.geomspace(1e-3, 50.0, 60)])
_WHOLE = (0, 1, 3)
_TOLERANCE = 1e-9
_ORDERS = np.array([1.1, 1.5, 2.0, 4.0, 16.0, 64.0])


def stored_verdict(event: Event, subject: str, catalogue: Catalogue) -> Verdict:
    """Return whether a ledger that knows the catalogue can be charged with the event."""
    return judge(STORED, subject, partial(_stored, event, catalogue))


def _stored(event: Event, catalogue: Catalogue) -> str:
    try:
        text = json.dumps(write_event(event, catalogue))
    except ContractError as error:
        raise BrokenLawError(str(error)) from None
    # Through JSON text, as a ledger on disk does; written again, floats must keep all bits.
    restored_event = read_event(json.loads(text), catalogue)
    fail_if(
        restored_event != event or json.dumps(write_event(restored_event, catalogue)) != text,
        f"{event!r} was stored, {restored_event!r} was rebuilt",
    )
    return text if len(text) < 200 else ""


def event_verdicts(event: Event, subject: str) -> list[Verdict]:
    """Return all laws of one event's curve."""
    return judge_all(
        {
            PROBABILITY: _probability,
            NONINCREASING: _nonincreasing,
            CONVEX: _convex,
            DIRECTIONS: _directions,
            ONE_CURVE: _one_curve,
            STATED: _stated,
            PURE: _pure,
            APPROXIMATE: _approximate,
            PARTS: _parts,
            MU: _mu,
            RHO: _rho,
            RENYI: _renyi,
        },
        subject,
        _Curves(event),
    )


def _one_curve(curves: _Curves) -> str:
    """Return an epsilon as an integer, in an array of integers: a curve in integers is rounded to
    0.
    """
    event = curves.event
    for direction, number in product(Direction, _WHOLE):
        exact = event.curve.upper_at(float(number), direction)
        # Within the error of evaluation, which the event itself states.
        for delta in (
            event.curve.upper_at(number, direction),
            *event.curve.upper(np.array([number]), direction),
        ):
            fail_if(
                not abs(delta - exact) <= _TOLERANCE * exact + curves.room,
                f"{direction.value}: {delta:.6g} instead of {exact:.6g} at epsilon={number}",
            )
    return f"{len(_WHOLE)} epsilons"


def _stated(curves: _Curves) -> str:
    """Return what pricing relies on next to the values: a direction that is left out, whole
    arrays.
    """
    curve, upper = curves.event.curve, curves.upper

    def exceeds(found: NDArray[np.float64], most: NDArray[np.float64]) -> bool:
        return not np.all(found <= most * (1 + _TOLERANCE) + curves.room)

    for direction in Direction:
        ends, other = upper[direction], upper[direction.reverse]
        array = curve.upper(_EPSILONS, direction)
        fail_if(curve.symmetric and exceeds(other, ends), "the two directions are not one curve")
        fail_if(exceeds(ends, array), f"{direction.value}: an array lies below the single values")
        for lower in (curve.lower(_EPSILONS, direction), curves.lower[direction]):
            fail_if(exceeds(lower, ends), f"{direction.value}: a lower end lies above the upper")
        mass = np.array([curve.infinite_mass(direction)])
        fail_if(exceeds(mass, ends[-1:]), f"{direction.value}: infinite losses above the tail")
    return f"{len(_EPSILONS)} epsilons"


class _Curves:
    """An event with its curves, each evaluated once: some cost milliseconds a point."""

    def __init__(self, event: Event) -> None:
        self.event = event
        # What two upper ends may differ by: an error that is stated larger excuses no more.
        self.room = 2 * min(event.curve.error, _TOLERANCE)

    @cached_property
    def upper(self) -> dict[Direction, NDArray[np.float64]]:
        """The claimed curve at `_EPSILONS`."""
        return {
            d: np.array([self.event.curve.upper_at(float(e), d) for e in _EPSILONS])
            for d in Direction
        }

    @cached_property
    def lower(self) -> dict[Direction, NDArray[np.float64]]:
        """The curve's certified lower end at `_EPSILONS`."""
        return {
            d: np.array([self.event.curve.lower_at(float(e), d) for e in _EPSILONS])
            for d in Direction
        }

    @cached_property
    def implied(self) -> list[tuple[float, float]]:
        """(order, Rényi divergence that the curve implies)."""
        return _implied(self.event)


def _probability(curves: _Curves) -> str:
    for direction in Direction:
        curve = curves.upper[direction]
        fail_if(
            not (np.isfinite(curve).all() and (curve >= 0).all() and (curve <= 1).all()),
            f"{direction.value}: values from {curve.min()} to {curve.max()}",
        )
    return f"{len(_EPSILONS)} epsilons"


def _nonincreasing(curves: _Curves) -> str:
    for direction in Direction:
        curve = curves.upper[direction]
        rise = np.diff(curve) - _TOLERANCE * curve[:-1] - curves.room
        if (rise > 0).any():
            epsilon = _EPSILONS[int(np.argmax(rise))]
            raise BrokenLawError(f"{direction.value}: it rises after epsilon={epsilon:.4g}")
    return ""


def _convex(curves: _Curves) -> str:
    """A convex truth between both ends: the lower end never lies above a chord of the upper one."""
    # Up to e^20: farther out, deltas are too small for chords in floats to say anything.
    points = np.exp(_EPSILONS[_EPSILONS <= 20])
    for direction in Direction:
        upper = curves.upper[direction][: len(points)]
        lower = curves.lower[direction][: len(points)] * (1 - _TOLERANCE)
        # delta = sup P(E) - e^eps Q(E) with Q(E) <= 1: in e^eps it never falls faster than 1.
        fail_if(
            (lower[:-1] - upper[1:] > np.diff(points) * (1 + _TOLERANCE)).any(),
            f"{direction.value}: it falls faster than 1 in e^epsilon",
        )
        # The weight of the left neighbour in the chord over the middle point.
        left_weight = (points[2:] - points[1:-1]) / (points[2:] - points[:-2])
        above = lower[1:-1] - (left_weight * upper[:-2] + (1 - left_weight) * upper[2:])
        if (above > 0).any():
            epsilon = _EPSILONS[int(np.argmax(above)) + 1]
            raise BrokenLawError(f"{direction.value}: not convex around epsilon={epsilon:.4g}")
    return f"{len(points)} points"


def _directions(curves: _Curves) -> str:
    """Total variation is symmetric: the two intervals at epsilon = 0 must meet."""
    remove, add = Direction
    for first, second in ((remove, add), (add, remove)):
        low, high = float(curves.lower[first][0]), float(curves.upper[second][0])
        fail_if(
            low > high * (1 + _TOLERANCE),
            f"at epsilon=0 {first.value} is at least {low!r}, {second.value} at most {high!r}",
        )
    return f"total variation at most {float(curves.upper[remove][0]):.4g}"


def _pure(curves: _Curves) -> str:
    epsilon = need_value(curves.event.claims.pure, NotApplicableError, "it states no pure epsilon")
    for direction in Direction:
        # A hair beyond epsilon, so that rounding of epsilon itself leaves no mass behind.
        mass = curves.event.curve.lower_at(epsilon * (1 + 1e-12), direction)
        fail_if(mass > 1e-15, f"{direction.value}: {mass!r} is left at epsilon={epsilon!r}")
    return f"epsilon={epsilon:.4g}"


def _approximate(curves: _Curves) -> str:
    epsilon, delta = need_value(
        curves.event.claims.approximate, NotApplicableError, "it states no epsilon with a delta"
    )
    for direction in Direction:
        mass = curves.event.curve.lower_at(epsilon * (1 + 1e-12), direction)
        fail_if(
            mass > delta * (1 + _TOLERANCE) + 1e-15,
            f"{direction.value}: {mass!r} is left at {epsilon!r}, a delta of {delta!r} is stated",
        )
    return f"epsilon={epsilon:.4g}, delta={delta:.4g}"


def _parts(curves: _Curves) -> str:
    event = curves.event  # whose curve no accountant looks at, where it has parts
    skip_if(event.parts() == ((event, 1),), "it has no parts but itself")
    composed = PldAccountant(event.adjacency).compose(event)
    for delta in (1e-2, 1e-6):
        with suppress(NoClaimError):
            upper, lower = composed.epsilon(delta).upper, event_epsilon(event, delta).lower
            fail_if(
                upper < lower * (1 - _TOLERANCE),
                f"at delta={delta:g} the parts cost {upper!r}, the event at least {lower!r}",
            )
    return f"{len(event.parts())} parts"


def _mu(curves: _Curves) -> str:
    mu = need_value(curves.event.claims.mu, NotApplicableError, "it is not exactly Gaussian")
    for direction in Direction:
        for epsilon, truth in zip(_EPSILONS, curves.lower[direction], strict=True):
            fail_if(
                gaussian_delta(float(epsilon), mu) < truth * (1 - _TOLERANCE),
                f"{direction.value}: below the curve at {epsilon:.4g}",
            )
    return f"mu={mu:.4g}"


def _rho(curves: _Curves) -> str:
    rho = need_value(curves.event.claims.rho, NotApplicableError, "it states no rho")
    for order, implied in curves.implied:
        fail_if(
            order * rho < implied * (1 - 1e-6),
            f"order {order:g}: {order * rho:.6g} < {implied:.6g}",
        )
    return f"rho={rho:.4g}"


def _renyi(curves: _Curves) -> str:
    bounds = need_value(curves.event.claims.renyi, NotApplicableError, "it states no Rényi bounds")(
        _ORDERS
    )
    fail_if(
        np.isnan(bounds).any() or (bounds < 0).any(), "a Rényi bound is negative or not a number"
    )
    closest = math.inf
    for bound, (order, implied) in zip(bounds, curves.implied, strict=True):
        fail_if(bound < implied * (1 - 1e-6), f"order {order:g}: {bound:.6g} < {implied:.6g}")
        if implied > 1e-6:
            closest = min(closest, bound / implied)
    return f"{len(bounds)} orders, closest {closest:.4g} times what the curve implies"


def _implied(event: Event) -> list[tuple[float, float]]:
    r"""(order, lower end of the Rényi divergence that the curve implies), the worse direction.

    .. math:: (\alpha-1) D_\alpha = \log\Big(1+\alpha(\alpha-1)\int_0^\infty
              e^{(\alpha-1)\epsilon}\delta(\epsilon)
              + e^{-\alpha\epsilon}\delta'(\epsilon)\,d\epsilon\Big)

    with delta' the other direction (the f-divergence t^alpha as a mixture of hockey sticks:
    Sason & Verdu 2016, equation 427). A lower sum over cells, on the certified lower end of a
    falling curve, rounds down. Where the curve is that of several pairs, each of them attains one
    point of it, and a falling curve is at least as high before that point: the best point counts.
    """
    cells = np.concatenate([np.linspace(0, 4, 161), np.linspace(4, 60, 161)[1:]])
    lower = {
        direction: np.array([event.curve.lower_at(float(e), direction) for e in cells[1:]])
        for direction in Direction
    }
    divergences = []
    for order in _ORDERS:
        worst = 0.0
        for direction, opposite in (
            (Direction.REMOVE, Direction.ADD),
            (Direction.ADD, Direction.REMOVE),
        ):
            rate = order - 1
            exponents = np.minimum(rate * cells, 600.0)
            # Exact integrals of the weights over each cell, times the curve at the cell's right
            # end.
            up = np.diff(np.exp(exponents)) / rate * lower[direction]
            down = -np.diff(np.exp(-order * cells)) / order * lower[opposite]
            total = float(up.sum() + down.sum())
            # No single pair attains the whole curve: count the best point of it alone.
            if not event.curve.attained:
                total = float(np.max(np.expm1(exponents[1:]) / rate * lower[direction]))
            worst = max(worst, math.log1p(order * rate * total) / rate)
        divergences.append((float(order), worst))
    return divergences
