r"""T1: what is projected on a public ball moves by at most its diameter."""

import math

from dpcore.errors import ParameterError


def ball_diameter(radius: float) -> float:
    r"""Bound a projection on a ball (T1): under *any* adjacency it moves by at most 2R.

    Proof: two points of a ball of radius R. Since 0 is in the ball too, the bound covers 0 as the
    fallback for a failed computation. It cannot be sharpened for least-squares interpolation: two
    nearly equal features with labels 0 and t, or 0 and -t, have solutions that are arbitrarily
    long in opposite directions.

    Args:
        radius: R, public: derived from no record, and from no private number of records.
    Raises:
        ParameterError: R or 2R is not a finite positive number.

    Source: T1 in docs/theorems-ridge.md.
    """
    if not (radius > 0 and math.isfinite(2 * radius)):
        raise ParameterError("ball_diameter", "radius > 0 with 2 radius finite", "radius", radius)
    return 2 * radius  # exact: a power of two
