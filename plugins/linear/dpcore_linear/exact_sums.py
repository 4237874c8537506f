r"""Gram matrix and moments as one vector of integers, by products that do not round.

Features are counted in units of 2^-P K and labels in units of 2^-Q M', with K and M' the powers of
two above their bounds, both rounded to the nearest integer: :math:`a=\mathrm{rint}(2^P\phi/K)` is
at most :math:`\alpha=2^P\kappa/K+\sqrt d/2` long, and :math:`|y'|\le Y=2^QM/M'+1/2`. A row that is
longer than 2^(P+1/2), or no number, counts as zeros, so that the sums of a block are exact in
doubles: no partial sum of 2^12 products passes 2^(12+2P+1), and P is at most 18.

The vector of a record is :math:`(29a_j^2,\ 41a_ja_k\ (j<k),\ W\,y'a_j)`. As 41/29 is a little less
than the root of 2, its l2 distances are at most those of :math:`(29\,aa^T,\ W\,y'a)` in the
Frobenius norm, which T9 bounds at :math:`\kappa=\alpha,\ M=Y`; W says how the noise is shared
between matrix and moments. Its length is below 2^42 units, as `Sum` needs.
"""

import math
from typing import NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.exact import Exact
from dpcore.rounding import down, up
from dpcore_linear.gram_sensitivity import (
    statistics_add_remove,
    statistics_replace_label,
    statistics_replace_one,
)

BLOCK = 4096
_DIAGONAL, _ABOVE = 29, 41
_PLACES, _LABEL_PLACES = 18, 14
_FINE = 5  # binary places that W has at least, where labels can spare them


class Sums(NamedTuple):
    """sum phi phi^T, shape (d, d), and sum y phi, shape (d,)."""

    gram: NDArray[np.float64]
    moments: NDArray[np.float64]


