r"""Kernel ridge by Cholesky, with errors that are known before any record is.

The coefficients solve :math:`(K+m\lambda)a=y`, positive definite for every dataset. Floating-point
Cholesky is backward stable (Higham 2002, Theorem 10.4), so that the distance to the exact function
is bounded by m, kappa, M, lam and the kernel's own error only.
"""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.functions import Kernel
from dpcore.functions.kernels.base import triangle
from dpcore.rounding import gamma, up


def function_error(
    records: int, kappa: float, kernel_error: float, label_bound: float, regularization: float
) -> float:
    r"""Distance in the kernel's norm from the exact minimiser, for every dataset; or infinity.

    The solved matrix is off by at most :math:`m e_K` (entries of the kernel), one rounding of its
    diagonal, and the factorisation's :math:`2m\gamma_{3m+1}` times its norm
    :math:`m(\kappa^2+\lambda)`. A relative error e moves a, of length at most
    :math:`M/(\sqrt m\lambda)`, by 2 e cond of that while e cond <= 1/2, and
    :math:`\|\sum a_iK(x_i,\cdot)\|_K\le\kappa\sqrt m\|a\|`.
    """
    square = kappa * kappa
    relative = 2 * records * gamma(3 * records + 1) + gamma(2) + kernel_error / square
    condition = (square + regularization) / regularization
    # Beyond this the factor 2 on what a perturbed matrix does to its inverse is not proved.
    if not relative * condition <= 0.5:
        return math.inf
    return up(2 * relative * condition * kappa * label_bound / regularization, roundings=5000)


def evaluation_error(
    records: int, kappa: float, kernel_error: float, label_bound: float, regularization: float
) -> float:
    r"""Distance of a computed f(x) from the exact value of the same expansion.

    A sum of m products errs by :math:`\gamma_m\sum|a_i|\kappa^2`, its kernel entries by
    :math:`e_K\sum|a_i|`; :math:`\sum|a_i|\le\sqrt m\|a\|\le 2M/\lambda`, the 2 for the solver.
    """
    entry = gamma(records + 1) * (kappa * kappa + kernel_error) + kernel_error
    return up(2 * entry * label_bound / regularization, roundings=5000)


def solve_kernel_ridge(
    kernel: Kernel,
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    total_regularization: float,
) -> NDArray[np.float64]:
    r"""Return a with :math:`(K+\Lambda)a=y`, shape (m,).

    Args:
        rows: Shape (m, p). labels: Shape (m,). total_regularization: m lam > 0.
    """
    matrix = triangle(kernel, rows)
    # Lam lifts every eigenvalue above 0, so that the factor exists for every dataset.
    matrix[np.diag_indices_from(matrix)] += total_regularization
    factor = scipy.linalg.cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(scipy.linalg.cho_solve(factor, labels, check_finite=False))
