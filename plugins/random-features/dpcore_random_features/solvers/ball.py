"""Projection onto a ball of public radius, certified in floating point."""

import math

import numpy as np
from numpy.typing import NDArray

from dpcore.rounding import gamma
from dpcore_models.solvers.sums import norm

_HAIR = gamma(16)  # above the relative error of `norm` and of one rescaling together
_LEAST = 2.0**-900  # radii below have no room above the denormal numbers, which round coarsely


def into_ball(vector: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """Return the point of the ball nearest to `vector`, less a hair; its true norm is at most
    `radius`.

    Total: what is not finite goes to 0, and so does everything where the radius is below 2^-900.
    Points inside by a hair stay as they are; otherwise the result is never farther than 2^-47
    radius from the exact projection of a finite vector.
    """
    zero = np.zeros_like(vector)
    if radius < _LEAST or not np.isfinite(vector).all():
        return zero
    # Compared with a hair to spare: the computed norm may be below the true one.
    inside = radius * (1 - _HAIR)
    if norm(vector) <= inside:
        return vector
    # Scaled by the largest entry first, so that squares neither overflow nor vanish.
    largest = float(np.max(np.abs(vector)))
    direction = vector / largest
    projection: NDArray[np.float64] = direction * (radius * (1 - 2 * _HAIR) / norm(direction))
    length = norm(projection)
    # Checked once more after rounding: only what is certified to be inside leaves this function.
    return projection if math.isfinite(length) and length <= inside else zero
