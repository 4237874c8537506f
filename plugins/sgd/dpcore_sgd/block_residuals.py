r"""Residuals of steps that follow one another, from one block's Gram matrix.

A stochastic gradient step subtracts its residual times its feature row, so that each residual is
the error at the block's start less what earlier steps of the block took away:

.. math:: u_j = \mathrm{clip}_{\ell_j}\Big(e_j - \sum_{i<j} G_{ji}u_i\Big).

Without clipping that is a unit lower triangular system, (I + tril(G, -1)) u = e: the very numbers
of the sequential loop up to rounding, in one BLAS call. Rows may repeat; features need not exist as
arrays, as only G and e are read.
"""

from operator import mul

import numpy as np
import scipy
from numpy.typing import NDArray

_SHORT = 16  # rows up to which plain floats are faster than a few more BLAS calls


def block_residuals(
    gram: NDArray[np.float64],
    errors: NDArray[np.float64],
    limits: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Solve for u as above.

    Args:
        gram: G, how much a unit residual of step i (column) lowers the error of step j (row); only
            the part below the diagonal is read. Shape (b, b), best in Fortran order.
        errors: Predictions less labels, with the weights at the block's start; shape (b,), or
            (b, c) for c chains that use the same rows.
        limits: How large a residual may be, >= 0 and possibly infinite: shape (b,), where a row of
            c residuals is scaled down to that l2 length; or (b, c), each by itself. None: free.
    """
    if limits is None:
        return _solve_free(gram, errors)
    if errors.ndim == 1:
        return _solve_clipped(gram, errors, limits)
    return _solve_clipped_chains(gram, errors, limits)


def _solve_free(gram: NDArray[np.float64], errors: NDArray[np.float64]) -> NDArray[np.float64]:
    if errors.ndim == 1:
        return scipy.linalg.blas.dtrsv(gram, errors, lower=1, diag=1)
    return scipy.linalg.blas.dtrsm(1.0, gram, errors, lower=1, diag=1)


def _solve_clipped(
    gram: NDArray[np.float64], errors: NDArray[np.float64], limits: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the free solution if no limit is met; else solve by the faster route."""
    u = _solve_free(gram, errors)
    # Clipping that never acts changes nothing: the free solution is then the clipped one.
    exceeds = np.abs(u) > limits
    if not exceeds.any():
        return u
    # Residuals before the first that is over its limit do not depend on later ones: they stay.
    if len(u) <= _SHORT:
        return _substitute_rows(gram, errors, limits, u[: int(exceeds.argmax())].tolist())
    return _guess_clipped(gram, errors, limits, u, exceeds)


def _substitute_rows(
    gram: NDArray[np.float64],
    errors: NDArray[np.float64],
    limits: NDArray[np.float64],
    residuals: list[float],
) -> NDArray[np.float64]:
    """Substitute in plain floats, from the first residual that `residuals` lacks."""
    first = len(residuals)
    rows, starts, ends = gram[first:].tolist(), errors[first:].tolist(), limits[first:].tolist()
    for row, start, end in zip(rows, starts, ends, strict=True):
        raw = start - sum(map(mul, row, residuals))  # the steps before
        residuals.append(min(max(raw, -end), end))
    return np.array(residuals)


def _guess_clipped(
    gram: NDArray[np.float64],
    errors: NDArray[np.float64],
    limits: NDArray[np.float64],
    u: NDArray[np.float64],
    exceeds: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Fix residuals over their limits there, solve for the others, and repeat.

    Each look settles at least one more step, in order, so that at most b + 1 are needed; mostly it
    takes two or three. The last clip matters only where a residual is at its limit to rounding.
    """
    # Rows that are over their limit become u = limit; their columns go on acting on later rows.
    strict = gram * np.asfortranarray(np.tri(len(u), k=-1))
    bounds = np.copysign(limits, u)
    for _ in range(len(u) + 1):
        u = _solve_free(
            strict * np.where(exceeds, 0.0, 1.0)[:, None], np.where(exceeds, bounds, errors)
        )
        raw = errors - strict @ u
        exceeds_next, ends = np.abs(raw) > limits, np.copysign(limits, raw)
        # A fixed point is the sequential solution itself:
        # each row then agrees with all rows before it.
        if np.array_equal(exceeds_next, exceeds) and np.array_equal(ends[exceeds], bounds[exceeds]):
            break
        exceeds, bounds = exceeds_next, ends
    return np.clip(u, -limits, limits)


def _solve_clipped_chains(
    gram: NDArray[np.float64], errors: NDArray[np.float64], limits: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Substitute forwards, one row of chains at a time."""
    u = np.empty_like(errors)
    for row in range(len(errors)):
        raw = errors[row] - gram[row, :row] @ u[:row]
        if limits.ndim == 2:
            u[row] = np.clip(raw, -limits[row], limits[row])
            continue
        # One limit for a row of chains: the residuals are
        # scaled together, by their joint l2 length.
        length = float(np.linalg.norm(raw))
        u[row] = raw * (limits[row] / length) if length > limits[row] else raw
    return u
