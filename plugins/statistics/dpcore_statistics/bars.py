r"""Confidence intervals of what is computed from noisy sums: exact where the distribution of the
noise allows it.

* Ratio S/n with noise of one normal distribution on both: Fieller's set of all r with
  :math:`(\tilde S-r\tilde n)^2\le z^2 s^2(1+r^2)`: at the true r, :math:`\tilde S-r\tilde n` is
  N(0, s^2(1+r^2)). It is an interval, or everything where :math:`\tilde n` is too small to say.
* Otherwise a box: S and n in intervals of half the miss each (Bonferroni), and all their ratios.

Rounding to a grid of step g adds at most :math:`\tfrac g2(1+|r|)\le\tfrac g2\sqrt2\sqrt{1+r^2}` to
the numerator, so that z grows by :math:`g/(\sqrt2 s)`.

Two groups' numbers lie as far apart as `gaps` says, with intervals that hold together.

An interval is cut to the possible range; where they do not meet, it is the nearest end.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

import attrs
import numpy as np

from dpcore import Domain
from dpcore.interval import NoiseDistribution, NormalDistribution, apart
from dpcore.models.figures import Figures

Ends = tuple[float, float]

FINE = 2.0
"""Steps of its grid from which on a discrete Gaussian is as wide as the normal distribution
says.
"""

EVERYTHING: Ends = (-math.inf, math.inf)

MOST_PAIRED = 16
"""Groups up to which all pairs are reported; of more, readers subtract what they need."""

_ENOUGH = 10.0  # standard deviations of a count from which on the delta method holds its level


def around(estimate: float, noise_distribution: NoiseDistribution | None, miss: float) -> Ends:
    """Return an interval that contains the number without noise, except with probability `miss`."""
    if noise_distribution is None:
        return EVERYTHING
    half = noise_distribution.within(miss)
    return estimate - half, estimate + half


def cut(ends: Ends, low: float, high: float) -> Ends:
    """Clamp both ends of an interval to [low, high]."""
    # Both ends are clamped: an interval beyond the range becomes its nearest end, never empty.
    return min(max(ends[0], low), high), max(min(ends[1], high), low)


def cut_count(ends: Ends, domain: Domain) -> Ends:
    """Clamp an interval to the counts that are possible in this domain."""
    return cut(ends, 0.0, math.inf if domain.at_most is None else float(domain.at_most))


def combined(
    factors: tuple[float, ...],
    times: int,
    noise_distribution: NoiseDistribution | None,
    miss: float,
) -> float:
    """Return the half-width of a weighted sum of released numbers that share one noise law.

    Args:
        factors: Weights, each of so many numbers (`times`).
    """
    if noise_distribution is None:
        return math.inf
    total = times * math.fsum(map(abs, factors))
    if isinstance(noise_distribution, NormalDistribution):
        # One normal distribution; rounding to the grid, and its steps, move each of the numbers.
        length = math.sqrt(times) * math.hypot(*factors)
        return (
            noise_distribution.quantile(miss) * length
            + (noise_distribution.rounding + noise_distribution.step) * total
        )
    # Bonferroni: all numbers lie in their intervals.
    return noise_distribution.within(miss / (times * len(factors))) * total


def normal_quantile(deviation: NormalDistribution, miss: float) -> float:
    """Return z of a two-sided interval, plus the excess from rounding to the grid."""
    return -NormalDist().inv_cdf(miss / 2) + math.sqrt(2.0) * deviation.rounding / deviation.width


def ratio(
    top: float,
    bottom: float,
    weight: float,
    noise_distribution: NoiseDistribution | None,
    miss: float,
    cutoff: float,
) -> Ends:
    """Return an interval for S/n, from noisy S (`top`) and noisy w n (`bottom`).

    Args:
        weight: w > 0.
        cutoff: |S| is at most reach times n.
    """
    if noise_distribution is None:
        return -cutoff, cutoff
    if isinstance(noise_distribution, NormalDistribution):
        # Fieller in the scale of n: the noise on w n is divided by w, as n itself is.
        z = normal_quantile(noise_distribution, miss) * noise_distribution.width
        ends = fieller(top, z, bottom / weight, z / weight)
    else:
        # Bonferroni: half of the miss for each of the two numbers.
        half = noise_distribution.within(miss / 2)
        ends = quotients((top - half, top + half), bottom / weight, half / weight)
    return cut(ends, -cutoff, cutoff)


def proportion(
    top: float,
    rest: float,
    cells: tuple[int, int],
    noise_distribution: NoiseDistribution | None,
    miss: float,
) -> Ends:
    r"""Return an interval for the proportion S/(S + R) of counts that are sums of noisy cells.

    With normal noise of width s on every cell, :math:`\tilde S-r(\tilde S+\tilde R)` at the true
    share r has variance :math:`s^2(k_S(1-r)^2+k_Rr^2)`: Fieller's set, exact at every size. Of
    other noise, and of less than two steps of a grid, a box: all cells in their intervals together.

    Args:
        top, rest: Noisy S and R. cells: (k_S, k_R), how many cells each is the sum of.
    """
    if noise_distribution is None:
        return 0.0, 1.0
    of_top, of_rest = cells
    if (
        isinstance(noise_distribution, NormalDistribution)
        and noise_distribution.width >= FINE * noise_distribution.step
    ):
        n, squared_half = (
            top + rest,
            (normal_quantile(noise_distribution, miss) * noise_distribution.width) ** 2,
        )
        a = n * n - squared_half * (of_top + of_rest)
        b, c = top * n - squared_half * of_top, top * top - squared_half * of_top
        # The quadratic does not open upwards: the set is no interval, and says nothing.
        if n <= 0 or a <= 0:
            return 0.0, 1.0
        root = math.sqrt(max(0.0, b * b - a * c))
        return cut(((b - root) / a, (b + root) / a), 0.0, 1.0)
    # A box over all cells: counts are not negative, so ends below 0 are cut to 0.
    half = noise_distribution.within(miss / (of_top + of_rest))
    tops = [max(0.0, top + sign * of_top * half) for sign in (-1, 1)]
    rests = [max(0.0, rest + sign * of_rest * half) for sign in (-1, 1)]
    low = tops[0] / (tops[0] + rests[1]) if tops[0] > 0 else 0.0
    high = tops[1] / (tops[1] + rests[0]) if rests[0] > 0 else 1.0
    return low, high


def fieller(top: float, wide: float, bottom: float, narrow: float) -> Ends:
    """Solve (top - r bottom)^2 <= wide^2 + r^2 narrow^2 for r; the whole line if unbounded."""
    # (top - r bottom)^2 - wide^2 - r^2 narrow^2 as a quadratic in r: a r^2 - 2 b r + c.
    a = bottom * bottom - narrow * narrow
    b, c = top * bottom, top * top - wide * wide
    if bottom <= 0 or a <= 0:
        return EVERYTHING
    root = math.sqrt(max(0.0, b * b - a * c))
    return (b - root) / a, (b + root) / a


def quotients(top: Ends, bottom: float, half: float) -> Ends:
    """Return the range of S/n, S in `top` and |n - bottom| <= half; everything if n may be 0."""
    smallest, largest = bottom - half, bottom + half
    if smallest <= 0:
        return EVERYTHING
    # Over a box with n > 0 a quotient has its extremes at the corners.
    corners = [end / n for end in top for n in (smallest, largest)]
    return min(corners), max(corners)


@attrs.frozen(kw_only=True)
class Estimated:
    """One group's number.

    Args:
        low, high: Of an interval that holds together with the other groups'.
        count: The noisy count that it was divided by, at least 1.
        std: Of the estimate, for noise of width 1, to first order.
    """

    estimate: float
    low: float
    high: float
    count: float
    std: float


def gaps(
    about: Mapping[str, tuple[Any, ...]],
    estimates: Sequence[Estimated],
    noise_distribution: NoiseDistribution | None,
    narrow: float,
    miss: float,
    cutoff: float,
    level: float,
) -> Figures | None:
    """Return the differences of all pairs of groups, first minus second; None for 1 or too many.

    The interval is the delta method's where both counts are above 10 of their standard deviations
    and the noise is normal, else that of the two groups' intervals, which hold together.

    Args:
        narrow: Standard deviation of a count, for noise of width 1.
        cutoff: No number is larger.
    """
    if not 2 <= len(estimates) <= MOST_PAIRED:
        return None
    # All pairs, so that no pair is picked by what the answers show.
    pairs = [*itertools.combinations(range(len(estimates)), 2)]
    names = [", ".join(map(str, cell)) for cell in zip(*about.values(), strict=True)]
    rows = []
    for first, second in ((estimates[a], estimates[b]) for a, b in pairs):
        gap = first.estimate - second.estimate
        # Always valid: the two groups' intervals hold together, and so does their difference.
        ends = first.low - second.high, first.high - second.low
        # A discrete law on a coarse grid is no normal one: keep the box there.
        if (
            isinstance(noise_distribution, NormalDistribution)
            and noise_distribution.width >= FINE * noise_distribution.step
        ):
            # Far from 0 a quotient's error is nearly linear in the noise, for both counts.
            threshold = _ENOUGH * noise_distribution.width * narrow
            if min(first.count, second.count) > threshold:
                z = (
                    normal_quantile(noise_distribution, apart(miss, len(pairs)))
                    * noise_distribution.width
                )
                half = z * math.hypot(first.std, second.std)
                ends = gap - half, gap + half
        rows.append((gap, *cut(ends, -cutoff, cutoff)))
    return Figures(
        about={
            "group": tuple(names[a] for a, _ in pairs),
            "other": tuple(names[b] for _, b in pairs),
        },
        estimate=np.array([row[0] for row in rows]),
        low=np.array([row[1] for row in rows]),
        high=np.array([row[2] for row in rows]),
        level=level,
        joint=True,
        covers="noise only: where the difference on these records lies. Groups of a finite sample "
        "differ by chance too",
    )
