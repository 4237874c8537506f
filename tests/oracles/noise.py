"""Laws of the samplers in high precision, and tests of fit. Imports nothing from dpcore."""

import math
from collections.abc import Callable

import mpmath
import numpy as np
from scipy import stats


def gaussian_cdf(width: float) -> Callable[[int], float]:
    """P(Z <= z) of P(z) ~ exp(-z^2/(2 width^2)): by summation, or Euler-Maclaurin if wide.

    Sum_{k<=z} f(k) = integral to z + 1/2 minus f'/24 there, within f'''(.)/5760 ~ width^-3.
    """
    if width < 300:
        cutoff = math.ceil(14 * width) + 2
        grid = np.arange(-cutoff, cutoff + 1)
        cumulative = np.cumsum(np.exp(-0.5 * (grid / width) ** 2))
        return lambda z: float(cumulative[min(max(z + cutoff, 0), 2 * cutoff)] / cumulative[-1])

    def cdf(z: int) -> float:
        x = (z + 0.5) / width
        return float(stats.norm.cdf(x) + x * stats.norm.pdf(x) / (24 * width**2))

    return cdf


def laplace_cdf(scale: float) -> Callable[[int], float]:
    """P(Z <= z) of P(z) ~ exp(-|z|/scale)."""
    a = math.exp(-1 / scale)

    def cdf(z: int) -> float:
        if z < 0:
            return math.exp((z + 1) / scale) * a / (1 + a)
        return 1 - math.exp(-z / scale) * a / (1 + a)

    return cdf


def floored_laplace_cdf(scale: float) -> Callable[[int], float]:
    """P(floor(X) <= z) = P(X < z + 1) for a Laplace X."""
    return lambda z: float(stats.laplace.cdf(z + 1, scale=scale))


def chi_square_p(draws: np.ndarray, cdf: Callable[[int], float], deviation: float) -> float:
    """p-value of a chi-square fit on about 60 bins, pooled until each expects 10 draws."""
    step = max(1, math.floor(deviation / 8))
    cutoff = math.ceil(4 * deviation / step) + 2
    edges = [step * k for k in range(-cutoff, cutoff + 1)]
    probabilities, kept = [], []
    mass = 0.0
    for edge in edges:  # bin: (last kept edge, edge]
        here = cdf(edge)
        if (here - mass) * draws.size >= 10 and (1 - here) * draws.size >= 10:
            probabilities.append(here - mass)
            kept.append(edge)
            mass = here
    probabilities.append(1 - mass)
    bins = np.searchsorted(np.array(kept), draws, side="left")
    observed = np.bincount(bins, minlength=len(probabilities))
    expected = np.array(probabilities) * draws.size
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


def exp_floor(numerator: int, denominator: int, bits: int) -> int:
    """floor(2^bits exp(-numerator/denominator)), from 60 digits more than that needs."""
    with mpmath.workprec(bits + 200):
        return int(mpmath.exp(-mpmath.mpf(numerator) / denominator) * mpmath.mpf(2) ** bits)
