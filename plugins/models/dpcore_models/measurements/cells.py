r"""Cells: least squares over tables whose cells were measured themselves, with noise of their own.

Of a table M the residual of a subset A of its columns has noise of variance
:math:`s_M^2\prod_{i\in M\setminus A}n_i`, independent of those of its other subsets. So what
several tables say of one residual is averaged by inverse variances, and every table is put together
from its residuals: its least squares estimate from all tables, and margins are sums of cells.

A column in which a record may be in no cell has no margin: tables without it count more records.
It is neither summed nor centred, and tables agree with those that have the same such columns.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.interval import NoiseDistribution
from dpcore.rounding import up
from dpcore_models.measurements.joint_band import simulated_half_width
from dpcore_models.measurements.plan import MOST_SIMULATED
from dpcore_models.measurements.workload import Subset

Table = NDArray[np.float64]
Residual = tuple[Subset, Subset]
"""Columns that are centred, and columns without a margin."""


@attrs.frozen(kw_only=True)
class CellTables:
    """Tables whose every cell has independent noise of one law, times the table's factor.

    Args:
        sizes: Cells of every column.
        tables: Columns of every table, by number and increasing.
        factors: Of the noise of each table's cells.
        open_columns: Columns in which a record may be in no cell.
        total: The public number of records, of which each counts; else None.
    """

    sizes: tuple[int, ...]
    tables: tuple[Subset, ...]
    factors: tuple[float, ...]
    open_columns: frozenset[int] = frozenset()
    total: int | None = None

    @property
    def size(self) -> int:
        """The number of cells of all tables."""
        return sum(self._cells(table) for table in self.tables)

    def _cells(self, columns: Sequence[int]) -> int:
        return math.prod(self.sizes[i] for i in columns)

    def _residuals(self, table: Subset) -> Iterator[tuple[Residual, Subset]]:
        """Yield every residual of a table, and the columns that it sums over."""
        rigid = tuple(i for i in table if i in self.open_columns)
        closed = tuple(i for i in table if i not in self.open_columns)
        for size in range(len(closed) + 1):
            for subset in itertools.combinations(closed, size):
                yield (subset, rigid), tuple(i for i in closed if i not in subset)

    def _precisions(self) -> dict[Residual, float]:
        """Return every residual's precision at unit noise; infinite for a public total."""
        precisions: dict[Residual, float] = {}
        for table, factor in zip(self.tables, self.factors, strict=True):
            for residual, summed in self._residuals(table):
                precision = 1 / (factor**2 * self._cells(summed))
                precisions[residual] = precisions.get(residual, 0.0) + precision
        if self.total is not None and ((), ()) in precisions:
            precisions[(), ()] = math.inf
        return precisions

    def estimates(self, counts: Sequence[Table], total: float | None) -> tuple[Table, ...]:
        """Compute least squares estimates of all tables.

        Args:
            counts: Of every table, of its shape along the last axes.
            total: The public number of records, or 0 for errors; None where there is none.
        """
        precisions = self._precisions()
        blocks: dict[Residual, Table] = {}
        for table, factor, cells in zip(self.tables, self.factors, counts, strict=True):
            for residual, summed in self._residuals(table):
                axes = {column: axis - len(table) for axis, column in enumerate(table)}
                block = cells.sum(axis=tuple(axes[i] for i in summed), keepdims=True)
                for i in residual[0]:
                    block = block - block.mean(axis=axes[i], keepdims=True)
                block = block.squeeze(axis=tuple(axes[i] for i in summed))
                fraction = 1 / (factor**2 * self._cells(summed) * precisions[residual])
                blocks[residual] = blocks.get(residual, np.zeros(())) + fraction * block
        if total is not None and ((), ()) in blocks:
            blocks[(), ()] = np.array(total)
        return tuple(self._table(table, blocks) for table in self.tables)

    def _table(self, table: Subset, blocks: dict[Residual, Table]) -> Table:
        """Assemble a table: each residual, spread over the columns that it sums over."""
        cells = np.zeros(tuple(self.sizes[i] for i in table))
        for residual, summed in self._residuals(table):
            block = blocks[residual]
            axes = tuple(axis - len(table) for axis, i in enumerate(table) if i in summed)
            # A public total is one number whatever the number of draws.
            block = np.expand_dims(block, axes) if axes else block
            cells = cells + block / self._cells(summed)
        return cells

    def deviations(self) -> Table:
        """Return the standard deviation of the estimates of every table's cells, at unit noise."""
        precisions = self._precisions()
        return np.sqrt(
            [
                sum(
                    math.prod(1 - 1 / self.sizes[i] for i in residual[0])
                    / (self._cells(summed) ** 2 * precisions[residual])
                    for residual, summed in self._residuals(table)
                )
                for table in self.tables
            ]
        )

    def largest_errors(self) -> Table:
        """Bound the error of every table's estimates if each answer errs by its factor."""
        precisions = self._precisions()
        moves: dict[Residual, float] = {}
        for table, factor in zip(self.tables, self.factors, strict=True):
            for residual, _ in self._residuals(table):
                # The proportion of this table, times the cells that it sums, times the factor.
                move = 1 / (factor * precisions[residual])
                moves[residual] = moves.get(residual, 0.0) + move
        return np.array(
            [
                sum(
                    math.prod(2 * (1 - 1 / self.sizes[i]) for i in residual[0])
                    * moves[residual]
                    / self._cells(summed)
                    for residual, summed in self._residuals(table)
                )
                for table in self.tables
            ]
        )


@lru_cache(maxsize=32)
def joint_half_widths(
    tables: CellTables, distribution: NoiseDistribution, miss: float
) -> tuple[float, ...]:
    """Return joint half-widths of all tables' estimated cells; infinite if not simulated.

    Args:
        distribution: Of the noise, before the factors.
    """
    deviations = tables.deviations()
    # Where no table says anything of another, noises are independent: Šidák's intervals are exact.
    is_gain = bool((deviations < np.array(tables.factors) * (1 - 1e-9)).any())
    if tables.size > MOST_SIMULATED or not is_gain:
        return (math.inf,) * len(tables.tables)
    shapes = [tuple(tables.sizes[i] for i in table) for table in tables.tables]
    ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]

    def largest(noise: Table) -> Table:
        parts = np.split(noise, ends, axis=1)
        counts = [
            factor * part.reshape(-1, *shape)
            for factor, part, shape in zip(tables.factors, parts, shapes, strict=True)
        ]
        total = None if tables.total is None else 0.0
        fractions = [
            np.abs(errors).reshape(len(noise), -1).max(axis=1) / deviation
            for errors, deviation in zip(tables.estimates(counts, total), deviations, strict=True)
            if deviation > 0
        ]
        return np.asarray(np.max(fractions, axis=0), dtype=np.float64)

    work = sum(math.prod(shape) << (len(shape) + 2) for shape in shapes)
    unit = simulated_half_width(largest, tables.size, work, distribution, miss)
    half = up(unit * deviations + distribution.rounding * tables.largest_errors(), roundings=600)
    return tuple(half.tolist())
