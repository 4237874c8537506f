r"""The sums of a round in integers: Gram matrices, clipped gradients, histograms of residuals.

A record's row is shortened and rounded to integers a of at most 2^20 in length, so that
:math:`a\cdot a\le2^{40}` exactly. Blocks have at most B = 2^12 records. All products of matrices
are of integers, and no partial sum passes 2^53, in any order: they do not round.

1. *Row* :math:`a=\mathrm{rint}(2^{20}(1-\sqrt d\,2^{-21}-2^{-40})\phi)`: as phi is at most 1 long
   (up to (d + 4) roundings, which 2^-40 covers for d <= 4096), a is at most 2^20 long. A row that
   is longer in spite of that, or no number, becomes zeros: the test is exact. Where rows are kept
   in two bytes an entry, :math:`a=2^5\mathrm{rint}(2^{15}(1-\sqrt d\,2^{-16}-2^{-40})\phi)`, and a
   row of integers of length 2^15 becomes zeros, too: so no entry is 2^15, which has no room there.
2. *Gram*: b = trunc(a/8) has :math:`b\cdot b\le2^{34}`, and sums of products are at most 2^46. The
   released vector has :math:`2^7b_i^2` and, for i < j, :math:`181\,b_ib_j`: as
   :math:`181\le\sqrt2\,2^7`, its length is at most :math:`2^7\,b\cdot b\le2^{41}` units of 2^-41.
   Inner products of two records' vectors are
   :math:`\lambda(b\cdot b')^2+(1-\lambda)\sum b_i^2b_i'^2\ge0` in units, with
   :math:`\lambda=181^2/2^{15}<1`: such vectors are `acute`.
3. *Scores* :math:`a\cdot w'` with w' integers of length below 2^31: below 2^51.
4. *Residual* e, a function of one record's score and label by correctly rounded operations; of
   several outputs a vector. In units of 2^-20 and in multiples of the clip,
   u is e clipped to length 2^20 and rounded, and never longer than 2^20 (see `_clipped`).
5. *Gradient* :math:`\sum u\,a`: of one record at most 2^40 long (in Frobenius norm), in units of
   2^-40; of a block at most 2^52.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcore.exact import Exact
from dpcore_models.solvers.elementary import falling_exp, half_tanh
from dpcore_tables.layout import PARTS

BLOCK = 4096
WIDEST = 4096
GRADIENT_UNIT = -40
GRAM_UNIT = -41
PROFILE_UNIT = -20
FACTOR_UNIT = -20
"""Of what a record counts, where there are weights."""

EDGES = np.array([math.ldexp(1.0, i // 2 - 7) * (math.sqrt(2) if i % 2 else 1) for i in range(15)])
"""Ends of the bins of |residual|, which begin at 0: the last ends nowhere."""

_PLACES, _SHORT_PLACES = 20, 15
_TYPES = {2: np.int16, 4: np.float32, 8: np.float64}
_NO_CELLS = np.zeros((0, 0), dtype=np.intp)
_ABOVE = 181  # below sqrt(2) 2^7


class Rows(NamedTuple):
    """PRIVATE: a over 2^(20 - places), one column a record; shape (d, n).

    Args:
        whole: Integers of at most 2^places in length. places: 20 or 15.
        cells: Which cell of every table a record is in, shape (J, n).
    """

    whole: NDArray[np.int16] | NDArray[np.float32] | NDArray[np.float64]
    places: int = _PLACES
    cells: NDArray[np.intp] = _NO_CELLS

    @property
    def floats(self) -> NDArray[np.float64]:
        """As products of matrices need them: a copy, unless they are floats of eight bytes."""
        return np.asarray(self.whole, dtype=np.float64)


def integer_rows(
    features: NDArray[np.float64], size: int = 8, cells: NDArray[np.intp] = _NO_CELLS
) -> Rows:
    """PRIVATE: from phi, shape (d, n), columns at most 1 long, which is overwritten.

    Args:
        size: Bytes of an entry: 8; 4, which hold all integers up to 2^24; or 2, up to 2^15.
        cells: Of every table, kept next to them.
    """
    assert features.shape[0] <= WIDEST, "the budget of bits is for at most 4096 columns"
    assert features.shape[1] <= BLOCK, "blocks are cut to size"
    places = _SHORT_PLACES if size == 2 else _PLACES
    # Room for rounding: after rint the row must be at most 2^places long, exactly.
    room = 1 - math.ldexp(math.sqrt(features.shape[0]), -places - 1) - 2.0**-40
    with np.errstate(over="ignore", invalid="ignore"):
        features *= math.ldexp(room, places)
        np.rint(features, out=features)
        squares = np.einsum("ij,ij->j", features, features)
    # Integers below 2^53: this test is exact. NaN fails it, too. Two bytes end before 2^15.
    usable = squares <= math.ldexp(1.0, 2 * places) - (size == 2)
    if not usable.all():
        features[:, ~usable] = 0.0
    return Rows(features.astype(_TYPES[size], copy=False), places, cells)


def gram(rows: Rows, width: int, factors: NDArray[np.float64] | None = None) -> Exact:
    """PRIVATE: 2^7 times the diagonal, 181 times what is above it; shape (D (D + 1)/2,).

    Args:
        width: The planned D >= d; further coordinates are zeros.
        factors: What records count, in [0, 1]: rows are shortened by their roots. Shape (n,).
    """
    # Towards 0, so that no row becomes longer: 2^17 in length, 2^34 in square.
    eighths = rows.floats * math.ldexp(0.125, _PLACES - rows.places)
    short = np.trunc(eighths if factors is None else eighths * np.sqrt(factors))
    products = np.zeros((width, width), dtype=np.int64)
    products[: len(short), : len(short)] = short @ short.T
    above = products[np.triu_indices(len(products), 1)]
    diagonal = products.diagonal()
    return Exact.of(np.concatenate([diagonal * 128, above * _ABOVE]), GRAM_UNIT)


def width_of(size: int) -> int:
    """D of a vector of D (D + 1)/2 entries."""
    return (math.isqrt(8 * size + 1) - 1) // 2


def gram_of(vector: NDArray[np.float64], width: int) -> NDArray[np.float64]:
    """Return the symmetric matrix that an answer represents, of shape (d, d)."""
    upper = np.zeros((width, width))
    upper[np.triu_indices(width, 1)] = vector[width:] * (128 / _ABOVE)
    return np.asarray(upper + upper.T + np.diag(vector[:width]))


def scores(rows: Rows, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """PRIVATE: phi . w of every output, without rounding, at rounded public weights.

    Args:
        weights: Shape (d, m), finite. Result: (m, n).
    """
    # As many places as keep every partial sum of a . w' below 2^53.
    largest = math.frexp(float(np.max(np.abs(weights), initial=0.0)))[1]
    half = ((weights.shape[0] - 1).bit_length() + 1) // 2
    places = min(40, 30 - largest - half)
    integers = np.rint(np.ldexp(weights, places))
    products = integers.T @ rows.floats
    with np.errstate(under="ignore"):
        return np.asarray(np.ldexp(products, -rows.places - places))


def logistic_residual(
    predictions: NDArray[np.float64], labels: NDArray[np.float64]
) -> NDArray[np.float64]:
    """PRIVATE: 1/(1 + exp(-score)) less label; shapes (1, n)."""
    return 0.5 + 0.5 * half_tanh(predictions) - labels


def softmax_residual(
    predictions: NDArray[np.float64], labels: NDArray[np.float64]
) -> NDArray[np.float64]:
    """PRIVATE: return the probabilities of classes less their indicators; shapes (m, n)."""
    largest = predictions[0].copy()
    for row in predictions[1:]:
        np.maximum(largest, row, out=largest)
    # Row by row, with correctly rounded operations: the same bits in every block.
    falling = np.array([falling_exp(largest - row) for row in predictions])
    total = np.zeros(predictions.shape[1])
    for row in falling:
        total += row
    return falling / total - labels


def gradients(
    rows: Rows,
    residuals: NDArray[np.float64],
    clip: float,
    width: int,
    factors: NDArray[np.float64] | None = None,
) -> Exact:
    """PRIVATE: return the sum of clip(r/C) phi over the block, shape (D, m).

    Args:
        residuals: Shape (m, n). clip: C. width: The planned D >= d.
        factors: What records count, in [0, 1], shape (n,).
    """
    with np.errstate(over="ignore", invalid="ignore"):
        # Each record's vector is an integer multiple of the unit, clipped before any sum.
        multiples = _clipped(residuals / clip, factors)
    total = np.zeros((width, len(multiples)))
    products = rows.floats @ multiples.T
    total[: len(products)] = products * math.ldexp(1.0, _PLACES - rows.places)
    return Exact.of(total, GRADIENT_UNIT)


def profiles(
    parts: NDArray[np.intp],
    residuals: NDArray[np.float64],
    clip: float,
    factors: NDArray[np.float64] | None = None,
) -> Exact:
    """PRIVATE: return the sums of clip(r/C) in every part of every column.

    Args:
        parts: Shape (K, n). residuals: Shape (1, n). factors: As of `gradients`.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        multiples = _clipped(residuals / clip, factors)[0]
    return Exact.of([np.bincount(part, multiples, PARTS) for part in parts], PROFILE_UNIT)


