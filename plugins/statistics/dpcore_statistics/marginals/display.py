r"""Display: tables without negative counts, shrunk towards independence. Biased, without intervals.

A function of released numbers and of the public law of their noise only, so it costs nothing. Of a
pair of columns with one-way tables p and q, made to add up to n without negative cells, E = pq'/n
is the table of independent columns, and Y what the released interaction differs from E's by. It is
shrunk cell by cell with :math:`K=tg/(tg+1)`, :math:`g\propto E^\gamma` of mean 1: cells in which
no one is expected are cleared. t minimises Stein's unbiased estimate of the risk,

.. math:: \sum(1-K)^2Y^2/s^2+2\lambda c\sum K,\qquad c=(1-1/n_i)(1-1/n_j),

where weak interactions count their noise twice (:math:`\lambda=2`): a small wrong interaction
spread over all cells costs more than its square says. One gamma serves all pairs. At last the table
is fitted to p and q.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cached_property

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_models.measurements.residuals import PLACES
from dpcore_statistics.histogram import shown_counts
from dpcore_statistics.marginals.measured import Measured

_SCALES = np.array([0.0, *(2.0**power for power in range(-16, 17))])
_POWERS = (0, 1, 2)
_WEAK, _SWEEPS, _FLOOR = 4.0, 8, 1e-12
_MOST = 2.0**52  # records

Table = NDArray[np.float64]


@attrs.frozen(kw_only=True, eq=False)
class Display:
    """Tables of one and of two columns that agree, with the cells of records that are in no other.

    Args:
        n: What every table adds up to.
        one_way: By the number of the column.
        pairs: Of the tables of two columns, by the numbers of both.
        triples: Of tables of three columns, where somebody displays them.
    """

    n: float
    one_way: Mapping[int, Table]
    pairs: Mapping[tuple[int, ...], Table]
    triples: Mapping[tuple[int, ...], Table] = attrs.field(factory=dict)

    @classmethod
    def of(
        cls, measured: Measured, value: Table, std: float, count: tuple[float, float] | None = None
    ) -> Display:
        """Return the display of released residuals.

        Args:
            std: Of the noise on each; infinite where its law is unknown, then columns are taken to
                be independent.
            count: A released number of records, and the standard deviation of its noise.
        """
        workload, residuals = measured.workload, measured.plan.residuals
        released = np.ldexp(np.asarray(value, dtype=np.float64), PLACES)
        total = None if measured.total is None else float(measured.total)
        # One-way tables first: all pairs are fitted to them, so that their margins agree.
        columns = tuple(sorted({(i,) for table in workload.tables for i in table}))
        margins = residuals.estimates(released, total, columns)
        noise: dict[tuple[int, ...], float] = dict(
            zip(workload.subsets, residuals.noise(np.ldexp(std, PLACES)), strict=True)
        )
        n = max(1.0, float(margins[0].sum()) if total is None else total)
        if count is not None and total is None:
            # Bounded whatever a mechanism may answer: cells are products of such numbers.
            n = min(max(1.0, _combined((n, noise[()]), (count[0], count[1] ** 2))), _MOST)
        one_way = {
            i: shown_counts(margin, n) for (i,), margin in zip(columns, margins, strict=True)
        }
        pairs = tuple(table for table in workload.tables if len(table) == 2)
        estimates = residuals.estimates(released, total, pairs)
        scaled: dict[tuple[int, ...], Interaction] = {
            pair: Interaction(
                table,
                np.outer(one_way[pair[0]], one_way[pair[1]]) / n,
                {1: one_way[pair[0]], 0: one_way[pair[1]]},
                n,
                noise.get(pair, 1.0),
            )
            for pair, table in zip(pairs, estimates, strict=True)
        }
        return cls(n=n, one_way=one_way, pairs=fit_tables(scaled))

    def labelled(self, measured: Measured) -> tuple[Table | None, ...]:
        """Return every displayed table in its own order of labels; None for the others."""
        tables: list[Table | None] = []
        for marginal, table in zip(measured.marginals, measured.workload.tables, strict=True):
            several = self.pairs.get(table, self.triples.get(table))
            display = self.one_way[table[0]] if len(table) == 1 else several
            tables.append(None if display is None else measured.labelled(marginal, display))
        return tuple(tables)


def _combined(*answers: tuple[float, float]) -> float:
    """Return the mean of numbers with variances, by their inverses."""
    if not all(math.isfinite(variance) for _, variance in answers):
        return answers[-1][0]
    precision = sum(1 / variance for _, variance in answers)
    return sum(number / variance for number, variance in answers) / precision


class Interaction:
    """How a table of several columns differs from what is expected, and how that is shrunk.

    Args:
        table: The unbiased counts.
        expected: A table of the same shape without this interaction.
        margins: What the table is fitted to, by the axis that it is summed over.
        n: What every table adds up to.
        noise: The variance of the released residual of all its columns.
    """

    def __init__(
        self, table: Table, expected: Table, margins: Mapping[int, Table], n: float, noise: float
    ) -> None:
        self.expected, self.margins, self.n = expected, margins, n
        self.moved = _centred(table) - _centred(expected)
        self.squares = self.moved**2 / noise
        self.share = math.prod(1 - 1 / side for side in expected.shape)

    def weights(self, power: int) -> Table:
        """Return g: the given power of the expected counts, scaled to mean 1."""
        expected = np.maximum(self.expected, 1e-6 * self.n / self.expected.size)
        # Products in order: a power's last bit differs between processors.
        powered = math.prod([expected] * power, start=np.ones_like(expected))
        return np.asarray(powered / powered.mean())

    @cached_property
    def _factor(self) -> float:
        """Lambda: 2 where no weighting shows an interaction, else 1."""
        if self.share == 0:
            return 2.0
        scores = []
        for power in _POWERS:
            g = self.weights(power)
            noise = self.share * np.sqrt(2 * (g * g).sum())
            scores.append((g * (self.squares - self.share)).sum() / noise)
        return 2.0 if max(scores) < _WEAK else 1.0

    def least_risk(self, power: int) -> tuple[float, float]:
        """Return the least estimated risk over all scales, and its scale."""
        axes = tuple(range(1, self.moved.ndim + 1))
        scaled = np.expand_dims(_SCALES, axes) * self.weights(power)
        shrinkage = scaled / (scaled + 1)
        risks = ((1 - shrinkage) ** 2 * self.squares).sum(axis=axes)
        risks = risks + 2 * self._factor * self.share * shrinkage.sum(axis=axes)
        best = int(np.argmin(risks))
        return float(risks[best]), float(_SCALES[best])

    def fitted(self, power: int, scale: float) -> Table:
        """Return the shrunk table, not negative and with these margins."""
        scaled = scale * self.weights(power)
        table = self.expected + _centred(scaled / (scaled + 1) * self.moved)
        table = np.maximum(table, _FLOOR * self.n)
        for _ in range(_SWEEPS):
            for axis, margin in self.margins.items():
                table = table * np.expand_dims(margin / table.sum(axis=axis), axis)
                table = np.maximum(table, _FLOOR * self.n)
        return table


def fit_tables(
    interactions: Mapping[tuple[int, ...], Interaction],
) -> dict[tuple[int, ...], Table]:
    """Return every table shrunk and fitted, by the numbers of its columns."""
    # One power for all tables: choosing it for each would add the noise of the choice.
    risks = [[item.least_risk(power) for item in interactions.values()] for power in _POWERS]
    power = int(np.argmin([sum(risk for risk, _ in items) for items in risks]))
    return {
        table: item.fitted(_POWERS[power], scale)
        for (table, item), (_, scale) in zip(interactions.items(), risks[power], strict=True)
    }


def _centred(table: Table) -> Table:
    """Return the residual of a table: less its means along every column."""
    for axis in range(table.ndim):
        table = table - table.mean(axis=axis, keepdims=True)
    return table
