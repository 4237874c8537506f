r"""Rows of integers for gradients of any size, so that the core accepts every one of them.

A gradient g of length n is rounded in units of 2^e, after it was scaled to at most
:math:`L-\sqrt d/2` units: nearest integers are at most :math:`\sqrt d/2` away, so that the row is
at most L long. Nothing private rests on this: what comes out longer, for whatever reason, the core
counts as zeros (`dpcore.learners.clipping`).

Where the clip follows a quantile q of lengths, one more number of the same row says whether the
gradient was short (Andrew et al. 2021, arXiv:1905.03871, who ask for the count apart): with h what
is left of the gradient, at most C long, the row is

.. math:: (a\,h,\ \beta C\,(1[\text{short}]-q)),\qquad a^2+\beta^2\max(q,1-q)^2\le1 ,

and so at most C long as well: no query, share or event is added. The counts of many records sum to
zero where a share q of them is short, however many they are.
"""

import math
from collections.abc import Iterable

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.learners.clipping import IntegerRows
from dpcore.query import Sum
from dpcore.rounding import down, up

COUNT_WEIGHT = 0.25
"""beta: gradients pay 1 - a for the count, 0.8 percent at the median."""

_FINE = 20  # a clip is at least 2^20 units, so that rounding turns a gradient by little
_SHRINK = -600  # powers of two by which a gradient is scaled whose square would overflow


def declared(clip: float) -> Sum:
    """Return a sum of rows at most `clip` long, counted in a unit that 32-bit integers have room
    for.
    """
    return Sum(clip=clip, exponent=math.frexp(clip)[1] - 1 - _FINE)


def gradient_weight(quantile: float | None) -> float:
    """Return a: what a gradient is multiplied by, rounded down; 1 without a count next to it."""
    if quantile is None:
        return 1.0
    return down(math.sqrt(1 - (COUNT_WEIGHT * max(quantile, 1 - quantile)) ** 2), roundings=6)


@attrs.frozen(kw_only=True)
class Proposer:
    """Clips gradients to integers.

    Args:
        sum: What a row may be, by `declared`. size: How many numbers a row has.
        quantile: q, where the last number of a row is the count; None: a row is the gradient only.
        stretch: What a gradient is divided by before it is clipped: public.
    """

    sum: Sum
    size: int
    quantile: float | None = None
    stretch: float = 1.0

    @property
    def room(self) -> float:
        """How many units long a gradient may be before it is rounded."""
        limit = math.floor(math.ldexp(self.sum.clip, -self.sum.unit))
        return down(max(limit - up(math.sqrt(self.size), roundings=1) / 2, 0.0), roundings=2)

    def rows(self, gradients: Iterable[NDArray[np.floating]], count: int) -> IntegerRows:
        """PRIVATE: return the rows of `count` gradients, each a function of its gradient only.

        A gradient that is not finite becomes zeros.
        """
        integers = np.zeros((count, self.size), dtype=np.int32)
        scale, room = math.ldexp(1.0, -self.sum.unit) / self.stretch, self.room
        weight, numbers = gradient_weight(self.quantile), self.size - (self.quantile is not None)
        # One gradient at a time, in one buffer, stays in the cache however large a block is.
        row = np.empty(numbers)
        with np.errstate(all="ignore"):
            for place, gradient in enumerate(gradients):
                doubles = np.asarray(gradient, dtype=np.float64)
                length = math.sqrt(doubles @ doubles)
                is_short = scale * length <= room
                if not math.isfinite(length):
                    doubles = np.ldexp(doubles, _SHRINK)
                    length = math.sqrt(doubles @ doubles)
                    factor = room / length
                elif is_short:
                    factor = scale
                else:
                    factor = room / up(length, roundings=self.size + 4)
                if math.isfinite(length):
                    np.multiply(doubles, weight * factor, out=row)
                    integers[place, :numbers] = np.rint(row, out=row)
                    if self.quantile is not None:
                        integers[place, -1] = int(COUNT_WEIGHT * room * (is_short - self.quantile))
        return IntegerRows(integers)
