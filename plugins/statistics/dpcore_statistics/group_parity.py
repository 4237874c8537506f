r"""Group parity: distribution functions of predictions in every group, and how far they lie apart.

It is read from evaluated records: a release `of` the model's. Kolmogorov's distance of two groups
cannot be released as a number: one record moves it by up to 1/n_g of the smaller group, and n_g is
private, so that the only public bound is 1. What is released is the table of groups by cells of the
prediction, measured by the best strategy for prefix sums within each group.

Theorem: groups do not overlap. With A the strategy, a record moves the measured sums by a column of
A when it comes or goes. Replaced, it moves them by the distance of two columns within a group, and
by at most :math:`\sqrt2` times the longest column between two. Two groups cost what fifty cost.

Everything else follows from the answers. If every prefix count of group g is within q of the truth,
its distribution function F_g is found to within :math:`2q/(\tilde n_g-q)`, wherever
:math:`\tilde n_g>q`: with x the count, :math:`|\tilde x/\tilde n-x/n|\le(|\tilde x-x|+
(x/n)|\tilde n-n|)/\tilde n\le2q/\tilde n`. So the distance of two groups is found to within the sum
of both. The band is wide; `std` next to it is about the standard deviation of the estimate, which
is
biased: noise makes a distance of 1 smaller, and a distance of 0 larger.
"""

import itertools
import math

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Public, Records, Refused, Sum, SumQuery
from dpcore.checks import positive_integer
from dpcore.errors import need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models.figures import Figures, Statistics
from dpcore.rounding import up
from dpcore_statistics.bars import MOST_PAIRED
from dpcore_statistics.columns import MOST_CELLS, Cells
from dpcore_statistics.group_errors import PREDICTED
from dpcore_statistics.groups import Grouped
from dpcore_statistics.metrics.parity import floor
from dpcore_statistics.statistic import ROOT_TWO
from dpcore_statistics.strategies import (
    LARGEST_OPTIMISED,
    Strategy,
    cells_strategy,
    prefixes,
    single_half_widths,
    strategy,
)


