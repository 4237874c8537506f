r"""Error bounds of the paper as calculators, printed and corrected. No privacy claim rests on them.

Notation: N features, m records, q = 1 - 2 eta > 0, L = ln(1/delta), L2 = ln(2/delta); epsilon and
delta_p are the privacy parameters of the classical Gaussian mechanism with Lemma 9's sensitivity.
"""

import math
from typing import NamedTuple

from dpcore.errors import ParameterError


def _q(eta: float) -> float:
    if not 0 < eta < 0.5:
        raise ParameterError("a utility bound", "eta in (0, 1/2)", "eta", eta)
    return 1 - 2 * eta


def noise_variance(count: int, eta: float, epsilon: float, delta_p: float) -> float:
    r"""Algorithm 1: :math:`\sigma^2=8\ln(1.25/\delta_p)/(N\epsilon^2q)`, of each coordinate."""
    return 8 * math.log(1.25 / delta_p) / (count * epsilon**2 * _q(eta))


def lemma_13_printed(count: int, eta: float, epsilon: float, delta_p: float, delta: float) -> float:
    r"""Bound on :math:`\|z\|^2` as printed: wrong. The leading 2 must be 8, and the second term
    lacks a factor."""
    first = 2 * math.log(1.25 / delta_p) / (_q(eta) * epsilon**2)
    second = 8 * math.sqrt(2) / (math.sqrt(count) * _q(eta) * epsilon)
    return first + second * math.sqrt(math.log(1 / delta))


def lemma_13_corrected(
    count: int, eta: float, epsilon: float, delta_p: float, delta: float
) -> float:
    r""":math:`\|z\|^2\le N\sigma^2(1+2\sqrt{L/N}+2L/N)` with probability 1 - delta.

    Source: Laurent & Massart (2000), Lemma 1.
    """
    ratio = math.log(1 / delta) / count
    total = count * noise_variance(count, eta, epsilon, delta_p)
    return total * (1 + 2 * math.sqrt(ratio) + 2 * ratio)


def gamma_norm_printed(count: int, eta: float, epsilon: float, delta: float) -> float:
    r"""Bound on the norm of the pure-privacy noise as printed: wrong by a factor sqrt(2)."""
    return math.sqrt(2 / _q(eta)) / epsilon * (math.sqrt(count) + math.sqrt(2 / delta))


def gamma_norm_corrected(count: int, eta: float, epsilon: float, delta: float) -> float:
    r""":math:`\|z\|\le\frac2{\sqrt q\epsilon}(\sqrt N+\sqrt{2/\delta})` with probability
    1 - delta/2: Chebyshev for a Gamma(N) of scale Delta/epsilon."""
    return 2 / (math.sqrt(_q(eta)) * epsilon) * (math.sqrt(count) + math.sqrt(2 / delta))


def theorem_12(count: int, records: int, eta: float, square: float, delta: float) -> float:
    r"""Distance of the private from the non-private model in L2(mu), with probability 1 - 5 delta.

    :math:`\sqrt N(\sqrt{(1+2\eta)/m}+(2L/m)^{1/4})\sqrt{Z_2}`.

    Args:
        square: Z2, a bound on the squared norm of the noise: printed or corrected Lemma 13.
    """
    _q(eta)
    return math.sqrt(count) * _deviation(records, eta, delta) * math.sqrt(square)


def noise_error(count: int, variance: float, delta: float) -> float:
    r"""Return the same, much sharper and without assumptions: :math:`\sqrt{N\sigma^2(1+2\sqrt
    L+2L)}`.

    The squared distance is a quadratic form z^T S z with S positive semidefinite of trace N, so
    that its mean is exactly N sigma^2; with probability 1 - delta. It does not fall with N.
    """
    log = math.log(1 / delta)
    return math.sqrt(count * variance * (1 + 2 * math.sqrt(log) + 2 * log))


def _deviation(records: int, eta: float, delta: float) -> float:
    return math.sqrt((1 + 2 * eta) / records) + math.pow(2 * math.log(1 / delta) / records, 0.25)


def theorem_11_printed(
    count: int, records: int, eta: float, delta: float, norm: float, *, constant: float = 32
) -> float:
    r"""Error of the non-private model as printed.

    Args:
        norm: ||f||_rho. constant: 32 as printed, which is wrong; 8192 is right.
    """
    log, log2 = math.log(1 / delta), math.log(2 / delta)
    first = 14 * log2 / math.sqrt(count)
    second = 28 * math.pow(2 * records * log, 0.25) * log2 / math.sqrt(count * _q(eta))
    return norm * (first + second + math.pow(constant * log / records, 0.25) * math.sqrt(log2))


def theorem_11_corrected(count: int, records: int, eta: float, delta: float, norm: float) -> float:
    r"""Error of the non-private model, unsimplified, with probability at least 1 - 10 delta.

    :math:`\|f\|_\rho\{(1+4L_2+\sqrt{2L_2})/\sqrt N+B(14L_2\sqrt m/\sqrt{Nq}+4\sqrt{L_2})\}` with
    :math:`B=\sqrt{(1+2\eta)/m}+(2L/m)^{1/4}`.
    """
    # Each of the events fails with probability delta;
    # the union of all is what the docstring states.
    log2 = math.log(2 / delta)
    first = (1 + 4 * log2 + math.sqrt(2 * log2)) / math.sqrt(count)
    inner = 14 * log2 * math.sqrt(records) / math.sqrt(count * _q(eta)) + 4 * math.sqrt(log2)
    return norm * (first + _deviation(records, eta, delta) * inner)


def theorem_10_corrected(
    count: int,
    records: int,
    eta: float,
    delta: float,
    norm: float,
    epsilon: float,
    delta_p: float,
) -> float:
    """Error of the private model, with probability at least 1 - 11 delta.

    The sum of Theorem 11, corrected, and `noise_error`: it does not tend to 0 as N grows.
    """
    variance = noise_variance(count, eta, epsilon, delta_p)
    return theorem_11_corrected(count, records, eta, delta, norm) + noise_error(
        count, variance, delta
    )


class Conditions(NamedTuple):
    """Theorem 8's conditions, each as what is there over what is needed; 1 or more is enough.

    Args:
        dimension: d against ln(m/delta'), up to the paper's unspecified C1.
        noise_distribution: gamma^2 sigma^2 against 4 ln(2m/eta), exactly.
        features: N against eta^-2 m ln(2m/delta'), up to the paper's unspecified C2.
    """

    dimension: float
    noise_distribution: float
    features: float


def theorem_8_conditions(
    columns: int,
    records: int,
    count: int,
    eta: float,
    delta: float,
    data_variance: float,
    frequency_variance: float,
) -> Conditions:
    """Return how far public or synthetic data are from Theorem 8's conditions.

    Not for private records: the answer would depend on them.

    Args:
        columns: d, of independent mean-zero coordinates with variance `data_variance`/d each.
        data_variance: gamma^2. frequency_variance: sigma^2.
    """
    _q(eta)
    return Conditions(
        dimension=columns / math.log(records / delta),
        noise_distribution=data_variance * frequency_variance / (4 * math.log(2 * records / eta)),
        features=count * eta**2 / (records * math.log(2 * records / delta)),
    )
