"""Truths about compositions, computed without anything from dpcore."""

import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
from scipy import integrate, optimize, special


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The definition's two tails, in 60 digits."""
    with mp.workdps(60):
        e, m = mp.mpf(epsilon), mp.mpf(mu)
        return float(mp.ncdf(m / 2 - e / m) - mp.exp(e) * mp.ncdf(-m / 2 - e / m))


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Where that curve falls to delta."""
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    high = mu * mu / 2 + mu * 40 + 1
    return float(
        optimize.brentq(lambda e: gaussian_delta(e, mu) - delta, 0, high, xtol=1e-13, rtol=1e-14)
    )


def response_epsilon(count: int, epsilon_0: float, classes: int, delta: float) -> float:
    """k-fold randomized response by summing over all outcomes, in 40 digits."""
    with mp.workdps(40):
        z = mp.exp(epsilon_0) + classes - 1
        kept, other, rest = mp.exp(epsilon_0) / z, 1 / z, (classes - 2) / z
        atoms: dict[int, mp.mpf] = {}
        for i in range(count + 1):
            for j in range(count + 1 - i):
                ways = mp.binomial(count, i) * mp.binomial(count - i, j)
                mass = ways * kept**i * other**j * rest ** (count - i - j)
                atoms[i - j] = atoms.get(i - j, mp.mpf(0)) + mass

        def excess(epsilon: float) -> float:
            total = mp.mpf(0)
            for difference, mass in atoms.items():
                loss = difference * mp.mpf(epsilon_0)
                if loss > epsilon:
                    total += mass * (1 - mp.exp(epsilon - loss))
            return float(total - delta)

        if excess(0.0) <= 0:
            return 0.0
        return float(optimize.brentq(excess, 0, count * epsilon_0, xtol=1e-12))


def contour_delta(log_moment: Callable, epsilon: float) -> float:
    """(1/pi) Re int_0^inf M(z) e^{-z eps} / (z (z+1)) dt, z = theta + i t, theta at the saddle.

    The trapezoid rule converges geometrically; the range is doubled until nothing is left.
    """

    def exponent(theta: float) -> float:
        value = log_moment(np.array([theta + 0j]))[0].real
        return value - theta * epsilon - math.log(theta) - math.log1p(theta)

    found = optimize.minimize_scalar(
        lambda x: exponent(math.exp(x)), bounds=(-4, 4), method="bounded"
    )
    theta = math.exp(found.x)
    level = exponent(theta)

    def integrand(t: np.ndarray) -> np.ndarray:
        z = theta + 1j * t
        return np.real(np.exp(log_moment(z) - z * epsilon - level) / (z * (z + 1)))

    cutoff = 0.5
    while np.max(np.abs(integrand(np.linspace(cutoff, 1.5 * cutoff, 16)))) > 1e-13:
        cutoff *= 1.5
        assert cutoff < 1e5
    t = np.linspace(0, cutoff, 2501)
    return math.exp(level) * float(integrate.trapezoid(integrand(t), t)) / math.pi


def sampled_gaussian_log_moment(q: float, sigma: float, count: int, direction: str) -> Callable:
    """log E_P e^{z L}, by the trapezoid rule in the outcome, for `count` copies."""
    x = np.linspace(-12 * sigma, 12 * sigma + 12, 1801)
    log_normal = -0.5 * (x / sigma) ** 2 + math.log(
        (x[1] - x[0]) / (sigma * math.sqrt(2 * math.pi))
    )
    log_ratio = np.logaddexp(math.log1p(-q), math.log(q) + (2 * x - 1) / (2 * sigma * sigma))

    def log_moment(z: np.ndarray) -> np.ndarray:
        power = (1 + z[:, None]) if direction == "remove" else -z[:, None]
        exponent = power * log_ratio + log_normal
        peak = np.max(exponent.real, axis=1)
        return count * (np.log(np.sum(np.exp(exponent - peak[:, None]), axis=1)) + peak)

    return log_moment


def laplace_log_moment(shift: float, count: int) -> Callable:
    """log E_P e^{z L} of Laplace noise: two atoms and a density."""

    def log_moment(z: np.ndarray) -> np.ndarray:
        # 1/2 e^{zt} + 1/2 e^{-t} e^{-zt} + int_{-t}^{t} 1/4 e^{(l-t)/2} e^{zl} dl
        t = shift
        half = z + 0.5
        inner = (np.exp(half * t) - np.exp(-half * t)) / half * np.exp(-t / 2) / 4
        return count * np.log(0.5 * np.exp(z * t) + 0.5 * np.exp(-t - z * t) + inner)

    return log_moment


def chi_square_mixture_delta(epsilon: float, theta: float, samples: int, mu: float = 0.0) -> float:
    """E over u of the Gaussian curve of sqrt(mu^2 + theta^2 u), by dense quadrature in sqrt(u)."""
    top = math.sqrt(2 * special.gammainccinv(samples / 2, 1e-17))
    v = np.linspace(1e-9, top, 200_001)
    log_density = (
        (samples - 1) * np.log(v)
        - v * v / 2
        - (samples / 2 - 1) * math.log(2)
        - special.gammaln(samples / 2)
    )
    m = np.sqrt(mu * mu + theta * theta * v * v)
    curve = special.ndtr(m / 2 - epsilon / m) - np.exp(
        epsilon + special.log_ndtr(-m / 2 - epsilon / m)
    )
    return float(integrate.trapezoid(np.exp(log_density) * curve, v))
