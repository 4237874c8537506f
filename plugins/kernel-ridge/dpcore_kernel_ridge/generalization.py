r"""The paper's bounds on what a private evaluation costs, printed and corrected.

Notation: V is the variance :math:`2\Delta^2/\epsilon^2` of the Laplace noise b, for a sensitivity
Delta in sup norm. As printed :math:`\Delta=2R\kappa^2(\kappa+1)/(m\lambda)` with
:math:`R=M/\sqrt\lambda` (Lemma 2); T4 is smaller.
"""

import math

from dpcore.checks import need_positive
from dpcore_models.theorems.ridge import ridge_replace_one


def generalization_printed(epsilon: float, bound: float) -> float:
    r"""Theorem 1: mean over the sample and expectation differ by :math:`2G\epsilon` at most.

    True up to epsilon = 1.2564, where :math:`e^\epsilon-1=2\epsilon`.

    Args:
        bound: G, of the expectation.
    """
    need_positive("generalization_printed", epsilon=epsilon, bound=bound)
    return 2 * bound * epsilon


def generalization(epsilon: float, bound: float) -> float:
    r"""Return the same for every epsilon: :math:`(e^\epsilon-1)G`.

    G bounds both the expectation and the expected mean: each direction needs one of them.
    """
    need_positive("generalization", epsilon=epsilon, bound=bound)
    # expm1 keeps its digits where epsilon is small.
    return math.expm1(epsilon) * bound


def noise_variance_printed(
    kappa: float, label_bound: float, regularization: float, records: int, epsilon: float
) -> float:
    r"""Proposition 3's bound on the variance of the noise b:

    .. math:: \frac{8R^2\kappa^4(\kappa+1)^2}{\lambda^2m^2\epsilon^2}.
    """
    need_positive("noise_variance_printed", kappa=kappa, label_bound=label_bound, epsilon=epsilon)
    need_positive("noise_variance_printed", regularization=regularization, records=records)
    square = label_bound**2 / regularization
    return 8 * square * kappa**4 * (kappa + 1) ** 2 / (regularization * records * epsilon) ** 2


def noise_variance(
    kappa: float, label_bound: float, regularization: float, records: int, epsilon: float
) -> float:
    r"""Return the same with T4 and clipped evaluations:
    :math:`2\min(2M,\kappa\Delta_K)^2/\epsilon^2`.

    E b = 0, so that the expectation of :math:`R_2` is exactly the variance of b.
    """
    # kappa carries the kernel's norm to the sup norm;
    # two clipped values are at most 2M apart anyway.
    movement = kappa * ridge_replace_one(kappa, label_bound, regularization, records)
    return 2 * (min(2 * label_bound, movement) / epsilon) ** 2


def random_error_printed(
    kappa: float, label_bound: float, regularization: float, records: int, epsilon: float
) -> float:
    r"""Proposition 2.

    .. math:: 8\epsilon\left(\frac{2R^2\kappa^4(\kappa+1)^2}{\lambda^2m^2\epsilon^2}+M^2\right)
    """
    variance = noise_variance_printed(kappa, label_bound, regularization, records, epsilon)
    # V is read from Proposition 3, so that 8 epsilon (V/4 + M^2) is what is printed.
    return 2 * epsilon * (variance + 4 * label_bound**2)


def random_error(
    kappa: float, label_bound: float, regularization: float, records: int, epsilon: float
) -> float:
    r"""Return the same for every epsilon, with T4: :math:`(e^\epsilon-1)(V+4M^2)`.

    By Theorem 1 for the squared error, whose expected mean is at most V + (2M)^2.
    """
    variance = noise_variance(kappa, label_bound, regularization, records, epsilon)
    return math.expm1(epsilon) * (variance + 4 * label_bound**2)
