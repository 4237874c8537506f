r"""A Gaussian that is at least as lossy as a list of events, but for a leak of small probability.

The least mu is sought with

.. math:: \delta(\epsilon) \le \lambda + (1-\lambda)\,\delta_G(\epsilon;\mu)
          \quad\text{for every } \epsilon\ge0 \text{ and both directions} ,

delta the composed curve of the list and lambda the leak. The right side is the curve of "with
probability lambda everything is shown, otherwise a Gaussian of shift mu". By Blackwell's
theorem (Dong, Roth & Su 2022, Theorem 2.10, for trade-off functions) any pair with such curves is
simulated from that one. So a filter for Gaussians may add mu^2 for the list, whatever it is made
of, if leaks are paid from delta.

The composed curve is known where the accountant was asked: at deltas from 1 down to the leak, more
of them where the cover is tight. It is a convex function of e^epsilon, so that it lies below the
chords of what was certified there; chords are compared with the Gaussian at the far end of short
intervals. Below the last delta asked for, the leak by itself covers it.
"""

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.events.gaussian import gaussian_curve
from dpcore.errors import NoClaimError, need
from dpcore.event import Event
from dpcore.rounding import gamma

Array = NDArray[np.float64]
_FIRST_DELTAS = 16
_MORE_DELTAS = 60  # deltas more, each where the cover is tight
_NEAR = 0.02  # two deltas this near in the logarithm are not distinguished
_PARTS = 64  # of an interval between two deltas
_WIDEST = 64.0  # mu: above it nothing is kept secret
_LONGEST = 700.0  # epsilons whose exponential is a number
_STEPS = 40  # of the bisection for log mu


def gaussian_cover(
    events: Sequence[tuple[Event, int]], leak: float, *, adjacency: Adjacency
) -> float:
    """Return the mu, rounded up, of a Gaussian that is at least as lossy as the events but for a
    leak.

    Args:
        events: With counts, fixed before any of them happens.
        leak: lambda, in (0, 1/2).
        adjacency: What it is about.

    Raises:
        ParameterError: `leak` is out of range.
        NoClaimError: the events have no finite epsilon at so small a delta, or mu is above 64.
    """
    need(0 < leak < 0.5, "gaussian_cover", "a leak in (0, 1/2)", "leak", leak)
    return _cover(tuple(events), leak, adjacency)


@functools.lru_cache(maxsize=64)  # a pure function: releases are often alike
def _cover(events: tuple[tuple[Event, int], ...], leak: float, adjacency: Adjacency) -> float:
    """`gaussian_cover` of a hashable list, remembered."""
    accountant = AutoAccountant(adjacency).compose_all(events)
    deltas = (*np.geomspace(0.5, leak, _FIRST_DELTAS).tolist(), 0.99, 0.8, leak)
    upper_ends = {delta: accountant.epsilon(delta).upper for delta in deltas}
    need(
        max(upper_ends.values()) < _LONGEST,
        NoClaimError,
        f"no finite epsilon is known of these events at delta = {leak:g}",
    )
    best = math.inf
    # Every mu in this loop is sound, so that the least one counts. Each pass adds a point of the
    # curve where the last cover touched it.
    for _ in range(_MORE_DELTAS):
        mu, tight_epsilon = _least_mu(upper_ends, leak)
        best = min(best, mu)
        upper, lower = _neighbouring_deltas(upper_ends, tight_epsilon)
        if math.log(upper / lower) < _NEAR:
            break
        middle = math.sqrt(upper * lower)
        upper_ends[middle] = accountant.epsilon(middle).upper
    need(
        math.isfinite(best),
        NoClaimError,
        f"no Gaussian of mu <= {_WIDEST:g} is as lossy as these events",
    )
    return best


def _neighbouring_deltas(upper_ends: dict[float, float], epsilon: float) -> tuple[float, float]:
    """Return the deltas asked for on either side of an epsilon at which the cover is tight."""
    certified = [delta for delta, upper_end in upper_ends.items() if upper_end <= epsilon]
    uncertified = [delta for delta, upper_end in upper_ends.items() if upper_end > epsilon]
    return min(certified, default=1.0), max(uncertified, default=min(upper_ends))


def _least_mu(upper_ends: dict[float, float], leak: float) -> tuple[float, float]:
    """Return the least mu that covers what is known, infinite where none does, and where it is
    tight.
    """
    deltas = np.array(sorted(upper_ends, reverse=True))
    epsilons = np.array([upper_ends[delta] for delta in deltas])
    # Certified upper ends may wiggle by rounding; their running maximum is an upper end as well.
    starts, stops, height = _intervals(np.maximum.accumulate(epsilons), deltas)

    # Both curves fall: the list's is read where an interval starts, the Gaussian's where it stops,
    # so that the comparison errs against the cover.
    def shortfall(mu: float) -> Array:
        gaussian = gaussian_curve(stops, mu, lower=True)
        cover = leak + (1 - leak) * gaussian * (1 - gamma(8))
        return np.asarray(height - cover)

    low, high = math.log(1e-6), math.log(_WIDEST)
    if np.any(shortfall(math.exp(high)) > 0):
        return math.inf, float(starts[int(np.argmax(shortfall(math.exp(high))))])
    # `high` was checked to cover, here and in every pass, so that what is returned was checked.
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        is_short = np.any(shortfall(math.exp(middle)) > 0)
        low, high = (middle, high) if is_short else (low, middle)
    return math.exp(high), float(starts[int(np.argmax(shortfall(math.exp(low))))])


def _intervals(epsilons: Array, deltas: Array) -> tuple[Array, Array, Array]:
    """Ends of short intervals from 0 to the last epsilon, and the curve's height at their left."""
    zero = int(np.count_nonzero(epsilons == 0))
    if zero:  # the least delta at which epsilon = 0 is certified
        epsilons, deltas = epsilons[zero - 1 :], deltas[zero - 1 :]
        points = epsilons, deltas
        a, height = np.exp(epsilons), deltas
    else:
        # a = e^epsilon = 0, where every curve is 1, begins the first chord.
        a, height = np.concatenate([[0.0], np.exp(epsilons)]), np.concatenate([[1.0], deltas])
        points = np.concatenate([[0.0], epsilons]), deltas
    ends = points[0]
    fractions = np.arange(_PARTS) / _PARTS
    grid = np.unique(
        np.concatenate([(ends[:-1, None] + np.diff(ends)[:, None] * fractions).ravel(), ends[-1:]])
    )
    starts, stops = grid[:-1], grid[1:]
    # a little to the left, where a falling curve is higher: exp errs, and chords may be steep
    start_heights = np.interp(np.exp(starts) * (1 - gamma(64)), a, height) * (1 + gamma(64))
    return starts, stops, start_heights
