r"""Running: counts or sums by period, and their running totals, whose intervals hardly grow.

What is measured is y = K x + z, for x the periods' own sums and K the square root of running totals
(`dpcore_models.solvers.banded`): integers, lower triangular, the same along each diagonal. Everyone
solves for :math:`\hat x=K^{-1}y`, whose noise :math:`K^{-1}z` all but cancels in totals: for noise
of one law on all of y, the deviations are the row lengths of :math:`K^{-1}`, and of its totals.

Theorem: a record counts in the period of its own date, and adds v times that period's column of K,
for v in [lo, hi], a multiple of 2^-30. So a record that comes or goes moves y by at most
:math:`\max|v|\max_t\|K_{\cdot t}\|`. One that is replaced moves it by
:math:`\|vK_{\cdot t}-v'K_{\cdot t'}\|`, which is convex in v and v', so that ends decide; both
ends' intervals hold 0, which is a record that does not count.
Adaptivity costs nothing: all periods are one query, and no contribution depends on an answer.
"""

from functools import lru_cache
from typing import Any, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Public, Records, Refused, Sum, SumQuery
from dpcore.checks import positive_integer
from dpcore.domain import Dates
from dpcore.errors import need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution, NormalDistribution, apart
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models.figures import Figures, Statistics
from dpcore.rounding import up
from dpcore_models.solvers.banded import solved, square_root_bands
from dpcore_statistics.bars import cut_count
from dpcore_statistics.by_group import ByFirstCell
from dpcore_statistics.columns import Cells, number_column, one_hot
from dpcore_statistics.total import CLIPPED

MOST_PERIODS = 1 << 10

_UNIT = -30  # log2: values are multiples of it, so that times K they are whole numbers of units
_STEPS = {"day": 1, "week": 7}


