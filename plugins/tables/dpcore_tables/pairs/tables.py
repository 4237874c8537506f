r"""Pairs as private tables: what a model says at every cell of two columns.

Of J tables, a record adds its clipped residual to one cell of each, in multiples of the clip and
of :math:`\sqrt J`, so that what it adds is at most 1 long. With N the records of the cells, f the
proportion of residuals that is not clipped and s the noise, released sums of residuals over f are

.. math:: b=Ne+N(0,\ s^2I+\sigma^2N),\qquad e\sim N(0,\tau K)

for effects e of the cells. K is the identity for two categories, whose cells are exchangeable. Of a
number and a category, every category has a curve of its own over the parts, whose k-th cosine has a
variance in proportion to :math:`1/(1+(k/k_0)^2)`. Size and smoothness are those under which the
released sums are likeliest (empirical Bayes), and the table is the posterior mean.

As in a descent, sums at a model that has the table already say :math:`b=N\hat e+S`: an error of N
moves b, but hardly what the table becomes in the end. N is that of independent columns, and what
released counts say beyond their noise.
"""

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_tables.layout import Layout
from dpcore_tables.pairs.cells import PIECES, Pair, sides
from dpcore_tables.residuals import Residuals

_SURE, _EACH = 4.0, 1.0
"""By how much tables must raise the logarithm of the likelihood of the sums that try them: all
together, and each that is kept."""

_SCALES = np.geomspace(1e-3, 1e3, 37)  # of tau, in units of the residuals' variance
_SMOOTH = (0.5, 1.0, 2.0, 4.0, 8.0)  # k_0
_EARLY = 0.1  # of the sums: at models that lacked most of the table
_LEAST_COUNT, _TINY = 0.1, 1e-12


