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
from dpcore.checks import positive
from dpcore.errors import ParameterError
from dpcore.events.base import Direction, TwoEnds
from dpcore.events.gaussian import gaussian_curve
from dpcore.rounding import down, gamma

_LEAST = -690.0  # of a logarithm: no delta > 0 is rounded to 0


def zcdp_to_delta(rho: float, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
    """Smallest delta that rho-zCDP implies at each epsilon >= 0.

    The formula is that of `renyi_to_delta` with r(alpha) = alpha rho. The order is found by
    golden section in log(alpha - 1); every order gives a valid delta.

    Raises:
        ParameterError: `rho` is not finite and > 0.
    """
    if not (math.isfinite(rho) and rho > 0):
        raise ParameterError("zcdp_to_delta", "a finite rho > 0", "rho", rho)

    def log_delta(log_less: NDArray[np.float64]) -> NDArray[np.float64]:
        less = np.exp(log_less)
        alpha = 1 + less
        gain = less * (alpha * rho - epsilons)
        shape = np.where(less < 1e15, alpha * np.log1p(-1 / np.maximum(alpha, 2.0)), -1.0)
        small = alpha * (log_less - np.log1p(less))  # log(1 - 1/alpha) = log less - log alpha
        shape = np.where(less < 1, small, shape)
        size = less * (alpha * rho + epsilons) + np.abs(log_less) + np.abs(shape)
        return np.asarray(gain - log_less + shape + gamma(32) * size)

    guess = np.log(np.maximum((epsilons - rho) / (2 * rho), 1e-12))
    low, high = np.minimum(guess, 0.0) - 12.0, np.maximum(guess, 0.0) + 3.0
    golden = (math.sqrt(5) - 1) / 2
    best = np.zeros(np.shape(epsilons))
    with np.errstate(over="ignore", divide="ignore"):  # orders of 1 are replaced by `small`
        for _ in range(60):
            left, right = high - golden * (high - low), low + golden * (high - low)
            at_left, at_right = log_delta(left), log_delta(right)
            best = np.minimum(best, np.fmin(at_left, at_right))
            down = at_left <= at_right
            low, high = np.where(down, low, left), np.where(down, right, high)
    return np.exp(np.maximum(best, _LEAST))


@attrs.frozen(kw_only=True)
class ZcdpEvent(TwoEnds):
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
        """What the claim implies, and from below the Gaussian's; the same in both directions."""
        if lower:
            return gaussian_curve(epsilons, down(math.sqrt(2 * self.rho), roundings=3), lower=True)
        return zcdp_to_delta(self.rho, epsilons)

    def zcdp_rho(self) -> float:
        """rho."""
        return self.rho
