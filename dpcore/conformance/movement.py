"""Movement: how far a statistic moved, in the norm that its bound is stated in."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.distance import Distance
from dpcore.mechanism import to_real

ALLOWANCE = 1e-9
"""Relative excess that is not called a violation: rounding in the statistic and in this file."""


def measurable(distance: Distance) -> bool:
    """Whether arrays alone tell the movement; the norm of a kernel's space is not in them."""
    return distance is not Distance.RKHS


def movement(distance: Distance, before: NDArray[Any], after: NDArray[Any], changed: int) -> float:
    """How far `after` lies from `before`.

    Args:
        changed: Position of the record that changed, for `psd_rows`.

    Raises:
        ValueError: the distance is not measurable from arrays.
    """
    if distance is Distance.PSD_ROWS:
        return _row_movement(before, after, changed)
    if distance is Distance.HAMMING:
        return float(np.count_nonzero(np.asarray(before) != np.asarray(after)))
    difference = to_real(np.asarray(after) - np.asarray(before))
    if distance is Distance.L1:
        return float(np.abs(difference).sum())
    if distance is Distance.L2:
        return float(np.linalg.norm(difference))
    if distance is Distance.LINF:
        return float(np.abs(difference).max())
    raise ValueError(f"{distance} cannot be measured from arrays")


def _row_movement(before: NDArray[Any], after: NDArray[Any], changed: int) -> float:
    r"""The least l2 movement of row i of F with F F^T = before, to F' with F' F'^T = after.

    The other rows' span fixes one part, :math:`\Delta k^T K^+ \Delta k`; the lengths of what is
    left over, sqrt(tau) and sqrt(tau'), differ by at least their difference. Infinite when another
    entry than row and column i moved.
    """
    others = np.arange(before.shape[0]) != changed
    gram = before[np.ix_(others, others)]
    size = max(1.0, float(np.abs(before).max()))
    if np.abs(after[np.ix_(others, others)] - gram).max(initial=0.0) > 1e-9 * size:
        return float("inf")
    inverse = np.linalg.pinv(gram, rcond=1e-10, hermitian=True)

    def left_over(matrix: NDArray[Any]) -> float:
        cross = matrix[others, changed]
        return float(np.sqrt(max(0.0, matrix[changed, changed] - cross @ inverse @ cross)))

    step = after[others, changed] - before[others, changed]
    within = max(0.0, float(step @ inverse @ step))
    return float(np.sqrt(within + (left_over(after) - left_over(before)) ** 2))
