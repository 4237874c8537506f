"""Movement: how far a statistic moved, in the norm that its bound is stated in."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore import Distance, Query
from dpcore.functions import Expansion, FunctionQuery, Process
from dpcore.mechanism import to_real
from dpcore_attacks.attacks.kernel_norm import kernel_distance, kernel_norm
from dpcore_attacks.attacks.statistic import Statistic, steps_of

_ORDERS = {Distance.L1: 1, Distance.L2: 2, Distance.LINF: np.inf}

ALLOWANCE = 1e-9
"""Relative excess that is not called a violation: rounding in the statistic and in this file."""


def measurable(query: Query) -> bool:
    """Return whether values say the movement: in a kernel's norm only functions do, arrays do
    not.
    """
    return query.distance is not Distance.RKHS or isinstance(query, FunctionQuery)


def movement(distance: Distance, before: Statistic, after: Statistic, changed: int) -> float:
    """Return how far `after` lies from `before`.

    Args:
        changed: Position of the record that changed, for `psd_rows`.

    Raises:
        ValueError: values of this kind do not say the distance.
    """
    # the distance of two functions is known in their kernel's norm only
    if isinstance(before, Expansion) and isinstance(after, Expansion):
        if distance is not Distance.RKHS:
            raise ValueError(f"{distance} cannot be measured from functions")
        return kernel_distance(before, after)
    # of two processes it is how far one step from equal states leads apart, at the worst of them
    if isinstance(before, Process) and isinstance(after, Process):
        gaps = steps_of(after) - steps_of(before)
        return float(np.linalg.norm(gaps, ord=_ORDERS[distance], axis=1).max())
    before, after = np.asarray(before), np.asarray(after)
    if distance is Distance.PSD_ROWS:
        return _row_movement(before, after, changed)
    if distance is Distance.HAMMING:
        return float(np.count_nonzero(before != after))
    if distance not in _ORDERS:
        raise ValueError(f"{distance} cannot be measured from arrays")
    # a complex entry counts as two real ones, as it does where noise is added
    return float(np.linalg.norm(to_real(after - before), ord=_ORDERS[distance]))


def span(before: Statistic, after: Statistic) -> float:
    """Return how far the largest and the least change of an entry lie apart."""
    difference = to_real(np.asarray(after)) - to_real(np.asarray(before))
    return float(difference.max() - difference.min())


def length(value: Statistic) -> float:
    """Return the l2 norm of an array, the kernel's norm of a function."""
    if isinstance(value, Expansion):
        return kernel_norm(value.kernel, value.points, value.coefficients)
    if isinstance(value, Process):
        return float(np.linalg.norm(steps_of(value), axis=1).max())
    return float(np.linalg.norm(to_real(value)))


def _row_movement(before: NDArray[Any], after: NDArray[Any], changed: int) -> float:
    r"""Return the least l2 movement of row i of F with F F^T = before, to F' with F' F'^T = after.

    The other rows' span fixes one part, :math:`\Delta k^T K^+ \Delta k`; the lengths of what is
    left over, sqrt(tau) and sqrt(tau'), differ by at least their difference. Infinite when another
    entry than row and column i moved.
    """
    unchanged = np.arange(before.shape[0]) != changed
    gram = before[np.ix_(unchanged, unchanged)]
    size = max(1.0, float(np.abs(before).max()))
    if np.abs(after[np.ix_(unchanged, unchanged)] - gram).max(initial=0.0) > 1e-9 * size:
        return float("inf")
    # singular where records repeat: the pseudo-inverse leaves out what no row spans
    inverse = np.linalg.pinv(gram, rcond=1e-10, hermitian=True)

    def residual_length(matrix: NDArray[Any]) -> float:
        cross = matrix[unchanged, changed]
        return float(np.sqrt(max(0.0, matrix[changed, changed] - cross @ inverse @ cross)))

    # within the others' span the row moves by sqrt(step^T K^+ step); outside, in length at least
    step = after[unchanged, changed] - before[unchanged, changed]
    within = max(0.0, float(step @ inverse @ step))
    return float(np.sqrt(within + (residual_length(after) - residual_length(before)) ** 2))
