"""Continuous draws from secret words, for mechanisms whose claim is about real arithmetic."""

import numpy as np
from numpy.typing import NDArray

from dpcore.errors import need
from dpcore.randomness import Stream


def laplace(count: int, stream: Stream) -> NDArray[np.float64]:
    """Draw independently from the density exp(-|x|)/2, shape (count,)."""
    # minus the logarithm of a uniform is exponential; a second uniform gives the sign
    words = stream.uniform((2, count))
    return np.asarray(np.log(words[0]) * np.where(words[1] < 0.5, 1.0, -1.0))


def gamma(shapes: NDArray[np.float64], stream: Stream) -> NDArray[np.float64]:
    r"""Draw one independent Gamma(shape, 1) number for every entry of `shapes`, each > 0.

    With d = shape - 1/3 and x normal, d(1 + w)^3 for :math:`w = x/\sqrt{9d}` is accepted with
    probability :math:`\exp(x^2/2 + d(3\log(1+w) - 3w - 3w^2 - w^3))`; for shapes below 1, a draw of
    shape + 1 times a power of a uniform. No term cancels, so that shapes up to 1e15 keep their
    digits.

    Source: Marsaglia & Tsang (2000), ACM TOMS 26(3):363-372.
    """
    flat = np.ascontiguousarray(shapes, dtype=np.float64).reshape(-1)
    need(
        not flat.size or (bool(np.isfinite(flat).all()) and float(flat.min()) > 0),
        ValueError,
        "gamma needs finite shapes > 0",
    )
    # the proposal needs shapes >= 1: smaller ones are raised by 1 here and corrected at the end
    small = flat < 1
    d = np.where(small, flat + 1, flat) - 1 / 3
    draws = np.empty_like(flat)
    waiting = np.arange(flat.size)
    while waiting.size:
        x, scales = stream.normal(waiting.size), d[waiting]
        w = x / np.sqrt(9 * scales)
        log_u = np.log(stream.uniform(waiting.size))
        # a draw with 1 + w <= 0 is no length; it is rejected like the others
        inside = w > -1
        safe = np.where(inside, w, 0.0)
        bound = 0.5 * x * x + scales * (3 * (np.log1p(safe) - safe) - 3 * safe**2 - safe**3)
        mask = inside & (log_u < bound)
        draws[waiting[mask]] = scales[mask] * (1 + w[mask]) ** 3
        waiting = waiting[~mask]
    if small.any():
        draws[small] *= stream.uniform(int(small.sum())) ** (1 / flat[small])
    return draws.reshape(np.shape(shapes))


def direction(dimension: int, stream: Stream) -> NDArray[np.float64]:
    """Return a uniform point on the unit sphere, shape (dimension,)."""
    while True:
        point = stream.normal(dimension)
        if (length := float(np.linalg.norm(point))) > 0:
            return np.asarray(point / length)
