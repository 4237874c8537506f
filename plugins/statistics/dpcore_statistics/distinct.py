"""Distinct: how many of the public values of a column, or of some columns, occur at all.

Theorem: one record more or less, or another one in its place, changes the number by at most 1: a
replaced record takes at most one value away and brings at most one.

By group: a record that comes or goes changes the number of its group only, by at most 1, and a
replaced one those of two groups, by at most 1 each, so that numbers move by at most sqrt(2) in l2
and 2 in l1.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Answer,
    Distance,
    Public,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.checks import confidence
from dpcore.errors import need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution, apart
from dpcore.learner import AnyLearner
from dpcore.learners.conversation import Transcript
from dpcore.models.figures import Figures, Statistics
from dpcore.query import Reads
from dpcore.randomness import LearnerRandomness
from dpcore.rounding import up
from dpcore_statistics.bars import around, cut
from dpcore_statistics.by_group import groups_moved, groups_of
from dpcore_statistics.columns import Marginal, require_conditions, selected
from dpcore_statistics.statistic import ROWS, Folding, norm_in_use


@attrs.frozen(kw_only=True)
class Distinct(Folding):
    """The number of combinations of values that occur.

    Total: a number of occurring values is an integer, and 0 without records.

    Args:
        of: Columns: categories, or ranges cut by `edges` or `bins`.
        edges: Of the cells of a range, by column: increasing.
        bins: In place of edges, by column: so many equal parts of the range.
        where: What a record must meet to count, by column: values, or `{from: low, below: high}`.
        by: Columns whose combinations are groups, in each of which values are counted; all records
            are one group if left out.
        level: With what probability the confidence intervals hold, all together.
        distance: `l2` for Gaussian mechanisms, `l1` for Laplace ones; by the budget if left out.
    """

    bounds: ClassVar[tuple[str, ...]] = ("statistics.distinct",)
    total: ClassVar[bool] = True

    of: tuple[str, ...]
    by: tuple[str, ...] = ()
    edges: dict[str, tuple[Any, ...]] = attrs.field(factory=dict)
    bins: dict[str, int] = attrs.field(factory=dict)
    where: dict[str, Any] = attrs.field(factory=dict)
    level: float = attrs.field(default=0.95, validator=confidence)
    distance: Literal["l1", "l2"] | None = None

    def cells(self, public: Public) -> Marginal:
        """Return the combinations of values that may occur, in every group."""
        need(self.of, "distinct", "different columns", "of", self.of)
        keys = (*self.by, *self.of)
        return groups_of(public.domain, keys, self.edges, self.bins, "distinct")

    def groups(self, public: Public) -> Marginal:
        """Return the groups; a single group of all records if `by` is empty."""
        keys = self.cells(public).columns[: len(self.by)]
        return Marginal(name="", columns=keys)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return a query for one integer per group, from 0 to the number of cells.

        Raises:
            ParameterError: a column or a condition is none that the domain knows.
        """
        require_conditions(public.domain, self.where)
        groups = self.groups(public).size
        largest = self.cells(public).size // groups
        norm = norm_in_use(public, self.distance)
        within = (0.0, float(largest))
        return (
            Query(
                name="distinct",
                shape=(groups,),
                distance=norm,
                values="integers",
                within=within,
                reads=Reads.FOLDS,
            ),
        )

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> NDArray[np.float64]:
        """PRIVATE: count the nonempty cells of each group."""
        zero = (Exact.zeros((self.cells(public).size,), 0),)
        # Counts of all cells are folded over blocks; only how many are positive leaves here.
        (counts,) = records.fold(partial(self._counted, public), zero, ROWS)
        # The theorem is about this number: the counts themselves would move by more.
        by_group = counts.floats().reshape(query.real_size, -1)
        return np.asarray(np.count_nonzero(by_group, axis=1), dtype=np.float64)

    def _counted(self, public: Public, block: Records) -> tuple[Exact]:
        """PRIVATE: count a block's records in each cell."""
        cells = self.cells(public)
        cell = cells.index(block)
        record_cells = cell[selected(public.domain, self.where, block) & (cell >= 0)]
        return (Exact.of(np.bincount(record_cells, minlength=cells.size), 0),)

    def model(self, state: Transcript) -> Statistics:
        """Return a table of the number of distinct values with its interval, for each group."""
        (answer,) = state.answers
        tables = self._table(answer, state.public)
        return tables if answer.noise_distribution is not None else tables.unstated()

    def _table(self, answer: Answer, public: Public) -> Statistics:
        groups = self.groups(public)
        largest = float(self.cells(public).size // groups.size)
        if public.domain.at_most is not None:
            largest = min(largest, float(public.domain.at_most))
        miss = apart(1 - self.level, groups.size)
        estimates = np.asarray(answer.value, dtype=np.float64)
        ends = [
            cut(around(x, answer.noise_distribution, miss), 0.0, largest)
            for x in estimates.tolist()
        ]
        label = f"distinct values of {' x '.join(self.of)}"
        return Statistics.of(
            Figures(
                about={**groups.about, "statistic": groups.size * (label,)},
                estimate=estimates,
                low=np.array([low for low, _ in ends]),
                high=np.array([high for _, high in ends]),
                level=self.level,
                joint=groups.size > 1,
                covers="noise only: where the exact number lies",
            )
        )

    def least_records(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> float:
        """Return the half-width: fewer records cannot have as many distinct values."""
        miss = apart(1 - self.level, self.groups(public).size)
        return (
            noise_distributions["distinct"].within(miss)
            if "distinct" in noise_distributions
            else 0.0
        )

    def forecast(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> tuple[str, ...]:
        """Return the half-width, the same whatever the records."""
        count = self.groups(public).size
        if (half := self.least_records(public, noise_distributions)) == 0:
            return ()
        groups = f", in each of {count} groups, all together" if self.by else ""
        line = f"distinct values of {' x '.join(self.of)} +- {half:.4g}{groups}"
        return (f"{line} ({100 * self.level:g} %)",)


@attrs.frozen
class DistinctBound(SensitivityBound):
    """One record moves the number of distinct values by at most 1; of two groups, both."""

    learner: ClassVar[type[AnyLearner]] = Distinct

    def sensitivity(
        self, query: Query, learner: Any, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return the theorem above, with the number of cells as the diameter."""
        groups = query.real_size
        claim, value = groups_moved(1.0, 1.0, groups, query.distance).under(adjacency)
        cells = float(learner.cells(public).size)
        # Each group's number is between 0 and its cells: the whole is as far as all of them.
        largest_distance = (
            cells if query.distance is Distance.L1 else up(cells / groups**0.5, roundings=2)
        )
        return Sensitivity(
            value=value,
            diameter=cells if groups == 1 else largest_distance,
            distance=query.distance,
            adjacency=claim,
            source=f"one record changes the number of distinct values by at most 1 ({claim})",
        )