@attrs.frozen(kw_only=True)
class GramUnits:
    """What the integers count, from public facts only.

    Args:
        kappa: Rows are at most this long. label_bound: M. width: d.
        places: P. label_places: Q. weight: W.
        exponent: log2 of what one unit of the vector is.
    """

    kappa: float
    label_bound: float
    width: int
    places: int
    label_places: int
    weight: int
    exponent: int

    @classmethod
    def of(cls, kappa: float, label_bound: float, width: int, gram_weight: float) -> "GramUnits":
        """Choose units in which a record's vector has length about 1.

        Args:
            gram_weight: How many times shorter a record's matrix is than its moments.
        """
        # A larger W makes vectors longer: rows give up half
        # as many places, and all stay below 2^42 units.
        finer = max(0, math.ceil(math.log2(gram_weight) / 2))
        places = max(1, _PLACES - finer)
        rows, labels = kappa / 2.0 ** _above(kappa), label_bound / 2.0 ** _above(label_bound)
        moments = gram_weight * _DIAGONAL * 2.0**places * rows / labels  # W 2^Q
        # W is rounded to an integer: at least `_FINE`
        # places keep the noise's share close to the plan.
        label_places = max(0, min(_LABEL_PLACES, math.floor(math.log2(moments)) - _FINE))
        longest = max(1.0, gram_weight) * _DIAGONAL * (2.0**places * rows) ** 2
        return cls(
            kappa=kappa,
            label_bound=label_bound,
            width=width,
            places=places,
            label_places=label_places,
            weight=max(1, round(moments / 2.0**label_places)),
            exponent=-round(math.log2(longest)),
        )

    @property
    def size(self) -> int:
        """The number of entries of the vector: d(d + 1)/2 of the matrix and d moments."""
        return self.width * (self.width + 1) // 2 + self.width

    @property
    def a(self) -> float:
        """The matrix is released over a."""
        unit = 2 * (_above(self.kappa) - self.places) - self.exponent
        return math.ldexp(1 / _DIAGONAL, unit)

    @property
    def w(self) -> float:
        """The moments are released over w."""
        unit = _above(self.kappa) - self.places + _above(self.label_bound) - self.label_places
        return math.ldexp(1 / self.weight, unit - self.exponent)

    @property
    def add_remove(self) -> float:
        """The longest vector of one record; rounded up."""
        return self._scale(statistics_add_remove(*self._integer_bounds, *self._weights))

    @property
    def replace_one(self) -> float:
        """T9 of the integers; rounded up."""
        return self._scale(statistics_replace_one(*self._integer_bounds, *self._weights))

    @property
    def gram_length(self) -> float:
        """The longest matrix of one record: 29 alpha^2; rounded up."""
        alpha, _ = self._integer_bounds
        return self._scale(up(_DIAGONAL * alpha * alpha, roundings=4))

    @property
    def replace_label(self) -> float:
        """2 Y alpha W; rounded up."""
        # The bounds are those of the rounded integers, so that rounding is in the claim already.
        alpha, label = self._integer_bounds
        return self._scale(statistics_replace_label(alpha, label, self._weights[1]))

    @property
    def largest_square(self) -> int:
        """The largest y'^2, of integers of at most Y."""
        return math.floor(self._integer_bounds[1]) ** 2

    @property
    def balance(self) -> float:
        """The square of how many times longer moments may be than the matrix; rounded up."""
        alpha, label = self._integer_bounds
        return up((self.weight * label / (_DIAGONAL * alpha)) ** 2, roundings=6)

    @property
    def square_weight(self) -> int:
        """The multiple of `largest_square` - y'^2 that is free: W alpha/Y, rounded down."""
        alpha, label = self._integer_bounds
        return math.floor(down(self.weight * alpha / label, roundings=4))

    @property
    def v(self) -> float:
        """The divisor v of what is released per square of a label, in squares of its unit."""
        unit = 2 * (_above(self.label_bound) - self.label_places)
        return math.ldexp(1 / self.square_weight, unit - self.exponent)

    @property
    def square_limit(self) -> float:
        """`largest_square`, in squares of the label's unit."""
        unit = 2 * (_above(self.label_bound) - self.label_places)
        return math.ldexp(self.largest_square, unit)

    @property
    def _integer_bounds(self) -> tuple[float, float]:
        """alpha and Y."""
        row = math.ldexp(self.kappa, self.places - _above(self.kappa))
        label = math.ldexp(self.label_bound, self.label_places - _above(self.label_bound))
        return up(row + math.sqrt(self.width) / 2, roundings=4), up(label + 0.5, roundings=4)

    @property
    def _weights(self) -> tuple[float, float]:
        """1/29 and 1/W, rounded down."""
        return math.nextafter(1 / _DIAGONAL, 0), math.nextafter(1 / self.weight, 0)

    def _scale(self, units: float) -> float:
        return math.ldexp(units, self.exponent)

    def integers(
        self, features: NDArray[np.float64], labels: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """PRIVATE: return a, shape (n, d), and y', shape (n,), as floats that hold integers."""
        with np.errstate(over="ignore", invalid="ignore"):
            # ldexp by a power of two does not round; rint is the only rounding of a row.
            rows = np.rint(np.ldexp(features, self.places - _above(self.kappa)))
            squares = np.einsum("ij,ij->i", rows, rows)
            # A row that breaks its promise counts as zeros: the
            # bound holds for any features and any labels.
            usable = (squares < 2.0 ** (2 * self.places + 1)) & np.isfinite(labels)
        inside = np.clip(np.where(usable, labels, 0.0), -self.label_bound, self.label_bound)
        label_units = np.ldexp(inside, self.label_places - _above(self.label_bound))
        return np.where(usable[:, None], rows, 0.0), np.rint(label_units)

    def vectors(
        self, features: NDArray[np.float64], labels: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """PRIVATE: return every record's vector, shape (n, size)."""
        rows, values = self.integers(features, labels)
        # The matrix is symmetric: its upper triangle,
        # weighted by 41/29 < sqrt(2), represents both halves.
        first, second = np.triu_indices(self.width, 1)
        integers = np.hstack(
            [
                _DIAGONAL * rows * rows,
                _ABOVE * rows[:, first] * rows[:, second],
                self.weight * rows * values[:, None],
            ]
        )
        return np.ldexp(integers, self.exponent)

    def total(self, features: NDArray[np.float64], labels: NDArray[np.float64]) -> Exact:
        """PRIVATE: return the sum of the vectors of at most `BLOCK` records."""
        assert len(labels) <= BLOCK, "blocks are cut to size"
        rows, values = self.integers(features, labels)
        # Exact in doubles up to here; the weights are applied in integers of 64 bits.
        gram = (rows.T @ rows).astype(np.int64)
        moments = (rows.T @ values).astype(np.int64)
        upper = gram[np.triu_indices(self.width, 1)]
        parts = [_DIAGONAL * np.diag(gram), _ABOVE * upper, self.weight * moments]
        return Exact.of(np.concatenate(parts), self.exponent)

    def short_squares(self, labels: NDArray[np.float64]) -> NDArray[np.int64]:
        """PRIVATE: return `square_weight` times `largest_square` - y'^2, shape (n,)."""
        _, values = self.integers(np.zeros((len(labels), 1)), labels)
        return self.square_weight * (self.largest_square - (values * values).astype(np.int64))

    def parted(self, vector: NDArray[np.float64]) -> Sums:
        """Split a vector into matrix and moments."""
        width, a = self.width, self.a
        rows, columns = np.triu_indices(width, 1)
        # Only answers are read here: what was released, divided by its weights and made symmetric.
        gram = np.diag(vector[:width] * a)
        gram[rows, columns] = vector[width : width + rows.size] * (a * _DIAGONAL / _ABOVE)
        gram[columns, rows] = gram[rows, columns]
        return Sums(gram, vector[width + rows.size :] * self.w)


def _above(bound: float) -> int:
    """Return the least e with bound <= 2^e."""
    half, exponent = math.frexp(bound)
    return exponent - 1 if half == 0.5 else exponent
