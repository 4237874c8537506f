"""Workload: linear queries on the cells of one column, by the best public strategy."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Public, Records, Refused, Sum, SumQuery
from dpcore.checks import one_of
from dpcore.errors import need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models.figures import Figures, Statistics
from dpcore_statistics.bars import cut_count
from dpcore_statistics.by_group import ByFirstCell
from dpcore_statistics.columns import Cells, one_hot
from dpcore_statistics.strategies import (
    LARGEST_OPTIMISED,
    Strategy,
    best_strategy,
    cells_strategy,
    joint_half_widths,
    longest_columns,
    prefixes,
    ranges,
    single_half_widths,
    strategy,
)

MOST_RANGED = 128  # cells of which all ranges are asked
MOST_PREFIXES = 2048


@attrs.frozen(kw_only=True)
class Workload(ByFirstCell):
    r"""Prefix sums, ranges or any sums of cells: measured by the strategy with the least error.

    Theorem: a record in cell i moves the measured sums A h by the length of column i of A, and a
    replaced one by the distance of two columns. A is public; it is computed when priced.

    In l1 prefixes and ranges are measured by a tree: levels whose weights add up to 1, so that a
    record that comes or goes moves 1, and a replaced one at most 2.

    Intervals hold together, by the joint distribution of the noise (`dpcore_models.measurements`).

    Total: as every statistic.

    Args:
        column: A declared range, or categories in their order.
        ask_for: `prefixes`, `ranges`, or `cells` and their total; of no use next to `matrix`.
        matrix: In place of `ask_for`: one row of weights a query, one weight a cell.
        edges: Of the cells of a range, increasing.
        bins: In place of edges: so many equal parts of the range.
        bars: `joint`: by the joint distribution of the noise, and a count below 0 is printed as 0.
            `single`: from each number's own law, and without delta from the cells, as before
            version 0.2.
    """

    earlier: ClassVar[Mapping[str, Mapping[str, Any]]] = {"0.2.0": {"bars": "single"}}

    ask_for: Literal["prefixes", "ranges", "cells"] = "prefixes"
    matrix: tuple[tuple[float, ...], ...] | None = None
    edges: tuple[Any, ...] | None = None
    bins: int | None = None
    bars: Literal["joint", "single"] = attrs.field(
        default="joint", validator=one_of("joint", "single")
    )

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        # A person in two cells counts once in a prefix: no other sum of cells is one of persons.
        is_linear = self.ask_for == "prefixes" and self.matrix is None
        needed = "records, or ask_for: prefixes (statistics.histogram counts persons in cells)"
        need(self.of == "records" or is_linear, "workload", needed, "of", self.of)

    def cells(self, public: Public) -> Cells:
        """Return the cells of the column; raises `ParameterError` as `Cells.of` does."""
        return Cells.of(public.domain, self.column, self.edges, self.bins)

    def wanted(self, cells: int) -> NDArray[np.float64]:
        """Return W, the matrix of the requested queries: shape (queries, cells).

        Raises:
            ParameterError: a matrix that is not finite, not of that width or zero; too many cells.
        """
        if self.matrix is not None:
            matrix = np.array([list(row) for row in self.matrix if len(row) == cells], dtype=float)
            is_complete = len(matrix) == len(self.matrix) > 0 and bool(np.isfinite(matrix).all())
            need(
                is_complete and matrix.any() and len(matrix) <= MOST_PREFIXES,
                "workload",
                f"rows of {cells} finite weights, not all 0",
                "matrix",
                len(matrix),
            )
            return matrix
        # Ranges grow with the square of the cells, prefixes do not.
        largest = MOST_RANGED if self.ask_for == "ranges" else MOST_PREFIXES
        need(cells <= largest, "workload", f"at most {largest} cells", "bins", cells)
        if self.ask_for == "ranges":
            return ranges(cells)
        if self.ask_for == "prefixes":
            return prefixes(cells)
        need(
            self.ask_for == "cells",
            "workload",
            "prefixes, ranges or cells",
            "ask_for",
            self.ask_for,
        )
        return np.vstack([np.eye(cells), np.ones((1, cells))])

    def strategy(self, public: Public) -> Strategy:
        """Return the measured strategy: the optimum in l2; in l1 a tree or the cells themselves."""
        count, in_l1 = len(self.cells(public).labels), self.norm(public) is Distance.L1
        workload = self.wanted(count)  # refuses what cannot be
        is_joint = self.bars == "joint" and self.matrix is None
        if is_joint and self.ask_for in ("prefixes", "ranges"):
            n_is_public = public.domain.exact is not None
            return best_strategy(self.ask_for, count, in_l1, n_is_public)
        rows = tuple(map(tuple, workload.tolist()))
        return cells_strategy(rows) if in_l1 else strategy(rows)

    def query(self, public: Public) -> SumQuery:
        """Return one query for all measured sums A h, clipped to the longest column of A."""
        strategy = self.strategy(public)
        clip = 1.0 if self.norm(public) is Distance.L1 else strategy.longest_column
        return SumQuery(
            name="measured",
            shape=(len(strategy.measured),),
            distance=self.norm(public),
            sum=Sum(clip=clip),
        )

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return the lengths and distances of A's columns; 0 is that of a record in no cell."""
        strategy = self.strategy(public)
        # Columns of A have length 1 there, and two of them may have no row in common.
        if query.distance is Distance.L1:
            return ByRelation(add_remove=1.0, replace_one=2.0)
        if self.bars == "joint" and strategy.measured.shape[1] > LARGEST_OPTIMISED:
            longest, diameter = longest_columns(strategy)
            return ByRelation(add_remove=longest, replace_one=diameter)
        # The second is for a record that starts or ceases to count.
        replacement = max(strategy.largest_column_distance, strategy.longest_column)
        return ByRelation(add_remove=strategy.longest_column, replace_one=replacement)

    def rows(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return the column of the record's cell."""
        cell = np.where(self.chosen(block, public), self.cells(public).index(block), -1)
        if self.marks_cells(public):
            return one_hot(cell, query.real_size)
        # The row of zeros at the end is what index -1 picks: no cell, no contribution.
        columns = np.vstack([self.strategy(public).measured.T, np.zeros(query.real_size)])
        return np.asarray(columns[cell])

    def measured_cells(self, public: Public) -> NDArray[Any]:
        """Return a: a column is what a record of its cell adds."""
        return self.strategy(public).measured

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: compute the same sum from counts: entries of A are whole numbers of units."""
        if self.by:
            return super().partial(query, block, public)
        cell = self.cells(public).index(block)
        measured = self.strategy(public).measured
        record_cells = cell[self.chosen(block, public) & (cell >= 0)]
        # A times integer counts, with A in whole units: exact.
        counts = np.bincount(record_cells, minlength=measured.shape[1])
        integers = np.ldexp(measured, -query.sum.unit).astype(np.int64)
        return Exact.of(integers @ counts, query.sum.unit)

    def half_widths(
        self, noise_distribution: NoiseDistribution | None, public: Public
    ) -> NDArray[np.float64]:
        """Return joint half-widths of all answers."""
        strategy = self.strategy(public)
        if noise_distribution is None:
            return np.full(len(strategy.answers), np.inf)
        if self.bars == "single":
            return single_half_widths(strategy.lengths, noise_distribution, self.miss)
        return joint_half_widths(strategy, noise_distribution, self.miss)

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return a table with a row for each query; all intervals hold together."""
        values = self.strategy(public).estimates(np.asarray(answer.value, dtype=np.float64))
        half = self.half_widths(answer.noise_distribution, public)
        low, high = values - half, values + half
        # Counts cannot be negative; weighted sums may be anything.
        is_cut = self.matrix is None and self.bars == "joint"
        if self.matrix is None:  # counts
            ends = [cut_count((a, b), public.domain) for a, b in zip(low, high, strict=True)]
            low, high = (np.array(side) for side in zip(*ends, strict=True))
        return Statistics.of(
            Figures(
                about={self.column: self._labels(self.cells(public).labels)},
                # As published before 0.2.0: a count below 0 was in its row as it was.
                estimate=np.maximum(values, 0.0) if is_cut else values,
                low=low,
                high=high,
                level=self.level,
                joint=True,
                covers="noise only: where the exact answers lie"
                + ("; sums are taken from `unbiased`" if is_cut else ""),
                unbiased=values if is_cut else None,
            )
        )

    def _labels(self, labels: tuple[Any, ...]) -> tuple[str, ...]:
        if self.matrix is not None:
            return tuple(f"query {number}" for number in range(1, len(self.matrix) + 1))
        texts = [str(label) for label in labels]
        if self.ask_for == "prefixes":
            return tuple(f"up to {label}" for label in texts)
        if self.ask_for == "cells":
            return (*texts, "total")
        count = len(texts)
        runs = ((a, b) for a in range(count) for b in range(a, count))
        return tuple(texts[a] if a == b else f"{texts[a]} to {texts[b]}" for a, b in runs)

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Return the smallest and the largest half-width, and the certificate of the strategy."""
        half, strategy = self.half_widths(noise_distribution, public), self.strategy(public)
        return (
            f"{len(half)} answers +- {half.min():.4g} to {half.max():.4g}, all "
            f"together{strategy.certificate()}",
        )
