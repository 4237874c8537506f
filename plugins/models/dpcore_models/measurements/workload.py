r"""Workload: tables over the cells of some columns, and all subsets of columns that they need.

The residual basis measures, for every subset A of the columns of a table, the centred counts

.. math:: R_A=\bigotimes_{i\in A}C_i,\qquad C_i=I-11^T/n_i,

of the cells of A; of the empty subset the total. Every cell of a table M is
:math:`\sum_{A\subseteq M}` of these, spread evenly over the columns of M that are not in A. So with
independent noise of variance :math:`s_A^2` its variance is
:math:`V_M=\sum_{A\subseteq M}g_{AM}s_A^2`,
:math:`g_{AM}=\prod_{i\in A}(1-1/n_i)\prod_{i\in M\setminus A}n_i^{-2}`, the same for all cells.
"""

import itertools
import math
from functools import cached_property

import attrs
import numpy as np
from numpy.typing import NDArray

Subset = tuple[int, ...]


@attrs.frozen(slots=False)
class Workload:
    """Tables of columns that are partitions: every record is in one cell of each.

    Args:
        sizes: Cells of every column.
        tables: Columns of every table, by number and increasing; no two alike.
        total_known: Whether the number of records is public, so that it is not measured.
        hidden: Columns whose last cell is in no answer: of records that are in no other.
    """

    sizes: tuple[int, ...]
    tables: tuple[Subset, ...]
    total_known: bool = False
    hidden: frozenset[int] = frozenset()

    @cached_property
    def varying(self) -> tuple[Subset, ...]:
        """The columns of every table that have more than one cell: no other holds anything."""
        return tuple(tuple(i for i in table if self.sizes[i] > 1) for table in self.tables)

    @cached_property
    def subsets(self) -> tuple[Subset, ...]:
        """The measured subsets: all subsets of the tables, without the empty one if n is public."""
        closure = {
            subset
            for table in self.varying
            for size in range(len(table) + 1)
            for subset in itertools.combinations(table, size)
        }
        if self.total_known:
            closure.discard(())
        return tuple(sorted(closure, key=lambda subset: (len(subset), subset)))

    @cached_property
    def maximal(self) -> tuple[Subset, ...]:
        """The tables that no other one contains: their counts give all others."""
        by_size = sorted({*self.varying}, key=len, reverse=True)
        largest: list[Subset] = []
        covered: set[Subset] = set()
        for table in by_size:
            if table not in covered:
                largest.append(table)
                covered |= {
                    part
                    for size in range(len(table) + 1)
                    for part in itertools.combinations(table, size)
                }
        return tuple(sorted(largest))

    def shape(self, subset: Subset) -> tuple[int, ...]:
        """Return the sides of a subset's block of numbers."""
        return tuple(self.sizes[i] for i in subset)

    def cells(self, subset: Subset) -> int:
        """Return the number of entries of a subset's block."""
        return math.prod(self.shape(subset))

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """The start of every subset's block, and the end of the last one."""
        return tuple(itertools.accumulate(map(self.cells, self.subsets), initial=0))

    @cached_property
    def lengths(self) -> NDArray[np.float64]:
        """p_A, the squared length of a record's centred indicator in block A."""
        return np.array(
            [math.prod(1 - 1 / self.sizes[i] for i in subset) for subset in self.subsets]
        )

    @cached_property
    def table_cells(self) -> NDArray[np.float64]:
        """The number of cells of every table."""
        return np.array([float(self.cells(table)) for table in self.varying])

    def published(self, table: Subset) -> tuple[slice, ...]:
        """Return the cells of a table that are in the answers."""
        return tuple(slice(self.sizes[i] - (i in self.hidden)) for i in table)

    @cached_property
    def answers(self) -> int:
        """The number of cells that all tables publish together."""
        return sum(math.prod(side.stop for side in self.published(table)) for table in self.tables)

    @cached_property
    def shares(self) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
        """g: of which subset and of which table each entry is, and the entries."""
        index = {subset: number for number, subset in enumerate(self.subsets)}
        entries = [
            (
                index[subset],
                number,
                math.prod(
                    1 - 1 / self.sizes[i] if i in subset else 1 / self.sizes[i] ** 2 for i in table
                ),
            )
            for number, table in enumerate(self.varying)
            for size in range(len(table) + 1)
            for subset in itertools.combinations(table, size)
            if subset in index
        ]
        rows, columns, values = zip(*entries, strict=True) if entries else ((), (), ())
        return np.array(rows, dtype=np.intp), np.array(columns, dtype=np.intp), np.array(values)

    def variances(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return V_M of every table, from s_A^2 of every subset."""
        rows, columns, values = self.shares
        sums = np.bincount(columns, weights=values * noise[rows], minlength=len(self.tables))
        return sums.astype(np.float64)

    def costs(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return v_A, the coefficient of s_A^2 in the weighted sum of all cells' variances."""
        rows, columns, values = self.shares
        per_table = weights * self.table_cells
        sums = np.bincount(rows, weights=values * per_table[columns], minlength=len(self.subsets))
        return sums.astype(np.float64)
