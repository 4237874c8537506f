r"""Strategies: which sums of cells to measure, so that the answers wanted have the least error.

A workload is a matrix W on a histogram of B cells. Measuring A h with noise and taking W A^+ has
total variance :math:`\Delta(A)^2\|WA^+\|_F^2/\mu^2`, Delta(A) the longest column. With
:math:`M=W^TW` and :math:`X=A^TA` it is to minimise :math:`\mathrm{tr}(X^{-1}M)` subject to
:math:`\mathrm{diag}X\le1`. Weak duality: for every diagonal L >= 0,

.. math:: \mathrm{tr}(X^{-1}M)\ \ge\ 2\,\mathrm{tr}(L^{1/2}ML^{1/2})^{1/2}-\mathrm{tr}L ,

which certifies a strategy. It is found by :math:`L\leftarrow L\,(\mathrm{diag}X)^2` with
:math:`X=L^{-1/2}(L^{1/2}ML^{1/2})^{1/2}L^{-1/2}`; where diag :math:`M^{1/2}` is constant the first
step is optimal. Everything is public and free of data, so it belongs to the plan.

Prefix sums of many cells: the square root of the lower triangular matrix of ones, whose entries are
:math:`f_k=f_{k-1}(2k-1)/(2k)`.
"""

from __future__ import annotations

from functools import lru_cache

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.rounding import up

LARGEST_OPTIMISED = 256
"""Cells up to which the optimum is computed; beyond, prefixes have the Toeplitz root."""

_ROUNDS = 200
_TOLERANCE = 1e-3  # of the dual value
_PLACES = 2.0**30  # strategies are multiples of 2^-30, so that sums of their columns are exact


@attrs.frozen(kw_only=True, eq=False)
class Strategy:
    """What is measured, and how the answers follow from it.

    Args:
        measured: A, shape (m, B), columns at most 1 long.
        answers: W A^+, shape (queries, m).
        total: Sum of the answers' variances at unit noise.
        least: A lower bound on it over all strategies, by duality.
    """

    measured: NDArray[np.float64]
    answers: NDArray[np.float64]
    total: float
    least: float

    @property
    def longest_column(self) -> float:
        """What a record that comes or goes moves the measured sums by."""
        # It enters a sensitivity: the computed length is rounded up past every rounding of its sum.
        return up(float(np.sqrt((self.measured**2).sum(axis=0)).max()), roundings=600)

    @property
    def farthest_columns(self) -> float:
        """What a replaced record moves them by."""
        # Two cells may be any pair, so the farthest pair is the bound.
        columns, farthest = self.measured.T, 0.0
        for column in columns:
            farthest = max(farthest, float(np.sqrt(((columns - column) ** 2).sum(axis=1)).max()))
        return up(farthest, roundings=600)


def prefixes(cells: int) -> NDArray[np.float64]:
    """Cells up to each one, shape (B, B)."""
    return np.tril(np.ones((cells, cells)))


def ranges(cells: int) -> NDArray[np.float64]:
    """Every run of neighbouring cells, shape (B (B + 1)/2, B)."""
    return np.array(
        [
            np.concatenate([np.zeros(a), np.ones(b - a), np.zeros(cells - b)])
            for a in range(cells)
            for b in range(a + 1, cells + 1)
        ]
    )


@lru_cache(maxsize=16)
def strategy(workload: tuple[tuple[float, ...], ...]) -> Strategy:
    """The best strategy that is known for a workload, in l2."""
    matrix = np.array(workload, dtype=np.float64)
    cells = matrix.shape[1]
    if cells > LARGEST_OPTIMISED:
        triangle = np.array_equal(matrix, prefixes(cells))
        return _round_strategy(_toeplitz_root(cells) if triangle else np.eye(cells), matrix, 0.0)
    measured, lower_bound = optimum(matrix.T @ matrix)
    return _round_strategy(measured, matrix, lower_bound)


def optimum(gram: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """A symmetric A with columns at most 1 long, and the dual value."""
    # A tiny ridge: queries that leave some cell out have a singular Gram matrix.
    ridge = gram + 1e-12 * np.trace(gram) / len(gram) * np.eye(len(gram))
    scale = np.ones(len(gram))
    best = 0.0
    square = np.eye(len(gram))
    for _ in range(_ROUNDS):
        # X = L^-1/2 (L^1/2 M L^1/2)^1/2 L^-1/2, by the eigenvalues of the inner matrix.
        half = np.sqrt(scale)
        inner = half[:, None] * ridge * half[None, :]
        values, vectors = np.linalg.eigh(inner)
        roots = np.sqrt(np.maximum(values, 0.0))
        square = (vectors * roots) @ vectors.T / half[:, None] / half[None, :]
        diagonal = np.diag(square)
        # the dual value at the best multiple of L: (tr root)^2 / tr L
        best = max(best, float(roots.sum() ** 2 / scale.sum()))
        # The error of this X, scaled to be feasible: the gap to the dual certifies it.
        primal = float(np.trace(np.linalg.solve(square / diagonal.max(), gram)))
        if primal <= best * (1 + _TOLERANCE):
            break
        # The fixed-point step: cells with a long column get a larger multiplier.
        scale = scale * diagonal**2
    values, vectors = np.linalg.eigh(square / np.diag(square).max())
    return (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T, best


def _toeplitz_root(cells: int) -> NDArray[np.float64]:
    """The lower triangular square root of the prefix matrix."""
    # f_k = f_{k-1} (2k - 1)/(2k): the coefficients of (1 - x)^(-1/2).
    odd = np.arange(1, cells)
    first = np.concatenate([[1.0], np.cumprod((2 * odd - 1) / (2 * odd))])
    rows, columns = np.indices((cells, cells))
    return np.where(rows >= columns, first[np.abs(rows - columns)], 0.0)


def _round_strategy(
    measured: NDArray[np.float64], matrix: NDArray[np.float64], least: float
) -> Strategy:
    """The strategy of a matrix, scaled so that its rounded columns are at most 1 long."""
    longest = np.sqrt((measured**2).sum(axis=0)).max()
    # A little below 1 before rounding, so that rounding to the grid does not pass 1.
    rounded = np.rint(measured / longest * (1 - 2.0**-20) * _PLACES) / _PLACES
    answers = np.linalg.solve(rounded.T, matrix.T).T
    return Strategy(measured=rounded, answers=answers, total=float((answers**2).sum()), least=least)
