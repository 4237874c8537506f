r"""A zCDP claim as an event: any release that is rho-zCDP.

Its curve is what the claim implies at each epsilon; no release attains all of it. A Gaussian of
shift sqrt(2 rho) *is* rho-zCDP (Bun & Steinke 2016, Proposition 1.6), which gives the lower end.
"""

import math
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import need_positive, positive
from dpcore.claims.events.gaussian import gaussian_curve
from dpcore.event import Claims, Direction, Event, TwoEnds
from dpcore.rounding import down, gamma

_LEAST = -690.0  # of a logarithm: no delta > 0 is rounded to 0
_NEAR, _MOST_STEPS = 1e-7, 60  # of log(alpha - 1); delta moves by the square of what is left


def zcdp_to_delta(rho: float, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the smallest delta that rho-zCDP implies at each epsilon >= 0.

    The formula is that of `renyi_to_delta` with r(alpha) = alpha rho. Its logarithm has the slope
    (2 alpha - 1) rho - epsilon + log(1 - 1/alpha), which grows with alpha: the order is found by
    Newton's method in log(alpha - 1). Every order gives a valid delta.

    Raises:
        ParameterError: `rho` is not finite and > 0.
    """
    need_positive("zcdp_to_delta", rho=rho)

    def log_delta(log_excess: NDArray[np.float64]) -> NDArray[np.float64]:
        excess = np.exp(log_excess)
        alpha = 1 + excess
        gain = excess * (alpha * rho - epsilons)
        # alpha log(1 - 1/alpha) in three ranges, of which none cancels or overflows
        shape = np.where(excess < 1e15, alpha * np.log1p(-1 / np.maximum(alpha, 2.0)), -1.0)
        small = alpha * (log_excess - np.log1p(excess))  # log(1 - 1/alpha) = log excess - log alpha
        shape = np.where(excess < 1, small, shape)
        # the sizes of all terms bound the rounding error of their sum, which is added
        size = excess * (alpha * rho + epsilons) + np.abs(log_excess) + np.abs(shape)
        return np.asarray(gain - log_excess + shape + gamma(32) * size)

    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # orders of 1 or infinity
        best = np.fmin(log_delta(_best_order(rho, epsilons)), 0.0)
    return np.asarray(np.exp(np.maximum(best, _LEAST)))


def _best_order(rho: float, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
    """Find log(alpha - 1) that minimises delta; steps that leave their bracket halve it instead."""
    guess = np.log(np.maximum((epsilons - rho) / (2 * rho), 1e-12))
    # the accuracy of the order decides tightness only: any order gives a valid delta
    low = np.minimum(guess, 0.0) - 12.0
    high = np.maximum(guess, max(0.0, -0.5 * math.log(rho))) + 3.0
    for _ in range(_MOST_STEPS):
        excess = np.exp(guess)
        slope = (1 + 2 * excess) * rho - epsilons - np.logaddexp(0.0, -guess)
        low, high = np.where(slope < 0, guess, low), np.where(slope < 0, high, guess)
        fresh = guess - slope / (2 * rho * excess + 1 / (1 + excess))
        fresh = np.where((fresh >= low) & (fresh <= high), fresh, 0.5 * (low + high))
        step, guess = np.abs(fresh - guess), fresh
        if np.all(step <= _NEAR):
            break
    return np.asarray(guess)


@attrs.frozen(kw_only=True)
class ZcdpEvent(Event, TwoEnds):
    """Any rho-zCDP release.

    Args:
        rho: > 0.
        adjacency: What the claim is about.
    """

    symmetric: ClassVar[bool] = True

    rho: float = attrs.field(validator=positive)
    adjacency: Adjacency

    def ends(
        self, epsilons: NDArray[np.float64], direction: Direction, *, lower: bool
    ) -> NDArray[np.float64]:
        """Return the curve that the claim implies; from below, the Gaussian's.

        Both directions are equal.
        """
        if lower:
            return gaussian_curve(epsilons, down(math.sqrt(2 * self.rho), roundings=3), lower=True)
        return zcdp_to_delta(self.rho, epsilons)

    @property
    def claims(self) -> Claims:
        """The rho of the claim."""
        return Claims(rho=self.rho)