@attrs.frozen(kw_only=True, eq=False, slots=False)
class PairTable:
    """What is known of one pair.

    Args:
        shape: How many cells each column has.
        curved: Which of the two is a number, 0 or 1; -1 for none.
        counts: N, shape (cells,). asks: Every b with its noise, in order.
        noise: s of their mean. sigma: Of residuals. values: e, shape (cells,).
        gain: Of the logarithm of the likelihood.
        maps: From b to e, a matrix for every curve, shape (curves, parts, parts).
    """

    pair: Pair
    shape: tuple[int, int]
    curved: int
    counts: NDArray[np.float64]
    queries: tuple[tuple[NDArray[np.float64], float], ...] = ()
    noise: float = 0.0
    sigma: float = 0.0
    values: NDArray[np.float64]
    gain: float = 0.0
    maps: NDArray[np.float64]

    @classmethod
    def expected(
        cls, layout: Layout, pair: Pair, levels: Sequence[NDArray[np.float64]], records: float
    ) -> "PairTable":
        """Of no sums yet, with the counts of independent columns.

        Args:
            levels: The released proportions of every declared column's categories; empty for
                numbers.
        """
        first, second = (
            levels[column] if layout.levels[column] else np.full(PIECES, 1 / PIECES)
            for column in pair
        )
        numbers = [place for place in (0, 1) if layout.levels[pair[place]] == 0]
        counts = records * np.outer(first, second).reshape(-1)
        empty = cls(
            pair=pair,
            shape=sides(layout, pair),
            curved=numbers[0] if numbers else -1,
            counts=counts,
            values=np.zeros(len(counts)),
            maps=np.zeros((0, 0, 0)),
        )
        curves, parts = empty._curves(counts).shape
        return attrs.evolve(empty, maps=np.zeros((curves, parts, parts)))

    def counted(self, counts: NDArray[np.float64], noise: float) -> "PairTable":
        """With released counts, as far as they differ from those of independent columns by more
        than the noise."""
        gaps = counts - self.counts
        squares = max(float(gaps @ gaps), _TINY)
        trust = max(1 - len(gaps) * noise**2 / squares, 0.0)
        likely = np.maximum(self.counts + trust * gaps, _LEAST_COUNT * self.counts)
        return attrs.evolve(self, counts=likely)

    def after(self, sums: NDArray[np.float64], noise: float, sigma: float) -> "PairTable":
        """With sums of labels less predictions over f, at the model that has this table.

        Args:
            noise: Its standard deviation. sigma: Root mean square of clipped residuals, over f.
        """
        queries = (*self.queries, (self.counts * self.values + sums, noise))
        target, deviation = _mean(queries)
        table = attrs.evolve(self, queries=queries, noise=deviation, sigma=sigma)
        return table._fitted(table._curves(target))

    def interaction_gain(self) -> float:
        """By how much the table raises the logarithm of the likelihood of what no function of one
        of its columns explains: early in a descent those are not fitted yet."""
        target, _ = _mean(self.queries)
        sums, counts = target.reshape(self.shape), self.counts.reshape(self.shape)
        rows = sums.sum(axis=1, keepdims=True) / counts.sum(axis=1, keepdims=True)
        columns = sums.sum(axis=0) / counts.sum(axis=0) - sums.sum() / counts.sum()
        beyond = (sums - counts * (rows + columns)).reshape(-1)
        return self._fitted(self._curves(beyond)).gain

    def _fitted(self, target: NDArray[np.float64]) -> "PairTable":
        """By the likeliest size and smoothness; zeros where none is likelier than nothing."""
        counts = self._curves(self.counts)
        # In units of the deviation of every sum.
        deviations = np.sqrt(self.noise**2 + self.sigma**2 * counts)
        ratios, scores = counts / deviations, target / deviations
        gain, best = 0.0, None
        for kernel in _kernels(counts.shape[1]):
            values, vectors = np.linalg.eigh(ratios[:, :, None] * kernel * ratios[:, None, :])
            values = np.maximum(values, 0.0)
            along = np.einsum("gpk,gp->gk", vectors, scores)
            for scale in _SCALES * self.sigma**2:
                grown = 1 + scale * values
                likelier = 0.5 * float(np.sum(along**2 * (1 - 1 / grown) - np.log(grown)))
                if likelier > gain:
                    gain, best = likelier, (kernel, vectors, scale / grown)
        if best is None:
            zeros = np.zeros(len(self.values))
            return attrs.evolve(self, gain=0.0, values=zeros, maps=np.zeros_like(self.maps))
        kernel, vectors, weights = best
        inverse = np.einsum("gpk,gk,gqk->gpq", vectors, weights, vectors)
        maps = kernel @ (ratios[:, :, None] * inverse / deviations[:, None, :])
        effects = self._cells(np.einsum("gpq,gq->gp", maps, target))
        return attrs.evolve(self, gain=gain, values=effects, maps=maps)

    def _curves(self, cells: NDArray[Any]) -> NDArray[Any]:
        """Return one row for every curve, shape (curves, parts); of two categories a cell is a
        curve.
        """
        if self.curved < 0:
            return cells[:, None]
        table = cells.reshape(self.shape)
        return np.ascontiguousarray(table.T if self.curved == 0 else table)

    def _cells(self, curves: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the inverse of `_curves`."""
        return np.ascontiguousarray(curves.T if self.curved == 0 else curves).reshape(-1)

    def roots(self, *, chance: bool = False) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
        """Return the cells of every curve, and a root of the covariance by which the noise of its
        sums
        moved it: those of different curves have independent noise; shapes (curves, parts) and
        (curves, parts, parts).

        Args:
            chance: In the choice of records counts, too.
        """
        cells = self._curves(np.arange(len(self.values)))
        chances = self.sigma**2 * self._curves(self.counts) if chance else np.zeros(cells.shape)
        return cells, self.maps * np.sqrt(self.noise**2 + chances)[:, None, :]

    @cached_property
    def variances(self) -> NDArray[np.float64]:
        """Of every value by the noise, shape (cells,)."""
        return self._cells(self.noise**2 * np.sum(self.maps**2, axis=2))


@attrs.frozen(kw_only=True, eq=False)
class Tables:
    """All pairs that are tables.

    Args:
        tables: In the order of their cells. asked: How often their sums were asked for.
    """

    tables: tuple[PairTable, ...] = ()
    asked: int = 0

    def __len__(self) -> int:
        return len(self.tables)

    @property
    def pairs(self) -> NDArray[np.intp]:
        """The declared columns of every table, shape (J, 2)."""
        return np.array([table.pair for table in self.tables], dtype=np.intp).reshape(-1, 2)

    @property
    def values(self) -> NDArray[np.float64]:
        """What all cells add to a score, one table after the other, shape (cells,)."""
        return np.concatenate([np.zeros(0), *(table.values for table in self.tables)])

    @property
    def variances(self) -> NDArray[np.float64]:
        """How much the noise moved each of `values`, squared, shape (cells,)."""
        return np.concatenate([np.zeros(0), *(table.variances for table in self.tables)])

    def roots(
        self, *, chance: bool = False, wider: float = 1.0
    ) -> tuple[tuple[NDArray[np.intp], NDArray[np.float64]], ...]:
        """Of every table, as `PairTable.roots`.

        Args:
            wider: What deviations are multiplied by.
        """
        of_tables = (table.roots(chance=chance) for table in self.tables)
        return tuple((cells, wider * roots) for cells, roots in of_tables)

    def args(self, *, is_of_tables: bool) -> dict[str, NDArray[Any]]:
        """Return what a query is computed with; empty where there is none.

        Args:
            is_of_tables: Whether it is of their sums.
        """
        if not self.tables:
            return {}
        return {
            "table_pairs": self.pairs,
            "table_values": self.values,
            "is_of_tables": np.array([is_of_tables]),
        }

    def counted(self, answer: NDArray[np.float64], noise: float) -> "Tables":
        """With released counts over the root of J."""
        if not self.tables:
            return self
        root = math.sqrt(len(self))
        counts = zip(self.tables, self._parts(root * answer), strict=True)
        tables = tuple(table.counted(part, root * noise) for table, part in counts)
        return attrs.evolve(self, tables=tables)

    def after(
        self, answer: NDArray[np.float64], noise: float, clip: float, residuals: Residuals
    ) -> "Tables":
        """With sums of clipped predictions less labels, in multiples of the clip and of the root
        of J."""
        below = residuals.below(clip)
        unit, scatter = math.sqrt(len(self)) * clip / below, residuals.clipped(clip).size / below
        sums = zip(self.tables, self._parts(-unit * answer), strict=True)
        tables = tuple(table.after(part, unit * noise, scatter) for table, part in sums)
        return Tables(tables=tables, asked=self.asked + 1)

    def paying(self) -> "Tables":
        """Return those that what was released makes likely; none where all together do not."""
        gains = [table.interaction_gain() for table in self.tables]
        least = _EACH if math.fsum(gains) > _SURE else math.inf
        tables = zip(self.tables, gains, strict=True)
        return attrs.evolve(self, tables=tuple(table for table, gain in tables if gain > least))

    def _parts(self, vector: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """A released vector, cut at the tables' ends."""
        ends = np.cumsum([len(table.values) for table in self.tables])
        return np.split(vector.reshape(-1)[: ends[-1]], ends[:-1])


def _mean(
    queries: Sequence[tuple[NDArray[np.float64], float]],
) -> tuple[NDArray[np.float64], float]:
    """Of sums weighted by precision, as of a descent's gradients, and its standard deviation."""
    window = queries[int(_EARLY * len(queries)) :]
    amounts = np.array([1 / deviation**2 for _, deviation in window])
    mean = amounts @ np.array([b for b, _ in window]) / amounts.sum()
    return np.asarray(mean), 1 / math.sqrt(float(amounts.sum()))


def _kernels(parts: int) -> list[NDArray[np.float64]]:
    """K of every smoothness, of mean 1 on the diagonal; of one part there is one."""
    if parts == 1:
        return [np.ones((1, 1))]
    orders = np.arange(parts)
    waves = math.sqrt(2) * np.cos(math.pi * np.outer(orders, (orders + 0.5) / parts))
    waves[0] = 1.0
    kernels = []
    for smooth in _SMOOTH:
        kernel = (waves.T / (1 + (orders / smooth) ** 2)) @ waves
        kernels.append(kernel * (parts / np.trace(kernel)))
    return kernels
