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

Where n is private its columns are scaled to length 1, which costs nothing if records come or go:
within 5.7 % of the least variance at 1,024 cells in place of 14 %. Replaced records would move
more: there it stays as it is.

Ranks of quantiles are contrasts N(t) - q n, for which either end of the grid is as good: with G the
Gram matrix of that root and G' its mirror image, A is the Cholesky factor of (G + G')/2. At 1,025
points and nine quantiles its deviations are within 2 % of what four steps of the optimisation
above reach.

In l1 prefixes and ranges are measured by trees (`dpcore_models.measurements.trees`). Columns that
are at most 1 long in l1 are so in l2, hence the dual value bounds them too, at equal variance of
the noise: at L = 1 it is :math:`(\mathrm{tr}M^{1/2})^2/B`. The gap to it is printed, not closed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.interval import NoiseDistribution, NormalDistribution, apart
from dpcore.rounding import up
from dpcore_models.measurements.joint_band import simulated_half_width
from dpcore_models.measurements.trees import Tree, best_tree

LARGEST_OPTIMISED = 256
"""Cells up to which the optimum is computed; beyond, prefixes have the Toeplitz root."""

_ROUNDS = 200
_TOLERANCE = 1e-3  # of the dual value
_PLACES = 2.0**30  # strategies are multiples of 2^-30, so that sums of their columns are exact


@attrs.frozen(kw_only=True, eq=False)
class Lengths:
    """How long the rows of a matrix are, in either norm: all that single intervals need of it.

    Args:
        size: Entries of a row: how many numbers are measured.
    """

    l1: NDArray[np.float64]
    l2: NDArray[np.float64]
    size: int

    @classmethod
    def of(cls, rows: NDArray[np.float64]) -> Lengths:
        """Return the lengths of the rows of a matrix."""
        l1, l2 = np.abs(rows).sum(axis=1), np.linalg.norm(rows, axis=1)
        return cls(l1=np.asarray(l1), l2=np.asarray(l2), size=rows.shape[1])


