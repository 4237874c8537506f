"""Workload: linear queries on the cells of one column, by the best public strategy."""

from typing import Any, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Exact, Public, Records, Refused, Sum, SumQuery
from dpcore.errors import ParameterError
from dpcore.interval import NoiseLaw, NormalSpread, apart
from dpcore.learning.bounds.by_relation import ByRelation
from dpcore.learning.models.figures import Figures, Statistics
from dpcore.rounding import up
from dpcore_statistics.bars import cut_count
from dpcore_statistics.columns import Cells
from dpcore_statistics.statistic import Statistic
from dpcore_statistics.strategies import Strategy, prefixes, ranges, strategy

MOST_RANGED = 128  # cells of which all ranges are asked
MOST_PREFIXES = 2048


@attrs.frozen(kw_only=True)
class Workload(Statistic):
    r"""Prefix sums, ranges or any sums of cells: measured by the strategy with the least error.

    Theorem: a record in cell i moves the measured sums A h by the length of column i of A, and a
    replaced one by the distance of two columns. A is public; it is computed when priced.

    Intervals hold together (Šidák 1967 for Gaussian noise of any correlation).

    Total: as every statistic.

    Args:
        column: A declared range, or categories in their order.
        ask_for: `prefixes`, `ranges`, or `cells` and their total; of no use beside `matrix`.
        matrix: In place of `ask_for`: one row of weights a query, one weight a cell.
        edges: Of the cells of a range, increasing.
        bins: In place of edges: so many equal parts of the range.
    """

    column: str
    ask_for: Literal["prefixes", "ranges", "cells"] = "prefixes"
    matrix: tuple[tuple[float, ...], ...] | None = None
    edges: tuple[Any, ...] | None = None
    bins: int | None = None

    def cells(self, public: Public) -> Cells:
        """The cells of the column; raises `ParameterError` as `Cells.of` does."""
        return Cells.of(public.domain, self.column, self.edges, self.bins)

    def wanted(self, cells: int) -> NDArray[np.float64]:
        """W, the matrix of the queries asked for: shape (queries, cells).

        Raises:
            ParameterError: a matrix that is not finite, not of that width or zero; too many cells.
        """
        if self.matrix is not None:
            matrix = np.array([list(row) for row in self.matrix if len(row) == cells], dtype=float)
            is_complete = len(matrix) == len(self.matrix) > 0 and bool(np.isfinite(matrix).all())
            if not is_complete or not matrix.any() or len(matrix) > MOST_PREFIXES:
                raise ParameterError(
                    "workload", f"rows of {cells} finite weights, not all 0", "matrix", len(matrix)
                )
            return matrix
        # Ranges grow with the square of the cells, prefixes do not.
        largest = MOST_RANGED if self.ask_for == "ranges" else MOST_PREFIXES
        if cells > largest:
            raise ParameterError("workload", f"at most {largest} cells", "bins", cells)
        if self.ask_for == "ranges":
            return ranges(cells)
        if self.ask_for == "prefixes":
            return prefixes(cells)
        if self.ask_for != "cells":
            raise ParameterError("workload", "prefixes, ranges or cells", "ask_for", self.ask_for)
        return np.vstack([np.eye(cells), np.ones((1, cells))])

    def strategy(self, public: Public) -> Strategy:
        """What is measured: the optimum in l2; the cells themselves in l1."""
        # In l1 the cells themselves are measured: the optimum is for l2.
        workload = self.wanted(len(self.cells(public).labels))
        if self.norm(public) is Distance.L1:
            cells = workload.shape[1]
            return Strategy(
                measured=np.eye(cells),
                answers=workload,
                total=float((workload**2).sum()),
                least=0.0,
            )
        return strategy(tuple(map(tuple, workload.tolist())))

    def query(self, public: Public) -> SumQuery:
        """One query for all measured sums A h, clipped to the longest column of A."""
        strategy = self.strategy(public)
        clip = 1.0 if self.norm(public) is Distance.L1 else strategy.longest_column
        return SumQuery(
            name="measured",
            shape=(len(strategy.measured),),
            distance=self.norm(public),
            sum=Sum(clip=clip),
        )

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Columns of A: their length, and their distance; a record in no cell has a column of 0."""
        strategy = self.strategy(public)
        # A is the identity there: one cell, or one down and another up.
        if query.distance is Distance.L1:
            return ByRelation(add_remove=1.0, replace_one=2.0)
        # The second is for a record that starts or ceases to count.
        replacement = max(strategy.farthest_columns, strategy.longest_column)
        return ByRelation(add_remove=strategy.longest_column, replace_one=replacement)

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: the column of the record's cell."""
        cell = np.where(self.chosen(block, public), self.cells(public).index(block), -1)
        # The row of zeros at the end is what index -1 picks: no cell, no contribution.
        columns = np.vstack([self.strategy(public).measured.T, np.zeros(query.real_size)])
        return np.asarray(columns[cell])

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: the same sum from counts: entries of A are whole numbers of units."""
        cell = self.cells(public).index(block)
        measured = self.strategy(public).measured
        record_cells = cell[self.chosen(block, public) & (cell >= 0)]
        # A times integer counts, with A in whole units: exact.
        counts = np.bincount(record_cells, minlength=measured.shape[1])
        integers = np.ldexp(measured, -query.sum.unit).astype(np.int64)
        return Exact.of(integers @ counts, query.sum.unit)

    def half_widths(self, spread: NoiseLaw | None, public: Public) -> NDArray[np.float64]:
        """Of every answer, so that all hold together."""
        answers = self.strategy(public).answers
        if spread is None:
            return np.full(len(answers), np.inf)
        rounding = np.abs(answers).sum(axis=1) * spread.rounding
        if isinstance(spread, NormalSpread):
            # Normal combinations: one Šidák quantile, times the length of each answer's row.
            z = spread.quantile(apart(self.miss, len(answers))) / spread.width
            return np.asarray(
                up(z * spread.width * np.linalg.norm(answers, axis=1), roundings=600) + rounding
            )
        half_width = spread.quantile(self.miss / answers.shape[1])  # of all measured sums together
        return np.asarray(np.abs(answers).sum(axis=1) * half_width + rounding)

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """One table with a row for each query; all intervals hold together."""
        values = self.strategy(public).answers @ np.asarray(answer.value, dtype=np.float64)
        half = self.half_widths(answer.spread, public)
        low, high = values - half, values + half
        # Counts cannot be negative; weighted sums may be anything.
        if self.matrix is None:  # counts
            ends = [cut_count((a, b), public.domain) for a, b in zip(low, high, strict=True)]
            low, high = (np.array(side) for side in zip(*ends, strict=True))
        return Statistics.of(
            Figures(
                about={self.column: self._labels(self.cells(public).labels)},
                estimate=values,
                low=low,
                high=high,
                level=self.level,
                joint=True,
                covers="noise only: where the exact answers lie",
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

    def expected(self, public: Public, spread: NoiseLaw) -> tuple[str, ...]:
        """The smallest and the largest half-width, and the certificate of the strategy."""
        half, strategy = self.half_widths(spread, public), self.strategy(public)
        certificate = ""
        if strategy.least:
            excess = 100 * (strategy.total / strategy.least - 1)
            certificate = f"; their variance is within {excess:.2g} % of the least"
        return (
            f"{len(half)} answers +- {half.min():.4g} to {half.max():.4g}, all "
            f"together{certificate}",
        )
