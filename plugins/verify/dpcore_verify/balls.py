"""Balls that hold exact numbers, and limits on the work that a folder may cause.

tail: the upper tail of the standard normal distribution, erfc(x / sqrt 2) / 2.
"""

import math
from contextvars import ContextVar

from flint import arb, fmpq, fmpz

PRECISION, SCALE = 256, 200
"""Bits of a ball; masses are integers times 2^-200."""

_allowance: ContextVar[int] = ContextVar("work_left", default=4_000_000)


class RefusedError(Exception):
    """Something that this checker does not read or does not know, in one sentence."""


def need(condition: bool, sentence: str) -> None:
    """Raise `RefusedError` with `sentence` unless `condition` holds."""
    if not condition:
        raise RefusedError(sentence)


def allow(work: int) -> None:
    """Set how many steps of about 2 microseconds may be spent from now on."""
    _allowance.set(work)


def spend(work: int) -> None:
    """Count work, and refuse where a folder asks for more than is allowed."""
    _allowance.set(_allowance.get() - work)
    need(_allowance.get() >= 0, "these events need more work than a checker does")


def above(number: fmpq) -> float:
    """Return a float at or above a fraction or a ball."""
    return math.nextafter(float(arb(number).upper()), math.inf)


def mass(ball: arb) -> int:
    """Return a ball's upper end as a multiple of 2^-200, rounded up, 0 where it is negative."""
    end = (ball * arb(2) ** SCALE).upper().ceil().unique_fmpz()
    need(end is not None, "a number that is needed is not finite")
    return max(0, int(end or 0))


def unscaled(masses: int | fmpz) -> arb:
    """Return the number that a multiple of 2^-200 is."""
    return arb(masses) / arb(2) ** SCALE


def tail(x: arb) -> arb:
    """Return the upper tail of the standard normal distribution."""
    return (x / arb(2).sqrt()).erfc() / 2


def positive(ball: arb) -> arb:
    """Return the larger of a ball and 0."""
    return ball.max(arb(0))


def gaussian(x: arb, mu: arb) -> arb:
    r"""Return the curve of a Gaussian shifted by mu standard deviations, at any real x.

    .. math:: \bar\Phi(x/\mu-\mu/2)-e^x\bar\Phi(x/\mu+\mu/2)

    A shift of 0 gives max(0, 1 - e^x). Source: Balle & Wang (2018), arXiv:1805.06530v2, Theorem 8.
    """
    spend(10)
    if mu == 0:
        return positive(1 - x.exp())
    return positive(tail(x / mu - mu / 2) - x.exp() * tail(x / mu + mu / 2))
