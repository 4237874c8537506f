r"""Marginals: any tables over some columns, measured together with the least noise there can be.

Theorem: a record adds to block A of the sums :math:`W_A\prod_{i\in A}(n_ie_{x_i}-1)`, all A
together of one length whatever the record, at most 1 in l2 in units of 2^-41. A replaced record
moves them by the exact largest distance over all patterns of columns in which two records agree
(`dpcore_models.measurements.residuals`), which is up to 1.52 times that length.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Exact, Public, Records, Refused, SumQuery
from dpcore.checks import one_of
from dpcore.errors import ParameterError, need
from dpcore.interval import NoiseLaw
from dpcore.learning.bounds.by_relation import ByRelation
from dpcore.learning.learners.tallies import Tally
from dpcore.learning.models.figures import Statistics
from dpcore_models.measurements.plan import Objective
from dpcore_statistics.columns import Cells, Marginal, conditions
from dpcore_statistics.marginals.display import displayed
from dpcore_statistics.marginals.measured import SUM, Measured
from dpcore_statistics.statistic import Statistic


@attrs.frozen(kw_only=True)
class Marginals(Statistic):
    """Tables of counts over some columns, measured together with the least total variance.

    All tables agree: margins are sums of cells, and of a public number of records the total. For
    budgets with a delta; `statistics.table` is for others.

    Total: as every statistic.

    Args:
        columns: Ranges and categories, as they are declared.
        edges: Of the cells of a range, by column: increasing.
        bins: In place of edges, by column: so many equal parts of the range.
        tables: `pairs`, all tables of two columns and of each column alone; or lists of columns.
        triples: Tables of three columns besides.
        objective: `total` variance of all cells, or the least possible largest variance of a cell:
            relative to what `statistics.table` gives its table (`each`), or as it is (`largest`).
        weights: Of tables in the total, by name (columns joined by a hyphen); 1 where left out.
        display: Whether tables of one and two columns also get a column without negative counts,
            shrunk towards independence: biased, and without bars.
    """

    columns: tuple[str, ...]
    edges: dict[str, tuple[Any, ...]] = attrs.field(factory=dict)
    bins: dict[str, int] = attrs.field(factory=dict)
    sets: Literal["pairs"] | tuple[tuple[str, ...], ...] = attrs.field(
        default="pairs", alias="tables"
    )
    triples: tuple[tuple[str, ...], ...] = ()
    objective: Objective = attrs.field(
        default="total", validator=one_of("total", "each", "largest")
    )
    weights: dict[str, float] = attrs.field(factory=dict)
    display: bool = False

    @property
    def counted_unit(self) -> Literal["records", "persons"] | None:
        """What is counted: records, or persons."""
        return "records"

    def norm(self, public: Public) -> Distance:
        """l2: the basis has the least noise there alone.

        Raises:
            ParameterError: the budget has no delta, or l1 is asked for.
        """
        norm = super().norm(public)
        if norm is not Distance.L2:
            raise ParameterError(
                "marginals",
                "Gaussian noise, so a budget with a delta (statistics.table is for others)",
                "distance",
                str(norm),
            )
        return norm

    def marginals(self, public: Public) -> tuple[Marginal, ...]:
        """The tables by name.

        Raises:
            ParameterError: a column or a table stands twice, a table has a column that is not
                listed, edges or bins are about such a one.
        """
        if len({*self.columns}) < len(self.columns) or not self.columns:
            raise ParameterError("marginals", "different columns", "columns", self.columns)
        for field, cuts in (("edges", self.edges), ("bins", self.bins)):
            if extra := sorted({*cuts} - {*self.columns}):
                raise ParameterError("marginals", "the columns", field, extra[0])
        # A column's cells are the same in every table.
        cells = {
            name: Cells.of(public.domain, name, self.edges.get(name), self.bins.get(name))
            for name in self.columns
        }
        sets = self._tables()
        for table in sets:
            if extra := sorted({*table} - {*self.columns}):
                raise ParameterError("marginals", "the columns", "tables", extra[0])
            if not table or len({*table}) < len(table):
                raise ParameterError("marginals", "different columns", "tables", table)
        if not sets or len({frozenset(table) for table in sets}) < len(sets):
            raise ParameterError("marginals", "each table once", "tables", len(sets))
        names = _names(sets)
        return tuple(
            Marginal(name=name, columns=tuple(cells[column] for column in table))
            for name, table in zip(names, sets, strict=True)
        )

    def _tables(self) -> list[tuple[str, ...]]:
        """The columns of every table that is asked for."""
        if self.sets != "pairs":
            return [*self.sets, *self.triples]
        pairs = itertools.combinations(self.columns, 2)
        return [*((column,) for column in self.columns), *pairs, *self.triples]

    def measured(self, public: Public) -> Measured:
        """The plan: public, and the same whenever it is asked for.

        Raises:
            ParameterError: weights are of no table, or not above 0, or there are too many cells.
        """
        tables = self.marginals(public)
        if self.weights and self.objective != "total":
            raise ParameterError("marginals", "objective: total", "weights", self.objective)
        if extra := sorted({*self.weights} - {table.name for table in tables}):
            raise ParameterError("marginals", "the names of its tables", "weights", extra[0])
        if not all(1e-6 <= weight <= 1e6 for weight in self.weights.values()):
            raise ParameterError("marginals", "weights in [1e-6, 1e6]", "weights", self.weights)
        weights = tuple(float(self.weights.get(table.name, 1.0)) for table in tables)
        if self.objective == "each":
            # What the table's own release gives each, but for a factor: the root of its cells.
            weights = tuple(1 / math.sqrt(table.size) for table in tables)
        counts_all = not self.where and self.clip == "record"
        measured = Measured.of(tables, public, counts_all, self.objective, weights)
        # Of one cell and a public number of records, there is nothing to ask.
        need(measured.size, "marginals", "a column of two or more cells", "columns", self.columns)
        return measured

    def query(self, public: Public) -> SumQuery:
        """One query for the residuals of all tables."""
        norm = self.norm(public)
        size = self.measured(public).size
        return SumQuery(name="residuals", shape=(size,), distance=norm, sum=SUM)

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """One length under add/remove, the largest distance under replacement: exact integers."""
        return self.measured(public).moved()

    def contributions(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: every record's centred indicators."""
        return self.measured(public).contributions(block, self.chosen(block, public))

    def partial(self, query: SumQuery, block: Records, public: Public) -> Exact:
        """PRIVATE: the same sum, from counts of the tables that no other contains."""
        return self.measured(public).partial(block, self.chosen(block, public))

    def tallies(self, query: SumQuery, public: Public) -> tuple[Tally, ...]:
        """The counts of those tables."""
        return self.measured(public).tallies(conditions(public.domain, self.where))

    def from_tallies(
        self, query: SumQuery, sums: Sequence[NDArray[np.object_]], public: Public
    ) -> Exact:
        """PRIVATE: the same sum, from the counts of all records."""
        return self.measured(public).from_counts([counts.ravel() for counts in sums])

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """One figure a table; all intervals of all tables hold together."""
        measured = self.measured(public)
        display: tuple[NDArray[np.float64] | None, ...] = (None,) * len(measured.marginals)
        if self.display:
            display = displayed(measured, np.asarray(answer.value), answer.spread)
        return measured.figures(answer, self.level, public.domain, display)

    def expected(self, public: Public, spread: NoiseLaw) -> tuple[str, ...]:
        """The half-width of cells by the number of columns, and the certificate."""
        measured = self.measured(public)
        half = measured.half_widths(spread, self.miss)
        widths: dict[int, list[float]] = {}
        for table, width in zip(measured.marginals, half.tolist(), strict=True):
            widths.setdefault(len(table.columns), []).append(width)
        lines = [
            f"{len(group)} {'table' if len(group) == 1 else 'tables'} of {columns} "
            f"{'column' if columns == 1 else 'columns'}: cells +- {min(group):.4g} to "
            f"{max(group):.4g}, all together"
            for columns, group in sorted(widths.items())
        ]
        allocation = measured.plan.allocation
        excess = 100 * max(0.0, allocation.value / allocation.least - 1)
        kind = "total" if self.objective == "total" else "largest relative"
        lines.append(
            f"{measured.size} whole numbers; under add/remove the {kind} variance is within "
            f"{excess:.2g} % of the least of any Gaussian"
        )
        return tuple(lines)


def _names(sets: list[tuple[str, ...]]) -> list[str]:
    """Names of tables: their columns with hyphens between, no two alike."""
    names: dict[str, None] = {}
    for columns in sets:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", "-".join(columns))
        while name in names:
            name = f"{name}_"
        names[name] = None
    return [*names]
