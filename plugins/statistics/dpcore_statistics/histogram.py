"""Histogram: how many records fall into each of a list of cells."""

from __future__ import annotations

import itertools
import math
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Domain, Exact, Public, Records, Refused, Sum, SumQuery
from dpcore.errors import ParameterError
from dpcore.interval import NoiseLaw, apart
from dpcore.learning.bounds.by_relation import ByRelation
from dpcore.learning.models.figures import Figures, Statistics
from dpcore.rounding import up
from dpcore_statistics.bars import cut_count
from dpcore_statistics.columns import CategoryColumn, NumberColumn, declared
from dpcore_statistics.statistic import Statistic

ROOT_TWO = up(2.0**0.5, roundings=1)
MOST_CELLS = 1 << 16


@attrs.frozen(kw_only=True, eq=False)
class Cells:
    """A column cut into cells that do not overlap, by public edges or categories.

    Args:
        edges: Positions of a range's edges; None for categories.
        labels: One a cell.
    """

    column: NumberColumn | CategoryColumn
    edges: NDArray[np.float64] | None
    labels: tuple[Any, ...]

    @classmethod
    def of(
        cls, domain: Domain, name: str, edges: tuple[Any, ...] | None, bins: int | None
    ) -> Cells:
        """The cells of a column: between edges, in equal parts, or one for each category.

        Raises:
            ParameterError: edges do not increase strictly or leave the range, or categories have
                edges.
        """
        column = declared(domain, name)
        if isinstance(column, CategoryColumn):
            # Categories are cells as they are; edges would be dropped in silence.
            if edges is not None or bins is not None:
                raise ParameterError(
                    name, "neither edges nor bins: it has categories", "edges", edges
                )
            return cls(column=column, edges=None, labels=column.values)
        if (edges is None) == (bins is None):
            raise ParameterError(name, "either edges or a number of bins", "edges", edges)
        if bins is not None:
            if isinstance(bins, bool) or not isinstance(bins, int) or not 1 <= bins <= MOST_CELLS:
                raise ParameterError(name, f"1 to {MOST_CELLS} bins", "bins", bins)
            ends = np.linspace(column.column.low, column.column.high, bins + 1)
            texts = tuple(column.told(float(end)) for end in ends)
            places = np.linspace(-1.0, 1.0, bins + 1)
        else:
            assert edges is not None, "one of both is given"
            # By the records' own arithmetic, so that a value on an edge falls where its edge does.
            places = column.position(edges)
            texts = tuple(column.told(float(end)) for end in column.column.numbers(list(edges)))
        if len(places) < 2 or not bool((np.diff(places) > 0).all()):
            raise ParameterError(
                name, "two or more edges, each above the one before", "edges", edges
            )
        labels = [f"[{low}, {high})" for low, high in itertools.pairwise(texts)]
        # The last cell is closed, so that the end of the range is in one.
        labels[-1] = f"{labels[-1][:-1]}]"
        return cls(column=column, edges=places, labels=tuple(labels))

    @property
    def partition(self) -> bool:
        """Whether every record of the domain is in one of the cells."""
        if isinstance(self.column, CategoryColumn):
            return self.column.complete
        assert self.edges is not None, "a range has edges"
        # Exactly the ends of the range, and no missing values: nothing else falls outside.
        return not self.column.may_miss and [*self.edges[[0, -1]]] == [-1.0, 1.0]

    def index(self, records: Records) -> NDArray[np.intp]:
        """The cell of every record, -1 where it is in none. Shape (n,)."""
        if isinstance(self.column, CategoryColumn):
            return self.column.codes(records)
        assert self.edges is not None, "a range has edges"
        positions = self.column.scaled(records)
        # "right" less 1: a value on an edge belongs to the cell above it.
        cells = np.searchsorted(self.edges, positions, side="right") - 1
        cells = np.where(positions == self.edges[-1], len(self.labels) - 1, cells)
        inside = self.column.present(records) & (cells >= 0) & (cells < len(self.labels))
        return np.where(inside, cells, -1)


@attrs.frozen(kw_only=True, eq=False)
class Marginal:
    """One table: the product of the cells of its columns.

    Args:
        weight: Of its counts among all that are released together.
    """

    name: str
    columns: tuple[Cells, ...]
    weight: float = 1.0

    @property
    def size(self) -> int:
        """How many cells the table has: the product over its columns."""
        return math.prod(len(cells.labels) for cells in self.columns)

    @property
    def about(self) -> dict[str, tuple[Any, ...]]:
        """Labels of its cells, by column."""
        rows = list(itertools.product(*(cells.labels for cells in self.columns)))
        names = [cells.column.name for cells in self.columns]
        return dict(zip(names, zip(*rows, strict=True), strict=True))

    def index(self, records: Records) -> NDArray[np.intp]:
        """The cell of every record, -1 where it is in none. Shape (n,)."""
        # Mixed radix, the last column fastest: the order of `product` in `about`.
        places = np.zeros(len(records), dtype=np.intp)
        mask = np.ones(len(records), dtype=np.bool_)
        for cells in self.columns:
            cell = cells.index(records)
            mask &= cell >= 0
            places = places * len(cells.labels) + cell
        return np.where(mask, places, -1)


