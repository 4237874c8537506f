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
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, Features
from dpcore.domain.columns import Range
from dpcore.records.lengths import row_lengths

INTERCEPT = 0.5
_PAIRS = 0.7
_DEVIATIONS, _FARTHEST = 2.0, 1.5
_CENTRE = 0.7  # of 2 z^2
_STEP, _STEEPNESS = 0.7, 3.0


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
        """From the declared columns, in order of encoding."""
        numeric: list[int] = []
        owner: list[int] = []
        for number, column in enumerate(domain.columns.values()):
            if isinstance(column, Range):
                numeric.append(len(owner))
            owner += [number] * column.width
        return cls(np.array(numeric, dtype=np.intp), np.array(owner, dtype=np.intp))

    @property
    def columns(self) -> int:
        """Declared columns."""
        return int(self.owner[-1]) + 1

    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Encoded columns i < j of different declared ones."""
        first, second = np.triu_indices(self.owner.size, 1)
        apart = self.owner[first] != self.owner[second]
        return first[apart], second[apart]

    @property
    def categorical(self) -> NDArray[np.intp]:
        """Encoded columns that are no ranges."""
        return np.setdiff1d(np.arange(self.owner.size), self.numeric)

    @property
    def screened(self) -> int:
        """Features of the screen."""
        return 1 + self.owner.size

    @property
    def fitted(self) -> int:
        """Features of the fit."""
        widths = np.bincount(self.owner)
        pairs = (int(self.owner.size) ** 2 - int(widths @ widths)) // 2
        steps = self.numeric.size * (1 + self.categorical.size)
        return self.screened + pairs + self.numeric.size + steps

    def equal_scales(self) -> NDArray[np.float64]:
        """a_j of the screen: the same for every column."""
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
        """Number of features."""
        return self.layout.fitted if self.quadratic else self.layout.screened

    def __call__(self, encoded: NDArray[Any]) -> NDArray[Any]:
        """Rows of norm at most 1, shape (n, width)."""
        numeric = self.layout.numeric
        z = np.array(encoded, dtype=np.float64)
        standard = (z[:, numeric] - self.means) / (_DEVIATIONS * np.sqrt(self.variances))
        z[:, numeric] = np.clip(standard, -_FARTHEST, _FARTHEST)
        main = z * self.scales
        blocks = [np.full((len(z), 1), INTERCEPT), main]
        if self.quadratic:
            first, second = self.layout.pairs()
            blocks.append(_PAIRS * math.sqrt(2) * main[:, first] * main[:, second])
            squares = 2 * z[:, numeric] ** 2 - _CENTRE
            blocks.append(_PAIRS * self.scales[numeric] ** 2 * squares)
            steps = _STEP * self.scales[numeric] * np.clip(_STEEPNESS * z[:, numeric], -1, 1)
            groups = _PAIRS * math.sqrt(2) * main[:, self.layout.categorical]
            blocks.append(steps)
            blocks += [step[:, None] * groups for step in steps.T]
        rows = np.hstack(blocks)
        rows /= np.maximum(1.0, row_lengths(rows))
        return rows

    def arrays(self) -> dict[str, NDArray[Any]]:
        """What the answers fixed."""
        return {"means": self.means, "variances": self.variances, "scales": self.scales}
