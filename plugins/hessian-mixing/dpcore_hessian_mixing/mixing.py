r"""Gaussian mixing: what k rows of a noisy sketch say of one record, as printed and exactly.

A sketch is k rows of S X + sqrt(lam) N, S and N standard Gaussian: independent rows of covariance
:math:`X^TX+\lambda I`. A record x of length at most B adds :math:`xx^T`, and everything common to
both data sets is post-processing, so that the worst pair is x against nothing. With
:math:`q=B^2/\lambda` the loss of an outcome is a function of one chi-square A of k degrees:

.. math:: L=-\tfrac k2\log(1+q)+\tfrac{qA}2\quad\text{(present)},\qquad
          L=\tfrac k2\log(1+q)-\tfrac{qA}{2(1+q)}\quad\text{(absent)}.

Printed (Lev et al. 2025, arXiv:2505.24603; 2026, arXiv:2601.07545; read in the authors' public
code): for a matrix all of whose eigenvalues are gamma or more, records of length 1, a Rényi
divergence of :math:`k\big[\frac\alpha{2(\alpha-1)}\log(1-\frac1\gamma)-\frac1{2(\alpha-1)}
\log(1-\frac\alpha\gamma)\big]`, converted by Canonne, Kamath & Steinke (2020). That holds for a
record that comes or goes. Under replacement two orthogonal records of full length are worse.
"""

import math

import numpy as np
import scipy
from numpy.typing import NDArray

_ORDERS = 4000
_WIDEST = 1e9


def mixing_renyi(ridge: float, samples: int, order: float) -> float:
    """Return the printed divergence of `samples` rows at an order in (1, ridge)."""
    slope = order * math.log1p(-1 / ridge) - math.log1p(-order / ridge)
    return samples * slope / (2 * (order - 1))


def replacement_renyi(ridge: float, samples: int, order: float) -> float:
    """Of one record of length 1 in the place of an orthogonal one, over a common part of `ridge`.

    Along either record one side has variance `ridge` + 1 and the other `ridge`: both add up.
    """
    divergence = _of_variances(ridge + 1, ridge, order) + _of_variances(ridge, ridge + 1, order)
    return samples * divergence


def _of_variances(first: float, second: float, order: float) -> float:
    """Return the Rényi divergence of N(0, first) from N(0, second); infinite where it has none."""
    mixed = order * second + (1 - order) * first
    if mixed <= 0:
        return math.inf
    return math.log(second / first) / 2 + math.log(second / mixed) / (2 * (order - 1))


def mixing_delta(epsilon: float, radius: float, ridge: float, samples: int) -> float:
    """Return the exact delta of `samples` rows at `epsilon`, add/remove, records at most `radius`
    long and `ridge` added in public."""
    q = radius * radius / ridge
    drift = samples / 2 * math.log1p(q)
    scale = 2 * (1 + q) / q
    distribution = scipy.stats.chi2(samples)
    present = scale * (epsilon + drift)
    absent = scale * (drift - epsilon)
    return max(
        float(distribution.sf(present / (1 + q)) - math.exp(epsilon) * distribution.sf(present)),
        float(distribution.cdf(absent) - math.exp(epsilon) * distribution.cdf(absent / (1 + q))),
    )


def least_ridge(epsilon: float, delta: float, radius: float, samples: int) -> float:
    """Return the least public ridge at which `samples` rows are (epsilon, delta)-DP under
    add/remove.
    """

    def excess(log_ridge: float) -> float:
        return mixing_delta(epsilon, radius, math.exp(log_ridge), samples) - delta

    root = scipy.optimize.brentq(excess, math.log(1e-3), math.log(_WIDEST), xtol=1e-12)
    return math.exp(root)


def printed_gamma(
    epsilon: float,
    delta: float,
    samples: int,
    sketches: int = 1,
    *,
    label_bound: float = 0.0,
    pays_eigenvalue: bool = True,
) -> float:
    """Return the least gamma for which the published formula states (epsilon, delta).

    Args:
        samples: k rows a sketch. sketches: T of them.
        label_bound: C, where labels are mixed with the features: records are sqrt(1 + C^2) long.
        pays_eigenvalue: Whether the release of the least eigenvalue is counted too.
    """
    # Thirds of delta: for the sketch, the eigenvalue, and the chance that it is too high.
    part, square = delta / 3, 1 + label_bound**2

    def excess(log_gamma: float) -> float:
        gamma = math.exp(log_gamma)
        orders = 1 + np.geomspace(1e-3, 0.999 * (gamma / square - 1), _ORDERS)
        total = float(np.min(_converted(gamma / square, samples * sketches, orders, part)))
        if pays_eigenvalue:
            total += math.sqrt(2 * math.log(1.25 / part)) * math.sqrt(samples) / gamma
        return total - epsilon

    root = scipy.optimize.brentq(excess, math.log(1.01 * square), math.log(_WIDEST), xtol=1e-12)
    return math.exp(root)


def _converted(
    gamma: float, samples: int, orders: NDArray[np.float64], delta: float
) -> NDArray[np.float64]:
    slope = orders * np.log1p(-1 / gamma) - np.log1p(-orders / gamma)
    divergence = samples * slope / (2 * (orders - 1))
    # Canonne, Kamath & Steinke (2020), Proposition 12.
    extra = math.log(1 / delta) + (orders - 1) * np.log1p(-1 / orders) - np.log(orders)
    return np.asarray(divergence + extra / (orders - 1))
