r"""Sums of clipped gradients in integers, by floating-point products that do not round.

A product of matrices of integers is exact in doubles, in any order, on any number of threads, with
or without fused multiply-add, as long as no partial sum passes 2^53. Here are all bit budgets of
one sum, with P = 20 and blocks of at most B = 2^12 records. Rows are at most 1 + 2^-30 long, labels
are in [-1, 1], C < 2^c, r = 21 - c, and d is the width, at most 2^30.

1. *Row* :math:`a=\mathrm{rint}(2^P\phi)`, at most :math:`2^P(1+2^{-30})+\sqrt d/2<2^{21}` long. A
   row that is longer, or no number, becomes zeros: :math:`a\cdot a<2^{42}` is exact, as sums of
   non-negative integers are that do not pass 2^53.
2. *Weights* :math:`w'=\mathrm{rint}(2^qw)`: with every |w_j| < 2^E and :math:`\sqrt d\le2^h`,
   q = min(40, 30 - E - h) makes |w'| at most :math:`2^{30}+\sqrt d/2<2^{31}`. The gradient is that
   at the weights 2^-q w', which are public.
3. *Score* :math:`a\cdot w'`: any partial sum is at most |a||w'| < 2^52, by Cauchy-Schwarz: exact.
4. *Residual* :math:`e=2^{r-P-q}(a\cdot w')-2^{r-P}y'` with :math:`y'=\mathrm{rint}(2^Py)`, or with
   a link of the score: correctly rounded operations on one record's numbers.
5. *Limit* :math:`L=\lfloor C2^{P+r}(1-2^{-48})/\sqrt{a\cdot a}\rfloor`, 0 for a row of zeros. Four
   roundings cost less than 2^-48, so that :math:`L|a|\le C2^{P+r}`. With
   :math:`u=\mathrm{rint}(\mathrm{clip}(e,\pm L))` the contribution u a is a vector of integers at
   most :math:`C2^{P+r}` long, in units of 2^-(P+r).
6. *Block* :math:`\sum_iu_ia_i`: absolute partial sums are at most
   :math:`B\,C2^{P+r}\le2^{12+c+20+21-c}=2^{53}`: exact.

A label that moves by at most 2 moves e by at most 2^(r+1), up to roundings below 2^-11 each where
|e| <= L < 2^42, and u by at most 2^(r+1) + 1.001: see `label_moves`.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcore.exact import Exact
from dpcore.rounding import up

BLOCK = 4096
"""B: most records of one product."""

_PLACES = 20
_LONGEST = 2.0**42
_WIDEST = 1 << 30
_NORMAL = 1000  # powers of two up to here are normal numbers, so that a product with one is exact

Link = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""What turns scores into what is compared with labels: entry by entry, with the same bits wherever
an entry is (no function of numpy's but + - * / sqrt rint promises that)."""


class IntegerRows(NamedTuple):
    """PRIVATE: a, y' and L of at most `BLOCK` records, as floats that hold integers."""

    rows: NDArray[np.float64]
    labels: NDArray[np.float64]
    limits: NDArray[np.float64]
    exponent: int


def unit_of(clip: float) -> int:
    """Return -(P + r): log2 of the unit of sums clipped at C."""
    return math.frexp(clip)[1] - 21 - _PLACES


