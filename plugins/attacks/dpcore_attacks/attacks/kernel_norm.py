r"""How far a function moved in the norm of its kernel's space, from the kernel only.

For expansions :math:`f-g=\sum_i a_iK(x_i,\cdot)`, the squared norm is :math:`a^TKa`. Points that
both share are merged first, so that what agrees cancels exactly. What rounding may have added is
taken off again: the result is never more than the true norm of the functions as given.
"""

import math

import numpy as np
from numpy.typing import NDArray

from dpcore.functions.kernels.base import Expansion, Kernel
from dpcore.rounding import gamma


def kernel_distance(before: Expansion, after: Expansion) -> float:
    """Return the norm of the difference, rounded down.

    Raises:
        ValueError: they are functions of different kernels.
    """
    if before.kernel != after.kernel:
        raise ValueError("functions of different kernels are not in one space")
    points = np.vstack([before.points, after.points])
    weights = np.concatenate([before.coefficients, -after.coefficients])
    return kernel_norm(before.kernel, points, weights)


def kernel_norm(kernel: Kernel, points: NDArray[np.float64], weights: NDArray[np.float64]) -> float:
    """sqrt(a^T K a), rounded down. Shapes (m, p) and (m,)."""
    rows, inverse = np.unique(points + 0.0, axis=0, return_inverse=True)
    # weights of equal points cancel before anything is squared: shared parts add no rounding
    merged = np.bincount(inverse.reshape(-1), weights=weights, minlength=rows.shape[0])
    is_nonzero = merged != 0
    rows, merged = rows[is_nonzero], merged[is_nonzero]
    if rows.shape[0] == 0:
        return 0.0
    largest = float(kernel.diagonal(rows).max())
    square = float(merged @ (kernel(rows, rows) @ merged))
    size = float(np.abs(merged).sum()) ** 2 * largest
    rounding = gamma(2 * (rows.shape[0] + rows.shape[1] + 32)) * size  # entries, and their sum
    summed = float(np.abs(weights).sum()) * math.sqrt(largest)  # merging rounds relative to this
    return max(0.0, math.sqrt(max(0.0, square - rounding)) - gamma(weights.size) * summed)
