r"""Integers y >= 0 with probability proportional to exp(-rate y) or exp(-rate y^2). Exact and fast.

Rejection from a staircase: the integers are cut into blocks [Vw, Vw + w), w a power of two and
small against the law's spread. A block is chosen with probability proportional to the weight of
its first integer, then an integer Vw + u of it uniformly, which is accepted with probability

.. math:: e^{-rate\,((Vw+u)^p-(Vw)^p)}

The block is found by comparing a uniform number with the blocks' cumulative probabilities: with its
first 64 bits against their integer parts, and with as many bits as it takes where these are equal.
Every decision is one of integers, so that the law is the stated one for any rate.

The discrete Gaussian, exact: P(z) proportional to exp(-z^2/(2 width^2)) on the integers.

Source: Canonne, Kamath & Steinke (2020), arXiv:2004.00010, Definition 1. The law is theirs; their
rejection sampler is replaced by the staircase above, which
is as exact and works on whole arrays.
"""

from fractions import Fraction
from functools import cached_property
from typing import Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.claims.mechanisms.noise.exponential import (
    TRIAL_BITS,
    FixedRate,
    exp_bounds,
    fixed_exp,
    settle,
)
from dpcore.errors import need
from dpcore.randomness import Stream

_FINE = {1: 4, 2: 128}  # w is the largest power of two with _FINE[p] * rate * w^p <= 1
_COARSE = {1: 1, 2: 8}  # likewise, for few draws: a smaller table, more rejections
_FEW = 512
_GUIDE_BITS = 14
_PRODUCT_BITS = 27  # of u and w in a product that must fit 64 bits with 9 bits for 2V + 1
_BATCH = 1 << 15  # proposals at a time: what they need stays in the cache
_LAST = (1 << 64) - 1


