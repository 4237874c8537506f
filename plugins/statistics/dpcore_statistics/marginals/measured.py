"""Measured: tables of counts on the residual basis, from records to figures.

Every column becomes a partition: where a record may be in none of its cells, one more cell counts
these. It is left out of what is published, once the tables are computed; else a record in no cell
would be spread evenly over all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Domain, Public, Records, Sum
from dpcore.errors import need
from dpcore.exact import Exact
from dpcore.interval import NoiseDistribution
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models.figures import Statistics
from dpcore.summing import Cut, Tally
from dpcore_models.measurements.plan import Objective, Plan, plan
from dpcore_models.measurements.residuals import PLACES
from dpcore_models.measurements.workload import Workload
from dpcore_statistics.columns import Cells, Marginal
from dpcore_statistics.histogram import least_squares, shown_counts
from dpcore_statistics.marginals.one_way_weight import CHOICES, weighted

MOST_INTEGERS = 1 << 21
SUM = Sum(clip=1.0, exponent=-PLACES)
"""What a record adds to residuals: at most 2^41 units long, so 1."""


@attrs.frozen(kw_only=True, eq=False)
class Measured:
    """Tables and the plan of their residuals.

    Args:
        cells: Of every column that a table has, in the order of the plan.
        total: The public number of records, where every record counts; else None.
    """

    marginals: tuple[Marginal, ...]
    cells: tuple[Cells, ...]
    plan: Plan
    total: int | None

    @classmethod
    def of(
        cls,
        marginals: Sequence[Marginal],
        public: Public,
        counts_all: bool,
        objective: Objective,
        weights: tuple[float, ...] | None = None,
        choose: Callable[[Workload], int] | None = None,
    ) -> Measured:
        """Return the plan for tables.

        Args:
            counts_all: Whether every record counts, and for no more than itself.
            choose: The place in `CHOICES` of the weight of one-way tables, where they get one.

        Raises:
            ParameterError: there would be too many whole numbers.
        """
        columns = {cells.column.name: cells for table in marginals for cells in table.columns}
        number = {name: place for place, name in enumerate(columns)}
        total = public.domain.exact if counts_all and public.domain.people is None else None
        workload = Workload(
            sizes=tuple(len(cells.labels) + (not cells.partition) for cells in columns.values()),
            tables=tuple(
                tuple(sorted(number[cells.column.name] for cells in table.columns))
                for table in marginals
            ),
            total_known=total is not None,
            hidden=frozenset(
                place for place, cells in enumerate(columns.values()) if not cells.partition
            ),
        )
        # Bounded before anything is laid out; every subset of a table of k columns is a block.
        most = sum(math.prod(workload.sizes[i] + 1 for i in table) for table in {*workload.maximal})
        need(
            most <= 4 * MOST_INTEGERS and workload.offsets[-1] <= MOST_INTEGERS,
            "marginals",
            f"at most {MOST_INTEGERS} whole numbers: fewer columns, tables or cells",
            "tables",
            most,
        )
        proportion = 0.0
        if choose is not None and weights is not None:
            one_way, proportion = CHOICES[choose(workload)]
            weights = weighted(workload, weights, one_way)
        return cls(
            marginals=tuple(marginals),
            cells=tuple(columns.values()),
            plan=plan(workload, objective, weights, proportion),
            total=total,
        )

    @property
    def workload(self) -> Workload:
        """The tables by number of their columns."""
        return self.plan.residuals.workload

    @property
    def size(self) -> int:
        """The number of integers that a record adds."""
        return self.plan.residuals.size

    def moved(self) -> ByRelation:
        """Return the sensitivity: exact lengths of the integers that a record adds."""
        return ByRelation(add_remove=self.plan.length, replace_one=self.plan.distance)

    def _codes(self, block: Records) -> list[NDArray[np.intp]]:
        """PRIVATE: return every record's cell in every column; the last one if it is in none."""
        codes = []
        for cells, size in zip(self.cells, self.workload.sizes, strict=True):
            code = cells.index(block)
            codes.append(np.where(code < 0, size - 1, code))
        return codes

    def contributions(self, block: Records, mask: NDArray[np.bool_]) -> NDArray[np.float64]:
        """PRIVATE: return every record's contribution, 0 if it does not count, shape (n, size)."""
        codes, sizes = self._codes(block), self.workload.sizes
        rows = np.zeros((len(block), self.size))
        centred = [size * np.eye(size)[code] - 1 for code, size in zip(codes, sizes, strict=True)]
        residuals = self.plan.residuals
        for number, (subset, factor) in enumerate(
            zip(self.workload.subsets, residuals.factors, strict=True)
        ):
            # The product over the block's columns, one after the other.
            part = np.full((len(block), 1), float(factor))
            for i in subset:
                part = (part[:, :, None] * centred[i][:, None, :]).reshape(len(block), -1)
            start, end = self.workload.offsets[number : number + 2]
            rows[:, start:end] = part
        return np.ldexp(np.where(mask[:, None], rows, 0.0), -PLACES)

    def partial(self, block: Records, mask: NDArray[np.bool_]) -> Exact:
        """PRIVATE: compute the same sum from the counts of the maximal tables."""
        codes, counts = [code[mask] for code in self._codes(block)], []
        # One array for all tables: thousands of fresh ones would cost more than counting does.
        places = np.empty(int(mask.sum()), dtype=np.intp)
        for table in self.workload.maximal:
            places.fill(0)
            for i in table:
                places *= self.workload.sizes[i]
                places += codes[i]
            counts.append(np.bincount(places, minlength=self.workload.cells(table)))
        return self.from_counts(counts)

    def tallies(self, where: tuple[tuple[Cut, tuple[int, ...]], ...]) -> tuple[Tally, ...]:
        """Return the counts of the maximal tables, as a server takes them."""
        sizes = zip(self.cells, self.workload.sizes, strict=True)
        cuts = [attrs.evolve(cells.cut, rest=size > len(cells.labels)) for cells, size in sizes]
        tables = self.workload.maximal
        return tuple(Tally(cuts=tuple(cuts[i] for i in table), where=where) for table in tables)

    def from_counts(self, counts: Sequence[NDArray[Any]]) -> Exact:
        """PRIVATE: return the sum of all records, from the counts of the maximal tables."""
        tables = {
            table: count.reshape(self.workload.shape(table))
            for table, count in zip(self.workload.maximal, counts, strict=True)
        }
        return Exact.of(self.plan.residuals.sums(tables), -PLACES)

    def estimates(self, value: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """Return every table's counts in the order of its labels: least squares, unbiased."""
        total = None if self.total is None else float(self.total)
        released = np.ldexp(np.asarray(value, dtype=np.float64), PLACES)
        tables = self.plan.residuals.estimates(released, total)
        return tuple(
            self.labelled(marginal, table)
            for marginal, table in zip(self.marginals, tables, strict=True)
        )

    def labelled(self, marginal: Marginal, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return a table without the cells of unmatched records, in its own order of columns."""
        names = [cells.column.name for cells in self.cells]
        numbers = [names.index(cells.column.name) for cells in marginal.columns]
        order = sorted(numbers)
        table = table.transpose([order.index(number) for number in numbers])
        labelled = tuple(slice(len(cells.labels)) for cells in marginal.columns)
        return table[labelled].ravel()

    def half_widths(
        self, noise_distribution: NoiseDistribution | None, miss: float
    ) -> NDArray[np.float64]:
        """Return the half-width of every table's cells; all intervals hold together."""
        return self.plan.half_widths(noise_distribution, miss)

    def figures(
        self,
        answer: Answer,
        level: float,
        domain: Domain,
        display: Sequence[NDArray[np.float64] | None] | None = None,
    ) -> Statistics:
        """Return every table by name, whose intervals hold together.

        Args:
            display: In place of counts that are cut at 0, and fitted to a public number of records.
        """
        half = self.half_widths(answer.noise_distribution, 1 - level)
        tables = {}
        for number, counts in enumerate(self.estimates(np.asarray(answer.value))):
            marginal = self.marginals[number]
            # Only if all cells are published do they add up to the number of records.
            complete = all(cells.partition for cells in marginal.columns)
            shown = shown_counts(counts, self.total if complete else None)
            tables[marginal.name] = least_squares(
                marginal.about,
                counts,
                float(half[number]),
                level,
                domain,
                shown if display is None else display[number],
            )
        return Statistics(tables=tables)
