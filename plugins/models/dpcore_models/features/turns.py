r"""Cosines of whole arrays of turns, :math:`\cos 2\pi t`, several times as fast as numpy's.

The angle is reduced exactly, :math:`r=t-\mathrm{rint}(t)`, and
:math:`\cos 2\pi r=2g(r^2)^2-1` with g a polynomial of degree 8 for :math:`\cos\pi\sqrt v` on
[0, 1/4]: 1 + v q(v), q the interpolant of :math:`(\cos\pi\sqrt v-1)/v` at the Chebyshev nodes,
with coefficients rounded to doubles.

Error. g is within 2^-53 of the cosine (checked in exact arithmetic by the tests), v within u v of
r^2, and Horner's scheme errs by at most :math:`u\,(1+\sum_k(3k+2)|q_{k-1}|v^k)`; the doubled square
turns an error e of g into 4|g|e + 2e^2 and adds 2 u g^2 + u. The sum of all this is below 13 u for
every v in [0, 1/4]: what is computed is within `ERROR` = 16 u of the cosine of the given t.
The angle itself has no error: it is a sum of integers (`integer_turns`), by definition of the map.
Every step is one correctly rounded +, - or * or a rint, so a wave of a row has the same bits only
and in any table, in any block, on any machine.
"""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dpcore.rounding import UNIT
from dpcore_models.features.angles import integer_rows, integer_turns

ERROR = 16 * UNIT
"""How far `cosines` and `sines` may lie from the exact values at the turns they are given."""

BLOCK = 1024
"""Columns at a time, where features are made block by block."""

COEFFICIENTS = (
    -4.934802200544679,
    4.058712126416736,
    -1.3352627688518803,
    0.2353306302721577,
    -0.02580689002587539,
    0.001929562652479866,
    -0.00010458286368326585,
    4.166399462726949e-06,
)
"""Of q above, the constant first."""

_CHUNK = 32768  # numbers at a time: few calls, and what they need stays in a core's own cache


def cosines(turns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Replace every t by cos(2 pi t), within `ERROR` for finite |t|, and return the array.

    Args:
        turns: Contiguous, in either order; overwritten.
    """
    assert turns.flags.forc, "a view of all entries, in one dimension"
    flat = turns.reshape(-1, order="A")
    squares, powers = np.empty(_CHUNK), np.empty(_CHUNK)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        v, g = squares[: part.size], powers[: part.size]
        # The reduction is exact: a double less the integer nearest to it is a double.
        np.rint(part, out=v)
        part -= v
        np.multiply(part, part, out=v)
        np.multiply(v, COEFFICIENTS[-1], out=g)
        # Horner's scheme for v q(v), in place: each step is one correctly rounded operation.
        for coefficient in COEFFICIENTS[-2::-1]:
            g += coefficient
            g *= v
        g += 1.0
        # The double angle, cos 2 pi r = 2 cos^2(pi r) - 1, with g for cos(pi r).
        np.multiply(g, g, out=part)
        part *= 2.0
        part -= 1.0
    return turns


def sines(turns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Replace every t by sin(2 pi t), within `ERROR`: the cosine a quarter turn earlier.

    The quarter is taken off the reduced angle, which rounds by at most u/2, or 3.2 u in the sine.
    """
    turns -= np.rint(turns)
    turns -= 0.25
    return cosines(turns)


class Turns:
    """PUBLIC: frequencies and phases as turns, and the angles of rows at them.

    Args:
        frequencies: In radians, shape (p, N). phases: In radians, shape (N,), or None.
    """

    def __init__(
        self, frequencies: NDArray[np.float64], phases: NDArray[np.float64] | None
    ) -> None:
        offsets = np.zeros(frequencies.shape[1]) if phases is None else phases
        self._turn_matrix = integer_turns(frequencies / (2 * math.pi), offsets / (2 * math.pi))

    @property
    def count(self) -> int:
        """N, the number of waves."""
        return int(self._turn_matrix.shape[1])

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The exact factor of `integer_rows`; shape (p + 1, N)."""
        return self._turn_matrix

    def at(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the turns of all waves at encoded rows, shape (n, N)."""
        return integer_rows(rows) @ self._turn_matrix

    def blocks(self, rows: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
        """Yield the same, `BLOCK` waves at a time, shape (n, at most BLOCK), in Fortran order."""
        extended = integer_rows(rows).T
        for start in range(0, self.count, BLOCK):
            # The product is transposed, so that each wave's angles are contiguous in memory.
            yield (self._turn_matrix[:, start : start + BLOCK].T @ extended).T
