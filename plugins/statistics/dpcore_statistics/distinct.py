"""Distinct: how many of the public values of a column, or of some columns, occur at all.

Theorem: one record more or less, or another one in its place, changes the number by at most 1: a
replaced record takes at most one value away and brings at most one.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    AnyLearner,
    Exact,
    LearnerCoins,
    Public,
    Query,
    Reads,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.checks import fraction
from dpcore.interval import NoiseLaw
from dpcore.learning.bounds.by_relation import ByRelation
from dpcore.learning.learners.conversation import Transcript
from dpcore.learning.models.figures import Figures, Statistics
from dpcore_statistics.bars import around, cut
from dpcore_statistics.columns import Marginal, require_conditions, selected
from dpcore_statistics.groups import GroupBy
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
        level: With what probability the error bar holds.
        distance: `l2` for Gaussian mechanisms, `l1` for Laplace ones; by the budget if left out.
    """

    bounds: ClassVar[tuple[str, ...]] = ("statistics.distinct",)
    total: ClassVar[bool] = True

    of: tuple[str, ...]
    edges: dict[str, tuple[Any, ...]] = attrs.field(factory=dict)
    bins: dict[str, int] = attrs.field(factory=dict)
    where: dict[str, Any] = attrs.field(factory=dict)
    level: float = attrs.field(default=0.95, validator=fraction)
    distance: Literal["l1", "l2"] | None = None

    def cells(self, public: Public) -> Marginal:
        """The values that may occur."""
        return GroupBy(by=self.of, edges=self.edges, bins=self.bins).groups(public)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """One integer, from 0 to the number of cells.

        Raises:
            ParameterError: a column or a condition is none that the domain knows.
        """
        require_conditions(public.domain, self.where)
        largest = self.cells(public).size
        norm = norm_in_use(public, self.distance)
        within = (0.0, float(largest))
        return (
            Query(
                name="distinct",
                shape=(1,),
                distance=norm,
                values="integers",
                within=within,
                reads=Reads.FOLDS,
            ),
        )

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerCoins
    ) -> NDArray[np.float64]:
        """PRIVATE: how many cells have a record."""
        zero = (Exact.zeros((self.cells(public).size,), 0),)
        # Counts of all cells are folded over blocks; only how many are positive leaves here.
        (counts,) = records.fold(partial(self._counted, public), zero, ROWS)
        # The theorem is about this number: the counts themselves would move by more.
        return np.array([float(np.count_nonzero(counts.floats()))])

    def _counted(self, public: Public, block: Records) -> tuple[Exact]:
        """PRIVATE: how many of a block's records are in each cell."""
        cells = self.cells(public)
        cell = cells.index(block)
        record_cells = cell[selected(public.domain, self.where, block) & (cell >= 0)]
        return (Exact.of(np.bincount(record_cells, minlength=cells.size), 0),)

    def model(self, state: Transcript) -> Statistics:
        """One table of one row: the number of distinct values with its interval."""
        (answer,) = state.answers
        tables = self._table(float(answer.value[0]), answer.spread, state.public)
        return tables if answer.spread is not None else tables.unstated()

    def _table(self, estimate: float, spread: NoiseLaw | None, public: Public) -> Statistics:
        largest = float(self.cells(public).size)
        if public.domain.at_most is not None:
            largest = min(largest, float(public.domain.at_most))
        low, high = cut(around(estimate, spread, 1 - self.level), 0.0, largest)
        return Statistics.of(
            Figures(
                about={"statistic": (f"distinct values of {' x '.join(self.of)}",)},
                estimate=np.array([estimate]),
                low=np.array([low]),
                high=np.array([high]),
                level=self.level,
                covers="noise only: where the exact number lies",
            )
        )

    def forecast(self, public: Public, spreads: Mapping[str, NoiseLaw]) -> tuple[str, ...]:
        """The half-width, the same whatever the records."""
        if "distinct" not in spreads:
            return ()
        half = spreads["distinct"].within(1 - self.level)
        return (f"distinct values of {' x '.join(self.of)} +- {half:.4g} ({100 * self.level:g} %)",)


@attrs.frozen
class DistinctBound(SensitivityBound):
    """One record moves the number of distinct values by at most 1, under every relation."""

    learner: ClassVar[type[AnyLearner]] = Distinct

    def sensitivity(
        self, query: Query, learner: Any, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """1 by the theorem above, with the number of cells as the diameter."""
        claim, value = ByRelation(add_remove=1.0, replace_one=1.0).under(adjacency)
        return Sensitivity(
            value=value,
            diameter=float(learner.cells(public).size),
            distance=query.distance,
            adjacency=claim,
            source=f"one record changes the number of distinct values by at most 1 ({claim})",
        )
