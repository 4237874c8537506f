r"""Min-norm least squares through a Gram matrix: total, for any records whatever.

The solution :math:`\Phi^+y` depends on :math:`\Phi^T\Phi` and :math:`\Phi^Ty` alone, so that equal
rows may be merged *exactly*: w copies of a row with mean label z count as the row sqrt(w) phi with
label sqrt(w) z. What is left is solved by Cholesky where the Gram matrix is well conditioned, else
by its eigenvalues above s eps times the largest (s unknowns). That is as accurate as a Gram matrix
allows, half the digits of an orthogonal factorisation in the worst case; no privacy claim rests on
it. It never raises: where arithmetic breaks down the result is 0.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import lapack

_WELL = 1e-10  # reciprocal condition number down to which Cholesky is trusted


def solve_min_norm(
    features: NDArray[np.float64], labels: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The shortest minimiser of sum (phi_i . c - y_i)^2, shape (d,); always finite.

    Args:
        features: Shape (n, d). labels: Shape (n,). Anything not finite gives 0.
    """
    zero = np.zeros(features.shape[1])
    if features.shape[0] == 0:
        return zero
    with np.errstate(all="ignore"):
        try:
            rows, targets = _merge(features, labels)
            if rows.shape[0] <= rows.shape[1]:
                found = rows.T @ _solve(rows @ rows.T, targets)
            else:
                found = _solve(rows.T @ rows, rows.T @ targets)
        except (linalg.LinAlgError, ValueError):
            return zero
    return found if np.isfinite(found).all() else zero


def _merge(
    features: NDArray[np.float64], labels: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Different rows only, weighted by the root of their number, with their mean labels."""
    rows, inverse, counts = np.unique(features, axis=0, return_inverse=True, return_counts=True)
    if rows.shape[0] == features.shape[0]:
        return features, labels
    means = np.bincount(inverse.reshape(-1), weights=labels) / counts
    weights = np.sqrt(counts)
    return rows * weights[:, None], means * weights


def _solve(matrix: NDArray[np.float64], right: NDArray[np.float64]) -> NDArray[np.float64]:
    """The pseudo-inverse of a positive semidefinite matrix, times a vector."""
    one_norm = float(np.abs(matrix).sum(axis=0).max())
    factor, failed = lapack.dpotrf(matrix, lower=1)
    if failed == 0:
        reciprocal, _ = lapack.dpocon(factor, one_norm, uplo="L")
        if reciprocal > _WELL:
            return np.asarray(linalg.cho_solve((factor, True), right, check_finite=False))
    values, vectors = linalg.eigh(matrix, driver="evr")
    kept = values > matrix.shape[0] * np.finfo(float).eps * values[-1]
    inverse = np.where(kept, 1 / np.where(kept, values, 1.0), 0.0)
    solved: NDArray[np.float64] = vectors @ (inverse * (vectors.T @ right))
    return solved