@attrs.frozen(kw_only=True)
class Running(ByFirstCell):
    """Counts or sums of every period of a date, and of all periods up to each.

    Of persons, a period's number is of those whose first record is in it: a total counts each once.
    `statistics.histogram` counts the persons in each period.

    Intervals of both tables hold together (Šidák 1967 for Gaussian noise of any correlation).

    Total: as every statistic.

    Args:
        column: Of dates, or a range. A moment with an offset counts in UTC, where the first hours
            of a day or month may be those of the one before, or in the zone that the column states.
        every: Length of a period: `day`, `week`, `month` or `year`, from the first date on.
        edges: In place of `every`: of the periods, increasing; the last one is closed.
        amount: A column to sum; None counts records.
        bands: How many periods an answer adds up; by default all, which is best for totals. With
            1 each period is measured by itself; with Laplace noise that is best, and the default.
    """

    every: Literal["day", "week", "month", "year"] | None = None
    edges: tuple[Any, ...] | None = None
    amount: str | None = None
    bands: int | None = attrs.field(
        default=None, validator=attrs.validators.optional(positive_integer)
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        needed = "records (clip: person adds up persons)"
        need(self.of == "records" or self.amount is None, "running", needed, "of", self.of)

    @property
    def counted_unit(self) -> Literal["records", "persons"] | None:
        """The counted unit: records or persons; None if values are added up."""
        return self.of if self.amount is None else None

    def periods(self, public: Public) -> Cells:
        """Return the periods, as cells of the column.

        Raises:
            ParameterError: neither or both of `every` and `edges`, or too many periods.
        """
        edges = self.edges
        if self.every is not None:
            need(edges is None, self.column, "either every or edges", "edges", edges)
            column = number_column(public.domain, self.column).column
            edges = _calendar(column, self.every, public.domain.cells == "positions")
        cells = Cells.of(public.domain, self.column, edges, None)
        count = len(cells.labels)
        need(count <= MOST_PERIODS, self.column, f"{MOST_PERIODS} periods", "edges", count)
        return cells

    def weights(self, public: Public) -> tuple[int, ...]:
        """Return k_0, k_1, ...: the first column of K."""
        count = len(self.periods(public).labels)
        is_laplace = self.norm(public) is Distance.L1
        bands = self.bands or (1 if is_laplace else count)
        return square_root_bands(min(bands, count))

    def ends(self, public: Public) -> tuple[float, float, float]:
        """Return (lo, hi, M): the range of a record's value in units of M, and M."""
        if self.amount is None:
            return 0.0, 1.0, 1.0
        column = number_column(public.domain, self.amount).column
        unit = max(abs(column.low), abs(column.high))
        low, high = np.floor(np.ldexp([column.low / unit, -column.high / unit], -_UNIT))
        # Rounded away from 0, and no farther than 1: no rounded value is outside.
        ends = np.ldexp([min(low, 0.0), max(-high, 0.0)], _UNIT)
        return max(-1.0, float(ends[0])), min(1.0, float(ends[1])), unit

    def query(self, public: Public) -> SumQuery:
        """Return one query for all of y, clipped to the longest column of K."""
        is_count = self.amount is None
        matrix = self.measured_cells(public)
        return SumQuery(
            name="measured",
            shape=(len(matrix),),
            distance=self.norm(public),
            values="integers" if is_count else "reals",
            sum=Sum(
                clip=_longest(matrix, self.norm(public)),
                sign="non_negative" if is_count else "any",
                exponent=0 if is_count else _UNIT,
            ),
        )

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return the theorem above; in l1 replacement follows by the triangle inequality."""
        matrix = _matrix(self.weights(public), query.real_size)
        longest = _longest(matrix, query.distance)
        if query.distance is Distance.L1:
            return ByRelation(add_remove=longest, replace_one=2 * longest)
        low, high, _ = self.ends(public)
        return ByRelation(add_remove=longest, replace_one=_largest_distance(matrix, low, high))

    def _values(self, block: Records, public: Public) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """PRIVATE: return every record's period, -1 for none, and its value in units."""
        cells = np.where(self.chosen(block, public), self.periods(public).index(block), -1)
        if self.amount is None:
            return cells, np.ones(len(block), dtype=np.int64)
        column, (low, high, unit) = number_column(public.domain, self.amount), self.ends(public)
        values = np.clip(column.value(column.scaled(block)) / unit, low, high)
        integers = np.rint(np.ldexp(values, -_UNIT)).astype(np.int64)
        return cells, np.where(column.present(block), integers, 0)

    def rows(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return the value times the column of the record's period."""
        cells, integers = self._values(block, public)
        if self.marks_cells(public):
            return one_hot(cells, query.real_size)
        matrix = self.measured_cells(public)
        # The row of zeros at the end is what index -1 picks: no period, no contribution.
        columns = np.vstack([matrix.T, np.zeros((1, query.real_size), dtype=np.int64)])
        # In the values' own unit: where persons are clipped, the query's is a finer one.
        rows = (columns[cells] * integers[:, None]).astype(np.float64)
        return np.ldexp(rows, 0 if self.amount is None else _UNIT)

    def measured_cells(self, public: Public) -> NDArray[Any]:
        """Return K: a column is the contribution of a record of that period."""
        return _matrix(self.weights(public), len(self.periods(public).labels))

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: sum period by period, then multiply by K, in exact integers."""
        if self.by:
            return super().partial(query, block, public)
        cells, integers = self._values(block, public)
        sums = np.zeros(query.real_size + 1, dtype=np.int64)
        # 2^16 records of 2^30 units at most, times K whose rows add up to less than 2^12: 2^58.
        np.add.at(sums, cells, integers)
        matrix = _matrix(self.weights(public), query.real_size)
        return Exact.of(matrix @ sums[:-1], query.sum.unit)

    def half_widths(
        self, noise_distribution: NoiseDistribution | None, public: Public
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return half-widths of every period and of every total; all hold together."""
        count = len(self.periods(public).labels)
        if noise_distribution is None:
            return np.full(count, np.inf), np.full(count, np.inf)
        impulse = np.zeros(count)
        impulse[0] = 1.0
        # K is the same along its diagonals: one column of its inverse determines all of them.
        column = solved(self.weights(public), [*impulse])
        singles, totals = (
            _half_widths(weights, noise_distribution, self.miss)
            for weights in (column, np.cumsum(column))
        )
        return singles, totals

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return the tables `periods` and `totals`, each with one row per period."""
        labels, unit = self.periods(public).labels, self.ends(public)[2]
        single = solved(self.weights(public), [*np.asarray(answer.value, dtype=np.float64)])
        halves = self.half_widths(answer.noise_distribution, public)
        texts = (labels, tuple(f"up to {label}" for label in labels))
        estimates = (single, np.cumsum(single))
        names = ("periods", "totals")
        return Statistics(
            tables={
                name: self._table(text, unit * estimate, unit * half, public)
                for name, text, estimate, half in zip(names, texts, estimates, halves, strict=True)
            }
        )

    def _table(
        self,
        labels: tuple[Any, ...],
        estimate: NDArray[np.float64],
        half: NDArray[np.float64],
        public: Public,
    ) -> Figures:
        pairs, covers = [*zip(estimate - half, estimate + half, strict=True)], CLIPPED
        if self.amount is None:
            ends = [cut_count(pair, public.domain) for pair in pairs]
            covers = "noise only: where the exact counts lie"
        else:
            amount = number_column(public.domain, self.amount).column
            ends = [self.cut_sum(pair, amount.low, amount.high) for pair in pairs]
        low, high = (np.array(side) for side in zip(*ends, strict=True))
        return Figures(
            about={self.column: labels},
            estimate=estimate,
            low=low,
            high=high,
            level=self.level,
            joint=True,
            covers=covers,
        )

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Forecast the largest half-width of either table, the same for all records."""
        unit = self.ends(public)[2]
        singles, totals = (
            unit * float(half.max()) for half in self.half_widths(noise_distribution, public)
        )
        return (
            f"each period +- {singles:.4g} and each running total +- {totals:.4g}, all together",
        )


def _half_widths(
    weights: NDArray[np.float64], noise_distribution: NoiseDistribution, miss: float
) -> NDArray[np.float64]:
    """Return half-widths of sums of the first 1, 2, ... noises, weighted from the last back."""
    count = len(weights)
    sizes = np.cumsum(np.abs(weights))
    if isinstance(noise_distribution, NormalDistribution):
        # Normal combinations: one Šidák quantile for both tables, times the length of each row.
        lengths = np.sqrt(np.cumsum(weights * weights))
        half = noise_distribution.quantile(apart(miss, 2 * count)) * lengths
    else:
        half = (
            noise_distribution.quantile(miss / count) * sizes
        )  # of all that is measured, together
    return np.asarray(up(half + sizes * noise_distribution.rounding, roundings=32 * count))


@lru_cache(maxsize=8)
def _matrix(weights: tuple[int, ...], count: int) -> NDArray[np.int64]:
    """Build K, shape (count, count); read-only."""
    matrix = np.zeros((count, count), dtype=np.int64)
    for distance, weight in enumerate(weights):
        rows = np.arange(distance, count)
        matrix[rows, rows - distance] = weight
    matrix.flags.writeable = False
    return matrix


def _longest(matrix: NDArray[np.int64], norm: Distance) -> float:
    """Return the longest column, rounded up."""
    # Integers below 2^53: sums and squares are exact, and the root by itself is rounded.
    if norm is Distance.L1:
        return float(matrix.sum(axis=0).max())
    return up(float(np.sqrt((matrix * matrix).sum(axis=0).max())), roundings=1)


def _largest_distance(matrix: NDArray[np.int64], low: float, high: float) -> float:
    """Bound the distance of two columns, each times a number in [low, high]; rounded up."""
    products = (matrix.T @ matrix).astype(np.float64)
    squares = np.diagonal(products)
    diameter = max(
        float((a * a * squares[:, None] + b * b * squares - 2 * a * b * products).max())
        for a, b in ((low, low), (low, high), (high, high))
    )
    # A difference of squares may cancel: its error is a few roundings of what was added.
    slack = up(4 * float(squares.max()), roundings=8) * 2.0**-47
    return up(float(np.sqrt(diameter + slack)), roundings=8)


def _calendar(column: Any, every: str, was_published: bool) -> tuple[float, ...]:
    """Return edges of periods within a column of dates, as days since 1970-01-01.

    A last day that begins a period is one of its own.

    Args:
        was_published: Whether by the rule of earlier runs, which joined it to the one before.

    Raises:
        ParameterError: the column holds no dates, or no such period is known.
    """
    need(
        isinstance(column, Dates) and every in ("day", "week", "month", "year"),
        "running",
        "a column of dates: day, week, month, year",
        "every",
        every,
    )
    first, last = (np.datetime64(int(day // 1), "D") for day in (column.low, column.high))
    if every in _STEPS:
        step = np.timedelta64(_STEPS[every], "D")
        inner = np.arange(first, last + np.timedelta64(1, "D"), step)
    else:
        unit = "M" if every == "month" else "Y"
        start, stop = (end.astype(f"M8[{unit}]").astype(np.int64) for end in (first, last))
        inner = np.arange(start, stop + 1).astype(f"M8[{unit}]").astype("M8[D]")
    # Days as numbers: the ends of the range may have a time of day.
    days = inner.astype(np.int64).astype(np.float64)
    low, high, end = column.low, column.high, column.end
    if was_published:
        low, high, end = (float(day.astype(np.int64)) for day in (first, last, last))
    inside = days[(days > low) & (days < end)].tolist()
    return (low, *inside, end if high in inside else high)
