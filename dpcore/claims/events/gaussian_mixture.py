r"""A Gaussian whose shift is random on one side: the mixture of N(s_i, 1) against N(0, 1).

Adding or removing a record shifts the release by s_i >= 0 noise widths with probability w_i. With
the likelihood ratio :math:`r(t)=\sum_i w_i e^{s_i t-s_i^2/2}`, which increases in t, the worst
event for "remove" is {x > t} with r(t) = e^epsilon, for "add" {x < t} with r(t) = e^{-epsilon}:

.. math:: \delta_{remove} = \sum_i w_i\bar\Phi(t-s_i) - e^\epsilon\bar\Phi(t), \qquad
          \delta_{add} = \Phi(t) - e^\epsilon\sum_i w_i\Phi(t-s_i) .

Every t gives a lower end; between two brackets of the best t, the first tail at the one and the
second at the other give an upper end. A Poisson-sampled Gaussian is the case of shifts 0 and mu.

Source: the definition; Choquette-Choo, Ganesh, Steinke & Thakurta (2023), arXiv:2310.15526, show
when such a pair dominates a release of vectors (Theorem 3.1, Lemma 4.5).
"""

import math
from typing import ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import floats, need_field
from dpcore.event import Claims, Direction, Event, TwoEnds
from dpcore.rounding import gamma

_TINY = 1e-298
_WEIGHTS = 1e-12  # how far weights may be from 1 in all
_CUTOFF = 37.0  # noise widths: the tail beyond is 6e-300


@attrs.frozen(kw_only=True)
class GaussianMixtureEvent(Event, TwoEnds):
    """A shift of `shifts` noise widths with probabilities `weights`.

    Args:
        shifts: Each finite and >= 0, not all 0, shape (k,).
        weights: Each >= 0, in all 1, shape (k,).
        adjacency: add_remove.
    """

    symmetric: ClassVar[bool] = False

    shifts: tuple[float, ...] = attrs.field(converter=floats)
    weights: tuple[float, ...] = attrs.field(converter=floats)
    adjacency: Adjacency

    def __attrs_post_init__(self) -> None:
        good = all(math.isfinite(s) and s >= 0 for s in self.shifts) and any(self.shifts)
        need_field(good, self, "shifts", "finite shifts >= 0, not all 0")
        fits = len(self.weights) == len(self.shifts) and all(w >= 0 for w in self.weights)
        need_field(
            fits and abs(math.fsum(self.weights) - 1) <= _WEIGHTS,
            self,
            "weights",
            "a weight >= 0 for each shift, in all 1",
        )
        self.adjacency.require_presence("GaussianMixtureEvent", "add_remove")

    @property
    def atoms(self) -> int:
        """Number of shifts: the curve sums one tail for each."""
        return len(self.shifts)

    @property
    def _support(self) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """Positive shifts, their weights, and the weight of no shift."""
        pairs = [(s, w) for s, w in zip(self.shifts, self.weights, strict=True) if s * w > 0]
        still = math.fsum(w for s, w in zip(self.shifts, self.weights, strict=True) if s * w <= 0)
        return np.array([s for s, _ in pairs]), np.array([w for _, w in pairs]), still

    def ends(
        self, epsilons: NDArray[np.float64], direction: Direction, *, lower: bool
    ) -> NDArray[np.float64]:
        """Evaluate the formulas above, some epsilons at a time."""
        # an array of epsilons by shifts is computed in blocks of bounded memory
        block_size = max(1, (1 << 18) // len(self.shifts))
        parts = [
            self._ends(epsilons[start : start + block_size], direction, lower)
            for start in range(0, len(epsilons), block_size)
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _ends(
        self, epsilons: NDArray[np.float64], direction: Direction, lower: bool
    ) -> NDArray[np.float64]:
        shifts, weights, still = self._support
        if not len(shifts):
            return np.zeros_like(epsilons)
        remove = direction is Direction.REMOVE
        # the best half-line ends where the likelihood ratio is e^epsilon (add: e^-epsilon)
        low, high = self._bracket(epsilons if remove else -epsilons, shifts, weights, still)
        growth = np.exp(np.minimum(epsilons, 700.0))
        cdf = scipy.special.ndtr
        # remove: tails above t; add: tails below t, whose larger end is at `high`
        wide, narrow = (-low, -high) if remove else (high, low)
        cut = wide if not lower else narrow
        sign = 1.0 if remove else -1.0
        mixed_cut, plain_cut = (cut, cut) if lower else (wide, narrow)
        if not remove:
            mixed_cut, plain_cut = (cut, cut) if lower else (narrow, wide)
        mixed = cdf(mixed_cut[:, None] + sign * shifts) @ weights + still * cdf(mixed_cut)
        plain = cdf(plain_cut)
        first, second = (mixed, growth * plain) if remove else (plain, growth * mixed)
        # an error of t by some ulps changes a tail by that times (1 + t^2), relative
        cutoff = 1 + (np.abs(low) + float(np.max(shifts))) ** 2
        weight_error = 2 * abs(math.fsum(self.weights) - 1)  # weights that are rounded
        error = (gamma(64 + 4 * len(shifts)) * cutoff + weight_error) * (first + second)
        # beyond the largest exponent no lower end is claimed
        if lower:
            value = np.where(epsilons > 700.0, 0.0, first - second - error)
            return np.clip(value, 0.0, 1.0)
        return np.clip(first - second + error + _TINY, 0.0, 1.0)

    @staticmethod
    def _bracket(
        logs: NDArray[np.float64],
        shifts: NDArray[np.float64],
        weights: NDArray[np.float64],
        still: float,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return two close points t that bracket log r(t) = logs, within `_CUTOFF` widths."""
        base = np.log(weights) - 0.5 * shifts * shifts
        log_still = math.log(still) if still > 0 else -math.inf

        def log_ratio(t: NDArray[np.float64]) -> NDArray[np.float64]:
            terms = t[:, None] * shifts + base
            peak = np.maximum(np.max(terms, axis=1), log_still)
            total = np.sum(np.exp(terms - peak[:, None]), axis=1) + np.exp(log_still - peak)
            return np.asarray(peak + np.log(total))

        low = np.full_like(logs, -_CUTOFF)
        high = np.full_like(logs, _CUTOFF + float(np.max(shifts)))
        # log r(t) increases, so bisection brackets the t at which it has a given value
        for _ in range(60):
            middle = 0.5 * (low + high)
            above = log_ratio(middle) > logs
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        # wider than the rounding of t, so that the best t stays between the ends
        slack = 1e-13 * (1 + np.abs(low))
        return low - slack, high + slack

    @property
    def claims(self) -> Claims:
        """mu where one shift is all there is, and rho = max s^2/2.

        The mixture is no farther from the other side than its most distant part.
        """
        shifts, _, still = self._support
        return Claims(
            mu=float(shifts[0]) if len(shifts) == 1 and still == 0 else None,
            rho=float(max(self.shifts) ** 2 / 2 * (1 + gamma(8))),
        )