def integer_rows(
    features: NDArray[np.float64],
    labels: NDArray[np.float64],
    clip: float,
    exponent: int,
    *,
    overwrite: bool = False,
) -> IntegerRows:
    """PRIVATE: prepare a block for any weights.

    Args:
        features: Rows at most 1 long, shape (n, d). labels: In [-1, 1], shape (n,).
        exponent: `unit_of` the clip that is planned.
        overwrite: Whether the features are no longer needed, so that the integers take their room.
    """
    assert len(labels) <= BLOCK, "blocks are cut to size"
    assert features.shape[1] <= _WIDEST, "the budget of bits is for at most 2^30 columns"
    with np.errstate(over="ignore", invalid="ignore"):
        # Multiplying by a power of two is exact; rint is the only rounding (item 1).
        room = features if overwrite else None
        rows = np.multiply(features, 2.0**_PLACES, out=room, dtype=np.float64)
        np.rint(rows, out=rows)
        squares = np.einsum("ij,ij->i", rows, rows)
        usable = (squares < _LONGEST) & np.isfinite(labels)
    # A row that is too long, or no number, is zeros:
    # what it would add is bounded whatever it holds.
    if not usable.all():
        rows[~usable] = 0.0
        squares = np.where(usable, squares, 0.0)
    values = np.rint(np.ldexp(np.clip(np.where(usable, labels, 0.0), -1.0, 1.0), _PLACES))
    # Shortened by 2^-48 for the four roundings of item 5: L |a| is never above C.
    cutoff = math.ldexp(clip, -exponent) * (1 - 2.0**-48)
    limits = np.zeros(len(values))
    np.divide(cutoff, np.sqrt(squares), out=limits, where=squares > 0)
    return IntegerRows(rows, values, np.floor(limits), exponent)


def scores(block: IntegerRows, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """PRIVATE: compute a . w exactly, at weights rounded as in step 2, row by row. (n,)."""
    integer_weights, places = _integer_weights(weights)
    with np.errstate(over="ignore", under="ignore"):
        return _times_power(block.rows @ integer_weights, -_PLACES - places)


def multipliers(
    block: IntegerRows, weights: NDArray[np.float64], link: Link | None = None
) -> NDArray[np.float64]:
    """PRIVATE: compute u, shape (n,), at public finite weights w of shape (d,)."""
    integer_weights, places = _integer_weights(weights)
    # Every operation from here on is correctly rounded
    # and by entry: u is a function of its own row.
    residual_places = -block.exponent - _PLACES  # r
    scores = block.rows @ integer_weights
    with np.errstate(over="ignore", under="ignore"):
        if link is None:
            residuals = _times_power(scores, residual_places - _PLACES - places)
        else:
            slopes = link(_times_power(scores, -_PLACES - places))
            residuals = _times_power(slopes, residual_places)
        residuals -= _times_power(block.labels, residual_places - _PLACES)
    # The clip comes before the rounding; the limits are integers, so that rint cannot pass them.
    np.maximum(residuals, -block.limits, out=residuals)
    np.minimum(residuals, block.limits, out=residuals)
    return np.asarray(np.rint(residuals, out=residuals))


def clipped_gradients(
    block: IntegerRows, weights: NDArray[np.float64], link: Link | None = None
) -> Exact:
    """PRIVATE: return the sum over the block, shape (d,)."""
    # No partial sum passes 2^53 (item 6): any order of summation gives the same integers.
    total = block.rows.T @ multipliers(block, weights, link)
    return Exact.of(total, block.exponent)


def label_moves(clip: float, width: int) -> float:
    """Bound the change of an unclipped contribution by a label within [-1, 1]; rounded up.

    (2^(r+1) + 1.001) 2^-r times the longest row, 1 + 2^-30 + sqrt(d) 2^-21.
    """
    residual = 2 + math.ldexp(1.001, unit_of(clip) + _PLACES)
    return up(residual * (1 + 2.0**-30 + math.ldexp(math.sqrt(width), -_PLACES - 1)), roundings=12)


def _times_power(numbers: NDArray[np.float64], power: int) -> NDArray[np.float64]:
    """Multiply by 2^power, as `ldexp` does, which takes several times as long."""
    # Exact while 2^power is a normal number; beyond that it may not be a number at all.
    if -_NORMAL < power < _NORMAL:
        return numbers * math.ldexp(1.0, power)
    return np.ldexp(numbers, power)


def _integer_weights(weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """Return w' and q, from exponents of public numbers only."""
    largest = math.frexp(float(np.max(np.abs(weights), initial=0.0)))[1]
    # 2^half bounds sqrt(d), so that the integer weights stay below 2^31 in length (item 2).
    half = ((weights.size - 1).bit_length() + 1) // 2
    places = min(40, 30 - largest - half)
    return np.rint(np.ldexp(weights, places)), places
