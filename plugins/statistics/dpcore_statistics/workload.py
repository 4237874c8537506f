"""Workload: linear queries on the cells of one column, by the best public strategy."""

from typing import Any, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Exact, Public, Records, Refused, Sum, SumQuery
from dpcore.errors import ParameterError
from dpcore.interval import NormalSpread, Spread, apart
from dpcore.learning.bounds.by_relation import ByRelation
from dpcore.learning.models.figures import Figures, Statistics
from dpcore.rounding import up
from dpcore_statistics.bars import cut_count
from dpcore_statistics.histogram import Cells
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
        """The cells."""
        return Cells.of(public.domain, self.column, self.edges, self.bins)

    def wanted(self, cells: int) -> NDArray[np.float64]:
        """W.

        Raises:
            ParameterError: a matrix that is not finite, not of that width or zero; too many cells.
        """
        if self.matrix is not None:
            found = np.array([list(row) for row in self.matrix if len(row) == cells], dtype=float)
            whole = len(found) == len(self.matrix) > 0 and bool(np.isfinite(found).all())
            if not whole or not found.any() or len(found) > MOST_PREFIXES:
                raise ParameterError(
                    "workload", f"rows of {cells} finite weights, not all 0", "matrix", len(found)
                )
            return found
        most = MOST_RANGED if self.ask_for == "ranges" else MOST_PREFIXES
        if cells > most:
            raise ParameterError("workload", f"at most {most} cells", "bins", cells)
        if self.ask_for == "ranges":
            return ranges(cells)
        if self.ask_for == "prefixes":
            return prefixes(cells)
        if self.ask_for != "cells":
            raise ParameterError("workload", "prefixes, ranges or cells", "ask_for", self.ask_for)
        return np.vstack([np.eye(cells), np.ones((1, cells))])

    def strategy(self, public: Public) -> Strategy:
        """What is measured: the optimum in l2; the cells themselves in l1."""
        wanted = self.wanted(len(self.cells(public).labels))
        if self.norm(public) is Distance.L1:
            cells = wanted.shape[1]
            return Strategy(
                measured=np.eye(cells), answers=wanted, total=float((wanted**2).sum()), least=0.0
            )
        return strategy(tuple(map(tuple, wanted.tolist())))

    def query(self, public: Public) -> SumQuery:
        """The measured sums."""
        found = self.strategy(public)
        clip = 1.0 if self.norm(public) is Distance.L1 else found.longest_column
        return SumQuery(
            name="measured",
            shape=(len(found.measured),),
            distance=self.norm(public),
            sum=Sum(clip=clip),
        )

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Columns of A: their length, and their distance; a record in no cell has a column of 0."""
        found = self.strategy(public)
        if query.distance is Distance.L1:
            return ByRelation(add_remove=1.0, replace_one=2.0)
        replaced = max(found.farthest_columns, found.longest_column)
        return ByRelation(add_remove=found.longest_column, replace_one=replaced)

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: the column of the record's cell."""
        cell = np.where(self.chosen(block, public), self.cells(public).index(block), -1)
        columns = np.vstack([self.strategy(public).measured.T, np.zeros(query.real_size)])
        return np.asarray(columns[cell])

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: the same sum from counts: entries of A are whole numbers of units."""
        cell = self.cells(public).index(block)
        measured = self.strategy(public).measured
        kept = cell[self.chosen(block, public) & (cell >= 0)]
        counts = np.bincount(kept, minlength=measured.shape[1])
        whole = np.ldexp(measured, -query.sum.unit).astype(np.int64)
        return Exact.of(whole @ counts, query.sum.unit)

    def half_widths(self, spread: Spread | None, public: Public) -> NDArray[np.float64]:
        """Of every answer, so that all hold together."""
        answers = self.strategy(public).answers
        if spread is None:
            return np.full(len(answers), np.inf)
        rounding = np.abs(answers).sum(axis=1) * spread.rounding
        if isinstance(spread, NormalSpread):
            z = spread.quantile(apart(self.miss, len(answers))) / spread.width
            return np.asarray(
                up(z * spread.width * np.linalg.norm(answers, axis=1), roundings=600) + rounding
            )
        each = spread.quantile(self.miss / answers.shape[1])  # of all measured sums together
        return np.asarray(np.abs(answers).sum(axis=1) * each + rounding)

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """One row a query."""
        values = self.strategy(public).answers @ np.asarray(answer.value, dtype=np.float64)
        half = self.half_widths(answer.spread, public)
        low, high = values - half, values + half
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
        told = [str(label) for label in labels]
        if self.ask_for == "prefixes":
            return tuple(f"up to {label}" for label in told)
        if self.ask_for == "cells":
            return (*told, "total")
        count = len(told)
        runs = ((a, b) for a in range(count) for b in range(a, count))
        return tuple(told[a] if a == b else f"{told[a]} to {told[b]}" for a, b in runs)

    def expected(self, public: Public, spread: Spread) -> tuple[str, ...]:
        """The smallest and the largest half-width, and the certificate of the strategy."""
        half, found = self.half_widths(spread, public), self.strategy(public)
        proved = ""
        if found.least:
            over = 100 * (found.total / found.least - 1)
            proved = f"; their variance is within {over:.2g} % of the least"
        return (
            f"{len(half)} answers +- {half.min():.6g} to {half.max():.6g}, all together{proved}",
        )
