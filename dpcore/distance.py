r"""Distance: in what sense a statistic moves between neighbours, and what one norm says of another.

Theorem: of d real coordinates :math:`|v|_\infty\le|v|_2\le|v|_1`, and
:math:`|v|_1\le\sqrt d\,|v|_2`, :math:`|v|_2\le\sqrt d\,|v|_\infty`, :math:`|v|_1\le
d\,|v|_\infty` (Cauchy & Schwarz); a vector of equal entries attains the last three. Nothing is
proved between these norms and the other distances.
"""

import enum
import math
from collections.abc import Iterable

from dpcore.rounding import up


class Distance(enum.StrEnum):
    """The norm in which a sensitivity is stated; a mechanism has exactly one.

    `l1`, `l2`, `linf`: on the real coordinates (a complex coordinate counts as two; symmetric
    matrices travel as isometric vectors, so that Frobenius is l2). `rkhs`: the norm of a function
    in its kernel's space. `psd_rows`: a Gram matrix of rows, one row of which moves in l2.
    `hamming`: the number of entries that differ.
    """

    L1 = "l1"
    L2 = "l2"
    LINF = "linf"
    RKHS = "rkhs"
    PSD_ROWS = "psd_rows"
    HAMMING = "hamming"


_HALVES = {Distance.LINF: 0, Distance.L2: 1, Distance.L1: 2}
"""Of each norm, h: a vector of d ones is d^(h/2) long. A longer norm is never smaller."""

CONVERTIBLE = frozenset(_HALVES)
"""The norms of real coordinates, each of which bounds the others."""


def longest_norm(norms: Iterable[Distance]) -> Distance:
    """Of several convertible norms the one that no other exceeds: l1, else l2, else linf."""
    return max(norms, key=_HALVES.__getitem__)


def conversion(norm: Distance, target: Distance, size: int) -> float | None:
    """The least c with \\|v\\| in `target` at most c \\|v\\| in `norm`, rounded up.

    Args:
        size: Number of real coordinates of v.

    Returns:
        None where no such c is proved: one of the two is no norm of coordinates.
    """
    if norm is target:
        return 1.0
    if not {norm, target} <= CONVERTIBLE:
        return None
    square = size ** max(0, _HALVES[target] - _HALVES[norm])
    # A root that is a whole number is exact; another one is rounded up.
    root = math.isqrt(square)
    return float(root) if root * root == square else up(math.sqrt(square), roundings=2)
