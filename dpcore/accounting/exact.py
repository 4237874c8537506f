"""Exact sums of doubles: each is a rational number, so nothing is lost however many are added.

A float that is at most 2^-53 of a sum leaves it as it is: 100,000 events of 1.1e-16 cost nothing
on a budget of 1 that is spent. And the square of 1e-170 is no double.
"""

from __future__ import annotations

import math
from fractions import Fraction


def rounded_up(value: Fraction) -> float:
    """The least double that is at least `value`; infinite beyond them."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def root(square: Fraction) -> float:
    """Its root to within 2 u, whatever the size of the square."""
    if square == 0:
        return 0.0
    halves = (square.numerator.bit_length() - square.denominator.bit_length()) // 2
    scaled = square / Fraction(4) ** halves  # in [1/8, 8]
    return math.ldexp(math.sqrt(scaled), halves)


def write(value: Fraction) -> str:
    """Every bit: hexadecimal text as of a float where it is one, else a quotient."""
    near = rounded_up(value)
    if Fraction(near) == value:
        return near.hex()
    return f"{value.numerator:x}/{value.denominator:x}"


def read(text: str) -> Fraction:
    """What `write` wrote, or a float's hexadecimal text.

    Raises:
        ValueError: it is neither.
    """
    numerator, slash, denominator = text.partition("/")
    try:
        if slash:
            found = Fraction(int(numerator, 16), int(denominator, 16))
        else:
            found = Fraction(float.fromhex(text))
    except (ArithmeticError, AttributeError):
        raise ValueError("a sum is a finite number") from None
    if found < 0:
        raise ValueError("a sum is not negative")
    return found
