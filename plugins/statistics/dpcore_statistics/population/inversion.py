r"""Inversion: a quantile of the population by the tests of all points of a grid.

With N(t) the noisy number of values up to t, and :math:`N_<(t)` those below it, a point t is left
out iff :math:`N(t)-q\tilde n<-z\sigma_t` or :math:`N_<(t)-q\tilde n>z\sigma_t`, where
:math:`\sigma_t^2=\tilde nq(1-q)+s^2\lVert A_t-qA_{end}\rVert^2`. What remains is reported by its
hull. Only the test at the true quantile must not fail, so that no band over all points is paid for.
Ties make both tests hold.
"""

import numpy as np
from numpy.typing import NDArray

from dpcore_statistics.population.sampling import Numbers, Sampling

Points = NDArray[np.intp]


def quantile_points(
    distances: Numbers, lengths: Numbers, proportions: Numbers, n: Numbers, sampling: Sampling
) -> tuple[Points, Points]:
    """Return the first and the last point of every hull: shapes (groups, quantiles).

    Args:
        distances: N(t) - q n, shape (groups, quantiles, points).
        lengths: Of its noise, for noise of width 1; shape (quantiles or 1, points).
        proportions: q, shape (quantiles,).
        n: Of every group, shape (groups,); noisy, or public.
    """
    size, records = distances.shape[-1], np.maximum(n, 0.0)[:, None, None]
    sampled = (
        records * (proportions * (1 - proportions))[None, :, None] * sampling.fraction(records)
    )
    half = sampling.z * np.sqrt(sampled + np.square(sampling.width * lengths)[None])
    # N_<(t) is N at the point before; nothing lies below the first point, or beyond the last.
    not_above = np.ones(distances.shape, dtype=np.bool_)
    not_above[..., 1:] = (distances <= half)[..., :-1]
    not_below = distances >= -half
    not_below[..., -1] = True
    inside = not_above & not_below
    first = np.argmax(inside, axis=-1)
    return first, size - 1 - np.argmax(inside[..., ::-1], axis=-1)
