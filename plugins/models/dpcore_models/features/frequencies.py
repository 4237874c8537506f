"""Random frequencies of a Gaussian kernel, shared by the cosine maps."""

import numpy as np
from numpy.typing import NDArray

from dpcore.randomness import Stream
from dpcore.rounding import up

ROUNDING = up(1.0, roundings=5000)
"""Granted to the norm of a row of unit-norm features for floating-point rounding."""


def gaussian_frequencies(
    stream: Stream, rows: int, columns: int, bandwidth: float
) -> NDArray[np.float64]:
    """Draw frequencies of exp(-|x - y|^2 / (2 bandwidth^2)): N(0, 1/bandwidth^2).

    The array has shape (rows, columns).

    Read-only.

    Source: Rahimi & Recht (2007), Theorem 1 (Bochner) and Figure 1.
    """
    # By Bochner's theorem the kernel is the Fourier transform of this normal distribution.
    return shared(stream.normal((rows, columns)) / bandwidth)


def shared(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Make an array read-only: models of one run may share it."""
    array.flags.writeable = False
    return array
