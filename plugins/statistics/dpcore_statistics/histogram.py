"""Histogram: how many records fall into each of a list of cells."""

from typing import Any, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Domain, Exact, Public, Records, Refused, Sum, SumQuery
from dpcore.checks import one_of
from dpcore.errors import ParameterError
from dpcore.interval import NoiseLaw, apart
from dpcore.learning.bounds.by_relation import ByRelation
from dpcore.learning.models.figures import Figures, Statistics
from dpcore_statistics.bars import cut_count
from dpcore_statistics.by_group import ByGroup
from dpcore_statistics.columns import CategoryColumn, Cells, Marginal, declared, one_hot
from dpcore_statistics.statistic import ROOT_TWO

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


@attrs.frozen(kw_only=True)
class Histogram(ByGroup):
    """The number of records in each cell of one column, empty cells too.

    Total: as every statistic.

    Args:
        column: A declared range, or categories.
        edges: Of the cells of a range, increasing: [e0, e1), ..., the last one closed.
        bins: In place of edges: so many equal parts of the range.
        of: What is counted: records, or persons, each of whom counts once in every cell that any of
            their records is in. For domains with `people`.
    """

    column: str
    edges: tuple[Any, ...] | None = None
    bins: int | None = None
    of: Literal["records", "persons"] = attrs.field(
        default="records", validator=one_of("records", "persons")
    )

    @property
    def counted_unit(self) -> Literal["records", "persons"] | None:
        """What is counted: records, or persons."""
        return self.of

    def groups(self, public: Public) -> Marginal:
        """The groups, of categories alone: edges and bins are of the column that is counted."""
        for name in self.by:
            if name == self.column or not isinstance(declared(public.domain, name), CategoryColumn):
                needed = "categories beside the column (of ranges statistics.table counts)"
                raise ParameterError("histogram", needed, "by", name)
        return super().groups(public)

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

    def rows(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: 1 in the record's cell."""
        cells = np.where(self.chosen(block, public), self.cells(public).index(block), -1)
        return one_hot(cells, query.real_size)

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: the same sum, by counting."""
        if self.by:
            return super().partial(query, block, public)
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
