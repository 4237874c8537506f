r"""Gram matrices summed block by block into one triangle, and solved where they lie.

:math:`BB^*=\sum_jB_jB_j^*` over blocks of columns: what is held is the triangle and one block.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

_COLUMNS = 256  # of a triangle at a time, for its norm


class Triangle:
    """The lower triangle of a positive semidefinite matrix, to which blocks add up.

    Args:
        size: s. dtype: float64 or complex128.
    """

    def __init__(self, size: int, dtype: Any) -> None:
        self.matrix = np.zeros((size, size), dtype=dtype, order="F")
        self._complex = self.matrix.dtype.kind == "c"

    def add(self, block: NDArray[Any]) -> None:
        """B B^* more, for a block B of shape (s, b)."""
        add = scipy.linalg.blas.zherk if self._complex else scipy.linalg.blas.dsyrk
        result = add(1.0, block, beta=1.0, c=self.matrix, overwrite_c=1, lower=1)
        # BLAS would copy a matrix in another order, and the sum would be lost.
        assert np.shares_memory(result, self.matrix), "accumulated in place"

    def scale(self, factors: NDArray[np.float64]) -> None:
        """Rows and columns times positive factors, shape (s,)."""
        self.matrix *= factors[:, None]
        self.matrix *= factors

    def diagonal(self) -> NDArray[np.float64]:
        """Return the diagonal, which is real, shape (s,)."""
        return np.real(self.matrix.diagonal()).copy()

    def one_norm(self) -> float:
        """Return the largest sum of absolute values in a column of the whole matrix."""
        sums = np.zeros(self.matrix.shape[0])
        for start in range(0, sums.size, _COLUMNS):
            part = np.abs(np.tril(self.matrix[start:, start : start + _COLUMNS]))
            sums[start:] += part.sum(axis=1)
            sums[start : start + _COLUMNS] += part.sum(axis=0) - part.diagonal()
        return float(sums.max(initial=0.0))

    def cholesky(self, least: float) -> "Factor | None":
        """Return its factor, in its place; None if it has none, or a reciprocal condition below
        `least`.

        The triangle is lost either way.
        """
        # The norm is taken first: the factor overwrites the triangle.
        norm = self.one_norm()
        factorise = scipy.linalg.lapack.zpotrf if self._complex else scipy.linalg.lapack.dpotrf
        factor, info = factorise(self.matrix, lower=1, clean=0, overwrite_a=1)
        if info:
            return None
        condition = scipy.linalg.lapack.zpocon if self._complex else scipy.linalg.lapack.dpocon
        reciprocal, _ = condition(factor, norm, uplo="L")
        return Factor(factor) if reciprocal > least else None

    def pseudo_solve(self, right: NDArray[Any]) -> NDArray[Any]:
        """Return its pseudo-inverse times `right`: eigenvalues above s eps times the largest count.

        Raises:
            ValueError, LinAlgError: not finite, or no convergence.
        """
        values, vectors = scipy.linalg.eigh(self.matrix, lower=True, driver="evr", overwrite_a=True)
        # The cutoff is the usual one for a numerical rank.
        nonzero = values > values.size * np.finfo(float).eps * values[-1]
        inverse = np.where(nonzero, 1 / np.where(nonzero, values, 1.0), 0.0)
        solution: NDArray[Any] = vectors @ (inverse * (vectors.conj().T @ right))
        return solution


class Factor:
    """The lower Cholesky factor of a positive definite matrix."""

    def __init__(self, lower: NDArray[Any]) -> None:
        self._lower = lower

    def solve(self, right: NDArray[Any]) -> NDArray[Any]:
        """Return the inverse times a vector."""
        solve = (
            scipy.linalg.lapack.zpotrs
            if self._lower.dtype.kind == "c"
            else scipy.linalg.lapack.dpotrs
        )
        solution, _ = solve(self._lower, right.astype(self._lower.dtype), lower=1)
        return np.asarray(solution)


def summed(blocks: Iterable[NDArray[Any]]) -> Triangle:
    """Return the sum of B B^* over blocks B of shape (s, b), at least one."""
    triangle = None
    for block in blocks:
        if triangle is None:
            triangle = Triangle(block.shape[0], np.result_type(block, np.float64))
        triangle.add(block)
    assert triangle is not None, "at least one block"
    return triangle
