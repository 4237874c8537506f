r"""Records as integers within public limits, and exact sums of their products over blocks.

A minimiser of a sum form is a function of the records as this module rounds them, so that its
theorem holds with the same kappa and M, and nothing has to be allowed for the rounding. With K and
M' the powers of two above kappa and M:

1. *Row* :math:`a=\mathrm{rint}(s\,2^{20}\phi/K)`, the features :math:`\tilde\phi=2^{-20}Ka`. With
   :math:`L=2^{20}\kappa/K` and s at most :math:`(1-\sqrt d/(2L))(1-2u)`, a row at most kappa long
   becomes integers at most :math:`sL(1+u)+\sqrt d/2\le L` long, so that
   :math:`|\tilde\phi|\le\kappa`. The factor s shortens features by less than
   :math:`\sqrt d\,2^{-20}`. That |a| <= L is tested too, in integers: a row that fails, or is no
   number, counts as zeros.
2. *Label* y', the integer nearest to :math:`2^{20}y/M'` within :math:`\pm\lfloor2^{20}M/M'\rfloor`,
   so that :math:`|\tilde y|\le M`.
3. *Products.* |a| and |y'| are at most 2^20, so that no partial sum of at most 2^12 products
   :math:`a_ja_k` or :math:`y'a_j` passes 2^52: a block's sums are exact, in any order.

Sums are integers of any number of records; each becomes a float once, to a relative error of u.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.exact import Exact
from dpcore.models.features.base import Features, row_by_row
from dpcore.records import Folded, Records
from dpcore.rounding import down

BLOCK = 4096
"""Most records of one product."""

PLACES = 20
_WIDEST = 1 << 30


class WholeRows(NamedTuple):
    """PRIVATE: a, shape (n, d), and y', shape (n,), as floats that hold integers."""

    rows: NDArray[np.float64]
    labels: NDArray[np.float64]


class Sums(NamedTuple):
    r"""PRIVATE: :math:`\sum\tilde\phi\tilde\phi^T`, shape (d, d), and :math:`\sum\tilde
    y\tilde\phi`, shape (d,), every entry to a relative error of u; and n."""

    gram: NDArray[np.float64]
    moments: NDArray[np.float64]
    records: int


@attrs.frozen(kw_only=True)
class ShortRows:
    """What the integers count, from public facts only.

    Args:
        kappa: Rows are at most this long. label_bound: M. width: d, at most 2^30.
    """

    kappa: float
    label_bound: float
    width: int

    @property
    def row_exponent(self) -> int:
        """log2 of K 2^-20, the unit that rows are counted in."""
        return above(self.kappa) - PLACES

    @property
    def label_exponent(self) -> int:
        """log2 of M' 2^-20, the unit that labels are counted in."""
        return above(self.label_bound) - PLACES

    def integers(self, features: NDArray[Any], labels: NDArray[np.float64]) -> WholeRows:
        """PRIVATE: convert each record to integers by itself (steps 1 and 2).

        Args:
            features: Shape (n, d). labels: Shape (n,).
        """
        assert self.width <= _WIDEST, "the budget of bits is for at most 2^30 columns"
        # L and s of item 1, from public numbers only; s is rounded down.
        longest = math.ldexp(self.kappa, -self.row_exponent)
        shorter = down(1 - math.sqrt(self.width) / (2 * longest), roundings=10)
        with np.errstate(over="ignore", invalid="ignore"):
            rows = np.asarray(features, dtype=np.float64) * math.ldexp(shorter, -self.row_exponent)
            np.rint(rows, out=rows)
            squares = np.einsum("ij,ij->i", rows, rows)
            # |a|^2 <= L^2 is tested in integers, which doubles
            # hold exactly: the norm bound is enforced.
            usable = squares <= float(math.floor(Fraction(longest) ** 2))
            usable &= np.isfinite(labels)
        if not usable.all():
            rows[~usable] = 0.0
        largest = float(math.floor(math.ldexp(self.label_bound, -self.label_exponent)))
        # Rounded to the nearest and clipped to whole units
        # inside M: the label bound is enforced too.
        inside = np.clip(np.where(usable, labels, 0.0), -self.label_bound, self.label_bound)
        values = np.rint(np.ldexp(inside, -self.label_exponent))
        return WholeRows(rows, np.clip(values, -largest, largest))


@attrs.frozen(kw_only=True, eq=False, repr=False)
class FoldedRows:
    """PRIVATE: mapped records, seen by sums over blocks only.

    Args:
        features: The drawn map.
        kept: Whether a block's integers are kept for the next sum, where many follow.
    """

    records: Records
    features: Features
    units: ShortRows
    kept: bool = False

    def __len__(self) -> int:
        return len(self.records)

    def fold(self, part: Callable[[WholeRows], Folded], zero: Folded) -> Folded:
        """Sum `part` of every block's integers; it must be pure and additive."""
        # Every part is a pure function of one block, so that blocks may run anywhere, in any order.
        fold_block = partial(_fold_block, self.features, self.units, self.kept, part)
        return self.records.fold(fold_block, zero, BLOCK)

    def sums(self) -> Sums:
        """Sum products of features, and of features and labels, in one pass."""
        units, width = self.units, self.units.width
        square_exponent, mixed_exponent = (
            2 * units.row_exponent,
            units.row_exponent + units.label_exponent,
        )
        zero = (Exact.zeros((width, width), square_exponent), Exact.zeros((width,), mixed_exponent))
        gram, moments = self.fold(partial(_products, square_exponent, mixed_exponent), zero)
        return Sums(gram.floats(), moments.floats(), len(self))


def above(bound: float) -> int:
    """Return the least e with bound <= 2^e."""
    half, exponent = math.frexp(bound)
    return exponent - 1 if half == 0.5 else exponent


def _fold_block(
    features: Features,
    units: ShortRows,
    is_cached: bool,
    part: Callable[[WholeRows], Folded],
    block: Records,
) -> Folded:
    """Return a block's part of the sum."""

    def integers() -> WholeRows:
        return units.integers(row_by_row(features, block.features, units.width), block.labels)

    if not is_cached:
        return part(integers())
    # The key names all that the integers depend on next to the block itself.
    key = (features, float(units.kappa), float(units.label_bound))
    return part(block.derived(key, integers))


def _products(square_exponent: int, mixed_exponent: int, block: WholeRows) -> Folded:
    """Compute products of integers (step 3)."""
    gram = Exact.of(block.rows.T @ block.rows, square_exponent)
    return gram, Exact.of(block.rows.T @ block.labels, mixed_exponent)
