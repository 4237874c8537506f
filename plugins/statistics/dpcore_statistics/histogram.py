"""Histogram: how many records fall into each of a list of cells."""

from typing import Any, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Domain, Exact, Public, Records, Refused, Sum, SumQuery
from dpcore.checks import one_of
from dpcore.errors import ParameterError, need
from dpcore.interval import NoiseLaw, apart
from dpcore.learning.bounds.by_relation import ByRelation
from dpcore.learning.models.figures import Figures, Statistics
from dpcore_statistics.bars import around, cut, cut_count, share
from dpcore_statistics.by_group import ByGroup
from dpcore_statistics.columns import CategoryColumn, Cells, Marginal, declared, one_hot
from dpcore_statistics.population.sampling import population_bars, sampling_of, spread_over
from dpcore_statistics.population.shares import counts_in, noisy_share, public_share
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
        shares: Whether shares of the records in all cells are published in place of their counts.
    """

    column: str
    edges: tuple[Any, ...] | None = None
    bins: int | None = None
    of: Literal["records", "persons"] = attrs.field(
        default="records", validator=one_of("records", "persons")
    )
    shares: bool = False

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        # A person may be in several cells, so that counts of persons add up to no number of them.
        is_fit = self.of == "records" or not self.shares
        need(is_fit, "histogram", "of: records, whose cells are disjoint", "shares", self.shares)

    def unsampled(self, public: Public) -> str:
        """A sample of a finite population has shares, and no counts but those it has."""
        fits = public.domain.sampled == "independent" or self.shares
        return "" if fits else "sampled: independent, or shares: true"

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
        about, domain = {self.column: cells.labels}, public.domain
        total, spread = domain.exact if is_partition else None, answer.spread
        figures = (
            shares_of(about, value, spread, self.level, total)
            if self.shares
            else counted(about, value, spread, self.level, domain, total)
        )
        if not self.samples(public):
            return Statistics.of(figures)
        # Šidák's share of the miss for each cell: it holds for normal laws of any correlation.
        law = sampling_of(spread, apart(self.miss, value.size), domain)
        if law is None or not self.shares:
            out_of = None if domain.exact is None else float(domain.exact)
            ends = counts_in(domain, value, law, out_of=out_of)
        elif total is not None:
            ends = public_share(value, float(total), law)
        else:
            ends = noisy_share(value, value.sum() - value, law, (1, value.size - 1))
        what = "shares of the population" if self.shares else "expected counts"
        bars = population_bars(
            spread_over(ends, value.shape), self.level, what, domain, law, joint=True
        )
        return Statistics.of(attrs.evolve(figures, population=bars))

    def expected(self, public: Public, spread: NoiseLaw) -> tuple[str, ...]:
        """The half-width of every cell, the same whatever the records."""
        count = len(self.cells(public).labels)
        half = spread.within(apart(self.miss, count))
        if self.shares:
            return (f"each of {count} shares about +- {half:.4g}/n for n records, all together",)
        return (f"each of {count} counts +- {half:.4g}, all together",)


def shares_of(
    about: dict[str, tuple[Any, ...]],
    counts: NDArray[np.float64],
    spread: NoiseLaw | None,
    level: float,
    total: int | None,
) -> Figures:
    """A table of shares with simultaneous intervals.

    Args:
        total: The number of records, where that is public and each is in a cell.
    """
    miss, n = apart(1 - level, counts.size), float(total or max(1.0, counts.sum()))
    tops, rest = counts.tolist(), counts.sum()
    # Out of a public total the noise is of one cell alone.
    if total is None:
        cells = (1, counts.size - 1)
        ends = [share(top, rest - top, cells, spread, miss) for top in tops]
    else:
        ends = [around(top, spread, miss) for top in tops]
        ends = [cut((low / n, high / n), 0.0, 1.0) for low, high in ends]
    return Figures(
        about=about,
        estimate=np.clip(counts / n, 0.0, 1.0),
        low=np.array([low for low, _ in ends]),
        high=np.array([high for _, high in ends]),
        level=level,
        joint=True,
        covers="noise only: where the shares of these records lie, out of those in all cells",
    )


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