def cell_sums(
    places: NDArray[np.intp], residuals: NDArray[np.float64], clip: float, size: int
) -> Exact:
    r"""PRIVATE: return the sums of clip(r/C) over the cells of J tables, over the root of J; (size,
    1).

    Of one record J integers of at most :math:`m=\lfloor\sqrt{2^{40}/J}\rfloor` in units of 2^-20,
    in J different cells: a vector of length at most :math:`\sqrt J\,m\le2^{20}` units, that is 1.
    Any record whose residual is clipped reaches it, but for the rounding of m. The unit is written
    as 2^-40, in which a block's sums are at most 2^52.

    Args:
        places: Shape (J, n). residuals: Shape (1, n). clip: C. size: Of the planned vector.
    """
    amount = float(_of_a_table(len(places)))
    with np.errstate(over="ignore", invalid="ignore"):
        parts = residuals[0] / clip
    multiples = np.rint(np.clip(np.where(np.isfinite(parts), parts, 0.0), -1, 1) * amount)
    sums = np.bincount(places.reshape(-1), np.tile(multiples, len(places)), size)
    return Exact.of((sums * math.ldexp(1.0, _PLACES))[:, None], GRADIENT_UNIT)


def cell_counts(places: NDArray[np.intp], size: int) -> Exact:
    r"""PRIVATE: return how many records are in every cell of J tables, over the root of J; shape
    (size,).

    Of one record J times :math:`m` (see `cell_sums`): at most 1 long, and nothing below 0.
    """
    counts = np.bincount(places.reshape(-1), minlength=size)
    return Exact.of(counts * _of_a_table(len(places)), PROFILE_UNIT)


