"""Bins: categories that are intervals of numbers or of dates, such as months; and their edges.

The edges are public, and which bin a cell falls into follows from that cell only. Learners see
categories. Edges are in the file's own units, and numbers are compared with them there: what a
record encodes to has been rounded, and two numbers may encode alike.
"""

import contextlib
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import describe_type, is_finite
from dpcore.domain.cell import day
from dpcore.domain.columns import Categories, Dates, Range, date_text, summary
from dpcore.errors import need

MOST_BINS = 1 << 12

_EPOCH = date(1970, 1, 1)


@attrs.frozen
class Binned(Categories):
    """Categories, each of them a bin of a range; `between`, `by_year`, `by_month` and `by_week`.

    A number or date of the range is in the bin whose lower edge is the last one not above it, the
    upper end of the range in the last bin. Outside the range there is no bin. What is no number or
    no date is the default's bin, or a bin of its own where the range keeps missing ones. A cell
    that is the name of a bin is in that bin: so tables of bins can be read again.

    Args:
        range: What the cells hold.
        edges: Increasing; one more than there are bins of the range.
    """

    range: Range = attrs.field(kw_only=True)
    edges: tuple[float, ...] = attrs.field(kw_only=True)

    @classmethod
    def between(cls, numbers: Range, edges: Sequence[Any]) -> "Binned":
        """Bins from each edge up to the next: numbers, or dates of any kind.

        Raises:
            ParameterError: the edges do not increase, or do not cover the range.
        """
        is_list = isinstance(edges, Sequence) and not isinstance(edges, str)
        need(is_list, "bins", "a list of edges", "bins", describe_type(edges))
        places = tuple(numbers.declared(edges).tolist())
        increases = all(low < high for low, high in pairwise(places))
        need(
            1 < len(places) <= MOST_BINS + 1 and all(map(is_finite, places)) and increases,
            "bins",
            f"2 to {MOST_BINS + 1} edges, each a value of the column and above the one before",
            "bins",
            list(edges)[:8],
        )
        # A number of the range without a bin would be nowhere in a table.
        need(
            places[0] <= numbers.low and numbers.high <= places[-1],
            "bins",
            f"a first edge at or below {describe_edge(numbers, numbers.low)} and a last one at or "
            f"above {describe_edge(numbers, numbers.high)}, so that the bins cover the range",
            "bins",
            list(edges)[:8],
        )
        texts = [describe_edge(numbers, place) for place in places]
        names = [f"[{low}, {high})" for low, high in pairwise(texts)]
        if places[-1] == numbers.high:
            names[-1] = f"{names[-1][:-1]}]"
        return cls._of(numbers, places, names)

    @classmethod
    def by_year(cls, dates: Dates) -> "Binned":
        """Cut days into bins of a year, such as 2024."""
        return cls._by(dates, lambda d: date(d.year, 1, 1), 366, lambda d: f"{d.year:04}")

    @classmethod
    def by_month(cls, dates: Dates) -> "Binned":
        """Cut days into bins of a month, such as 2024-01."""
        return cls._by(dates, lambda d: d.replace(day=1), 31, lambda d: f"{d:%Y-%m}")

    @classmethod
    def by_week(cls, dates: Dates) -> "Binned":
        """Weeks from Monday to Sunday, by their ISO names such as 2024-W01."""
        return cls._by(dates, lambda d: d - timedelta(d.weekday()), 7, lambda d: f"{d:%G-W%V}")

    @classmethod
    def _by(
        cls, dates: Dates, start: Callable[[date], date], longest: int, name: Callable[[date], str]
    ) -> "Binned":
        """Bins of a calendar, from that of the first date to that of the last.

        Raises:
            ParameterError: the range is none of dates, has too many bins or leaves the calendar.
        """
        is_dates = isinstance(dates, Dates)
        need(is_dates, "bins", "dates, for bins of a calendar", "range", describe_type(dates))
        starts: list[date] = []
        # A bin may begin before the first year, or end behind the last one.
        with contextlib.suppress(OverflowError, ValueError):
            first, last = (_EPOCH + timedelta(int(end // 1)) for end in (dates.low, dates.high))
            starts.append(start(first))
            # A step of the longest bin lands in the next one, whose start is then taken.
            while starts[-1] <= last and len(starts) <= MOST_BINS:
                starts.append(start(starts[-1] + timedelta(longest)))
        names, edges = [name(s) for s in starts], [day(s) for s in starts]
        if starts and starts[-1] > last:
            names.pop()
        else:
            edges.append(day(date.max) + 1)
        need(
            1 <= len(names) <= MOST_BINS,
            "bins",
            f"at most {MOST_BINS} bins, none of which begins before the year 1",
            "bins",
            f"{len(names)} or more",
        )
        return cls._of(dates, tuple(edges), names)

    @classmethod
    def _of(cls, numbers: Range, edges: tuple[float, ...], names: list[str]) -> "Binned":
        need(
            len(names) > 1, "bins", "two bins or more: finer ones, or a wider range", "bins", names
        )
        default = None
        if numbers.default is not None:
            default = names[int(cells_between(edges, np.array(numbers.default)))]
        if numbers.missing:
            names, default = [*names, "missing"], "missing"
        return cls(tuple(names), default, range=numbers, edges=edges)

    def describe(self) -> str:
        """Describe the rule that an entry must meet."""
        return f"{self.range.describe()}, in the bins {summary(self.values[: len(self.edges) - 1])}"


def describe_edge(numbers: Range, place: float) -> str:
    """Return an edge as a reader knows it: dates as dates."""
    return date_text(place) if isinstance(numbers, Dates) else f"{float(place):.15g}"


@lru_cache(maxsize=64)
def equal_edges(low: float, high: float, count: int) -> tuple[float, ...]:
    """Edges of equal cells of [low, high], one more than cells.

    Each is the double nearest to the rational low + i (high - low)/count, where low and high are
    what their digits say: 0.1 is a tenth.
    """
    first, last = (Fraction(str(end)) for end in (low, high))
    # A fraction of Python's becomes the nearest double, however large its integers are.
    return tuple(float(first + i * (last - first) / count) for i in range(count + 1))


def cells_between(edges: Sequence[float] | NDArray[Any], numbers: NDArray[Any]) -> NDArray[np.intp]:
    """Return the cell of each number, -1 where it is in none. Shape (n,).

    A number on an edge is in the cell that begins there; the last cell holds its upper edge too.
    """
    ends = np.asarray(edges, dtype=np.float64)
    last = len(ends) - 2
    cells = np.searchsorted(ends, numbers, side="right") - 1
    cells = np.where(numbers == ends[-1], last, cells)
    return np.where(cells <= last, cells, -1)  # NaN is sorted behind all edges
