r"""Laplace noise on the integers, exact, in two kinds.

* `laplace_distribution`: P(z) proportional to :math:`e^{-|z|/t}`. For two integer vectors at l1
  distance D the likelihood ratio is at most :math:`e^{D/t}`. Source: Ghosh, Roughgarden &
  Sundararajan (2012); Canonne, Kamath & Steinke (2020).
* `floored_distribution`: floor(X) of a continuous X of density :math:`e^{-|x|/t}/(2t)`. Its
  nonnegative and its negative half are geometric, so that it needs no continuous draw. Added to an
  integer, floor(v + X) = v + floor(X): it is the continuous Laplace mechanism, post-processed.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpcore.claims.mechanisms.noise.exponential import BernoulliExp, uniform_below
from dpcore.claims.mechanisms.noise.magnitudes import Magnitudes, positive_rational
from dpcore.errors import need
from dpcore.randomness import Stream


def floored_distribution(
    scale: Fraction | float, count: int, *, steps: int | None = None
) -> Callable[[int, Stream], NDArray[np.int64]]:
    """Return a sampler of floor(X), for X of density exp(-|x|/scale)/(2 scale); independent draws.

    Its tables, which suit `count` draws at a time, depend on the scale only.

    Args:
        scale: In (0, 2^53]; a float means the rational number it is.
        steps: Condition on -steps <= X < steps, an integer in [1, 2^62].

    Raises:
        ValueError: `scale` or `steps` is outside its range.
    """
    exact = positive_rational(scale, "scale")
    need(
        steps is None or 1 <= steps <= 1 << 62,
        ValueError,
        f"steps must be in [1, 2^62], got steps={steps!r}",
    )
    # in a range this short, uniform proposals are rejected less often than draws of the law
    if steps is not None and steps <= exact:
        return partial(_below, steps, exact)
    return partial(_within, laplace_distribution(exact, count), steps)


def _within(
    distribution: Magnitudes, steps: int | None, count: int, stream: Stream
) -> NDArray[np.int64]:
    # redrawing what falls outside conditions the law on the range
    values = distribution.floored(count, stream)
    while (
        steps is not None
        and (rejects := np.flatnonzero((values >= steps) | (values < -steps))).size
    ):
        values[rejects] = distribution.floored(rejects.size, stream)
    return values


def laplace_distribution(scale: Fraction | float, count: int) -> Magnitudes:
    """Return the law of |z|, with tables for `count` draws at a time; its `symmetric` draws z.

    Args:
        scale: t above; a float means the rational number it is.

    Raises:
        ValueError: `scale` is outside (0, 2^53], or not finite.
    """
    return Magnitudes.for_draws(1 / positive_rational(scale, "scale"), 1, count)


def _below(steps: int, scale: Fraction, count: int, stream: Stream) -> NDArray[np.int64]:
    """Draw floored numbers conditioned on a range shorter than `scale`, from uniform proposals."""
    values = uniform_below(steps, count, stream)
    randomness = BernoulliExp(1 / scale)
    waiting = np.arange(count)
    while waiting.size:
        waiting = waiting[~randomness.toss(values[waiting], stream)]
        values[waiting] = uniform_below(steps, waiting.size, stream)
    # the negative half of floor(X) is that of -1 - y, and a fair bit chooses the half
    return np.where(stream.words(count) & np.uint64(1), -1 - values, values)
