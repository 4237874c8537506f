r"""Residuals on integers: what a record adds, exactly how long that is, and the estimates.

Block A of the sums holds :math:`W_A\prod_{i\in A}(n_ie_{x_i}-1)`, W_A a whole number: all
:math:`\prod n_i` coordinates. Independent noise of one width on each, projected by :math:`C_i`, is
the noise that a basis without redundancy would need correlated; the part that is projected away
meets no record. So redundancy costs nothing, and no number is irrational.

* A record comes or goes: :math:`D^2=\sum_AW_A^2\prod_{i\in A}n_i(n_i-1)`, the same for every one.
* A record is replaced: two blocks have the inner product
  :math:`W_A^2\prod_{i\in A}n_i(n_i1[x_i=y_i]-1)`, which depends on the columns S in which the two
  agree only. The squared distance is the largest over S of twice the sum of differences. It is
  **not** twice D^2: inner products are negative, and it is up to 2.3 times D^2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_models.measurements.agreement import block_by_block, size_by_size
from dpcore_models.measurements.workload import Subset, Workload

PLACES = 41
"""log2 of how many units the longest contribution has at most."""

MOST_EXACT = 20  # columns of which all patterns of agreement are compared
_MARGIN = 1 - 2.0**-20  # so that whole numbers of at least 1 keep the length below 1


@attrs.frozen(kw_only=True, eq=False, slots=False)
class Residuals:
    """A workload and the whole number W_A of every subset.

    Args:
        factors: W_A, at least 1.
    """

    workload: Workload
    factors: tuple[int, ...]

    @classmethod
    def of(cls, workload: Workload, noise: NDArray[np.float64]) -> Residuals:
        """Return the whole numbers nearest below what noise of these variances asks for.

        Args:
            noise: s_A^2 up to a common factor.
        """
        # Of unit length together: sum of p_A / s_A^2 is 1.
        scale = math.sqrt(float((workload.lengths / noise).sum())) / _MARGIN
        factors = tuple(
            max(1, math.floor(2**PLACES / (root * scale * workload.cells(subset))))
            for subset, root in zip(workload.subsets, np.sqrt(noise).tolist(), strict=True)
        )
        return cls(workload=workload, factors=factors)

    @property
    def size(self) -> int:
        """The number of integers that a record adds."""
        return self.workload.offsets[-1]

    @property
    def squared_length(self) -> int:
        """D^2 in squared units: what a record that comes or goes adds, the same for all."""
        sizes = self.workload.sizes
        return sum(
            factor**2 * math.prod(sizes[i] * (sizes[i] - 1) for i in subset)
            for subset, factor in zip(self.workload.subsets, self.factors, strict=True)
        )

    def squared_distance(self, agreeing: frozenset[int]) -> int:
        """Return the squared distance of two records that agree in these columns only."""
        sizes = self.workload.sizes
        return 2 * sum(
            factor**2
            * (
                math.prod(sizes[i] * (sizes[i] - 1) for i in subset)
                - math.prod(sizes[i] * (sizes[i] * (i in agreeing) - 1) for i in subset)
            )
            for subset, factor in zip(self.workload.subsets, self.factors, strict=True)
        )

    def worst_agreement(self) -> frozenset[int] | None:
        """Return the columns in which the two most distant records agree; None if too many."""
        columns = sorted({i for subset in self.workload.subsets for i in subset})
        if len(columns) > MOST_EXACT:
            return None
        place = {column: number for number, column in enumerate(columns)}
        sizes = self.workload.sizes
        values = np.zeros(2 ** len(columns))
        for subset, factor in zip(self.workload.subsets, self.factors, strict=True):
            # Squares of 2^82 are no 64-bit integers: floats find the pattern, integers measure it.
            mask = sum(1 << place[i] for i in subset)
            values[mask] = float(factor) ** 2 * math.prod(sizes[i] for i in subset)
        # From sums over subsets to values at patterns, one column after the other.
        for number, column in enumerate(columns):
            halves = values.reshape(-1, 2, 1 << number)
            without, within = halves[:, 0].copy(), halves[:, 1].copy()
            halves[:, 0] = without - within
            halves[:, 1] = without + (sizes[column] - 1) * within
        pattern = int(np.argmin(values))
        return frozenset(column for column in columns if pattern >> place[column] & 1)

    @property
    def longest_squared_distance(self) -> int:
        """An upper bound on what a replaced record moves, in squared units; attained up to 20
        columns, but for 1 in 10^9."""
        agreeing = self.worst_agreement()
        if agreeing is not None:
            # A pattern that floats took for no worse may be, by their rounding.
            largest = self.squared_distance(agreeing)
            return largest + largest // 10**9 + 1 if largest else 0
        bounds = (
            block_by_block(self.workload, self.factors),
            size_by_size(self.workload, self.factors),
        )
        return min(bound for bound in bounds if bound is not None)

    def noise(self, width: float) -> NDArray[np.float64]:
        """Return s_A^2 of every subset, in counts, if each integer has noise of `width` units."""
        return np.array(
            [
                (width / (factor * self.workload.cells(subset))) ** 2
                for subset, factor in zip(self.workload.subsets, self.factors, strict=True)
            ]
        )

    def sums(self, counts: Mapping[Subset, NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the whole numbers of many records, from the counts of the maximal tables.

        Args:
            counts: Each of the shape of its table: 64 bits of at most 2^20 records, or Python's
                integers of any number of them.
        """
        sums = np.empty(self.size, dtype=np.result_type(*counts.values()))
        home = {
            part: table
            for table in reversed(self.workload.maximal)
            for size in range(len(table) + 1)
            for part in itertools.combinations(table, size)
        }
        for number, (subset, factor) in enumerate(
            zip(self.workload.subsets, self.factors, strict=True)
        ):
            table = home[subset]
            axes = tuple(axis for axis, i in enumerate(table) if i not in subset)
            block = np.asarray(counts[table].sum(axis=axes), dtype=sums.dtype)
            # n_i times the counts less their sum, along every column.
            for axis, i in enumerate(subset):
                block = self.workload.sizes[i] * block - block.sum(axis=axis, keepdims=True)
            start, end = self.workload.offsets[number : number + 2]
            sums[start:end] = np.ravel(factor * block)
        return sums

    def estimates(
        self,
        released: NDArray[np.float64],
        total: float | None,
        tables: tuple[Subset, ...] | None = None,
    ) -> tuple[NDArray[np.float64], ...]:
        """Estimate every table by least squares from all released sums.

        Args:
            released: The sums with their noise, in units, along the last axis.
            total: The public number of records, where it is not measured.
            tables: Subsets of the workload's tables; these themselves if left out.
        """
        blocks: dict[Subset, NDArray[np.float64]] = {} if total is None else {(): np.array(total)}
        for number, (subset, factor) in enumerate(
            zip(self.workload.subsets, self.factors, strict=True)
        ):
            start, end = self.workload.offsets[number : number + 2]
            block = released[..., start:end]
            block = block.reshape((*block.shape[:-1], *self.workload.shape(subset)))
            for axis in range(-len(subset), 0):
                block = block - block.mean(axis=axis, keepdims=True)
            blocks[subset] = block / (factor * self.workload.cells(subset))
        tables = self.workload.tables if tables is None else tables
        return tuple(self._table(table, blocks) for table in tables)

    def _table(
        self, table: Subset, blocks: Mapping[Subset, NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Assemble a table: each residual of its columns, spread over those that it lacks."""
        workload, sizes = self.workload, self.workload.sizes
        varying = tuple(i for i in table if sizes[i] > 1)
        cells: NDArray[np.float64] = np.zeros(workload.shape(varying))
        for size in range(len(varying) + 1):
            for subset in itertools.combinations(varying, size):
                shape = [sizes[i] if i in subset else 1 for i in varying]
                noise_distribution = math.prod(sizes[i] for i in varying if i not in subset)
                block = blocks[subset]
                rows = block.shape[: block.ndim - len(subset)]
                cells = cells + block.reshape((*rows, *shape)) / noise_distribution
        return cells.reshape((*cells.shape[: cells.ndim - len(varying)], *workload.shape(table)))

    def coefficients(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sum and the largest of the absolute coefficients of a cell, by table."""
        sums, largest = [], []
        index = {subset: number for number, subset in enumerate(self.workload.subsets)}
        for table in self.workload.varying:
            sizes = [
                [
                    math.prod(
                        side * (1 - 1 / self.workload.sizes[i]) if i in subset
                        else 1 / self.workload.sizes[i]
                        for i in table
                    )
                    / (self.factors[index[subset]] * self.workload.cells(subset))
                    # A cell's own coefficient, and twice that with those of the cells next to it.
                    for side in (1, 2)
                ]
                for size in range(len(table) + 1)
                for subset in itertools.combinations(table, size)
                if subset in index
            ]  # fmt: skip
            sums.append(sum(pair[1] for pair in sizes))
            largest.append(max((pair[0] for pair in sizes), default=0.0))
        return np.array(sums), np.array(largest)
