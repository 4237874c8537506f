r"""The features of the staged learner: standardised columns, weighted by what the screen found.

With u an encoded column, m and v its released mean and variance,

.. math:: z=\mathrm{clip}((u-m)/(2\sqrt v),\pm1.5) \text{ for numbers},\quad z=u
          \text{ for categories},

the rows of the screen are :math:`[w_0, a_jz_j]`, those of the fit

.. math:: [w_0,\ a_jz_j,\ \sqrt2w_2a_ia_jz_iz_j\ (i<j \text{ of different columns}),\
          w_2a_j^2(2z_j^2-0.7),\ b_j\sigma_j,\ \sqrt2w_2a_ib_jz_i\sigma_j
          \text{ (}i\text{ a category)}]

with, for every number, :math:`\sigma_j=\mathrm{clip}(3z_j,\pm1)`, a soft step at the released mean,
and :math:`b_j=0.7a_j`. Each row is scaled down to norm at most 1.
"""

import math
from typing import Any, NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, Range
from dpcore.models import Features

INTERCEPT = 0.5
_PAIRS = 0.7
_DEVIATIONS, _LIMIT = 2.0, 1.5
_CENTRE = 0.7  # of 2 z^2
_STEP, _STEEPNESS = 0.7, 3.0
_CHUNK = 1024  # rows at a time: what they need stays in a core's own cache


class _Partners(NamedTuple):
    """Which encoded columns are multiplied."""

    of_pairs: tuple[slice | NDArray[np.intp], ...]
    categorical: NDArray[np.intp]


@attrs.frozen(eq=False)
class Layout:
    """Which encoded column comes from which declared one.

    Args:
        numeric: Encoded columns that are ranges, shape (k,).
        owner: The declared column of each encoded one, shape (p,).
    """

    numeric: NDArray[np.intp]
    owner: NDArray[np.intp]

    @classmethod
    def of(cls, domain: Domain) -> "Layout":
        """Build from the declared columns, in order of encoding."""
        numeric: list[int] = []
        owner: list[int] = []
        for number, column in enumerate(domain.columns.values()):
            # A range is encoded as one column; a category as several, which share an owner.
            if isinstance(column, Range):
                numeric.append(len(owner))
            owner += [number] * column.width
        return cls(np.array(numeric, dtype=np.intp), np.array(owner, dtype=np.intp))

    @property
    def columns(self) -> int:
        """The number of columns that the domain declares, before encoding."""
        return int(self.owner[-1]) + 1

    def partners(self) -> _Partners:
        """Return each column's later partners from other declared columns, and categories."""
        later = []
        for first in range(self.owner.size):
            # Two columns of one category hold the same fact: their product would say nothing new.
            columns = first + 1 + np.flatnonzero(self.owner[first + 1 :] != self.owner[first])
            contiguous = columns.size == self.owner.size - first - 1
            later.append(slice(first + 1, None) if contiguous else columns)
        return _Partners(tuple(later), self.categorical)

    @property
    def categorical(self) -> NDArray[np.intp]:
        """Encoded columns that are no ranges."""
        return np.setdiff1d(np.arange(self.owner.size), self.numeric)

    @property
    def screened(self) -> int:
        """The number of features of the screen's rows: the constant and the encoded columns."""
        return 1 + self.owner.size

    @property
    def fitted(self) -> int:
        """The number of features of the fit's rows: main effects, pairs, squares, soft steps."""
        widths = np.bincount(self.owner)
        pairs = (int(self.owner.size) ** 2 - int(widths @ widths)) // 2
        steps = self.numeric.size * (1 + self.categorical.size)
        return self.screened + pairs + self.numeric.size + steps

    def equal_scales(self) -> NDArray[np.float64]:
        """Return a_j of the screen: the same for every column."""
        scale = math.sqrt((1 - INTERCEPT**2) / self.columns)
        return np.full(self.owner.size, scale)


@attrs.frozen(kw_only=True, eq=False)
class StagedFeatures(Features):
    """A public map, fixed by answers.

    Args:
        means, variances: Of the numeric columns, in encoded units, shape (k,).
        scales: a_j, shape (p,).
        quadratic: Whether it is the map of the fit.
    """

    layout: Layout
    means: NDArray[np.float64]
    variances: NDArray[np.float64]
    scales: NDArray[np.float64]
    quadratic: bool

    @property
    def width(self) -> int:
        """The number of features of a row: those of the fit, or of the screen."""
        return self.layout.fitted if self.quadratic else self.layout.screened

    def __call__(self, encoded: NDArray[Any]) -> NDArray[Any]:
        """Compute rows of norm at most 1, shape (n, width)."""
        features, partners = np.empty((len(encoded), self.width)), self.layout.partners()
        for start in range(0, len(encoded), _CHUNK):
            part = np.array(encoded[start : start + _CHUNK].T, dtype=np.float64, order="C")
            features[start : start + _CHUNK] = self._columns(part, partners, features.shape[1]).T
        return features

    def _columns(
        self, z: NDArray[np.float64], partners: _Partners, width: int
    ) -> NDArray[np.float64]:
        """Compute the features of a few rows, shape (width, n); long columns are faster.

        Every entry is made of its own row's by the same operations, wherever it is.

        Args:
            z: The encoded columns, shape (p, n); overwritten.
        """
        # Every operation below is by entry, so that a row's features do not depend on its block.
        numeric = self.layout.numeric
        noise_distributions = _DEVIATIONS * np.sqrt(self.variances)
        standard = (z[numeric] - self.means[:, None]) / noise_distributions[:, None]
        numbers = z[numeric] = np.clip(standard, -_LIMIT, _LIMIT)
        columns = np.empty((width, z.shape[1]))
        columns[0] = INTERCEPT
        end = 1 + len(z)
        main = np.multiply(z, self.scales[:, None], out=columns[1:end])
        if self.quadratic:
            # A pair i < j represents (i, j) and (j, i): hence the root of 2.
            pair_factors = _PAIRS * math.sqrt(2) * main
            for first, indices in zip(pair_factors, partners.of_pairs, strict=True):
                rows = main[indices]  # a view where all that follow are of other columns
                np.multiply(first, rows, out=columns[end : end + len(rows)])
                end += len(rows)
            squares = 2 * numbers**2 - _CENTRE
            weights = _PAIRS * self.scales[numeric] ** 2
            np.multiply(weights[:, None], squares, out=columns[end : end + numeric.size])
            end += numeric.size
            steep = np.clip(_STEEPNESS * numbers, -1, 1)
            steps = columns[end : end + numeric.size]
            np.multiply((_STEP * self.scales[numeric])[:, None], steep, out=steps)
            end += numeric.size
            groups = pair_factors[partners.categorical]
            for step in steps:
                np.multiply(step, groups, out=columns[end : end + len(groups)])
                end += len(groups)
        # The norm bound is enforced here, for every row, and not assumed of the columns.
        columns /= np.maximum(1.0, _column_lengths(columns))
        return columns

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the released numbers that fix the map: means, variances and scales."""
        return {"means": self.means, "variances": self.variances, "scales": self.scales}


def _column_lengths(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the l2 norms of rows that lie in columns, shape (width, n) to (n,).

    Squares are added in halves, in the order of `dpcore.encoding.tables.row_lengths`.
    """
    if (rows_left := len(columns)) == 0:
        return np.zeros(columns.shape[1])
    squares = columns * columns
    while rows_left > 1:
        half = rows_left // 2
        squares[:half] += squares[rows_left - half : rows_left]
        rows_left -= half
    return np.asarray(np.sqrt(squares[0]))