def one_hot(cells: NDArray[np.intp], count: int) -> NDArray[np.float64]:
    """Indicators, shape (n, count); zeros for -1."""
    indicators = np.zeros((cells.size, count))
    rows = np.flatnonzero(cells >= 0)
    indicators[rows, cells[rows]] = 1.0
    return indicators


ONE_CELL_NORMS = (Distance.L1, Distance.L2)
"""Of counts in disjoint cells: one cell of a record is as long in either norm."""


def counts_moved(norm: Distance) -> ByRelation:
    """What one record moves disjoint counts by: one cell, or one down and another up."""
    return ByRelation(add_remove=1.0, replace_one=2.0 if norm is Distance.L1 else ROOT_TWO)


def shown_counts(estimates: NDArray[np.float64], total: int | None) -> NDArray[np.float64]:
    """Counts that are not negative and, of a public total, add up to it (Euclidean projection)."""
    if total is None:
        return np.maximum(estimates, 0.0)
    # The projection on a simplex: subtract one shift, and cut at 0.
    ordered = np.sort(estimates)[::-1]
    shifts = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    shift = shifts[np.flatnonzero(ordered > shifts)[-1]]
    return np.asarray(np.maximum(estimates - shift, 0.0))


def least_squares(
    about: dict[str, tuple[Any, ...]],
    estimates: NDArray[np.float64],
    half: float,
    level: float,
    domain: Domain,
    display: NDArray[np.float64] | None = None,
) -> Figures:
    """A table of counts whose cells and margins agree: one below 0 is printed as 0, and marked.

    Args:
        estimates: Unbiased: what further estimates and sums start from.
        half: The half-width of every cell, such that all hold together.
    """
    ends = [cut_count((count - half, count + half), domain) for count in estimates.tolist()]
    return Figures(
        about=about,
        estimate=np.maximum(estimates, 0.0),
        low=np.array([low for low, _ in ends]),
        high=np.array([high for _, high in ends]),
        level=level,
        joint=True,
        covers="noise only: where the exact counts lie; sums are taken from `unbiased`"
        + (": `display` is biased and has no bar" if display is not None else ""),
        display=display,
        unbiased=estimates,
    )


@attrs.frozen(kw_only=True)
class Histogram(Statistic):
    """The number of records in each cell of one column, empty cells too.

    Total: as every statistic.

    Args:
        column: A declared range, or categories.
        edges: Of the cells of a range, increasing: [e0, e1), ..., the last one closed.
        bins: In place of edges: so many equal parts of the range.
    """

    column: str
    edges: tuple[Any, ...] | None = None
    bins: int | None = None

    def cells(self, public: Public) -> Cells:
        """The cells of the column; raises `ParameterError` as `Cells.of` does."""
        return Cells.of(public.domain, self.column, self.edges, self.bins)

    def query(self, public: Public) -> SumQuery:
        """One query for all cells, one integer each: exact and not negative."""
        return SumQuery(
            name="counts",
            shape=(len(self.cells(public).labels),),
            distance=self.norm(public),
            norms=ONE_CELL_NORMS,
            values="integers",
            sum=Sum(clip=1.0, sign="non_negative", exponent=0),
        )

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """1 under add/remove; sqrt(2) (l2) or 2 (l1) under replacement, 1 if there is one cell."""
        # With one cell a replaced record cannot move to another one.
        if query.real_size == 1:
            return ByRelation(add_remove=1.0, replace_one=1.0)
        return counts_moved(query.distance)

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: 1 in the record's cell."""
        cells = np.where(self.chosen(block, public), self.cells(public).index(block), -1)
        return one_hot(cells, query.real_size)

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: the same sum, by counting."""
        cell = self.cells(public).index(block)
        # Counting is the exact sum of the indicators, without the matrix of them.
        record_cells = cell[self.chosen(block, public) & (cell >= 0)]
        return Exact.of(np.bincount(record_cells, minlength=query.real_size), 0)

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """One row a cell, whose intervals hold together."""
        cells, value = self.cells(public), np.asarray(answer.value, dtype=np.float64)
        # Only then is the total public, so that shown counts may be made to add up to it.
        is_partition = cells.partition and not self.where
        return Statistics.of(
            counted(
                {self.column: cells.labels}, value, answer.spread, self.level, public.domain,
                total=public.domain.exact if is_partition else None,
            )
        )  # fmt: skip

    def expected(self, public: Public, spread: NoiseLaw) -> tuple[str, ...]:
        """The half-width of every cell, the same whatever the records."""
        count = len(self.cells(public).labels)
        half = spread.within(apart(self.miss, count))
        return (f"each of {count} counts +- {half:.4g}, all together",)


def counted(
    about: dict[str, tuple[Any, ...]],
    counts: NDArray[np.float64],
    spread: NoiseLaw | None,
    level: float,
    domain: Domain,
    total: int | None = None,
) -> Figures:
    """A table of counts with simultaneous intervals.

    Args:
        total: What they add up to, where that is public.
    """
    # Šidák's share of the miss for each cell, so that all intervals hold together.
    miss = apart(1 - level, counts.size)
    half = float("inf") if spread is None else spread.within(miss)
    ends = [cut_count((float(count) - half, float(count) + half), domain) for count in counts]
    return Figures(
        about=about,
        estimate=counts,
        low=np.array([low for low, _ in ends]),
        high=np.array([high for _, high in ends]),
        level=level,
        joint=True,
        covers="noise only: where the exact counts lie",
        display=shown_counts(counts, total),
    )
