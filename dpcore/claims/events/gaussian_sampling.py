r"""Samples of a Gaussian whose covariance depends on the records: a chi-square mixture of shifts.

k draws from N(0, F F^T + lam0 I), or their second moments; one row of F moves by at most b in l2
and theta = b / sqrt(lam0). Revealing the draws behind F as well leaves a Gaussian release of
shift theta sqrt(u), u chi-square with k degrees of freedom, for every number of records:

.. math:: \delta(\epsilon) = E_{u\sim\chi^2_k}\,\delta_G(\epsilon;\ \theta\sqrt u), \qquad
          D_\alpha = -\frac{k\log(1-\alpha(\alpha-1)\theta^2)}{2(\alpha-1)} .

The expectation is taken over cells of u, at their upper ends for the upper end of the curve; both
formulas are of the same pair, which the release attains in the limit.

Source: Dong, Roth & Su (2022) for the Gaussian curve; the argument is the one above.
"""

import math
from functools import cached_property
from typing import ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import need_field, positive, positive_integer
from dpcore.claims.events.gaussian import gaussian_curve
from dpcore.event import Claims, Direction, Event, TwoEnds
from dpcore.rounding import up

MOST = 10**14
"""Largest number of samples: double precision resolves the cells of u up to it."""
_FEWEST, _CELLS = 64, 1024
_WIDTH = 5e-4  # of a cell of sqrt(u), relative, where fewer cells than `_CELLS` reach it
_TAIL = 1e-18  # of u above the last cell
_ROUNDING = 1e-9  # relative, granted to the cells' probabilities and ends


@attrs.frozen(kw_only=True, slots=False)
class GaussianSamplingEvent(Event, TwoEnds):
    """`samples` draws, or their second moments.

    Args:
        theta: b / sqrt(lam0), > 0.
        samples: k, an integer in [1, 10^14].
        adjacency: The relation under which b is bounded; the number of records is public.
    """

    symmetric: ClassVar[bool] = True

    theta: float = attrs.field(validator=positive)
    samples: int = attrs.field(validator=positive_integer)
    adjacency: Adjacency

    def __attrs_post_init__(self) -> None:
        need_field(self.samples <= MOST, self, "samples", "at most 10^14 samples")

    @cached_property
    def _cells(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Ends of sqrt(u), shape (n + 1,), and probabilities between them, shape (n,)."""
        half = self.samples / 2
        # cells of equal width in sqrt(u), between two quantiles rounded outwards
        top = math.sqrt(2 * float(scipy.special.gammainccinv(half, _TAIL))) * (1 + _ROUNDING)
        bottom = math.sqrt(2 * float(scipy.special.gammaincinv(half, _TAIL))) * (1 - _ROUNDING)
        cells = math.ceil((top - bottom) / (_WIDTH * top))
        ends = np.linspace(bottom, top, min(max(cells, _FEWEST), _CELLS) + 1)
        below = scipy.special.gammainc(half, ends * ends / 2)
        above = scipy.special.gammaincc(half, ends * ends / 2)
        # differences of the smaller of the two tails, which keeps its digits
        weights = np.where(below[:-1] < 0.5, np.diff(below), -np.diff(above))
        # what lies below the first cell joins it; the tail above the last is charged in `ends`
        weights[0] += below[0]
        return ends, np.maximum(weights, 0.0)

    @property
    def atoms(self) -> int:
        """Number of cells of u: each takes one Gaussian curve."""
        return len(self._cells[1])

    def ends(
        self, epsilons: NDArray[np.float64], direction: Direction, *, lower: bool
    ) -> NDArray[np.float64]:
        """Average Gaussian curves over the cells of u; the result is equal in both directions."""
        ends, weights = self._cells
        # delta grows with the shift: upper ends of the cells give an upper end of the curve
        roots = ends[:-1] if lower else ends[1:]
        if lower:
            roots = np.concatenate([[0.0], roots[1:]])  # the first cell reaches down to 0
        sign = -1 if lower else 1
        mask = (weights > 0) & (roots > 0)
        mus = np.maximum(self.theta * roots[mask] * (1 + sign * _ROUNDING), 1e-290)
        total = np.empty(len(epsilons))  # floats, whatever was asked
        for start in range(0, len(epsilons), 512):  # bounded memory
            part = epsilons[start : start + 512]
            curves = gaussian_curve(part[:, None], mus[None, :], lower=lower)
            total[start : start + 512] = curves @ weights[mask]
        total = total * (1 + sign * _ROUNDING) + (0.0 if lower else _TAIL)
        return np.clip(total, 0.0, 1.0)

    @property
    def claims(self) -> Claims:
        """The divergences of the formula above."""
        return Claims(renyi=self._renyi)

    def _renyi(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Evaluate the formula above; infinite if alpha(alpha-1) theta^2 >= 1."""
        with np.errstate(over="ignore"):
            # the divergence grows with `inside`, which is therefore rounded up
            inside = up(orders * (orders - 1) * self.theta * self.theta, roundings=20)
        value = np.log1p(-np.minimum(inside, 0.5))
        value = np.where(inside < 0.5, value, np.log(np.maximum(1 - inside, 1e-300)))
        value = up(-self.samples * value / (2 * (orders - 1)), roundings=200)
        # near 1 the logarithm magnifies rounding: a margin is added, then infinity is claimed
        return np.where(inside < 1 - 1e-9, value * (1 + 1e-6 * (inside > 0.999)), np.inf)