@attrs.frozen(kw_only=True, eq=False)
class Strategy:
    """What is measured, and how the answers follow from it.

    Args:
        measured: A, shape (m, B), columns at most 1 long.
        answers: W A^+, shape (queries, m).
        total: Sum of the answers' variances at unit noise.
        least: A lower bound on it over all strategies, by duality.
        tree: Whose prefixes the answers are, where it is one: they are then added up in two passes.
    """

    measured: NDArray[np.float64]
    answers: NDArray[np.float64]
    total: float
    least: float
    tree: Tree | None = None

    def estimates(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return answers to measured values: shape (queries,), or (draws, queries) for several."""
        if self.tree is not None:
            return np.asarray(np.cumsum(self.tree.cell_estimates(values), axis=-1))
        return self.answers @ values if values.ndim == 1 else values @ self.answers.T

    @property
    def longest_column(self) -> float:
        """The movement of the measured sums by a record that is added or removed."""
        # It enters a sensitivity: the computed length is rounded up past every rounding of its sum.
        return up(float(np.sqrt((self.measured**2).sum(axis=0)).max()), roundings=600)

    @property
    def largest_column_distance(self) -> float:
        """The movement of the measured sums by a replaced record."""
        # Two cells may be any pair, so the most distant pair is the bound.
        columns, diameter = self.measured.T, 0.0
        for column in columns:
            diameter = max(diameter, float(np.sqrt(((columns - column) ** 2).sum(axis=1)).max()))
        return up(diameter, roundings=600)

    @property
    def lengths(self) -> Lengths:
        """The row lengths of the answers, in either norm."""
        return Lengths.of(self.answers)

    def certificate(self) -> str:
        """State how near the least variance is; empty if no bound is known."""
        if not self.least:
            return ""
        ratio = self.total / self.least
        if ratio < 2:
            return f"; their variance is within {100 * (ratio - 1):.2g} % of the least"
        return f"; their variance is at most {ratio:.3g} times the least of any strategy"


@lru_cache(maxsize=16)
def longest_columns(strategy: Strategy) -> tuple[float, float]:
    """Return the longest column, and the largest distance of two of which one may be 0.

    It is quick even for many cells.
    """
    gram = strategy.measured.T @ strategy.measured
    squares = np.diagonal(gram)
    distances = float((squares[:, None] + squares - 2 * gram).max())
    # A difference of squares may cancel: its error is roundings of sums of so many products.
    slack = 4 * float(squares.max()) * len(strategy.measured) * 2.0**-52
    diameter = up(float(np.sqrt(distances + slack)), roundings=8)
    return strategy.longest_column, max(diameter, strategy.longest_column)


def single_half_widths(
    lengths: Lengths, noise_distribution: NoiseDistribution, miss: float, groups: int = 1
) -> NDArray[np.float64]:
    """Return joint half-widths of combinations, in all groups, from each one's own law."""
    rounding = lengths.l1 * noise_distribution.rounding
    if isinstance(noise_distribution, NormalDistribution):
        # Normal combinations: one Šidák quantile, times the length of each answer's row.
        z = (
            noise_distribution.quantile(apart(miss, groups * lengths.l2.size))
            / noise_distribution.width
        )
        return np.asarray(up(z * noise_distribution.width * lengths.l2, roundings=600) + rounding)
    half_width = noise_distribution.quantile(
        miss / (groups * lengths.size)
    )  # of all measured sums together
    return np.asarray(lengths.l1 * half_width + rounding)


def joint_half_widths_of(
    lengths: Lengths,
    errors: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    work: int,
    noise_distribution: NoiseDistribution,
    miss: float,
    *,
    even: bool = False,
) -> NDArray[np.float64]:
    """Return joint half-widths by simulation, or single ones if these are narrower.

    They are as the standard deviations; `even`, as the roots of these, so that the narrowest is not
    narrow at the cost of all others.

    Args:
        errors: Absolute errors of noises, shape (draws, size): shape (draws, combinations).
        work: How many operations a draw takes.
    """
    single, deviations = single_half_widths(lengths, noise_distribution, miss), lengths.l2
    shape = np.sqrt(deviations * deviations.max()) if even else deviations
    unit = simulated_half_width(
        lambda noise: (errors(noise) / shape).max(axis=1),
        lengths.size,
        work,
        noise_distribution,
        miss,
    )
    joint = np.asarray(up(unit * shape, roundings=600) + lengths.l1 * noise_distribution.rounding)
    # One or the other, and no mixture: each of them holds for all answers together.
    is_narrower = bool((joint <= single).all()) or (even and joint.max() <= single.max())
    return joint if is_narrower else single


@lru_cache(maxsize=64)
def joint_half_widths(
    strategy: Strategy, noise_distribution: NoiseDistribution, miss: float
) -> NDArray[np.float64]:
    """Return joint half-widths of all answers of a strategy."""
    tree = strategy.tree
    return joint_half_widths_of(
        strategy.lengths,
        lambda noise: np.abs(strategy.estimates(noise)),
        strategy.answers.size // 2 if tree is None else 10 * tree.size,
        noise_distribution,
        miss,
        even=tree is not None and bool(tree.branches),
    )


def prefixes(cells: int) -> NDArray[np.float64]:
    """Return the matrix of all prefixes of cells, shape (B, B)."""
    return np.tril(np.ones((cells, cells)))


def ranges(cells: int) -> NDArray[np.float64]:
    """Return the matrix of all ranges of adjacent cells, shape (B (B + 1)/2, B)."""
    return np.array(
        [
            np.concatenate([np.zeros(a), np.ones(b - a), np.zeros(cells - b)])
            for a in range(cells)
            for b in range(a + 1, cells + 1)
        ]
    )


@lru_cache(maxsize=16)
def best_strategy(
    kind: Literal["prefixes", "ranges"], cells: int, in_l1: bool, n_is_public: bool = False
) -> Strategy:
    """Return the best known strategy for prefixes or ranges: a tree in l1, else `strategy`."""
    workload = prefixes(cells) if kind == "prefixes" else ranges(cells)
    if not in_l1 and (kind == "ranges" or cells <= LARGEST_OPTIMISED):
        return strategy(tuple(map(tuple, workload.tolist())))
    if not in_l1:
        return _solved(_scaled_root(cells, n_is_public), lower=True)
    tree = best_tree(workload)
    # What each measured value adds to each cell, from which all answers follow.
    of_cells = tree.cell_estimates(np.eye(tree.size)).T
    is_prefix = kind == "prefixes"
    answers = np.cumsum(of_cells, axis=0) if is_prefix else workload @ of_cells
    return Strategy(
        measured=tree.measured,
        answers=answers,
        total=float((answers**2).sum()),
        least=_root_bound(kind, workload),
        tree=tree if is_prefix else None,
    )


@lru_cache(maxsize=16)
def rank_strategy(points: int, in_l1: bool, n_is_public: bool = False) -> Strategy:
    """Return the strategy for ranks up to every point."""
    if in_l1:
        return best_strategy("prefixes", points, True)
    root = _scaled_root(points, n_is_public)
    gram = root.T @ root
    factor = np.linalg.cholesky((gram + gram[::-1, ::-1]) / 2)
    return _solved(np.asarray(factor.T, dtype=np.float64), lower=False)


def _scaled_root(cells: int, n_is_public: bool) -> NDArray[np.float64]:
    """Return the square root of the triangle, with columns of equal length unless n is public."""
    root = _toeplitz_root(cells)
    return root if n_is_public else root / np.linalg.norm(root, axis=0)


def _solved(triangle: NDArray[np.float64], *, lower: bool) -> Strategy:
    """Return the strategy of a triangle for all prefixes, whose inverse needs no general method."""
    from scipy.linalg import solve_triangular

    workload, rounded = prefixes(len(triangle)), _rounded(triangle)
    answers = solve_triangular(rounded.T, workload.T, lower=not lower).T
    total, least = float((answers**2).sum()), _root_bound("prefixes", workload)
    return Strategy(measured=rounded, answers=answers, total=total, least=least)


@lru_cache(maxsize=16)
def cells_strategy(workload: tuple[tuple[float, ...], ...]) -> Strategy:
    """Return the strategy that measures the cells themselves."""
    answers = np.array(workload, dtype=np.float64)
    total = float((answers**2).sum())
    return Strategy(measured=np.eye(answers.shape[1]), answers=answers, total=total, least=0.0)


def _root_bound(kind: str, workload: NDArray[np.float64]) -> float:
    """Return (tr M^(1/2))^2 / B, the dual value at L = 1."""
    cells = workload.shape[1]
    if kind == "prefixes":
        # The singular values of the triangle of ones are known: 1/(2 sin((2k-1) pi/(4B+2))).
        odd = np.arange(1, 2 * cells, 2)
        roots = 0.5 / np.sin(odd * np.pi / (4 * cells + 2))
    else:
        roots = np.sqrt(np.maximum(np.linalg.eigvalsh(workload.T @ workload), 0.0))
    return float(roots.sum() ** 2 / cells)


@lru_cache(maxsize=16)
def strategy(workload: tuple[tuple[float, ...], ...]) -> Strategy:
    """Return the best strategy that is known for a workload, in l2."""
    matrix = np.array(workload, dtype=np.float64)
    cells = matrix.shape[1]
    if cells > LARGEST_OPTIMISED:
        triangle = np.array_equal(matrix, prefixes(cells))
        return _round_strategy(_toeplitz_root(cells) if triangle else np.eye(cells), matrix, 0.0)
    measured, lower_bound = optimum(matrix.T @ matrix)
    return _round_strategy(measured, matrix, lower_bound)


def optimum(gram: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
    """Return a symmetric A with columns of length at most 1, and the dual value."""
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
    """Return the lower triangular square root of the prefix matrix."""
    # f_k = f_{k-1} (2k - 1)/(2k): the coefficients of (1 - x)^(-1/2).
    odd = np.arange(1, cells)
    first = np.concatenate([[1.0], np.cumprod((2 * odd - 1) / (2 * odd))])
    rows, columns = np.indices((cells, cells))
    return np.where(rows >= columns, first[np.abs(rows - columns)], 0.0)


def _round_strategy(
    measured: NDArray[np.float64], matrix: NDArray[np.float64], least: float
) -> Strategy:
    """Return the strategy of a matrix, scaled so that its rounded columns are at most 1 long."""
    rounded = _rounded(measured)
    answers = np.asarray(np.linalg.solve(rounded.T, matrix.T).T, dtype=np.float64)
    return Strategy(measured=rounded, answers=answers, total=float((answers**2).sum()), least=least)


def _rounded(measured: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a, scaled so that its columns on the grid are at most 1 long."""
    longest = np.sqrt((measured**2).sum(axis=0)).max()
    # A little below 1 before rounding, so that rounding to the grid does not pass 1.
    return np.asarray(np.rint(measured / longest * (1 - 2.0**-20) * _PLACES) / _PLACES)
