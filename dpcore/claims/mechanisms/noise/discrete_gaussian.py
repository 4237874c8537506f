r"""The discrete Gaussian, exact: P(z) proportional to exp(-z^2/(2 width^2)) on the integers.

Source: Canonne, Kamath & Steinke (2020), arXiv:2004.00010, Definition 1. The law is theirs; their
rejection sampler is replaced by the staircase of `dpcore.claims.mechanisms.noise.magnitudes`, which
is as exact and works on whole arrays.
"""

from fractions import Fraction

from dpcore.claims.mechanisms.noise.magnitudes import Magnitudes
from dpcore.errors import need


def gaussian_law(width: Fraction | float, count: int) -> Magnitudes:
    """The law of |z|, with tables that suit `count` draws at a time; its `symmetric` draws z.

    Args:
        width: In (0, 2^53]; a float means the rational number it is.

    Raises:
        ValueError: `width` is outside that range, or not finite.
    """
    # 1/(2 width^2) as a fraction: no float enters the law
    exact = positive_rational(width, "width")
    return Magnitudes.for_draws(1 / (2 * exact * exact), 2, count)


def positive_rational(value: Fraction | float, name: str) -> Fraction:
    """`value` exactly.

    Raises:
        ValueError: it is not finite, or not in (0, 2^53].
    """
    # False for NaN.
    need(0 < value <= 2**53, ValueError, f"{name} must be in (0, 2^53], got {name}={value!r}")
    return Fraction(value)
