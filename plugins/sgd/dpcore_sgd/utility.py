r"""The paper's rates and its bound on the noise as calculators, printed and corrected.

Under its Assumptions 2.1 (smoothness r in (1/2, 1]) and 2.2 (capacity alpha in (0, 1)) the excess
error is of order :math:`n^{-a}/\epsilon^2+n^{-b}` up to logarithms. No privacy claim rests on this.
"""

import math
from typing import NamedTuple

from dpcore.errors import ParameterError


class Schedule(NamedTuple):
    """Step size, number of steps and number of features, up to constants and logarithms."""

    rate: float
    steps: float
    features: float


def _check_smoothness(r: float, alpha: float) -> float:
    """Return 2r + alpha, after checking that both are in their ranges."""
    if not 0.5 < r <= 1:
        raise ParameterError("Theorem 1", "r in (1/2, 1]", "r", r)
    if not 0 < alpha <= 1:
        raise ParameterError("Theorem 1", "alpha in (0, 1]", "alpha", alpha)
    return 2 * r + alpha


def schedule(records: int, r: float, alpha: float, *, small_steps: bool = True) -> Schedule:
    r"""Return Theorem 1's schedule.

    :math:`\eta=n^{-1},T=n^{(2r+\alpha+1)/(2r+\alpha)}`, or larger steps,
    :math:`\eta=n^{-2r/(2r+\alpha)},T=n^{(2r+1)/(2r+\alpha)}`;
    :math:`M=n^{(1+\alpha(2r-1))/(2r+\alpha)}`.
    """
    denominator = _check_smoothness(r, alpha)
    features = records ** ((1 + alpha * (2 * r - 1)) / denominator)
    if small_steps:
        return Schedule(1 / records, records ** ((denominator + 1) / denominator), features)
    return Schedule(
        records ** (-2 * r / denominator), records ** ((2 * r + 1) / denominator), features
    )


def statistical_exponent(r: float, alpha: float) -> float:
    """Return b = 2r/(2r + alpha), the exponent of descent without noise."""
    return 2 * r / _check_smoothness(r, alpha)


def privacy_exponent_printed(r: float, alpha: float) -> float:
    """Return a as printed: (4r + 3 alpha - 4 - 2 r alpha)/(2r + alpha).

    It is true, and loose by a factor M.
    """
    return (4 * r + 3 * alpha - 4 - 2 * r * alpha) / _check_smoothness(r, alpha)


def privacy_exponent(r: float, alpha: float) -> float:
    """Return a without the factor M: (4r + 2 alpha - 3)/(2r + alpha), for Algorithm 1."""
    return (4 * r + 2 * alpha - 3) / _check_smoothness(r, alpha)


def privacy_exponent_clipped(r: float, alpha: float) -> float:
    """Return a with clipped gradients, of constant bound: (4r + 2 alpha - 2)/(2r + alpha).

    Of the noise only: what clipping does to the fit is not part of Theorem 1.
    """
    return (4 * r + 2 * alpha - 2) / _check_smoothness(r, alpha)


def noise_error_printed(features: int, kappa: float, std: float, delta: float) -> float:
    r"""Bound the mean squared cost of noise (Proposition 4.1), with probability 1 - delta.

    :math:`\kappa^2M\sigma^2(1+\sqrt{8\ln(1/\delta)/M})` is true, and loose by a factor of about M.
    """
    _positive(features=features, kappa=kappa, std=std)
    # Chi-square deviation of M coordinates, relative to its mean M sigma^2.
    room = 1 + math.sqrt(8 * math.log(1 / delta) / features)
    return kappa**2 * features * std**2 * room


def noise_error(kappa: float, std: float) -> float:
    r"""Return the mean of it over the noise: at most :math:`\kappa^2\sigma^2`, whatever M.

    A prediction is moved by :math:`\phi(x)\cdot b\sim N(0,\sigma^2\|\phi(x)\|^2)`.
    """
    _positive(kappa=kappa, std=std)
    return kappa**2 * std**2


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ParameterError("Proposition 4.1", "a finite number > 0", name, value)
