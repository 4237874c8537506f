r"""Rows of integers for gradients of any size, so that the core accepts every one of them.

A gradient g of length n is rounded in units of 2^e, after it was scaled to at most
:math:`L-\sqrt d/2` units: nearest integers are at most :math:`\sqrt d/2` away, so that the row is
at most L long. Nothing private rests on this: what comes out longer, for whatever reason, the core
counts as zeros (`dpcore.learning.learners.clipping`).
"""

import math
from collections.abc import Iterable

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.learning.learners.clipping import IntegerRows
from dpcore.query import Sum
from dpcore.rounding import down, up

_FINE = 20  # a clip is at least 2^20 units, so that rounding turns a gradient by little
_SHRINK = -600  # powers of two by which a gradient is scaled whose square would overflow


def declared(clip: float) -> Sum:
    """A sum of rows at most `clip` long, counted in a unit that 32-bit integers have room for."""
    return Sum(clip=clip, exponent=math.frexp(clip)[1] - 1 - _FINE)


@attrs.frozen(kw_only=True)
class Proposer:
    """Clips gradients to integers.

    Args:
        sum: What a row may be, by `declared`. size: How many numbers a gradient has.
    """

    sum: Sum
    size: int

    @property
    def room(self) -> float:
        """How many units long a gradient may be before it is rounded."""
        limit = math.floor(math.ldexp(self.sum.clip, -self.sum.unit))
        return down(max(limit - up(math.sqrt(self.size), roundings=1) / 2, 0.0), roundings=2)

    def rows(self, gradients: Iterable[NDArray[np.floating]], count: int) -> IntegerRows:
        """PRIVATE: the rows of `count` gradients, each a function of its gradient alone.

        A gradient that is not finite becomes zeros.
        """
        integers = np.zeros((count, self.size), dtype=np.int32)
        scale, room = math.ldexp(1.0, -self.sum.unit), self.room
        # One gradient at a time, in one buffer, stays in the cache however large a block is.
        row = np.empty(self.size)
        with np.errstate(all="ignore"):
            for place, gradient in enumerate(gradients):
                doubles = np.asarray(gradient, dtype=np.float64)
                length = math.sqrt(doubles @ doubles)
                if not math.isfinite(length):
                    doubles = np.ldexp(doubles, _SHRINK)
                    length = math.sqrt(doubles @ doubles)
                    factor = room / length
                elif scale * length <= room:
                    factor = scale
                else:
                    factor = room / up(length, roundings=self.size + 4)
                if math.isfinite(length):
                    np.multiply(doubles, factor, out=row)
                    integers[place] = np.rint(row, out=row)
        return IntegerRows(integers)
