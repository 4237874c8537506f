r"""Gram matrix and moments, summed without any rounding error, whatever the number of records.

Features and labels are first truncated to 15 binary digits below their public bounds, which makes
no row longer. Products are then integers below 2^30, a block of 4096 of them sums exactly in
floating point in any order, and blocks add up as integers. What is left is the rounding of results.
Truncation would enlarge what a matrix product's last digits owe to a row's place among the others;
features are therefore computed row by row, as a function of the row alone.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcore.learning.solvers.sums import blocks
from dpcore.rounding import gamma

_DIGITS = 15
_MOST = 2**30
"""Sums saturate at this many records' worth, which moves no two of them apart."""


class Sums(NamedTuple):
    """PRIVATE: sum phi phi^T, shape (d, d), and sum y phi, shape (d,)."""

    gram: NDArray[np.float64]
    moments: NDArray[np.float64]


def _exponent(bound: float) -> int:
    """The least e with bound < 2^e."""
    return math.frexp(bound)[1]


def exact_sums(
    features: NDArray[np.float64], labels: NDArray[np.float64], kappa: float, label_bound: float
) -> Sums:
    """PRIVATE: of the truncated records.

    Args:
        features: Shape (n, d), rows at most kappa long. labels: Shape (n,), within label_bound.
    """
    e, f = _exponent(kappa), _exponent(label_bound)
    width = features.shape[1]
    gram = np.zeros((width, width), dtype=np.int64)
    moments = np.zeros(width, dtype=np.int64)
    for part in blocks(len(labels)):
        rows = np.trunc(np.ldexp(features[part], _DIGITS - e))
        values = np.trunc(np.ldexp(labels[part], _DIGITS - f))
        gram += (rows.T @ rows).astype(np.int64)
        moments += (rows.T @ values).astype(np.int64)
    limit = _MOST << 2 * _DIGITS
    return Sums(
        np.ldexp(np.clip(gram, -limit, limit).astype(np.float64), 2 * (e - _DIGITS)),
        np.ldexp(np.clip(moments, -limit, limit).astype(np.float64), e + f - 2 * _DIGITS),
    )


def joined(sums: Sums, a: float, w: float) -> NDArray[np.float64]:
    """One isometric vector: diagonal, sqrt(2) times what is above it, moments; weighted."""
    rows, columns = np.triu_indices(sums.moments.size, 1)
    above = math.sqrt(2) * sums.gram[rows, columns]
    return np.concatenate([np.diag(sums.gram) / a, above / a, sums.moments / w])


def parted(vector: NDArray[np.float64], width: int, a: float, w: float) -> Sums:
    """The inverse of `joined`."""
    rows, columns = np.triu_indices(width, 1)
    gram = np.diag(vector[:width] * a)
    gram[rows, columns] = vector[width : width + rows.size] * (a / math.sqrt(2))
    gram[columns, rows] = gram[rows, columns]
    return Sums(gram, vector[width + rows.size :] * w)


def joined_error(
    at_most: int | None, width: int, kappa: float, label_bound: float, a: float, w: float
) -> float:
    """How far the computed vector may be from the exact one, in l2: a few roundings an entry.

    No entry exceeds 4 kappa^2 or 4 kappa M times the records, `_MOST` of them at most.
    """
    records = _MOST if at_most is None else min(at_most, _MOST)
    gram = 4 * math.sqrt(2) * kappa * kappa * width / a
    moments = 4 * kappa * label_bound * math.sqrt(width) / w
    return gamma(8) * records * (gram + moments)
