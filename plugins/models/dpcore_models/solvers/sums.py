r"""Sums over records in blocks, and what they err by, with `dpcore.rounding.gamma`.

Every bound here holds for any order of summation, with or without fused multiply-add. A sum over
records runs in blocks of `BLOCK` rows, so that its error grows like n/BLOCK and not like n.

Source: Higham (2002), Accuracy and Stability of Numerical Algorithms, 2nd ed., Lemma 3.1, (3.5).
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

BLOCK = 4096

_SMALLEST, _LARGEST = 1e-60, 1e60


def depth(records: int) -> int:
    """Count the roundings behind one entry of a blocked sum over `records` rows."""
    # Additions within a block, and one for each block.
    return min(records, BLOCK) + -(-records // BLOCK)


def plain(*values: float) -> bool:
    """Return whether products of up to four such values neither overflow nor underflow."""
    return all(_SMALLEST < value < _LARGEST for value in values)


def blocks(records: int) -> Iterator[slice]:
    """Yield slices of at most `BLOCK` rows that cover all of them, in order."""
    for start in range(0, records, BLOCK):
        yield slice(start, start + BLOCK)


def pull(features: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Compute :math:`\sum_i w_i\phi_i`, shape (d,); error <= gamma_depth sum |w_i| |phi_i|."""
    total = np.zeros(features.shape[1])
    for rows in blocks(features.shape[0]):
        total += features[rows].T @ weights[rows]
    return total


def gram(features: NDArray[np.float64]) -> NDArray[np.float64]:
    r"""Compute :math:`\sum_i\phi_i\phi_i^T` (d, d); Frobenius error gamma_depth sum |phi_i|^2."""
    total = np.zeros((features.shape[1], features.shape[1]))
    for rows in blocks(features.shape[0]):
        total += features[rows].T @ features[rows]
    return total


def norm(vector: NDArray[np.float64]) -> float:
    """Compute the l2 norm to a relative error of 4 u at any scale; infinite or NaN if it is.

    Entries are scaled by the largest one; squares are summed exactly and rounded once.
    """
    largest = float(np.max(np.abs(vector), initial=0.0))
    # Zero has no scale to divide by; what is not finite is passed on as it is.
    if largest == 0.0 or not math.isfinite(largest):
        return largest
    ratios = vector / largest
    return largest * math.sqrt(math.fsum((ratios * ratios).tolist()))
