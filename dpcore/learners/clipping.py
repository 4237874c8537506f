r"""Rows of floats to rows of integers that are no longer than a limit, whatever the floats are.

A row x is counted in units of 2^e. Where its nearest integers are surely at most L = C/2^e long,
they are taken as they are. Else x is scaled to at most L - m before it is rounded, with
:math:`m=\sqrt d/2` in l2, d/2 in l1 and 1/2 in linf: what rounding adds at most. So no row of
integers is longer than L (triangle inequality), and rows that fit already, such as counts, keep
every bit.

Every step is a correctly rounded operation on one row in a fixed order (sums halve the columns), so
that a row's integers are a function of that row only, to the last bit, on every machine.

Claim: the test for "at most L" and the scaling are safe in floating point. Proof: sums of
magnitudes of integers, and of their squares, that are at most 2^53 are exact, as all partial sums
are; a larger one errs by a factor of the depth of the tree, which `up` covers. Rows that are scaled
have their largest entry in [1/2, 1), so that squares that underflow add less than one rounding of
the sum. []

Rows of integers that other code proposes (`IntegerRows`) are not scaled but checked, by a length
:math:`L=\lfloor C/2^e\rfloor\le2^{26}` of integers.

Lemma: let N be the sum of a row's squares in doubles, in any order, fused or not. If N <= L^2, the
row is at most L long. Proof: all numbers are >= 0 and rounding is monotone, so that a square or a
partial sum that is 2^53 or more is computed as at least 2^53, and so is every sum that it enters.
As N <= 2^52, there is none: every operation was one of integers below 2^53, hence exact, and N is
the sum of squares. []
"""

import math
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ContractError, need
from dpcore.rounding import down, up
from dpcore.sensitivity import Distance

Integers = NDArray[np.int64] | NDArray[np.int32]

_CUTOFF = 2.0**44
_EXACT = 1 << 53
LONGEST_PROPOSAL = 1 << 26
"""L above at most: how many units long a row may be that other code rounds."""


@attrs.frozen(eq=False, repr=False)
class IntegerRows:
    """PRIVATE: what each record adds to a sum, in the query's unit, as some code proposes it.

    The core adds those rows that are at most the query's `clip` long, in l2, and zeros for others.

    Args:
        integers: int32, shape (rows, *query.shape).
    """

    integers: NDArray[np.int32]

    def accepted(self, clip: float, exponent: int) -> NDArray[np.int32]:
        """PRIVATE: return the rows that are short enough, shape (rows, size); zeros for the others.

        Args:
            clip: C. exponent: e, with C below 2^(e + 26) + 2^e.

        Raises:
            ContractError: C is longer, or the integers are not of 32 bits.
        """
        limit = math.floor(math.ldexp(clip, -exponent))
        need(
            limit <= LONGEST_PROPOSAL and self.integers.dtype == np.int32,
            ContractError,
            "proposed rows are 32-bit integers of at most 2^26 units: give the Sum an exponent",
        )
        rows = self.integers.reshape(len(self.integers), -1)
        is_short = np.zeros(len(rows), dtype=np.bool_)
        # Doubles hold every 32-bit integer, so that nothing is rounded before the squares.
        doubles = np.empty(rows.shape[1])
        for place, row in enumerate(rows):
            np.copyto(doubles, row)
            is_short[place] = doubles @ doubles <= limit * limit
        return rows if is_short.all() else rows * is_short[:, None]

    def __repr__(self) -> str:
        return "IntegerRows(private)"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Return the integers, for whatever compares them."""
        return np.asarray(self.integers, dtype=dtype)


def clipped_integers(
    rows: NDArray[np.float64], clip: float, exponent: int, distance: Distance, *, positive: bool
) -> NDArray[np.int64]:
    """PRIVATE: return one row of integers for every row of floats, shape (n, d), at most 2^42 in
    size.

    A row that is not finite becomes zeros.

    Args:
        rows: Any floats, shape (n, d). clip: C. exponent: e, with C at most 2^(e + 42).
        distance: l1, l2 or linf.
        positive: Whether entries below 0 are set to 0 first.
    """
    limit = math.ldexp(clip, -exponent)
    is_finite = np.isfinite(rows).all(axis=1, keepdims=True)
    finite_rows = np.where(is_finite, rows, 0.0)
    if positive:
        np.maximum(finite_rows, 0.0, out=finite_rows)
    # A row that is cut off at 2^44 is longer than L, and is scaled from its floats below.
    with np.errstate(over="ignore", under="ignore"):
        integers = np.rint(np.clip(np.ldexp(finite_rows, -exponent), -_CUTOFF, _CUTOFF))
    is_long = ~_fits(integers, limit, distance)
    if is_long.any():
        integers[is_long] = _scale_rows(finite_rows[is_long], limit, distance)
    return np.asarray(integers, dtype=np.int64)


def _fits(integers: NDArray[np.float64], limit: float, distance: Distance) -> NDArray[np.bool_]:
    """Return whether rows of integers are surely at most `limit` long."""
    sizes = np.abs(integers)
    if distance is Distance.LINF:
        return np.asarray(sizes.max(axis=1) <= limit)
    if distance is Distance.L1:
        total = _sum_halves(sizes)
        return (total <= _EXACT) & (total <= limit)
    total = _sum_halves(sizes * sizes)
    # Up to 2^53 the sum is exact. Beyond, it is rounded up and L^2 down: against the row.
    exact = float(min(_EXACT, math.floor(Fraction(limit) ** 2)))
    rounded = up(total, roundings=_depth(integers) + 1) <= down(limit * limit, roundings=1)
    return np.where(total < _EXACT, total <= exact, rounded)


def _scale_rows(rows: NDArray[np.float64], limit: float, distance: Distance) -> NDArray[np.float64]:
    """Rows of any finite size, scaled and rounded to at most `limit`."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    # A power of two brings the largest entry into [1/2, 1), so that no square overflows.
    with np.errstate(under="ignore"):
        unit = np.ldexp(rows, -np.frexp(largest)[1])
    size = rows.shape[1]
    if distance is Distance.LINF:
        lengths, margin = np.abs(unit).max(axis=1), 0.5
    elif distance is Distance.L1:
        lengths, margin = _sum_halves(np.abs(unit)), size / 2
    else:
        with np.errstate(under="ignore"):
            lengths = np.sqrt(_sum_halves(unit * unit))
        margin = up(math.sqrt(size), roundings=1) / 2
    # Rounding adds at most `margin` to the length: scaling leaves room for it, rounded down.
    room = down(max(limit - margin, 0.0), roundings=1)
    # Lengths are rounded up, so that no factor is too large.
    factors = room / up(lengths, roundings=_depth(rows) + 6)
    with np.errstate(under="ignore"):
        return np.asarray(np.rint(unit * factors[:, None]))


def _depth(rows: NDArray[np.float64]) -> int:
    """Roundings behind a sum of a row's entries in halves."""
    return int(max(1, rows.shape[1])).bit_length()


def _sum_halves(terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of rows of numbers >= 0, in one order: the columns are halved and added."""
    # The order of additions depends on the number of columns, never on rows or machine.
    while terms.shape[1] > 1:
        half, odd = divmod(terms.shape[1], 2)
        folded = terms[:, :half] + terms[:, half : 2 * half]
        terms = np.hstack([folded, terms[:, -1:]]) if odd else folded
    return terms[:, 0]
