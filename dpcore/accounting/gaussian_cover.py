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
intervals. Below the last delta asked for, the leak alone covers it.
"""

import functools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcore.accounting.methods.auto import AutoAccountant
from dpcore.adjacency import Adjacency
from dpcore.errors import NoClaimError, ParameterError
from dpcore.events.base import Event
from dpcore.events.gaussian import gaussian_curve
from dpcore.rounding import gamma

Array = NDArray[np.float64]
_ASKED = 16
_MOST = 60  # deltas more, each where the cover is tight
_NEAR = 0.02  # two deltas this near in the logarithm are not told apart
_PARTS = 64  # of an interval between two deltas
_WIDEST = 64.0  # mu: above it nothing is kept secret
_LONGEST = 700.0  # epsilons whose exponential is a number
_STEPS = 40  # of the bisection for log mu


def gaussian_cover(
    events: Sequence[tuple[Event, int]], leak: float, *, adjacency: Adjacency
) -> float:
    """mu as above, rounded up.

    Args:
        events: With counts, fixed before any of them happens.
        leak: lambda, in (0, 1/2).
        adjacency: What it is about.

    Raises:
        ParameterError: `leak` is out of range.
        NoClaimError: the events have no finite epsilon at so small a delta, or mu is above 64.
    """
    if not 0 < leak < 0.5:
        raise ParameterError("gaussian_cover", "a leak in (0, 1/2)", "leak", leak)
    return _cover(tuple(events), leak, adjacency)


@functools.lru_cache(maxsize=64)  # a pure function: releases are often alike
def _cover(events: tuple[tuple[Event, int], ...], leak: float, adjacency: Adjacency) -> float:
    """The same."""
    accountant = AutoAccountant(adjacency)
    for event, count in events:
        accountant = accountant.compose(event, count)
    known = {float(d): accountant.epsilon(float(d)).upper for d in np.geomspace(0.5, leak, _ASKED)}
    for delta in (0.99, 0.8, leak):
        known[delta] = accountant.epsilon(delta).upper
    if not max(known.values()) < _LONGEST:
        raise NoClaimError(f"no finite epsilon is known of these events at delta = {leak:g}")
    best = math.inf
    for _ in range(_MOST):
        mu, tight = _least(known, leak)
        best = min(best, mu)
        upper, lower = _between(known, tight)
        if math.log(upper / lower) < _NEAR:
            break
        middle = math.sqrt(upper * lower)
        known[middle] = accountant.epsilon(middle).upper
    if not math.isfinite(best):
        raise NoClaimError(f"no Gaussian of mu <= {_WIDEST:g} is as lossy as these events")
    return best


def _between(known: dict[float, float], epsilon: float) -> tuple[float, float]:
    """The deltas asked for on either side of an epsilon at which the cover is tight."""
    above = [delta for delta, found in known.items() if found <= epsilon]
    below = [delta for delta, found in known.items() if found > epsilon]
    return min(above, default=1.0), max(below, default=min(known))


def _least(known: dict[float, float], leak: float) -> tuple[float, float]:
    """The least mu that covers what is known, infinite where none does, and where it is tight."""
    deltas = np.array(sorted(known, reverse=True))
    epsilons = np.array([known[delta] for delta in deltas])
    left, right, height = _intervals(np.maximum.accumulate(epsilons), deltas)

    def short(mu: float) -> Array:
        gaussian = gaussian_curve(right, mu, lower=True)
        covered = leak + (1 - leak) * gaussian * (1 - gamma(8))
        return np.asarray(height - covered)

    low, high = math.log(1e-6), math.log(_WIDEST)
    if np.any(short(math.exp(high)) > 0):
        return math.inf, float(left[int(np.argmax(short(math.exp(high))))])
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if np.any(short(math.exp(middle)) > 0):
            low = middle
        else:
            high = middle
    return math.exp(high), float(left[int(np.argmax(short(math.exp(low))))])


def _intervals(epsilons: Array, deltas: Array) -> tuple[Array, Array, Array]:
    """Ends of short intervals from 0 to the last epsilon, and the curve's height at their left."""
    zero = int(np.count_nonzero(epsilons == 0))
    if zero:  # the least delta at which epsilon = 0 is certified
        epsilons, deltas = epsilons[zero - 1 :], deltas[zero - 1 :]
        known = epsilons, deltas
        a, height = np.exp(epsilons), deltas
    else:
        a, height = np.concatenate([[0.0], np.exp(epsilons)]), np.concatenate([[1.0], deltas])
        known = np.concatenate([[0.0], epsilons]), deltas
    ends = known[0]
    shares = np.arange(_PARTS) / _PARTS
    grid = np.unique(
        np.concatenate([(ends[:-1, None] + np.diff(ends)[:, None] * shares).ravel(), ends[-1:]])
    )
    left, right = grid[:-1], grid[1:]
    # a little to the left, where a falling curve is higher: exp errs, and chords may be steep
    at = np.interp(np.exp(left) * (1 - gamma(64)), a, height) * (1 + gamma(64))
    return left, right, at