@attrs.frozen(kw_only=True, eq=False, slots=False)
class Magnitudes:
    r"""The law on y = 0, 1, 2, ... with probabilities proportional to exp(-rate y^power).

    Args:
        rate: > 0, at least 2^-53 (power 1) or 2^-107 (power 2), so that what is drawn fits
            64 bits.
        power: 1 or 2.
        fine: Whether many draws pay for narrow blocks, of which few integers are rejected.

    Raises:
        ValueError: `rate` is outside that range.
    """

    rate: Fraction
    power: Literal[1, 2]
    fine: bool = True

    @classmethod
    def for_draws(cls, rate: Fraction, power: Literal[1, 2], count: int) -> "Magnitudes":
        """Return the law, with blocks that suit `count` draws."""
        return cls(rate=rate, power=power, fine=count > _FEW)

    def __attrs_post_init__(self) -> None:
        if not self.rate >= Fraction(1, 2 ** (53 if self.power == 1 else 107)):
            raise ValueError(f"no exact sampler for rate={float(self.rate)!r}")

    @cached_property
    def bits(self) -> int:
        """log2 of the width of a block."""
        limit = 1 / ((_FINE if self.fine else _COARSE)[self.power] * self.rate)  # of w^power
        floor_limit = limit.numerator // limit.denominator
        return max(0, (floor_limit.bit_length() - 1) // self.power)

    def cumulative(self, bits: int) -> list[tuple[int, int]]:
        """Enclose 2^bits P(block <= V) for V = 0, 1, ..., until the rest is below 2^-bits.

        Weights are products of exp(-rate w^p), rounded outwards at every step.
        """
        # the weights of blocks by recurrence; low ends are rounded down, high ends up
        p = bits + 64
        low, high = exp_bounds(self.rate * (1 << self.power * self.bits), p)
        unit = 1 << p
        ratio_low, ratio_high = low, high
        square_low, square_high = low * low >> p, (high * high >> p) + 1
        weight_low, weight_high = unit, unit
        sums: list[tuple[int, int]] = []
        total_low = total_high = 0
        while weight_high >> 32:  # rounding up keeps it above 1, but far below 2^32
            total_low += weight_low
            total_high += weight_high
            sums.append((total_low, total_high))
            weight_low = weight_low * ratio_low >> p
            weight_high = (weight_high * ratio_high >> p) + 1
            if self.power == 2:
                ratio_low = ratio_low * square_low >> p
                ratio_high = (ratio_high * square_high >> p) + 1
        # one block's weight is at most 1 - 1/1024 times the one before it
        total_high += 1024 * weight_high
        return [
            ((s_low << bits) // total_high, min((1 << bits), -(-(s_high << bits) // total_low)))
            for s_low, s_high in sums
        ]

    @cached_property
    def _thresholds(self) -> NDArray[np.uint64]:
        """floor(2^64 P(block <= V)), up to the first that is 2^64 - 1."""
        extra = 32
        while True:
            enclosures = self.cumulative(64 + extra)
            lows = [min(low >> extra, _LAST) for low, _ in enclosures]
            highs = [min(high >> extra, _LAST) for _, high in enclosures]
            # both ends agree on the first 64 bits, so these are the true ones
            if lows == highs and lows[-1] == _LAST:
                return np.array(lows[: lows.index(_LAST) + 1], dtype=np.uint64)
            extra *= 2

    @cached_property
    def _guide(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """How many thresholds lie below a word's first bits, and whether any share them."""
        cells = (self._thresholds >> np.uint64(64 - _GUIDE_BITS)).astype(np.intp)
        inside = np.bincount(cells, minlength=1 << _GUIDE_BITS)
        return np.cumsum(inside) - inside, inside > 0

    def _block(self, word: int, stream: Stream) -> int:
        """Return the block of a uniform number with first 64 bits `word`; draw more if needed."""
        uniform, bits = word, 64
        while True:
            before = 0
            for block, (low, high) in enumerate(self.cumulative(bits)):
                if uniform < before:
                    break
                if uniform + 1 <= low:
                    return block
                before = high
            uniform = (uniform << 64) | int(stream.words(1)[0])
            bits += 64

    def _blocks(
        self, words: NDArray[np.uint64], stream: Stream
    ) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """Return a block per word, and which of them `_block` had to settle."""
        if words.size <= _FEW:
            return self._settle(
                np.searchsorted(self._thresholds, words, side="right"), words, stream
            )
        # the first bits decide most words; a search is left for cells that hold a threshold
        below, mixed = self._guide
        cells = (words >> np.uint64(64 - _GUIDE_BITS)).view(np.int64)
        blocks = below.take(cells)
        unclear = np.flatnonzero(mixed.take(cells))
        near = words.take(unclear)
        counts = np.searchsorted(self._thresholds, near, side="right")
        blocks[unclear], tied = self._settle(counts, near, stream)
        return blocks, unclear[tied]

    def _settle(
        self, counts: NDArray[np.int64], words: NDArray[np.uint64], stream: Stream
    ) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
        """Return each word's block, from `counts` of thresholds up to it, and which words tied."""
        # a word equal to a threshold's first 64 bits lies on neither side of it yet
        tied = np.flatnonzero((counts > 0) & (self._thresholds.take(counts - 1) == words))
        for i in tied:
            counts[i] = self._block(int(words[i]), stream)
        return counts, tied

    @cached_property
    def _fixed(self) -> tuple[int, FixedRate]:
        """By how much the factors of u(2Vw + u) are shifted, and the rate of what that gives."""
        width = 1 << self.bits
        if self.power == 1:
            return 0, FixedRate(self.rate, width)
        largest = 2 * (self._thresholds.size + 1) * width
        shift = max(0, self.bits - _PRODUCT_BITS)
        slack = (largest >> shift) + (width >> shift) + 1
        return shift, FixedRate(
            self.rate * 4**shift, (width * largest) >> 2 * shift, slack if shift else 0
        )

    def proposals(
        self, count: int, stream: Stream
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.bool_]]:
        """Propose y, a fair bit (0 or 1) independent of it, and whether each is accepted."""
        blocks, tied = self._blocks(stream.words(count), stream)
        words = stream.words(count)
        fair = words & np.uint64(1)
        if self.bits == 0:
            return blocks, fair, np.ones(count, dtype=np.bool_)
        # bit 0 of a word is the fair bit, the next ones the offset in the block, the top 32 the
        # coin: no bit serves twice, and wide blocks take another word for the offset
        width = np.uint64(1 << self.bits)
        inside = stream.words(count) if self.bits >= TRIAL_BITS else words >> np.uint64(1)
        inside = inside & (width - np.uint64(1))
        start = blocks.view(np.uint64) << np.uint64(self.bits)
        shift, fixed = self._fixed
        # (Vw + u)^p - (Vw)^p is u for p = 1, and (2Vw + u) u for p = 2
        exponent = inside
        if self.power == 2:
            exponent = (2 * start + inside) >> np.uint64(shift)
            exponent *= inside >> np.uint64(shift)
        threshold = fixed_exp(fixed.times(exponent))
        uniform = words >> np.uint64(64 - TRIAL_BITS)
        margin = np.uint64(fixed.margin)
        accepted = uniform + margin < threshold
        open_ = ~accepted & (uniform < threshold + margin)
        # a tied block may lie beyond the table, for which the margin is proved
        open_[tied] = True
        for i in np.flatnonzero(open_):
            v, u = int(blocks[i]) << self.bits, int(inside[i])
            n = (v + u) ** self.power - v**self.power
            accepted[i] = settle(int(uniform[i]), self.rate * n, stream)
        start += inside
        return start.view(np.int64), fair, accepted

    def draw(
        self, count: int, stream: Stream, *, zero_is_unsigned: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
        """Draw `count` accepted y, each with an independent fair bit.

        Args:
            zero_is_unsigned: Reject y = 0 where the bit is 1, so that -y and y, with 0 once, have
                the law of a symmetric variable.
        """
        values = np.empty(count, dtype=np.int64)
        bits = np.empty(count, dtype=np.uint64)
        position = 0
        while position < count:
            y, fair, mask = self.proposals(min(_BATCH, 2 * (count - position) + 8), stream)
            # 0 and -0 are one value: without this it would have twice its probability
            if zero_is_unsigned:
                mask &= (y != 0) | (fair == 0)
            batch = y[mask][: count - position]
            values[position : position + batch.size] = batch
            bits[position : position + batch.size] = fair[mask][: batch.size]
            position += batch.size
        return values, bits

    def floored(self, count: int, stream: Stream) -> NDArray[np.int64]:
        """Draw `count` of y or -1 - y, by a fair bit: floor(X) of a symmetric X."""
        values, signs = self.draw(count, stream, zero_is_unsigned=False)
        return np.where(signs, -1 - values, values)

    def symmetric(self, count: int, stream: Stream) -> NDArray[np.int64]:
        """Draw `count` of z on all integers, P(z) proportional to exp(-rate |z|^power)."""
        values, signs = self.draw(count, stream, zero_is_unsigned=True)
        flip = -signs.view(np.int64)  # 0 or all ones
        return (values ^ flip) - flip


def gaussian_distribution(width: Fraction | float, count: int) -> Magnitudes:
    """Return the law of |z|, with tables for `count` draws at a time; its `symmetric` draws z.

    Args:
        width: In (0, 2^53]; a float means the rational number it is.

    Raises:
        ValueError: `width` is outside that range, or not finite.
    """
    # 1/(2 width^2) as a fraction: no float enters the law
    exact = positive_rational(width, "width")
    return Magnitudes.for_draws(1 / (2 * exact * exact), 2, count)


def positive_rational(value: Fraction | float, name: str) -> Fraction:
    """Convert `value` to a rational number exactly.

    Raises:
        ValueError: it is not finite, or not in (0, 2^53].
    """
    # False for NaN.
    need(0 < value <= 2**53, ValueError, f"{name} must be in (0, 2^53], got {name}={value!r}")
    return Fraction(value)
