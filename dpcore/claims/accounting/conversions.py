r"""From one privacy notion to another, each a function with its theorem; every result rounds up.

`event_epsilon` finds where the curve of one event falls to a delta, by doubling and bisection.
"""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.errors import NoClaimError, need
from dpcore.event import Direction, Event, PrivacyCurve, bisect, label_of
from dpcore.interval import Interval
from dpcore.rounding import gamma, up

Array = NDArray[np.float64]


def _need(owner: str, field: str, value: float, is_valid: bool, requirement: str) -> None:
    need(math.isfinite(value) and is_valid, owner, requirement, field, value)


def pure_to_gdp(epsilon: float) -> float:
    r"""Return the least mu for which every epsilon-DP release is mu-Gaussian-DP, rounded up.

    .. math:: \mu=-2\,\Phi^{-1}\big(1/(1+e^{\epsilon})\big)

    The trade-off curve of epsilon-DP is two straight lines that meet on the diagonal, at type I and
    type II errors of 1/(1+e^epsilon). A Gaussian curve is convex and has the same ends, so that it
    lies below both lines exactly if it does where they meet, where its error is Phi(-mu/2).

    Raises:
        ParameterError: `epsilon` is not finite and >= 0.

    Source: Dong, Roth & Su (2022), Definition 2.3 and Proposition 2.5 (the curve of epsilon-DP).
    """
    _need("pure_to_gdp", "epsilon", epsilon, epsilon >= 0, "a finite epsilon >= 0")
    total_variation = math.tanh(epsilon / 2)  # of the two-point pair; 1 - 2/(1+e^eps)
    # One equation, inverted in two ways: each is accurate where the other one cancels.
    if total_variation < 0.5:  # Phi(mu/2) - 1/2 = total_variation/2
        mu = 2 * math.sqrt(2) * float(scipy.special.erfinv(total_variation))
    else:  # log Phi(-mu/2) = -log(1 + e^eps)
        mu = -2 * float(scipy.special.ndtri_exp(-(epsilon + math.log1p(math.exp(-epsilon)))))
    return up(mu, roundings=500)


def renyi_to_epsilon(orders: Array, divergence: Array, delta: float) -> float:
    r"""Convert a Rényi curve to the smallest epsilon that it implies at `delta`.

    .. math:: \min_\alpha\; r(\alpha) + \log\frac{\alpha-1}{\alpha}
              - \frac{\log\delta + \log\alpha}{\alpha - 1}

    Args:
        orders: Rényi orders, each > 1, shape (k,).
        divergence: Bound at each order, in nats, shape (k,); infinite where there is none.
        delta: Target delta, in (0, 1).
    Returns:
        Upper bound on epsilon >= 0, in nats; infinite where no order has a finite divergence.
    Raises:
        ParameterError: `delta` is outside (0, 1).

    Source: Canonne, Kamath & Steinke (2020), arXiv:2004.00010v4, Proposition 12.
    """
    _need("renyi_to_epsilon", "delta", delta, 0 < delta < 1, "a delta in (0, 1)")
    return max(0.0, float(np.min(_implied_epsilons(orders, divergence, delta))))


def _implied_epsilons(orders: Array, divergence: Array, delta: float) -> Array:
    """Return the terms of that minimum, rounded up."""
    excess = orders - 1
    terms = (np.log1p(-1 / orders), (math.log(delta) + np.log(orders)) / excess)
    value = divergence + terms[0] - terms[1]
    # Every term errs by a few ulps of itself; 800 exceeds |log delta| for every double.
    slack = gamma(16) * (divergence + np.abs(terms[0]) + (800 + np.log(orders)) / excess)
    return np.asarray(value + slack)


def zcdp_to_epsilon(rho: float, delta: float) -> float:
    """Convert rho-zCDP to the smallest epsilon that it implies at `delta`.

    By `renyi_to_epsilon` over a fine net.

    Raises:
        ParameterError: `rho` is not finite and >= 0, or `delta` is outside (0, 1).
    """
    _need("zcdp_to_epsilon", "rho", rho, rho >= 0, "a finite rho >= 0")
    _need("zcdp_to_epsilon", "delta", delta, 0 < delta < 1, "a delta in (0, 1)")
    if rho == 0:
        return 0.0
    # Each order by itself gives a valid epsilon: the net decides how tight the bound is, not
    # whether it holds. The best order is about 1 + sqrt(log(1/delta)/rho).
    centre = math.log(math.sqrt(-math.log(delta) / rho) + 1e-300)
    best = math.inf
    low, high = min(centre, 0.0) - 10.0, max(centre, 0.0) + 5.0
    for _ in range(4):
        grid = np.linspace(low, high, 65)
        orders = 1 + np.exp(grid)
        orders = orders[orders > 1]
        grid = grid[-len(orders) :]
        epsilons = _implied_epsilons(orders, orders * up(rho, roundings=500), delta)
        index = int(np.argmin(epsilons))
        best = min(best, max(0.0, float(epsilons[index])))
        step = float(grid[1] - grid[0])
        low, high = float(grid[index]) - step, float(grid[index]) + step
    return best


def event_epsilon(event: Event, delta: float) -> Interval:
    """Find where the curve of this one event falls to `delta`, both directions (in nats).

    By bisection on the curve's `upper_at`, which errs upwards, and for the lower end on `lower_at`.

    Raises:
        NoClaimError: the curve does not fall to `delta` at any epsilon up to 1e6.
    """
    upper = epsilon_end(event, delta, lower=False)
    # the upper end is the claim: where rounding makes the two ends cross, it stays
    return Interval(min(epsilon_end(event, delta, lower=True), upper), upper)


def epsilon_end(event: Event, delta: float, *, lower: bool) -> float:
    """Find one end of `event_epsilon` only: each costs many values of the curve.

    Raises:
        NoClaimError: the upper end has none up to 1e6.
    """
    # a claim holds for both orders of the neighbours, so the worse direction counts
    directions = (Direction.REMOVE,) if event.curve.symmetric else tuple(Direction)
    return max(_crossing(event, direction, delta, lower=lower) for direction in directions)


def _crossing(event: Event, direction: Direction, delta: float, *, lower: bool) -> float:
    """Return one end of the least epsilon with curve <= delta, by doubling and bisection."""
    curve = event.curve.lower_at if lower else event.curve.upper_at

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
                f"{curve(below, direction):.4g} at every epsilon. Lower the key that sets "
                "this (truncation, of truncated_laplace), or take gaussian"
            )
    if event.curve.is_costly:
        below, above = _interpolated(event, direction, delta, below, above)
    elif type(event.curve).upper is not PrivacyCurve.upper:  # vectorised: 64 parts at a time
        values = event.curve.lower if lower else event.curve.upper
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
    """Narrow the bracket of the upper end's crossing; return the given one if none is proved."""

    def excess(epsilon: float) -> float:
        return math.log(max(event.curve.upper_at(epsilon, direction), 1e-300) / delta)

    root = scipy.optimize.brentq(excess, below, above, xtol=1e-12, rtol=1e-12)
    near, outer = max(below, root * (1 - 1e-11)), min(above, root * (1 + 1e-11))
    # interpolation proves nothing: the bracket is taken if the curve crosses delta within it
    if excess(near) > 0 >= excess(outer):
        return near, outer
    return below, above
