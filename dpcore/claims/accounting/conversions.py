r"""From one privacy notion to another, each a function with its theorem; every result rounds up."""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.errors import need
from dpcore.rounding import gamma, up

Array = NDArray[np.float64]


def _need(owner: str, field: str, value: float, is_valid: bool, requirement: str) -> None:
    need(math.isfinite(value) and is_valid, owner, requirement, field, value)


def pure_to_gdp(epsilon: float) -> float:
    r"""Return the least mu for which every epsilon-DP release is mu-Gaussian-DP, rounded up.

    .. math:: \mu=-2\,\Phi^{-1}\big(1/(1+e^{\epsilon})\big)

    The trade-off curve of epsilon-DP is two straight lines that meet on the diagonal, at type I and
    type II errors of 1/(1+e^epsilon). A Gaussian curve is convex and has the same ends, so that it
    lies below both lines exactly if it does where they meet, where its error is Phi(-mu/2).

    Raises:
        ParameterError: `epsilon` is not finite and >= 0.

    Source: Dong, Roth & Su (2022), Definition 2.3 and Proposition 2.5 (the curve of epsilon-DP).
    """
    _need("pure_to_gdp", "epsilon", epsilon, epsilon >= 0, "a finite epsilon >= 0")
    total_variation = math.tanh(epsilon / 2)  # of the two-point pair; 1 - 2/(1+e^eps)
    # One equation, inverted in two ways: each is accurate where the other one cancels.
    if total_variation < 0.5:  # Phi(mu/2) - 1/2 = total_variation/2
        mu = 2 * math.sqrt(2) * float(scipy.special.erfinv(total_variation))
    else:  # log Phi(-mu/2) = -log(1 + e^eps)
        mu = -2 * float(scipy.special.ndtri_exp(-(epsilon + math.log1p(math.exp(-epsilon)))))
    return up(mu, roundings=500)


def renyi_to_epsilon(orders: Array, divergence: Array, delta: float) -> float:
    r"""Smallest epsilon that a Rényi curve implies at `delta`.

    .. math:: \min_\alpha\; r(\alpha) + \log\frac{\alpha-1}{\alpha}
              - \frac{\log\delta + \log\alpha}{\alpha - 1}

    Args:
        orders: Rényi orders, each > 1, shape (k,).
        divergence: Bound at each order, in nats, shape (k,); infinite where there is none.
        delta: Target delta, in (0, 1).
    Returns:
        Upper bound on epsilon >= 0, in nats; infinite where no order has a finite divergence.
    Raises:
        ParameterError: `delta` is outside (0, 1).

    Source: Canonne, Kamath & Steinke (2020), arXiv:2004.00010v4, Proposition 12.
    """
    _need("renyi_to_epsilon", "delta", delta, 0 < delta < 1, "a delta in (0, 1)")
    return max(0.0, float(np.min(_implied_epsilons(orders, divergence, delta))))


def _implied_epsilons(orders: Array, divergence: Array, delta: float) -> Array:
    """The terms of that minimum, rounded up."""
    excess = orders - 1
    terms = (np.log1p(-1 / orders), (math.log(delta) + np.log(orders)) / excess)
    value = divergence + terms[0] - terms[1]
    # Every term errs by a few ulps of itself; 800 exceeds |log delta| for every double.
    slack = gamma(16) * (divergence + np.abs(terms[0]) + (800 + np.log(orders)) / excess)
    return np.asarray(value + slack)


def zcdp_to_epsilon(rho: float, delta: float) -> float:
    """Smallest epsilon that rho-zCDP implies at `delta`, by `renyi_to_epsilon` over a fine net.

    Raises:
        ParameterError: `rho` is not finite and >= 0, or `delta` is outside (0, 1).
    """
    _need("zcdp_to_epsilon", "rho", rho, rho >= 0, "a finite rho >= 0")
    _need("zcdp_to_epsilon", "delta", delta, 0 < delta < 1, "a delta in (0, 1)")
    if rho == 0:
        return 0.0
    # Each order alone gives a valid epsilon: the net decides how tight the bound is, not whether
    # it holds. The best order is about 1 + sqrt(log(1/delta)/rho).
    centre = math.log(math.sqrt(-math.log(delta) / rho) + 1e-300)
    best = math.inf
    low, high = min(centre, 0.0) - 10.0, max(centre, 0.0) + 5.0
    for _ in range(4):
        grid = np.linspace(low, high, 65)
        orders = 1 + np.exp(grid)
        orders = orders[orders > 1]
        grid = grid[-len(orders) :]
        epsilons = _implied_epsilons(orders, orders * up(rho, roundings=500), delta)
        index = int(np.argmin(epsilons))
        best = min(best, max(0.0, float(epsilons[index])))
        step = float(grid[1] - grid[0])
        low, high = float(grid[index]) - step, float(grid[index]) + step
    return best
