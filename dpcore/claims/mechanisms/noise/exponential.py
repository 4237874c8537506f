r"""`exponential`: enclose exp(-x) of a rational x, and toss randomness that show heads that often.

Integers only. A coin is tossed by comparing a uniform number U, whose bits are drawn as far as they
are needed, with :math:`e^{-x}`: first 32 bits of U against a 32-bit fixed-point value with a proved
error, all randomness at once; the few randomness that this leaves open (one in 10^6 or fewer) are
settled one by one with as many bits as it takes. The probability of heads is therefore exactly
exp(-x).

Uniform integers below a bound are exact too: words past the last whole multiple are drawn again.
"""

import math
from fractions import Fraction
from functools import cached_property

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import need
from dpcore.randomness import Stream


def uniform_below(bound: int, count: int, stream: Stream) -> NDArray[np.int64]:
    """Draw independently and uniformly from range(bound), shape (count,).

    Raises:
        ValueError: `bound` is not in [1, 2^63].
    """
    need(1 <= bound <= 1 << 63, ValueError, f"bound must be in [1, 2^63], got bound={bound!r}")
    last = np.uint64((1 << 64) // bound * bound - 1)  # words beyond it would favour small results
    words = stream.words(count).copy()
    while (rejects := np.flatnonzero(words > last)).size:
        words[rejects] = stream.words(rejects.size)
    words %= np.uint64(bound)
    return words.view(np.int64)


TRIAL_BITS = 32
"""Bits of a coin's uniform number that the vectorised comparison looks at."""

_EXP_ERROR = 8  # of `fixed_exp`, in units of 2^-32
_LO_BITS = 22  # x = whole + hi/1024 + lo, with lo < 2^-10
_HIGHEST = 64  # exp(-64) < 2^-92 counts as 0 in fixed point
_LARGEST = (1 << 63) - 1  # numerator of a coin
_CERTAIN = 40  # numerators are clipped where x >= 40: exp(-40) < 2^-57


def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    r"""Return integers with :math:`lo \le 2^{bits} e^{-x} \le hi`, `hi - lo` at most 2.

    Taylor's series of exp(-x/2^k) in fixed point, then k squarings, every step rounded outwards.

    Args:
        x: >= 0.
        bits: >= 1.
    """
    if x == 0:
        return 1 << bits, 1 << bits
    if x > bits:
        return 0, 1  # exp(-bits) < 2^-bits
    # x/2^k is small enough for the series; every squaring doubles the error, hence spare bits
    halvings = (x.numerator // x.denominator + 1).bit_length() + 6
    precision = bits + halvings + 32
    r = (x.numerator << (precision - halvings)) // x.denominator
    # r is rounded down, so that r + 1 is the side from which to bound below
    low, _ = _series(r + 1, precision)
    _, high = _series(r, precision)
    for _ in range(halvings):
        low = (low * low) >> precision
        high = ((high * high) >> precision) + 1
    shift = precision - bits
    return max(0, low >> shift), min(1 << bits, (high >> shift) + 1)


def _series(r: int, precision: int) -> tuple[int, int]:
    """Bound 2^precision exp(-r/2^precision) on both sides, for r <= 2^(precision-6)."""
    total, term, count = 0, 1 << precision, 0
    while term:
        total += term if count % 2 == 0 else -term
        count += 1
        term = (term * r >> precision) // count
    # each of the `count` terms is less than 2 too small, and what is left out is less than 2
    return total - 2 * (count + 1), total + 2 * (count + 1)


def _table(step: Fraction, size: int) -> NDArray[np.uint64]:
    """Return 2^31 exp(-step i) for i < size, each within 0.51 of the truth."""
    # powers of one enclosed factor; 96 bits absorb the rounding of all products
    bits = 96
    factor = sum(exp_bounds(step, bits)) // 2
    value, values = 1 << bits, []
    for _ in range(size):
        values.append(((value >> (bits - 32)) + 1) >> 1)
        value = value * factor >> bits
    return np.array(values, dtype=np.uint64)


_WHOLE = _table(Fraction(1), _HIGHEST)
_PART = _table(Fraction(1, 1024), 2048)


def fixed_exp(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    r"""Return :math:`2^{32} e^{-x/2^{32}}` within 8, for x < 64 * 2^32.

    Error, in units of 2^-32: a table entry 1.02, :math:`1-l+l^2/2` for l < 2^-10 at most 0.7 and
    its rounding 1, each product's rounding 1, and one more table entry where x >= 2.
    """
    # `_PART` covers x < 2, so whole parts are looked up for larger x only
    integer_factor = None
    if x.size and int(x.max()) >> 33:
        integer_factor = _WHOLE.take((x >> np.uint64(32)).astype(np.intp))
        x = x & np.uint64((1 << 32) - 1)
    low = x & np.uint64((1 << _LO_BITS) - 1)
    # 1 - l + l^2/2 for the low bits l, in units of 2^-32
    value = low * low
    value >>= np.uint64(33)
    value += np.uint64(1 << 32)
    value -= low
    value *= _PART.take((x >> np.uint64(_LO_BITS)).view(np.int64))
    value >>= np.uint64(31)
    if integer_factor is not None:
        value *= integer_factor
        value >>= np.uint64(31)
    return value


@attrs.frozen(slots=False)
class FixedRate:
    """Multiplies integers 0 <= n <= `largest` by a rational rate, in 32-bit fixed point.

    Args:
        rate: > 0; the product is x = rate n.
        largest: Of all n, < 2^63.
        slack: How much smaller than the true integer an n may be.
    """

    rate: Fraction
    largest: int
    slack: int = 0
    _clip: int = attrs.field(init=False)
    _shift: int = attrs.field(init=False)
    _down: int = attrs.field(init=False)
    _factor: int = attrs.field(init=False)

    @_clip.default
    def _clip_at(self) -> int:
        # beyond, exp(-x) is below one unit and the margin; `settle` uses the true n
        return min(self.largest, math.ceil(_CERTAIN / self._rate))

    @_shift.default
    def _to_31_bits(self) -> int:
        return max(0, self._clip.bit_length() - 31)

    @_down.default
    def _room(self) -> int:
        product = (self._clip >> self._shift) * (int(self._scaled) + 1)
        return 62 - product.bit_length()  # the product is below 104 * 2^32

    @_factor.default
    def _rounded_down(self) -> int:
        return int(self._scaled * (1 << self._down))

    @property
    def _rate(self) -> Fraction:
        return min(self.rate, Fraction(_HIGHEST))

    @property
    def _scaled(self) -> Fraction:
        return self._rate * (1 << (32 + self._shift))

    @cached_property
    def _beyond(self) -> bool:
        return self._rate * self._clip >= _HIGHEST

    @cached_property
    def margin(self) -> int:
        """How far `fixed_exp(times(n))` may lie from 2^32 exp(-x), in units of 2^-32.

        What the shift and the slack hide, the truncated factor, one rounding, and `fixed_exp`.
        """
        hidden = ((1 << self._shift) - 1 + self.slack) * self._rate * (1 << 32)
        factor = (self._clip >> self._shift) / Fraction(1 << self._down)
        return math.ceil(hidden + factor) + 1 + _EXP_ERROR

    def times(self, n: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return 2^32 rate n, at most the truth, or a number that represents exp(-x) < 2^-57."""
        x = n if self._clip == self.largest else np.minimum(n, np.uint64(self._clip))
        x = x >> np.uint64(self._shift)
        x *= np.uint64(self._factor)
        x >>= np.uint64(self._down)
        if self._beyond:
            np.minimum(x, np.uint64((_HIGHEST << 32) - 1), out=x)
        return x


def settle(uniform: int, x: Fraction, stream: Stream) -> bool:
    """Return whether U < exp(-x), for a U in [0, 1) whose first 32 bits are `uniform`. Exact."""
    bits = TRIAL_BITS
    while True:
        # U lies in [uniform, uniform + 1) / 2^bits, which more bits narrow until it is on one side
        low, high = exp_bounds(x, bits)
        if uniform + 1 <= low:
            return True
        if uniform >= high:
            return False
        uniform = (uniform << 64) | int(stream.words(1)[0])
        bits += 64


@attrs.frozen(slots=False)
class BernoulliExp:
    """Randomness with heads of probability exactly exp(-rate n), for one rate and any n < 2^63.

    Args:
        rate: > 0.

    Raises:
        ValueError: `rate` is not positive.
    """

    rate: Fraction

    def __attrs_post_init__(self) -> None:
        if self.rate <= 0:
            raise ValueError(f"needs a rate > 0, got {float(self.rate)!r}")

    @cached_property
    def _fixed(self) -> tuple[FixedRate, np.uint64]:
        """The rate for every n, with its margin: randomness that this leaves open are settled
        alike.
        """
        fixed = FixedRate(self.rate, _LARGEST)
        return fixed, np.uint64(fixed.margin)

    def toss(self, n: NDArray[np.int64], stream: Stream) -> NDArray[np.bool_]:
        """Draw one Bernoulli trial for each n, any shape.

        Raises:
            ValueError: some n is negative.
        """
        numbers = np.ascontiguousarray(n, dtype=np.int64).reshape(-1)
        if numbers.size == 0:
            return np.zeros(np.shape(n), dtype=np.bool_)
        need(int(numbers.min()) >= 0, ValueError, "bernoulli_exp needs n >= 0")
        fixed, margin = self._fixed
        uniform = stream.words(numbers.size) >> np.uint64(64 - TRIAL_BITS)
        threshold = fixed_exp(fixed.times(numbers.view(np.uint64)))
        heads = uniform + margin < threshold
        # within the margin, 32 bits do not decide: these are settled with exact integers
        for i in np.flatnonzero(~heads & (uniform < threshold + margin)):
            heads[i] = settle(int(uniform[i]), self.rate * int(numbers[i]), stream)
        return heads.reshape(np.shape(n))
