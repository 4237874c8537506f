r"""Display: tables without negative counts, shrunk towards independence. Biased, without bars.

A function of released numbers and of the public law of their noise alone, so it costs nothing. Of a
pair of columns with one-way tables p and q, made to add up to n without negative cells, E = pq'/n
is the table of independent columns, and Y what the released interaction differs from E's by. It is
shrunk cell by cell with :math:`K=tg/(tg+1)`, :math:`g\propto E^\gamma` of mean 1: cells in which
nobody is expected are cleared. t minimises Stein's unbiased estimate of the risk,

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
    """

    n: float
    one_way: Mapping[int, Table]
    pairs: Mapping[tuple[int, ...], Table]

    @classmethod
    def of(
        cls, measured: Measured, value: Table, std: float, count: tuple[float, float] | None = None
    ) -> Display:
        """The display of released residuals.

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
        scaled = [
            _Interaction(table, one_way[a], one_way[b], n, noise.get((a, b), 1.0))
            for (a, b), table in zip(
                pairs, residuals.estimates(released, total, pairs), strict=True
            )
        ]
        # One power for all pairs: choosing it pair by pair would add the noise of the choice.
        risks = [sum(pair.least_risk(power)[0] for pair in scaled) for power in _POWERS]
        power = _POWERS[int(np.argmin(risks))] if scaled else 0
        two_way: dict[tuple[int, ...], Table] = {
            pair: item.fitted(power) for pair, item in zip(pairs, scaled, strict=True)
        }
        return cls(n=n, one_way=one_way, pairs=two_way)

    def labelled(self, measured: Measured) -> tuple[Table | None, ...]:
        """Of every table of one or two columns in its own order; None of others."""
        tables: list[Table | None] = []
        for marginal, table in zip(measured.marginals, measured.workload.tables, strict=True):
            display = self.one_way[table[0]] if len(table) == 1 else self.pairs.get(table)
            tables.append(None if display is None else measured.labelled(marginal, display))
        return tuple(tables)


def _combined(*answers: tuple[float, float]) -> float:
    """The mean of numbers with variances, by their inverses."""
    if not all(math.isfinite(variance) for _, variance in answers):
        return answers[-1][0]
    precision = sum(1 / variance for _, variance in answers)
    return sum(number / variance for number, variance in answers) / precision


class _Interaction:
    """The interaction of two columns, and how it is shrunk."""

    def __init__(self, table: Table, rows: Table, columns: Table, n: float, noise: float) -> None:
        self.rows, self.columns, self.n = rows, columns, n
        self.independent = np.outer(rows, columns) / n
        self.moved = _centred(table) - _centred(self.independent)
        self.squares = self.moved**2 / noise
        self.share = (1 - 1 / rows.size) * (1 - 1 / columns.size)

    def weights(self, power: int) -> Table:
        """g: the power of the expected counts, of mean 1."""
        expected = np.maximum(self.independent, 1e-6 * self.n / self.independent.size)
        powered = np.ones_like(expected)
        for _ in range(power):
            powered = powered * expected
        return np.asarray(powered / powered.mean())

    @cached_property
    def _factor(self) -> float:
        """Lambda: 2 where no weighting shows an interaction, else 1."""
        if self.share == 0:
            return 2.0
        scores = []
        for power in _POWERS:
            g = self.weights(power)
            score = (g * (self.squares - self.share)).sum()
            scores.append(score / (self.share * np.sqrt(2 * (g * g).sum())))
        return 2.0 if max(scores) < _WEAK else 1.0

    def least_risk(self, power: int) -> tuple[float, float]:
        """The least estimated risk over all scales, and its scale."""
        scaled = _SCALES[:, None, None] * self.weights(power)
        kept = scaled / (scaled + 1)
        risks = ((1 - kept) ** 2 * self.squares).sum(axis=(1, 2))
        risks = risks + 2 * self._factor * self.share * kept.sum(axis=(1, 2))
        best = int(np.argmin(risks))
        return float(risks[best]), float(_SCALES[best])

    def fitted(self, power: int) -> Table:
        """The shrunk table, not negative and with the one-way tables as its margins."""
        scaled = self.least_risk(power)[1] * self.weights(power)
        table = self.independent + _centred(scaled / (scaled + 1) * self.moved)
        table = np.maximum(table, _FLOOR * self.n)
        for _ in range(_SWEEPS):
            table = table * (self.rows / table.sum(axis=1))[:, None]
            table = np.maximum(table, _FLOOR * self.n)
            table = table * (self.columns / table.sum(axis=0))
            table = np.maximum(table, _FLOOR * self.n)
        return table


def _centred(table: Table) -> Table:
    """The residual of a two-way table: less its means by row and by column."""
    table = table - table.mean(axis=0)
    return np.asarray(table - table.mean(axis=1, keepdims=True))
