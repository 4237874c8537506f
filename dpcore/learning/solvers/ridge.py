r"""Ridge by Cholesky, primal or dual, with an error bound that is known before any record is.

Both routes solve a system with matrix A + Lam I, A positive semidefinite of norm at most
:math:`m\kappa^2`. Floating-point Cholesky is backward stable (Higham 2002, Theorem 10.4), so that
the distance to the exact solution is bounded by the public m, d, kappa, M and lam alone: there is
no case in which the solver fails on one neighbour and not on the other.
"""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.learning.theorems.ridge import ridge_norm
from dpcore.rounding import gamma


def ridge_error(
    records: int, width: int, kappa: float, label_bound: float, regularization: float
) -> float:
    r"""l2 distance of `solve_ridge` from the exact ridge coefficients, for every dataset; or inf.

    With s = min(width, records) unknowns: forming the matrix errs by at most
    gamma_{m+d} m kappa^2 in norm, factorising and solving by 2 s gamma_{3s+1} times the matrix's
    norm m (kappa^2 + lam), the right-hand side by gamma_{m+1}; an error of relative size
    e in the matrix moves the solution by at most 2 e cond with cond = (kappa^2 + lam)/lam while
    e cond <= 1/2, and infinity is returned otherwise. The primal solution is at most M tau long
    (T3); the dual one at most M/(sqrt(m) lam), carried back by a matrix of norm kappa sqrt(m).
    """
    unknowns = min(width, records)
    relative = gamma(records + width + 1) + 2 * unknowns * gamma(3 * unknowns + 1)
    condition = 1 + kappa * kappa / regularization
    if not relative * condition <= 0.5:
        return math.inf
    if width <= records:
        length = ridge_norm(kappa, label_bound, regularization)
        right = gamma(records + 1) * kappa * label_bound / regularization
    else:
        length = kappa * label_bound / regularization
        right = gamma(records + width + 1) * length
    return 2 * relative * condition * length + 2 * right


def solve_ridge(
    features: NDArray[np.float64], labels: NDArray[np.float64], total_regularization: float
) -> NDArray[np.float64]:
    r"""Minimiser of :math:`\sum(\phi_i\cdot c-y_i)^2+\Lambda\|c\|^2`, shape (d,).

    Args:
        features: Shape (m, d). labels: Shape (m,). total_regularization: Lam > 0.
    """
    records, width = features.shape
    if width <= records:
        gram = features.T @ features
        gram.flat[:: width + 1] += total_regularization
        factor = scipy.linalg.cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
        return np.asarray(scipy.linalg.cho_solve(factor, features.T @ labels, check_finite=False))
    kernel = features @ features.T
    kernel.flat[:: records + 1] += total_regularization
    factor = scipy.linalg.cho_factor(kernel, lower=True, overwrite_a=True, check_finite=False)
    weights = scipy.linalg.cho_solve(factor, labels, check_finite=False)
    return np.asarray(features.T @ weights)
