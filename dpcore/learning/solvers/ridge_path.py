r"""Kernel ridge for many regularizations at little more than the price of one.

One orthogonal reduction :math:`K=QTQ^T` to a tridiagonal T serves them all:

.. math:: (K+\Lambda)^{-1}y=Q\,(T+\Lambda)^{-1}Q^Ty,

where each Lam costs O(n), and the products with Q are taken for all of them at once. It is for
public data, and for comparing regularizations: the bounds of private learners state an error for
Cholesky, with explicit constants, and none is claimed here.

Source: Golub & Van Loan (2013), Matrix Computations, 4th ed., section 8.3.1; Elden (1977).
"""

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.errors import ParameterError

_BLOCK = 64  # columns at a time in LAPACK's products with reflectors
_ROOM = 65 * _BLOCK  # for their triangular factors


class RidgePath:
    """A symmetric positive semidefinite matrix K, reduced once.

    Args:
        matrix: Shape (n, n), n >= 1; its lower triangle is read. In Fortran order, and with
            `overwrite`, it is reduced in place and lost.

    Raises:
        ParameterError: the matrix is not square or not finite.
    """

    def __init__(self, matrix: NDArray[np.float64], *, overwrite: bool = False) -> None:
        side = matrix.shape[0]
        if matrix.ndim != 2 or matrix.shape[1] != side or side < 1:
            raise ParameterError("RidgePath", "a square matrix", "shape", matrix.shape)
        reduced, self._diagonal, self._beside, self._tau, _ = scipy.linalg.lapack.dsytrd(
            np.asfortranarray(matrix), lower=1, lwork=_BLOCK * side, overwrite_a=overwrite
        )
        if not (np.isfinite(self._diagonal).all() and np.isfinite(self._beside).all()):
            raise ParameterError("RidgePath", "a finite matrix", "matrix", "one that is not")
        if side == 1:
            self._beside = np.zeros(1)  # what LAPACK's wrappers want for no number
        # below the first row, column after column: the reflectors, one row longer than they are
        flat = reduced.T.reshape(-1)
        self._reflectors = flat[1 : 1 + side * (side - 1)].reshape(side - 1, side).T

    def solve(
        self, labels: NDArray[np.float64], regularizations: Sequence[float]
    ) -> NDArray[np.float64]:
        r"""The solutions of :math:`(K+\Lambda I)a=y`, shape (len(regularizations), *labels.shape).

        Args:
            labels: Shape (n,) or (n, outputs).
            regularizations: Lam > 0 each, of the sum form.

        Raises:
            ParameterError: a Lam is not positive, or lost against the rounding of K.
        """
        right = np.array(labels, dtype=np.float64).reshape(self._diagonal.size, -1)
        turned, outputs = self._times(right, "T"), right.shape[1]
        solved = np.empty((turned.shape[0], outputs * len(regularizations)), order="F")
        for number, total in enumerate(regularizations):
            failed = True
            if total > 0:
                shifted = self._diagonal + total
                _, _, found, failed = scipy.linalg.lapack.dptsv(shifted, self._beside, turned)
                solved[:, number * outputs : (number + 1) * outputs] = found
            if failed:
                needed = "a regularization > 0 that rounding does not swallow"
                raise ParameterError("RidgePath", needed, "regularization", total)
        back = self._times(solved, "N")
        return np.moveaxis(back.reshape(len(turned), -1, outputs), 1, 0).reshape(
            len(regularizations), *np.shape(labels)
        )

    def _times(self, vectors: NDArray[np.float64], trans: str) -> NDArray[np.float64]:
        """Q or its transpose times the columns; Q leaves the first row alone."""
        turned = np.asfortranarray(vectors)
        if self._tau.size:
            room = _BLOCK * turned.shape[1] + _ROOM
            turned[1:], _, _ = scipy.linalg.lapack.dormqr(
                "L", trans, self._reflectors, self._tau, turned[1:], room
            )
        return turned
