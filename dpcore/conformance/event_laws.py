"""What an event promises: a privacy curve, and representations that never look less lossy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from dpcore.conformance.law import BrokenLawError, Law, NotApplicableError, Verdict, judge
from dpcore.events.base import Direction, Event
from dpcore.events.gaussian import gaussian_delta

PROBABILITY = Law("event.probability", "The curve is a probability at every epsilon >= 0.")
NONINCREASING = Law("event.nonincreasing", "The curve never rises with epsilon.")
CONVEX = Law("event.convex", "The curve is convex in e^epsilon, with a slope of at least -1.")
DIRECTIONS = Law(
    "event.directions-consistent",
    "At epsilon = 0 both directions are the same total variation distance.",
)
PURE = Law("event.pure-epsilon", "At the pure epsilon both curves have reached 0.")
MU = Law("event.gaussian-mu", "The Gaussian curve of the stated mu lies nowhere below the event's.")
RHO = Law("event.zcdp-rho", "The stated rho bounds the Rényi divergences that the curve implies.")
RENYI = Law("event.renyi", "The stated Rényi bounds dominate the divergences the curve implies.")

LAWS = (PROBABILITY, NONINCREASING, CONVEX, DIRECTIONS, PURE, MU, RHO, RENYI)

_EPSILONS = np.concatenate([[0.0], np.geomspace(1e-3, 50.0, 60)])
_TOLERANCE = 1e-9
_ORDERS = np.array([1.1, 1.5, 2.0, 4.0, 16.0, 64.0])


def event_verdicts(event: Event, subject: str) -> list[Verdict]:
    """All laws of one event."""
    checks: dict[Law, Callable[[Event], str]] = {
        PROBABILITY: _probability,
        NONINCREASING: _nonincreasing,
        CONVEX: _convex,
        DIRECTIONS: _directions,
        PURE: _pure,
        MU: _mu,
        RHO: _rho,
        RENYI: _renyi,
    }
    return [judge(law, subject, partial(check, event)) for law, check in checks.items()]


def _curve(event: Event, direction: Direction) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([event.delta(float(epsilon), direction) for epsilon in _EPSILONS])


def _probability(event: Event) -> str:
    for direction in Direction:
        curve = _curve(event, direction)
        if not (np.isfinite(curve).all() and (curve >= 0).all() and (curve <= 1).all()):
            raise BrokenLawError(f"{direction.value}: values from {curve.min()} to {curve.max()}")
    return f"{len(_EPSILONS)} epsilons"


def _nonincreasing(event: Event) -> str:
    for direction in Direction:
        curve = _curve(event, direction)
        rise = np.diff(curve) - _TOLERANCE * curve[:-1] - 2 * event.delta_error
        if (rise > 0).any():
            at = _EPSILONS[int(np.argmax(rise))]
            raise BrokenLawError(f"{direction.value}: it rises after epsilon={at:.4g}")
    return ""


def _convex(event: Event) -> str:
    points = np.exp(_EPSILONS[_EPSILONS <= 20])
    for direction in Direction:
        curve = _curve(event, direction)[: len(points)]
        slope = np.diff(curve) / np.diff(points)
        room = (_TOLERANCE * curve[:-1] + 2 * event.delta_error) / np.diff(points)
        if (slope < -1 - _TOLERANCE - room).any():
            raise BrokenLawError(f"{direction.value}: it falls faster than 1 in e^epsilon")
        falls = slope[1:] - slope[:-1] + room[1:] + room[:-1]
        if (falls < 0).any():
            at = _EPSILONS[int(np.argmin(falls)) + 1]
            raise BrokenLawError(f"{direction.value}: not convex around epsilon={at:.4g}")
    return f"{len(points)} points"


def _directions(event: Event) -> str:
    remove, add = (event.delta(0.0, direction) for direction in Direction)
    if abs(remove - add) > 1e-6 * max(remove, add) + 2 * event.delta_error:
        raise BrokenLawError(f"at epsilon=0 the curves are {remove!r} and {add!r}")
    return f"total variation {remove:.4g}"


def _pure(event: Event) -> str:
    epsilon = event.pure_epsilon()
    if epsilon is None:
        raise NotApplicableError("it states no pure epsilon")
    for direction in Direction:
        left = event.delta_lower(epsilon * (1 + 1e-12), direction)
        if left > 1e-15:
            raise BrokenLawError(f"{direction.value}: {left!r} is left at epsilon={epsilon!r}")
    return f"epsilon={epsilon:.4g}"


def _mu(event: Event) -> str:
    mu = event.gaussian_mu()
    if mu is None:
        raise NotApplicableError("it is not exactly Gaussian")
    for direction in Direction:
        for epsilon in _EPSILONS:
            truth = event.delta_lower(float(epsilon), direction)
            if gaussian_delta(float(epsilon), mu) < truth * (1 - _TOLERANCE):
                raise BrokenLawError(f"{direction.value}: below the curve at {epsilon:.4g}")
    return f"mu={mu:.4g}"


def _rho(event: Event) -> str:
    rho = event.zcdp_rho()
    if rho is None:
        raise NotApplicableError("it states no rho")
    for order, implied in _implied(event):
        if order * rho < implied * (1 - 1e-6):
            raise BrokenLawError(f"order {order:g}: {order * rho:.6g} < {implied:.6g}")
    return f"rho={rho:.4g}"


def _renyi(event: Event) -> str:
    stated = event.renyi(_ORDERS)
    if stated is None:
        raise NotApplicableError("it states no Rényi bounds")
    if np.isnan(stated).any() or (stated < 0).any():
        raise BrokenLawError("a Rényi bound is negative or not a number")
    closest = math.inf
    for bound, (order, implied) in zip(stated, _implied(event), strict=True):
        if bound < implied * (1 - 1e-6):
            raise BrokenLawError(f"order {order:g}: {bound:.6g} < {implied:.6g}")
        if implied > 1e-6:
            closest = min(closest, bound / implied)
    return f"{len(stated)} orders, closest {closest:.4g} times what the curve implies"


def _implied(event: Event) -> list[tuple[float, float]]:
    r"""(order, lower end of the Rényi divergence that the curve implies), the worse direction.

    .. math:: (\alpha-1) D_\alpha = \log\Big(1+\alpha(\alpha-1)\int_0^\infty
              e^{(\alpha-1)\epsilon}\delta(\epsilon)
              + e^{-\alpha\epsilon}\delta'(\epsilon)\,d\epsilon\Big)

    with delta' the other direction (the f-divergence t^alpha as a mixture of hockey sticks:
    Sason & Verdu 2016, equation 427). A lower sum over cells, on the certified lower end of a
    falling curve, rounds down.
    """
    cells = np.concatenate([np.linspace(0, 4, 401), np.linspace(4, 60, 401)[1:]])
    lower = {
        direction: np.array([event.delta_lower(float(e), direction) for e in cells[1:]])
        for direction in Direction
    }
    found = []
    for order in _ORDERS:
        worst = 0.0
        for direction, other in (
            (Direction.REMOVE, Direction.ADD),
            (Direction.ADD, Direction.REMOVE),
        ):
            rate = order - 1
            exponents = np.minimum(rate * cells, 600.0)
            up = np.diff(np.exp(exponents)) / rate * lower[direction]
            down = -np.diff(np.exp(-order * cells)) / order * lower[other]
            total = float(up.sum() + down.sum())
            worst = max(worst, math.log1p(order * rate * total) / rate)
        found.append((float(order), worst))
    return found
