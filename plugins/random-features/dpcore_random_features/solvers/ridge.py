r"""Ridge by Cholesky, with an error bound that is known before any record is.

From exact sums of the rounded records (`dpcore_models.solvers.short_rows`) where there are at
least as many records as features; from the records' own inner products where there are fewer.

Both routes solve a system with matrix A + Lam I, A positive semidefinite of norm at most
:math:`m\kappa^2`. Floating-point Cholesky is backward stable (Higham 2002, Theorem 10.4), so that
the distance to the exact solution is bounded by the public m, d, kappa, M and lam only: there is
no case in which the solver fails on one neighbour and not on the other.
"""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.rounding import gamma
from dpcore_models.solvers.short_rows import Sums
from dpcore_models.theorems.ridge import ridge_norm


def summed_ridge_error(
    records: int, width: int, kappa: float, label_bound: float, regularization: float
) -> float:
    r"""l2 distance of `solve_summed` from the exact ridge coefficients of the rounded records, for
    every dataset of m records; or inf.

    An entry of the matrix is rounded once, the product m lam once and the diagonal once, which
    comes to 4 u of m (kappa^2 + lam) in norm; factorising and solving by 2 d gamma_{3d+1} of it;
    the right-hand side errs by u m kappa M. An error of relative size e in the matrix moves the
    solution by at most 2 e cond with cond = (kappa^2 + lam)/lam while e cond <= 1/2, and infinity
    is returned otherwise. The solution is at most M tau long (T3).
    """
    length = ridge_norm(kappa, label_bound, regularization)
    # Relative to the norm of A + Lam, for every dataset of m records.
    relative = gamma(4) + 2 * width * gamma(3 * width + 1)
    right = gamma(2) * kappa * label_bound / regularization
    return _movement(relative, 1 + kappa * kappa / regularization, length, right)


def ridge_error(
    records: int, width: int, kappa: float, label_bound: float, regularization: float
) -> float:
    r"""l2 distance of `solve_ridge` from the exact ridge coefficients, for every dataset; or inf.

    With m unknowns: forming the matrix errs by at most gamma_{m+d} m kappa^2 in norm, factorising
    and solving by 2 m gamma_{3m+1} times the matrix's norm m (kappa^2 + lam); errors move the
    solution as for `summed_ridge_error`. It is at most M/(sqrt(m) lam) long, and carried back by a
    matrix of norm kappa sqrt(m).
    """
    relative = gamma(records + width + 1) + 2 * records * gamma(3 * records + 1)
    length = kappa * label_bound / regularization
    right = gamma(records + width + 1) * length
    return _movement(relative, 1 + kappa * kappa / regularization, length, right)


def _movement(relative: float, condition: float, length: float, right: float) -> float:
    # Beyond this the factor 2 on what a perturbed matrix does to its inverse is not proved.
    if not relative * condition <= 0.5:
        return math.inf
    return 2 * relative * condition * length + 2 * right


def solve_summed(sums: Sums, total_regularization: float) -> NDArray[np.float64]:
    r"""PRIVATE: minimiser of :math:`\sum(\phi_i\cdot c-y_i)^2+\Lambda\|c\|^2`, shape (d,).

    Args:
        total_regularization: Lam > 0.
    """
    return _solve(sums.gram, sums.moments, total_regularization)


def solve_ridge(
    features: NDArray[np.float64], labels: NDArray[np.float64], total_regularization: float
) -> NDArray[np.float64]:
    r"""PRIVATE: minimiser of :math:`\sum(\phi_i\cdot c-y_i)^2+\Lambda\|c\|^2`, shape (d,).

    For fewer records than features, by their inner products.

    Args:
        features: Shape (m, d). labels: Shape (m,). total_regularization: Lam > 0.
    """
    # c = Phi^T (Phi Phi^T + Lam)^{-1} y: the same minimiser from m unknowns.
    weights = _solve(features @ features.T, labels, total_regularization)
    return np.asarray(features.T @ weights)


def _solve(
    matrix: NDArray[np.float64], right: NDArray[np.float64], total_regularization: float
) -> NDArray[np.float64]:
    """By the matrix plus Lam, which is overwritten."""
    matrix.flat[:: len(right) + 1] += total_regularization
    factor = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(scipy.linalg.cho_solve(factor, right, check_finite=False))
