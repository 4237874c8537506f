"""Trajectory: what n repetitions cost together, for every n up to a last one.

Cost is monotone in n, since leaving out releases is post-processing. So what was certified at two
numbers of repetitions holds between them: the lower end of the first, the upper end of the second.
Numbers are composed by halving, until every band is as narrow as asked.
"""

from collections.abc import Sequence

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Adjacency, Event
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.errors import need
from dpcore.interval import Interval


@attrs.frozen(kw_only=True, eq=False)
class Trajectory:
    """Certified ends after every repetition.

    Args:
        lower: Epsilon at least, nats, shape (repetitions,); element i is about i + 1 repetitions.
        upper: Epsilon at most, the same.
        composed: Numbers of repetitions that were composed themselves, increasing.
    """

    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    composed: tuple[int, ...]


def trajectory(
    events: Sequence[tuple[Event, int]],
    repetitions: int,
    delta: float,
    *,
    adjacency: Adjacency,
    tolerance: float = 5e-3,
) -> Trajectory:
    """Return what 1, 2, ..., `repetitions` rounds of `events` cost.

    Args:
        events: One round, events with counts.
        repetitions: The last number, >= 1.
        delta: In (0, 1).
        adjacency: What the result is about.
        tolerance: How wide a band between two composed numbers may be, relative to epsilon, beyond
            the widths of the two intervals themselves.

    Raises:
        ParameterError: an argument is out of range.
        NoClaimError: no method can state an epsilon after the last round.
    """
    need(
        not isinstance(repetitions, bool) and repetitions >= 1,
        "trajectory",
        "repetitions >= 1",
        "repetitions",
        repetitions,
    )
    need(tolerance > 0, "trajectory", "a tolerance > 0", "tolerance", tolerance)
    empty = AutoAccountant(adjacency)
    intervals: dict[int, Interval] = {}

    def interval_after(times: int) -> Interval:
        if times not in intervals:
            repeated = ((event, count * times) for event, count in events)
            intervals[times] = empty.compose_all(repeated).epsilon(delta)
        return intervals[times]

    # Halve every gap whose band is too wide. An end that was composed serves both halves.
    gaps = [(1, repetitions)]
    interval_after(1)
    while gaps:
        low, high = gaps.pop()
        first_interval, last_interval = interval_after(low), interval_after(high)
        allowed = tolerance * last_interval.upper + first_interval.width + last_interval.width
        if high - low > 1 and last_interval.upper - first_interval.lower > allowed:
            middle = (low + high) // 2
            gaps += [(low, middle), (middle, high)]
    return _fill_gaps(intervals, repetitions)


def _fill_gaps(intervals: dict[int, Interval], repetitions: int) -> Trajectory:
    """Return every number, from the nearest ones that were composed."""
    composed = sorted(intervals)
    numbers = np.arange(1, repetitions + 1)
    # Cost is monotone: a lower end holds for all later numbers, an upper end for all earlier ones.
    lower = np.maximum.accumulate([intervals[n].lower for n in composed])
    upper = np.minimum.accumulate([intervals[n].upper for n in composed][::-1])[::-1]
    before = np.searchsorted(composed, numbers, side="right") - 1
    after = np.searchsorted(composed, numbers, side="left")
    return Trajectory(lower=lower[before], upper=upper[after], composed=tuple(composed))
