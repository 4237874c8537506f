r"""From one privacy notion to another, each a function with its theorem; every result rounds up."""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.errors import ParameterError
from dpcore.events.concentrated import zcdp_to_delta
from dpcore.events.renyi_curve import renyi_to_delta
from dpcore.rounding import gamma, up

Array = NDArray[np.float64]


def _need(owner: str, field: str, value: float, is_valid: bool, requirement: str) -> None:
    if not (math.isfinite(value) and is_valid):
        raise ParameterError(owner, requirement, field, value)


def pure_to_zcdp(epsilon: float) -> float:
    """rho = epsilon^2/2. Source: Bun & Steinke (2016), arXiv:1605.02065, Proposition 1.4.

    Raises:
        ParameterError: `epsilon` is not finite and >= 0.
    """
    _need("pure_to_zcdp", "epsilon", epsilon, epsilon >= 0, "a finite epsilon >= 0")
    return up(epsilon * epsilon / 2, roundings=500)


def gdp_to_zcdp(mu: float) -> float:
    """rho = mu^2/2. Source: Bun & Steinke (2016), Proposition 1.6, for a Gaussian of shift mu.

    Raises:
        ParameterError: `mu` is not finite and >= 0.
    """
    _need("gdp_to_zcdp", "mu", mu, mu >= 0, "a finite mu >= 0")
    return up(mu * mu / 2, roundings=500)


def pure_to_gdp(epsilon: float) -> float:
    r"""The least mu for which every epsilon-DP release is mu-Gaussian-DP, rounded up.

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


def zcdp_to_renyi(rho: float, orders: Array) -> Array:
    """alpha rho at each order. Source: Bun & Steinke (2016), Definition 1.1."""
    _need("zcdp_to_renyi", "rho", rho, rho >= 0, "a finite rho >= 0")
    return orders * up(rho, roundings=500)


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


def pure_group(epsilon: float, size: int) -> float:
    """size * epsilon. Source: Dwork & Roth (2014), Theorem 2.2.

    Raises:
        ParameterError: `epsilon` is not finite and >= 0, or `size` < 1.
    """
    _need("pure_group", "epsilon", epsilon, epsilon >= 0, "a finite epsilon >= 0")
    _need("pure_group", "size", size, size >= 1, "a size >= 1")
    return up(size * epsilon, roundings=500)


def approximate_group(epsilon: float, delta: float, size: int) -> tuple[float, float]:
    r"""(k epsilon, delta (e^{k epsilon}-1)/(e^epsilon-1)) for groups of k.

    Source: Dwork & Roth (2014), after Theorem 2.2; the sum of the chain
    :math:`\delta\sum_{i<k}e^{i\epsilon}`.

    Raises:
        ParameterError: an argument is out of its range.
    """
    _need("approximate_group", "epsilon", epsilon, epsilon >= 0, "a finite epsilon >= 0")
    _need("approximate_group", "delta", delta, 0 <= delta <= 1, "a delta in [0, 1]")
    _need("approximate_group", "size", size, size >= 1, "a size >= 1")
    # Beyond the doubles; delta = 1 is the trivial claim.
    if size * epsilon > 700:
        return up(size * epsilon, roundings=500), 1.0
    ratio = math.expm1(size * epsilon) / math.expm1(epsilon) if epsilon > 0 else float(size)
    return up(size * epsilon, roundings=500), min(1.0, up(delta * ratio, roundings=500))


def zcdp_group(rho: float, size: int) -> float:
    """size^2 rho. Source: Bun & Steinke (2016), Proposition 1.9.

    Raises:
        ParameterError: `rho` is not finite and >= 0, or `size` < 1.
    """
    _need("zcdp_group", "rho", rho, rho >= 0, "a finite rho >= 0")
    _need("zcdp_group", "size", size, size >= 1, "a size >= 1")
    return up(size * size * rho, roundings=500)


def gdp_group(mu: float, size: int) -> float:
    """size * mu. Source: Dong, Roth & Su (2022), Theorem 2.14 (k mu-GDP).

    Raises:
        ParameterError: `mu` is not finite and >= 0, or `size` < 1.
    """
    _need("gdp_group", "mu", mu, mu >= 0, "a finite mu >= 0")
    _need("gdp_group", "size", size, size >= 1, "a size >= 1")
    return up(size * mu, roundings=500)


def add_remove_to_replace_one(epsilon: float, delta: float) -> tuple[float, float]:
    """A replacement is a removal and an addition: groups of 2.

    Valid only for a release whose map does not depend on the number of records.
    Source: Dwork & Roth (2014), after Theorem 2.2, with k = 2.
    """
    return approximate_group(epsilon, delta, 2)


__all__ = [
    "add_remove_to_replace_one",
    "approximate_group",
    "gdp_group",
    "gdp_to_zcdp",
    "pure_group",
    "pure_to_gdp",
    "pure_to_zcdp",
    "renyi_to_delta",
    "renyi_to_epsilon",
    "zcdp_group",
    "zcdp_to_delta",
    "zcdp_to_epsilon",
    "zcdp_to_renyi",
]
