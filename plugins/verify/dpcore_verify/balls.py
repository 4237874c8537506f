"""Exact numbers, balls that hold them, and a limit on the work that a folder may cause."""

import math
from contextvars import ContextVar

from flint import arb, fmpq

PRECISION = 256
SCALE = 200
"""Masses are integers times 2^-200."""

_left: ContextVar[int] = ContextVar("work_left", default=4_000_000)


class Refusal(Exception):
    """Something that this checker does not read or does not know, in one sentence."""


def need(condition: bool, sentence: str) -> None:
    """Raise `Refusal` with `sentence` unless `condition` holds."""
    if not condition:
        raise Refusal(sentence)


def allow(work: int) -> None:
    """Set how many steps of about 2 microseconds may be spent from now on."""
    _left.set(work)


def spend(work: int) -> None:
    """Count work, and refuse where a folder asks for more than is allowed."""
    left = _left.get() - work
    need(left >= 0, "these events need more work than a checker does")
    _left.set(left)


def rational(number: float) -> fmpq:
    """Return the fraction that a finite float is."""
    return fmpq(*number.as_integer_ratio())


def above(ball: arb) -> float:
    """Return a float at or above a ball."""
    return math.nextafter(float(ball.upper()), math.inf)


def mass(ball: arb) -> int:
    """Return a ball's upper end as a multiple of 2^-200, rounded up, 0 where it is negative."""
    end = (ball * arb(2) ** SCALE).upper().ceil()
    need(bool(end.is_finite()), "a number that is needed is not finite")
    return max(0, int(end.unique_fmpz()))


def unscaled(masses: int) -> arb:
    """Return the number that a multiple of 2^-200 is."""
    return arb(masses) / arb(2) ** SCALE


def tail(x: arb) -> arb:
    """Return the upper tail of the standard normal law, erfc(x / sqrt 2) / 2."""
    return (x / arb(2).sqrt()).erfc() / 2


def gaussian(x: arb, mu: arb) -> arb:
    r"""Return the curve of a Gaussian shifted by mu standard deviations, at any real x.

    .. math:: \bar\Phi(x/\mu-\mu/2)-e^x\bar\Phi(x/\mu+\mu/2)

    A shift of 0 gives max(0, 1 - e^x). Source: Balle & Wang (2018), arXiv:1805.06530v2, Theorem 8.
    """
    if mu == 0:
        return positive(1 - x.exp())
    spend(10)
    return positive(tail(x / mu - mu / 2) - x.exp() * tail(x / mu + mu / 2))


def positive(ball: arb) -> arb:
    """Return the larger of a ball and 0."""
    return ball.max(arb(0))
