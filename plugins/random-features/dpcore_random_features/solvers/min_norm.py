r"""Min-norm least squares through a Gram matrix: total, for any records whatever.

The solution :math:`\Phi^+y` depends on :math:`\Phi^T\Phi` and :math:`\Phi^Ty` only, so that equal
rows may be merged *exactly*: w copies of a row with mean label z count as the row sqrt(w) phi with
label sqrt(w) z. What is left is solved by Cholesky where the Gram matrix is well conditioned, else
by its eigenvalues above s eps times the largest (s unknowns). That is as accurate as a Gram matrix
allows, half the digits of an orthogonal factorisation in the worst case; no privacy claim rests on
it. It never raises: where arithmetic breaks down the result is 0.

Features are never held all at once. With m different rows and d features, m <= d, the m by m Gram
matrix is summed over blocks of columns, and the same blocks, made once more, carry its solution
back to the weights; with m > d, the d by d one is summed over blocks of rows.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.models.features.base import Features
from dpcore_random_features.solvers.gram import Triangle, summed

_WELL = 1e-10  # reciprocal condition number down to which Cholesky is trusted
_ROWS = 1024  # at a time, where they outnumber the features


def fit_min_norm(
    features: Features, width: int, rows: NDArray[np.float64], labels: NDArray[np.float64]
) -> NDArray[Any]:
    """Return the shortest minimiser of sum (phi_i . c - y_i)^2, shape (d,); always finite.

    Features of rows are made in blocks and never held at once.

    Args:
        features: Real or complex.
        width: d, how many features there are.
        rows: Encoded, shape (n, p). labels: Shape (n,).
    """
    zero = np.zeros(width)
    if rows.shape[0] == 0:
        return zero
    with np.errstate(all="ignore"):
        # Total: what cannot be solved is 0, for which the projection's claim holds as well.
        try:
            weights = _fit(features, width, *merged(rows, labels))
        except (scipy.linalg.LinAlgError, ValueError):
            return zero
    return weights if np.isfinite(weights).all() else zero


def merged(
    rows: NDArray[np.float64], labels: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Different rows only, their mean labels, and the roots of their numbers."""
    unique_rows, inverse, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    # The records' own order where no two are equal: `unique` would sort them.
    if unique_rows.shape[0] == rows.shape[0]:
        return rows, labels, np.ones(rows.shape[0])
    means = np.bincount(inverse.reshape(-1), weights=labels) / counts
    return unique_rows, means, np.sqrt(counts)


@attrs.frozen(eq=False)
class _System:
    """What is to be solved.

    Args:
        gram: Positive semidefinite, of s unknowns.
        right: Shape (s,).
        scales: What the rows of the features were multiplied with.
    """

    gram: Triangle
    right: NDArray[Any]
    scales: NDArray[np.float64]


def _fit(
    features: Features,
    width: int,
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> NDArray[Any]:
    """Different rows, each counted as `weights` squared."""
    # The smaller system, so that memory never grows with the product of both numbers.
    if rows.shape[0] > width:
        return _solve(partial(_between_features, features, rows, labels, weights))[0]
    solution, scales = _solve(partial(_between_records, features, rows, labels, weights))
    solution *= scales
    return np.concatenate([block.conj().T @ solution for block in features.columns(rows)])


def _between_records(
    features: Features,
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> _System:
    r""":math:`S\Phi\Phi^*S`, S the weights and, for features that need it, the rescaling."""
    gram, scales = summed(features.columns(rows)), weights
    if features.rescaled:
        # The length of a row is known only once its block is summed: the rescaling comes last.
        scales = weights / np.maximum(1.0, np.sqrt(gram.diagonal()))
    gram.scale(scales)
    return _System(gram, labels * weights, scales)


def _between_features(
    features: Features,
    rows: NDArray[np.float64],
    labels: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> _System:
    r""":math:`\Phi^*S^2\Phi` and :math:`\Phi^*S^2y`, from the same blocks of rows."""
    right: Any = 0.0

    def blocks() -> Iterator[NDArray[Any]]:
        nonlocal right
        for start in range(0, rows.shape[0], _ROWS):
            part = slice(start, start + _ROWS)
            adjoint = (features(rows[part]) * weights[part, None]).conj().T
            right = right + adjoint @ (labels[part] * weights[part])
            yield adjoint

    return _System(summed(blocks()), right, weights)


def _solve(system: Callable[[], _System]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the pseudo-inverse times the right side, and the scales.

    The matrix lies where its factor comes to lie: it is made again where Cholesky fails.

    Raises:
        ValueError, LinAlgError: not finite, or no convergence.
    """
    equations = system()
    # Cholesky where the condition number is small; eigenvalues where it is not, or where it fails.
    factor = equations.gram.cholesky(_WELL)
    if factor is not None:
        return factor.solve(equations.right), equations.scales
    equations = system()
    return equations.gram.pseudo_solve(equations.right), equations.scales
