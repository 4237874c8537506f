r"""A Gaussian release whose shift depends on how often a record was used: mixtures over hits.

Indices are drawn independently of the data; with probability q the differing record is used at
all, and then the outputs differ by mu_i noise widths with probability w_i (sum of w = q). With
:math:`\tilde\epsilon=\log(1+(e^\epsilon-1)/q)` and the Gaussian curve,

.. math:: \delta(\epsilon) \le \sum_i w_i\,\delta_G(\tilde\epsilon;\mu_i) .

It needs that, given a hit, resampling the hits among the other records gives the law of the outputs
without a hit, and moves them by no more than mu_i (true for drawing with replacement). No pair is
shown to attain it: it has no lower end.

Source: advanced joint convexity: Balle, Barthe & Gaboardi (2018), arXiv:1807.01647v2, Theorem 2,
with a coupling for its second term.
"""

import math
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import floats, need_field, probability
from dpcore.claims.events.gaussian import gaussian_curve
from dpcore.errors import need
from dpcore.event import Claims, Direction, Event, VectorCurve
from dpcore.rounding import gamma, half_square, up

_CELLS = 1 << 18  # curve values computed at a time


@attrs.frozen(kw_only=True)
class HitMixtureEvent(Event, VectorCurve):
    """A mixture of Gaussian shifts, amplified by the probability of no hit.

    Args:
        mus: Shifts given a hit, in noise widths, each > 0, shape (k,).
        weights: Their probabilities, each >= 0, in all at most 1, shape (k,).
        uncovered: Probability of hits that `mus` does not cover (truncation), in [0, 1].
        adjacency: A replacement relation, under which the number of records is public.
    """

    symmetric: ClassVar[bool] = True
    is_costly: ClassVar[bool] = True  # a value takes one Gaussian curve per atom
    attained: ClassVar[bool] = False  # an upper bound

    mus: tuple[float, ...] = attrs.field(converter=floats)
    weights: tuple[float, ...] = attrs.field(converter=floats)
    uncovered: float = attrs.field(default=0.0, validator=probability)
    adjacency: Adjacency

    def __attrs_post_init__(self) -> None:
        need_field(
            self.mus and all(mu > 0 and math.isfinite(mu) for mu in self.mus),
            self,
            "mus",
            "finite shifts > 0",
        )
        fits = len(self.weights) == len(self.mus) and all(w >= 0 for w in self.weights)
        total = math.fsum(self.weights) if fits else math.nan
        need_field(
            0 < total <= 1 + 1e-9, self, "weights", "a weight >= 0 for each shift, in all in (0, 1]"
        )
        need(
            self.adjacency.replaces,
            "HitMixtureEvent",
            "a replacement relation",
            "adjacency",
            str(self.adjacency),
        )

    @property
    def atoms(self) -> int:
        """Number of shifts: each takes one Gaussian curve."""
        return len(self.mus)

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the bound above, equal in both directions."""
        # a larger q and a smaller inner loss both raise the bound
        q = min(1.0, (math.fsum(self.weights) + self.uncovered) * (1 + gamma(32)))
        with np.errstate(over="ignore"):
            ratio = np.expm1(np.minimum(epsilons, 700.0)) / q
        inner = np.where(np.isfinite(ratio), np.log1p(ratio), epsilons - math.log(q))
        # hits that no shift covers may give everything away: their probability is all delta
        total = self._weighted(inner * (1 - gamma(32))) + self.uncovered
        return np.minimum(total * (1 + gamma(128 + 2 * len(self.mus))), 1.0)

    def _weighted(self, inner: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted sum of the shifts' curves, a block of shifts at a time."""
        mus, weights = np.array(self.mus), np.array(self.weights)
        total = np.zeros_like(inner)
        block_size = max(1, _CELLS // max(1, inner.size))
        for start in range(0, mus.size, block_size):
            part = slice(start, start + block_size)
            total += gaussian_curve(inner[:, None], mus[part]) @ weights[part]
        return total

    @property
    def claims(self) -> Claims:
        """max mu^2/2 where every hit is covered: the mixture is quasi-convex."""
        return Claims(rho=None if self.uncovered else up(half_square(max(self.mus)), roundings=3))
