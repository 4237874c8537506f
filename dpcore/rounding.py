r"""Rounding, reported by its reason: how many roundings lie between a number and its exact value.

Let c be computed from exact inputs for a number t >= 0 by operations that each err by a factor
:math:`(1+\delta)^{\pm1}` with :math:`|\delta|\le u=2^{-53}` (a sum of numbers >= 0, a product, a
quotient, a root; a root halves what was collected before it, a power multiplies it). After n of
them :math:`c(1-u)^n\le t\le c(1-u)^{-n}`.

Claim: with :math:`m=2^{k-53}`, the least power of two with :math:`m\ge(n+2)u`, the computed
c (1 + m) is at least t and the computed c (1 - m) is at most t, for n up to 2^24.
Proof: the product rounds once more, so that c (1 + m) is at least
:math:`t(1-u)^{n+1}(1+m)\ge t(1+m-(n+1)u-m(n+1)u)`, and :math:`m(1-(n+1)u)\ge(n+1)u` since
:math:`(n+2)u(1-(n+1)u)\ge(n+1)u` where :math:`(n+1)(n+2)u\le1`. Likewise
:math:`c(1-m)(1+u)\le c(1-m+u)\le c(1-nu)\le t`. []

Margins are powers of two: counting one rounding more rarely moves a published number. A count is an
upper bound; many are far above what they count. A function of the standard library that errs by
less than k units in the last place counts as 2k. Nothing here covers underflow: numbers are 0,
infinite or normal.

`gamma(n)` is the same for what is added to a sum, or where the count depends on the data's shape.

Source: Higham (2002), Accuracy and Stability of Numerical Algorithms, 2nd ed., Lemma 3.1.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

UNIT = 2.0**-53
"""u, the unit roundoff of a double."""

_MOST = 1 << 24

Numbers = TypeVar("Numbers", float, NDArray[np.float64])


def up(value: Numbers, *, roundings: int) -> Numbers:
    """Raise `value`, computed in this many roundings, to at least the exact number >= 0."""
    return value * (1 + _margin(roundings))


def down(value: Numbers, *, roundings: int) -> Numbers:
    """Lower `value`, computed in this many roundings, to at most the exact number >= 0."""
    return value * (1 - _margin(roundings))


def half_square(value: float) -> float:
    """Return x^2/2 to one rounding; at least 2^-1000 if x > 0, as small squares are no doubles."""
    return max(0.5 * value * value, 2.0**-1000) if value > 0 else 0.0


def gamma(roundings: float) -> float:
    """Return gamma_n = n u / (1 - n u): the relative error of a sum or product of n roundings."""
    return roundings * UNIT / (1 - roundings * UNIT)


def _margin(roundings: int) -> float:
    """Return m above."""
    assert 0 < roundings <= _MOST, "a count of roundings is public and small"
    # 2^k is the least power of two above n + 1, so at least n + 2.
    return (1 << (roundings + 1).bit_length()) * UNIT
