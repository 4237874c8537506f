r"""Randomised Kaczmarz, many exact steps at a time.

A step projects the weights on one equation, :math:`w\leftarrow w-(a\cdot w-b)\,a/\|a\|^2`; a block
of them solves :math:`\mathrm{tril}(AA^T)u=Aw-b` and sets :math:`w\leftarrow w-A^Tu`. It is gradient
descent at rate 1 on normalised rows, which is what bounds on its sensitivity are about.
"""

import numpy as np
import scipy
from numpy.typing import NDArray


def kaczmarz(
    features: NDArray[np.float64],
    labels: NDArray[np.float64],
    order: NDArray[np.intp],
    *,
    block: int = 16,
) -> NDArray[np.float64]:
    """Return the weights after all steps, from zero, shape (d,).

    Args:
        features: Rows a, none of them zero, shape (n, d). labels: b, shape (n,).
        order: Row numbers, used from first to last; they may repeat.
        block: Steps handled at a time.
    """
    weights = np.zeros(features.shape[1])
    for start in range(0, len(order), block):
        rows = order[start : start + block]
        equations = features[rows]
        # Below the diagonal: what earlier steps of the block do to the residual of a later one.
        gram = scipy.linalg.blas.dgemm(1.0, equations.T, equations.T, trans_a=1)
        weights -= equations.T @ scipy.linalg.blas.dtrsv(
            gram, equations @ weights - labels[rows], lower=1
        )
    return weights
