r"""Exact: integers in two 64-bit limbs times a power of two, added in any order.

A number is :math:`(2^{32}h+l)\,2^e` with :math:`0\le l<2^{32}`: one (h, l) for every value, so
that equal sums have equal limbs, whatever order they were added in. |h| is at most 2^60, so that no
addition wraps around; one that leaves this range is refused. Sums of 2^40 blocks below 2^52 fit.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Self

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcore.errors import need

_BITS = 32
_LOW = (1 << _BITS) - 1
_HIGHEST = 1 << 60
_FLOATS = 1 << 53
_MOST_SHIFT = 61
_NORMAL = 900  # exponents at which integers below 2^86 are neither huge nor subnormal


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Exact:
    """An array of integers, each times 2^exponent. Immutable; as private as what was added.

    Args:
        high: int64, at most 2^60 in size. low: int64, in [0, 2^32). Of one shape.
        exponent: log2 of the unit that the integers count. Public.
    """

    high: NDArray[np.int64]
    low: NDArray[np.int64]
    exponent: int

    @classmethod
    def zeros(cls, shape: tuple[int, ...], exponent: int) -> Self:
        """Return the sum of nothing: zeros of that shape, in units of 2^exponent."""
        return cls(
            high=np.zeros(shape, dtype=np.int64),
            low=np.zeros(shape, dtype=np.int64),
            exponent=exponent,
        )

    @classmethod
    def of(cls, integers: ArrayLike, exponent: int) -> Self:
        """Create exact sums of integers: of up to 92 bits, or of up to 2^53 if floats hold them.

        Args:
            integers: Of numpy's types; or Python's own, as an array of objects.

        Raises:
            ValueError: a number is no integer, or larger than that.
        """
        if (array := np.asarray(integers)).dtype.kind == "f":
            need(
                bool(((np.abs(array) <= _FLOATS) & (array == np.rint(array))).all()),
                ValueError,
                "floats must hold integers of up to 2^53",
            )
        elif array.dtype.kind == "O":
            is_exact = all(type(n) is int and abs(n >> _BITS) <= _HIGHEST for n in array.flat)
            need(is_exact, ValueError, "objects must be integers of up to 92 bits")
        elif array.dtype.kind not in "bi":
            raise ValueError(f"signed integers are needed, not {array.dtype}")
        # The shift floors, so that `low` is in [0, 2^32) for negative integers too.
        numbers = array if array.dtype.kind == "O" else array.astype(np.int64)
        high, low = (limb.astype(np.int64) for limb in (numbers >> _BITS, numbers & _LOW))
        return cls(high=high, low=low, exponent=exponent)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array of numbers."""
        return self.high.shape

    def __repr__(self) -> str:
        return "Exact(private)"

    def __add__(self, other: Exact) -> Exact:
        """Return the sum.

        Raises:
            ValueError: the shapes or the units differ.
            OverflowError: an entry leaves 92 bits.
        """
        need(
            self.shape == other.shape and self.exponent == other.exponent,
            ValueError,
            "sums of one shape and one unit add up",
        )
        # Two low limbs carry at most 1, and none of the three sums leaves 64 bits.
        low = self.low + other.low
        high = self.high + other.high + (low >> _BITS)
        need(
            not bool((np.abs(high) > _HIGHEST).any()), OverflowError, "an exact sum leaves 92 bits"
        )
        return Exact(high=high, low=low & _LOW, exponent=self.exponent)

    def times(self, factor: int) -> Exact:
        """Multiply every number by a public integer below 2^31 in size.

        Raises:
            OverflowError: an entry leaves 92 bits.
        """
        need(
            not bool((np.abs(self.high) > _HIGHEST // max(1, abs(factor))).any()),
            OverflowError,
            "an exact sum leaves 92 bits",
        )
        # The product of a low limb is below 2^63, and its floor carries into the high one.
        low = self.low * factor
        high = self.high * factor + (low >> _BITS)
        return Exact(high=high, low=low & _LOW, exponent=self.exponent)

    def __eq__(self, other: object) -> bool:
        """Return whether all numbers are the same in the same unit."""
        return (
            isinstance(other, Exact)
            and self.exponent == other.exponent
            and np.array_equal(self.high, other.high)
            and np.array_equal(self.low, other.low)
        )

    __hash__ = None  # type: ignore[assignment]  # private values are no keys

    def integers(self) -> list[int]:
        """Return the integers, flat, in the order of a C array."""
        pairs = zip(self.high.reshape(-1).tolist(), self.low.reshape(-1).tolist(), strict=True)
        return [(high << _BITS) + low for high, low in pairs]

    def floats(self) -> NDArray[np.float64]:
        """Round every number once to the nearest float, ties to even; huge ones become infinite."""
        if -_NORMAL < self.exponent < _NORMAL and bool((np.abs(self.high) <= _FLOATS).all()):
            # both limbs are doubles, so that their sum rounds once; a power of two does not round
            return np.asarray(np.ldexp(np.ldexp(self.high, _BITS) + self.low, self.exponent))
        values = np.array([_float(integer, self.exponent) for integer in self.integers()])
        return values.reshape(self.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return `floats`, for functions that take arrays."""
        return self.floats() if dtype is None else self.floats().astype(dtype)

    def in_units(self, exponent: int) -> NDArray[Any]:
        """Return the nearest multiples of 2^exponent, flat, ties to even; rounded once.

        Returns:
            int64, where numbers and multiples are below 2^62 in size; else Python's integers.
        """
        shift = self.exponent - exponent
        high = np.abs(self.high).max(initial=0) if abs(shift) <= _MOST_SHIFT else _LOW
        # The bits of the largest high limb, of a low one, and of a shift to the left.
        if int(high).bit_length() + _BITS + max(0, shift) > _MOST_SHIFT:
            return np.array([_nearest(n, shift) for n in self.integers()], dtype=object)
        numbers = (self.high << _BITS).reshape(-1)
        numbers += self.low.reshape(-1)
        if shift >= 0:
            return numbers << shift
        # Half a unit less 1 rounds up what is above half, and a tie where the floor is odd.
        is_odd = numbers >> -shift
        is_odd &= 1
        numbers += is_odd
        numbers += (1 << (-shift - 1)) - 1
        numbers >>= -shift
        return numbers


def _nearest(integer: int, exponent: int) -> int:
    """Round integer * 2^exponent to the nearest integer, ties to even."""
    if exponent >= 0:
        return integer << exponent
    floor, remainder = integer >> -exponent, integer & ((1 << -exponent) - 1)
    # Above half rounds up, below half down, and a tie to the even one of the two.
    doubled_excess = (remainder << 1) - (1 << -exponent)
    return floor + (doubled_excess > 0 or (doubled_excess == 0 and floor & 1))


def _float(integer: int, exponent: int) -> float:
    """Return integer * 2^exponent, correctly rounded, subnormal or not."""
    ratio = Fraction(integer) * Fraction(2) ** exponent
    try:
        # A quotient of two integers is rounded once by Python, to the nearest double.
        return ratio.numerator / ratio.denominator
    except OverflowError:
        return math.copysign(math.inf, integer)
