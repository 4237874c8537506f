"""Gaps: how far two groups' numbers lie apart, with intervals that hold together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np

from dpcore.interval import NoiseLaw, NormalSpread, apart
from dpcore.learning.models.figures import Figures
from dpcore_statistics.bars import FINE, cut, normal_quantile

MOST_PAIRED = 16
"""Groups up to which all pairs are told; of more, readers subtract what they need."""

_ENOUGH = 10.0  # standard deviations of a count from which on the delta method holds its level


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
    found: Sequence[Estimated],
    spread: NoiseLaw | None,
    narrow: float,
    miss: float,
    reach: float,
    level: float,
) -> Figures | None:
    """Differences of all pairs of groups, the first less the second; None of one group or of many.

    The interval is the delta method's where both counts are above 10 of their standard deviations
    and the noise is normal, else that of the two groups' intervals, which hold together.

    Args:
        narrow: Standard deviation of a count, for noise of width 1.
        reach: No number is larger.
    """
    if not 2 <= len(found) <= MOST_PAIRED:
        return None
    # All pairs, so that no pair is picked by what the answers show.
    pairs = [*itertools.combinations(range(len(found)), 2)]
    names = [", ".join(map(str, cell)) for cell in zip(*about.values(), strict=True)]
    rows = []
    for first, second in ((found[a], found[b]) for a, b in pairs):
        gap = first.estimate - second.estimate
        # Always valid: the two groups' intervals hold together, and so does their difference.
        ends = first.low - second.high, first.high - second.low
        # A discrete law on a coarse grid is no normal one: keep the box there.
        if isinstance(spread, NormalSpread) and spread.width >= FINE * spread.step:
            # Far from 0 a quotient's error is nearly linear in the noise, for both counts.
            threshold = _ENOUGH * spread.width * narrow
            if min(first.count, second.count) > threshold:
                z = normal_quantile(spread, apart(miss, len(pairs))) * spread.width
                half = z * math.hypot(first.std, second.std)
                ends = gap - half, gap + half
        rows.append((gap, *cut(ends, -reach, reach)))
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