@attrs.frozen(kw_only=True)
class GroupParity(Grouped):
    """Distribution functions of predictions in every group, and all pairs' distances.

    Total: as every statistic.

    Args:
        by: Columns whose combinations are the groups: categories, or ranges cut by `edges` or
            `bins`.
        grid: Into how many equal cells the range of predictions is cut; classes are their own.
        edges: Of the cells of a range, by column: increasing.
        bins: In place of edges, by column: so many equal parts of the range.
    """

    grid: int = attrs.field(default=20, validator=positive_integer)

    def cells(self, public: Public) -> Cells:
        """Return the cells of the prediction: classes, or equal parts of its range.

        Raises:
            ParameterError: the records are no evaluated ones, or there are too many cells.
        """
        need(
            PREDICTED in public.domain.columns and public.domain.labelled,
            "group_parity",
            "evaluated records",
            "of",
            None,
            message="it is about another release's predictions: name that release under `of`",
        )
        bins = None if public.domain.classes else self.grid
        column_cells = Cells.of(public.domain, PREDICTED, None, bins)
        groups = self.groups(public).size
        # The optimum is searched over cells, and every group has all of them.
        need(
            len(column_cells.labels) <= LARGEST_OPTIMISED
            and groups * len(column_cells.labels) <= MOST_CELLS,
            "group_parity",
            f"at most {LARGEST_OPTIMISED} cells, and {MOST_CELLS} in all groups together",
            "grid",
            self.grid,
        )
        return column_cells

    def strategy(self, public: Public) -> Strategy:
        """Return the measured strategy: the optimum for prefixes in l2, the cells in l1."""
        # In l1 the cells themselves are measured: the optimum is for l2.
        count = len(self.cells(public).labels)
        workload = tuple(map(tuple, prefixes(count).tolist()))
        return (cells_strategy if self.norm(public) is Distance.L1 else strategy)(workload)

    def query(self, public: Public) -> SumQuery:
        """Return the query for the measured sums of every group: shape (groups, rows of A)."""
        strategy = self.strategy(public)
        clip = 1.0 if self.norm(public) is Distance.L1 else strategy.longest_column
        shape = (self.groups(public).size, len(strategy.measured))
        return SumQuery(
            name="predictions", shape=shape, distance=self.norm(public), sum=Sum(clip=clip)
        )

    def entries(self, query: SumQuery) -> int:
        """Return the number of entries that a record fills: a column of A, in one group."""
        return query.shape[1]

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return the theorem above; a record that does not count has a column of 0."""
        strategy, several_groups = self.strategy(public), query.shape[0] > 1
        if query.distance is Distance.L1:
            return ByRelation(add_remove=1.0, replace_one=2.0)
        # A record may also start or cease to count, which moves its group by one column.
        longest = strategy.longest_column
        replacement = max(strategy.largest_column_distance, longest)
        if several_groups:
            # Between two groups the two columns are orthogonal: the root of the sum of two squares.
            replacement = max(replacement, up(ROOT_TWO * longest, roundings=2))
        return ByRelation(add_remove=longest, replace_one=replacement)

    def _places(self, block: Records, public: Public) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """PRIVATE: return every record's group (-1 if it does not count) and its cell."""
        # A record counts only if it has both, so each is -1 where the other is.
        group, cell = self.group_of(block, public), self.cells(public).index(block)
        return np.where(cell >= 0, group, -1), np.where(group >= 0, cell, -1)

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return the column of the record's cell, in the record's group."""
        group, cell = self._places(block, public)
        columns = self.strategy(public).measured.T
        vectors = np.zeros((len(block), *query.shape))
        rows = np.flatnonzero(group >= 0)
        vectors[rows, group[rows]] = columns[cell[rows]]
        return vectors

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: compute the same sum from counts: entries of A are whole numbers of units."""
        group, cell = self._places(block, public)
        measured = self.strategy(public).measured
        mask = group >= 0
        # Count records by group and cell first: the rest is a product of integers, and exact.
        flat = group[mask] * measured.shape[1] + cell[mask]
        counts = np.bincount(flat, minlength=query.shape[0] * measured.shape[1])
        integers = np.ldexp(measured, -query.sum.unit).astype(np.int64)
        return Exact.of(counts.reshape(query.shape[0], -1) @ integers.T, query.sum.unit)

    def half_widths(
        self, noise_distribution: NoiseDistribution | None, public: Public
    ) -> NDArray[np.float64]:
        """Return the half-width of every prefix, jointly over all groups. Shape (cells,)."""
        lengths = self.strategy(public).lengths
        if noise_distribution is None:
            return np.full(len(lengths.l2), np.inf)
        return single_half_widths(lengths, noise_distribution, self.miss, self.groups(public).size)

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return the tables `cumulative` (counts) and `parity` (all pairs of up to 16 groups)."""
        counts = np.asarray(answer.value, dtype=np.float64) @ self.strategy(public).answers.T
        half = self.half_widths(answer.noise_distribution, public)
        figures = {"cumulative": self._cumulative(counts, half, public)}
        if 2 <= len(counts) <= MOST_PAIRED:
            figures["parity"] = self._parity(counts, half, answer.noise_distribution, public)
        return Statistics(tables=figures)

    def _cumulative(
        self, counts: NDArray[np.float64], half: NDArray[np.float64], public: Public
    ) -> Figures:
        labels = tuple(f"up to {label}" for label in self.cells(public).labels)
        groups = self.groups(public)
        rows = {
            name: tuple(value for value in values for _ in labels)
            for name, values in groups.about.items()
        }
        upper_bound = (
            float("inf") if public.domain.at_most is None else float(public.domain.at_most)
        )
        return Figures(
            about={**rows, PREDICTED: labels * groups.size},
            estimate=counts.ravel(),
            low=np.clip(counts - half, 0.0, upper_bound).ravel(),
            high=np.clip(counts + half, 0.0, upper_bound).ravel(),
            level=self.level,
            joint=True,
            covers="noise only: where the exact counts lie",
        )

    def _parity(
        self,
        counts: NDArray[np.float64],
        half: NDArray[np.float64],
        deviation: NoiseDistribution | None,
        public: Public,
    ) -> Figures:
        """Return the distance between the distribution functions of every pair of groups."""
        about = self.groups(public).about
        names = [", ".join(map(str, cell)) for cell in zip(*about.values(), strict=True)]
        q, rows = float(half.max()), []
        # The last prefix is the whole group; at least 1, as the distribution is divided by it.
        n = np.maximum(counts[:, -1], 1.0)
        functions = counts / n[:, None]
        # The theorem's bound on |F~ - F|; without a count that is surely positive it says nothing.
        errors = [2 * q / (count - q) if count > q else math.inf for count in counts[:, -1]]
        for a, b in itertools.combinations(range(len(names)), 2):
            distances = np.abs(functions[a] - functions[b])
            # Kolmogorov's distance on the grid, and the cell where it is attained.
            diameter = int(np.argmax(distances))
            estimate, error = min(float(distances[diameter]), 1.0), errors[a] + errors[b]
            rows.append(
                (
                    names[a],
                    names[b],
                    floor(max(1, round(n[a])), max(1, round(n[b]))),
                    self._std(diameter, functions, n, (a, b), deviation, public),
                    estimate,
                    min(max(0.0, float(distances[diameter]) - error), 1.0),
                    min(1.0, float(distances[diameter]) + error),
                )
            )
        columns = [*zip(*rows, strict=True)]
        return Figures(
            about=dict(zip(("group", "other", "floor", "std"), columns[:4], strict=True)),
            estimate=np.array(columns[4]),
            low=np.array(columns[5]),
            high=np.array(columns[6]),
            level=self.level,
            joint=True,
            covers="noise only: a band in which the distance of these records on the grid lies, "
            "valid and wide. std is about the estimate's own standard deviation, without its bias; "
            "floor is what equal groups of these sizes show by chance",
        )

    def _std(
        self,
        cell: int,
        functions: NDArray[np.float64],
        n: NDArray[np.float64],
        pair: tuple[int, int],
        deviation: NoiseDistribution | None,
        public: Public,
    ) -> float:
        """Return the standard deviation, to first order, at the cell of largest distance."""
        if deviation is None:
            return math.inf
        answers, total = self.strategy(public).answers, 0.0
        for group in pair:
            # The derivative of F~ by the noise: of the prefix, less F times that of the total.
            row = answers[cell] - functions[group, cell] * answers[-1]
            total += float(row @ row) / float(n[group]) ** 2
        return deviation.std * math.sqrt(total)

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Forecast the half-width of the cumulative counts, and of a distance."""
        q, groups = (
            float(self.half_widths(noise_distribution, public).max()),
            self.groups(public).size,
        )
        return (
            f"each of {groups * len(self.cells(public).labels)} cumulative counts +- {q:.4g}, all "
            f"together",
            f"each parity within about {2 * q:.4g} (1/n + 1/m) for n and m records in two groups; "
            f"it says nothing below {q:.3g}",
        )
