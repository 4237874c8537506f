r"""Residuals of steps that follow one another, from one block's Gram matrix.

A stochastic gradient step subtracts its residual times its feature row, so that each residual is
the error at the block's start less what earlier steps of the block took away:

.. math:: u_j = \mathrm{clip}_{\ell_j}\Big(e_j - \sum_{i<j} G_{ji}u_i\Big).

Without clipping that is a unit lower triangular system, (I + tril(G, -1)) u = e: the very numbers
of the sequential loop up to rounding, in one BLAS call. Rows may repeat; features need not exist as
arrays, as only G and e are read.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas


def block_residuals(
    gram: NDArray[np.float64],
    errors: NDArray[np.float64],
    limits: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """u as above.

    Args:
        gram: G, how much a unit residual of step i (column) lowers the error of step j (row); only
            the part below the diagonal is read. Shape (b, b), best in Fortran order.
        errors: Predictions less labels, with the weights at the block's start; shape (b,), or
            (b, c) for c chains that use the same rows.
        limits: How large a residual may be, >= 0 and possibly infinite: shape (b,), where a row of
            c residuals is scaled down to that l2 length; or (b, c), each by itself. None: free.
    """
    if limits is None:
        return _free(gram, errors)
    if errors.ndim == 1:
        return _clipped(gram, errors, limits)
    return _clipped_chains(gram, errors, limits)


def _free(gram: NDArray[np.float64], errors: NDArray[np.float64]) -> NDArray[np.float64]:
    if errors.ndim == 1:
        return blas.dtrsv(gram, errors, lower=1, diag=1)
    return blas.dtrsm(1.0, gram, errors, lower=1, diag=1)


def _clipped(
    gram: NDArray[np.float64], errors: NDArray[np.float64], limits: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Guess which steps are clipped, solve for the others, and look again.

    Each look settles at least one more step, in order, so that at most b + 1 are needed; mostly it
    takes two or three. The last clip matters only where a residual is at its limit to rounding.
    """
    u = _free(gram, errors)
    side = _sides(u, limits)
    if not side.any():
        return u
    strict = np.tril(gram, -1)
    for _ in range(len(errors) + 1):
        free = side == 0
        fixed = np.where(free, errors, side * np.where(free, 0.0, limits))
        u = _free(np.asfortranarray(strict * free[:, None]), fixed)
        again = _sides(errors - strict @ u, limits)
        if np.array_equal(again, side):
            break
        side = again
    return np.clip(u, -limits, limits)


def _sides(raw: NDArray[np.float64], limits: NDArray[np.float64]) -> NDArray[np.float64]:
    """-1, 0 or 1: below, within or above the limits."""
    return np.where(np.abs(raw) > limits, np.sign(raw), 0.0)


def _clipped_chains(
    gram: NDArray[np.float64], errors: NDArray[np.float64], limits: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Forward substitution, one row of chains at a time."""
    u = np.empty_like(errors)
    for row in range(len(errors)):
        raw = errors[row] - gram[row, :row] @ u[:row]
        if limits.ndim == 2:
            u[row] = np.clip(raw, -limits[row], limits[row])
            continue
        length = float(np.linalg.norm(raw))
        u[row] = raw * (limits[row] / length) if length > limits[row] else raw
    return u
