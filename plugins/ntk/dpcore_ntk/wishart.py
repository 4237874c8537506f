r"""The mean of k outer products g g^T, g ~ N(0, Sigma): a Wishart matrix over k. Real arithmetic.

For k >= n by Bartlett's decomposition, at a cost that does not depend on k: with L L^T = Sigma and
T lower triangular, T_ii^2 ~ chi-square with k - i degrees of freedom (i from 0) and standard
normals below, :math:`(LT)(LT)^T/k`. For k < n from the k vectors themselves, of rank k.

Source: Bartlett (1933); Muirhead (1982), Theorem 3.2.14.
"""

import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.claims.mechanisms.noise.continuous import gamma
from dpcore.errors import need
from dpcore.randomness import Stream

_COLUMNS = 256  # of a product of triangles at a time


def wishart_mean(
    covariance: NDArray[np.float64], count: int, stream: Stream
) -> NDArray[np.float64]:
    """(1/count) sum of g g^T over `count` independent g ~ N(0, covariance), shape (n, n).

    Args:
        covariance: Symmetric positive definite, shape (n, n); its lower triangle is read.
        count: k, at least 1.

    Raises:
        ValueError: `covariance` is not positive definite, or `count` is below 1.
    """
    n = covariance.shape[0]
    need(count >= 1, ValueError, f"count must be >= 1, got count={count!r}")
    # the last coordinate first: lauum multiplies an upper factor with its transpose, potrf gives
    # a lower one
    reversed_ = np.asfortranarray(covariance[::-1, ::-1].T)
    factor, failed = scipy.linalg.lapack.dpotrf(reversed_, lower=1, clean=1, overwrite_a=1)
    need(not failed, ValueError, "the covariance is not positive definite")
    # Bartlett's decomposition needs k >= n; below that, the k vectors themselves
    if count < n:
        vectors = scipy.linalg.blas.dtrmm(
            1.0, factor, stream.normal(n * count).reshape((n, count), order="F"), lower=1
        )
        return mirrored(scipy.linalg.blas.dsyrk(1.0 / count, vectors[::-1], lower=0))
    product = _lower_product(factor, _bartlett(n, count, stream))
    product *= 1 / np.sqrt(count)
    square, failed = scipy.linalg.lapack.dlauum(
        np.asfortranarray(product[::-1, ::-1]), lower=0, overwrite_c=1
    )
    assert not failed
    return mirrored(square)


def _bartlett(n: int, count: int, stream: Stream) -> NDArray[np.float64]:
    """T above: lower triangular, shape (n, n), column by column."""
    lower = np.zeros((n, n), order="F")
    normals = stream.normal(n * (n - 1) // 2)
    start = 0
    for j in range(n - 1):
        lower[j + 1 :, j] = normals[start : start + n - 1 - j]
        start += n - 1 - j
    degrees = np.asarray(count - np.arange(n), dtype=np.float64)
    np.fill_diagonal(lower, np.sqrt(2 * gamma(0.5 * degrees, stream)))
    return lower


def _lower_product(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the product of two lower triangular matrices, skipping most of their zeros; over
    `second`.
    """
    n = first.shape[0]
    # the columns of a block are 0 above row j, so the rows from j on suffice
    for j in range(0, n, _COLUMNS):
        block = second[j:, j : j + _COLUMNS]
        block[...] = scipy.linalg.blas.dtrmm(1.0, first[j:, j:], block, lower=1)
    return second


def mirrored(upper: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the symmetric matrix with that upper triangle, block by block."""
    full = np.ascontiguousarray(upper.T)  # its lower triangle
    n, block = full.shape[0], 128
    for start in range(0, n, block):
        stop = min(n, start + block)
        corner = full[start:stop, start:stop]
        corner[...] = np.tril(corner) + np.tril(corner, -1).T
        full[start:stop, stop:] = full[stop:, start:stop].T
    return full
