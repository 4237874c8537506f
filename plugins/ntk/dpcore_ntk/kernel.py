r"""The kernel matrix :math:`(XX^T)\circ(XSX^T)`, its lower triangle in blocks into a matrix."""

import numpy as np
from numpy.typing import NDArray

BLOCK = 128


def ntk_lower(
    rows: NDArray[np.float64], hidden: NDArray[np.float64], out: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Entries (x_i . x_j)(z_i . z_j) for j <= i, shape (n, n); what is above them is arbitrary.

    Args:
        rows: x, shape (n, d). hidden: z = R x, shape (n, r).
        out: Where to write, if it is to be used again.
    """
    # By blocks of rows up to the diagonal: half the work, and one block of extra memory.
    count = rows.shape[0]
    out = np.empty((count, count)) if out is None else out
    scratch = np.empty(count * min(BLOCK, count))  # of one block of rows, used again
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        target = out[start:stop, :stop]
        second = scratch[: (stop - start) * stop].reshape(stop - start, stop)
        np.matmul(rows[start:stop], rows[:stop].T, out=target)
        np.matmul(hidden[start:stop], hidden[:stop].T, out=second)
        target *= second
    return out


def ntk_matrix(rows: NDArray[np.float64], hidden: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the whole symmetric matrix, shape (n, n), its upper half copied from the lower."""
    lower = ntk_lower(rows, hidden)
    for start in range(0, len(lower), BLOCK):
        stop = start + BLOCK
        corner = lower[start:stop, start:stop]
        corner[...] = np.tril(corner) + np.tril(corner, -1).T
        lower[start:stop, stop:] = lower[stop:, start:stop].T
    return lower


def ntk_between(
    rows: NDArray[np.float64],
    hidden: NDArray[np.float64],
    others: NDArray[np.float64],
    others_hidden: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the kernel of every row with every other, shape (n, m)."""
    product: NDArray[np.float64] = rows @ others.T
    product *= hidden @ others_hidden.T
    return product
