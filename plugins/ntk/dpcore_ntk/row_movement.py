r"""How far one row of the features behind the kernel moves when one record does.

Theorem (2.2): with :math:`\|x\|,\|x'\|\le B`, :math:`\|x-x'\|\le\beta` and s the largest eigenvalue
of S,

.. math:: \|F(x)-F(x')\|\le\sqrt s\,\|xx^T-x'x'^T\|_F\le b(\beta)=\sqrt s\begin{cases}
          \beta(2B-\beta)&\beta\le2B/3\\ \beta\sqrt{(4B^2-\beta^2)/2}&2B/3\le\beta\le\sqrt2B\\
          \sqrt2B^2&\sqrt2B\le\beta\end{cases}

Proof. With D = x - x', P = x + x': :math:`xx^T-x'x'^T=(DP^T+PD^T)/2`, whose squared norm is
:math:`(|D|^2|P|^2+(D\cdot P)^2)/2`, subject to :math:`|P|^2+|D|^2+2|D\cdot P|\le4B^2`. For given
\|D\| this is largest at an end of the range of :math:`|D\cdot P|`: moves along x, or at equal
lengths. The first is b's first line, the second its second, and what is largest over |D| <= beta
is taken. Attained, the second line where the two largest eigenvalues of S are equal.

As printed (Gu et al. 2024, E.13): the kernel matrix of n rows moves by at most
:math:`\sqrt n\,\sigma^2B^3\beta` in Frobenius norm, up to a constant and for enough neurons. For
every S and n it moves by at most :math:`\sqrt{8(n+1)}\,sB^3\beta`: the 2(n - 1) entries in row and
column by :math:`2sB^3\beta`, the one on the diagonal by :math:`4sB^3\beta`.
"""

import math

from dpcore.rounding import up


def row_movement(radius: float, norm: float, largest: float) -> float:
    """b(beta), rounded up.

    Args:
        radius: beta. norm: B. largest: s.
    """
    root = math.sqrt(largest)
    # The three lines of the theorem; they agree where
    # they meet, so that rounding picks no wrong one.
    if radius <= 2 * norm / 3:
        return up(root * radius * (2 * norm - radius), roundings=500)
    if radius <= math.sqrt(2) * norm:
        return up(root * radius * math.sqrt((4 * norm * norm - radius * radius) / 2), roundings=500)
    return up(root * math.sqrt(2) * norm * norm, roundings=500)


def matrix_movement(radius: float, norm: float, largest: float, records: int) -> float:
    """Return the Frobenius bound for every S and n, rounded up."""
    return up(math.sqrt(8 * (records + 1)) * largest * norm**3 * radius, roundings=500)
