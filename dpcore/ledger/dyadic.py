"""Exact sums of doubles: each is a rational number, so nothing is lost however many are added.

A float that is at most 2^-53 of a sum leaves it as it is: 100,000 events of 1.1e-16 cost nothing
on a budget of 1 that is spent. And the square of 1e-170 is no double.
"""

from __future__ import annotations

import functools
import math
from fractions import Fraction

from dpcore.errors import need

_DEPTH = 2148  # every double is a multiple of 2^-1074, every square of one of 2^-2148
_UNIT = 1 << _DEPTH


@functools.total_ordering
class Dyadic:
    """A sum of doubles, or of their squares: an integer that counts units of 2^-2148. Exact.

    All sums have the same unit, so that to add or to compare two of them is to add or to compare
    two integers. It compares with every number that `Fraction` takes.

    Args:
        units: How many.
    """

    __slots__ = ("units",)

    def __init__(self, units: int) -> None:
        self.units = units

    @classmethod
    def square(cls, value: float) -> Dyadic:
        """Return the square of a finite double."""
        numerator, denominator = value.as_integer_ratio()
        return cls(numerator * numerator << _DEPTH + 2 - 2 * denominator.bit_length())

    def fraction(self) -> Fraction:
        """Return the sum as an exact rational number."""
        return Fraction(self.units, _UNIT)

    def __add__(self, other: Dyadic) -> Dyadic:
        return Dyadic(self.units + other.units)

    def __sub__(self, other: Dyadic) -> Dyadic:
        return Dyadic(self.units - other.units)

    def __mul__(self, count: int) -> Dyadic:
        return Dyadic(self.units * int(count))

    def __float__(self) -> float:
        """Return the nearest double.

        Raises:
            OverflowError: it is beyond the doubles.
        """
        return self.units / _UNIT

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dyadic):
            return self.units == other.units
        return self.fraction() == other if isinstance(other, Fraction | int | float) else False

    def __lt__(self, other: Dyadic | Fraction | float) -> bool:
        return self.units < other.units if isinstance(other, Dyadic) else self.fraction() < other

    def __le__(self, other: Dyadic | Fraction | float) -> bool:
        return self.units <= other.units if isinstance(other, Dyadic) else self.fraction() <= other

    def __hash__(self) -> int:
        return hash(self.fraction())

    def __repr__(self) -> str:
        return f"dyadic({self.fraction()!r})"


def dyadic(value: Dyadic | Fraction | float) -> Dyadic:
    """Return a number as a sum.

    Raises:
        ValueError: it is no sum of finite doubles or of their squares.
    """
    if isinstance(value, float):
        need(math.isfinite(value), ValueError, "a sum is a finite number")
        numerator, denominator = value.as_integer_ratio()
        # The denominator of a double is a power of two, and its bit length says which.
        return Dyadic(numerator << _DEPTH + 1 - denominator.bit_length())
    if isinstance(value, Dyadic):
        return value
    numerator, denominator = value.as_integer_ratio()
    units, remainder = divmod(numerator << _DEPTH, denominator)
    need(not remainder, ValueError, "a sum of doubles is a multiple of a power of two")
    return Dyadic(units)


def rounded_up(value: Dyadic | Fraction) -> float:
    """Return the least double that is at least `value`; infinite beyond them."""
    try:
        # Rounded to the nearest double, which may lie below: then the next one is the answer.
        nearest = float(value)
    except OverflowError:
        return math.inf
    return nearest if dyadic(nearest) >= value else math.nextafter(nearest, math.inf)


def write(value: Dyadic | Fraction) -> str:
    """Write every bit: hexadecimal text as of a float where it is one, else a quotient."""
    units = dyadic(value).units
    size, zeros = units.bit_length(), (units & -units).bit_length() - 1
    if size - zeros <= 53 and size <= _DEPTH + 1024 and not 0 <= zeros < _DEPTH - 1074:
        return (units / _UNIT).hex()  # a double: 53 bits, none below 2^-1074
    shift = min(_DEPTH, zeros)  # to lowest terms
    return f"{units >> shift:x}/{_UNIT >> shift:x}"


def read(text: str) -> Dyadic:
    """Read what `write` wrote, or a float's hexadecimal text.

    Raises:
        ValueError: it is neither.
    """
    numerator, slash, denominator = text.partition("/")
    try:
        # A quotient whose denominator is no power of two is refused by `dyadic`.
        total = dyadic(
            Fraction(int(numerator, 16), int(denominator, 16)) if slash else float.fromhex(text)
        )
    except (ArithmeticError, AttributeError):
        raise ValueError("a sum is a finite number") from None
    need(total.units >= 0, ValueError, "a sum is not negative")
    return total