def _of_a_table(tables: int) -> int:
    """Return what represents 1/sqrt(J) in units of 2^-20, rounded down."""
    return math.isqrt((1 << 2 * _PLACES) // max(tables, 1))


def bins_of(sizes: NDArray[np.float64]) -> NDArray[np.intp]:
    """PRIVATE: which bin |residual| is in, shape (n,)."""
    return np.searchsorted(EDGES[:-1], sizes, side="right")


def counts(
    bins: NDArray[np.intp], length: int, factors: NDArray[np.float64] | None = None
) -> NDArray[np.float64] | NDArray[np.intp]:
    """PRIVATE: return how many records are in each bin, or their factors' sum in units of 2^-20.

    Args:
        bins: Of every record, shape (n,). factors: Multiples of 2^-20, shape (n,).
    """
    if factors is None:
        return np.bincount(bins, minlength=length)
    return np.bincount(bins, np.ldexp(factors, _PLACES), length)


def _clipped(
    residuals: NDArray[np.float64], factors: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """PRIVATE: integers, columns at most 2^20 long; shape (m, n).

    A residual that is no number is 0. One output is clipped entry by entry. Of m, a longer column
    is scaled to :math:`2^{20}-\\sqrt m-1` before it is rounded, which adds at most sqrt(m)/2; the
    roundings of length and factor are below 2^-40 of it. What a record counts, at most 1, is
    multiplied in after clipping and before rounding: so no column becomes longer.
    """
    unit = math.ldexp(1.0, _PLACES)
    # A residual that is no number must not reach the sum: it becomes 0.
    finite = np.where(np.isfinite(residuals).all(axis=0), residuals, 0.0)
    if len(finite) == 1:
        multiples = np.clip(finite * unit, -unit, unit)
        return np.asarray(np.rint(multiples if factors is None else multiples * factors))
    # Scaled below 2^20 by more than rounding can add: never longer than the clip.
    room = unit - math.sqrt(len(finite)) - 1
    multiples = np.clip(finite, -1e6, 1e6) * unit
    squares = np.zeros(multiples.shape[1])
    for row in multiples:
        squares += row * row
    lengths = np.sqrt(squares)
    multiples *= np.where(lengths > room, room / np.maximum(lengths, 1.0), 1.0)
    return np.asarray(np.rint(multiples if factors is None else multiples * factors))
