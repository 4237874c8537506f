"""Populations of our own, the law of released sums, and non-private intervals to compare with."""

import math

import numpy as np
from scipy import stats

MU = {0.1: 0.0275, 0.5: 0.124, 1.0: 0.237, 4.0: 0.838}  # of (epsilon, 1e-6), rounded down
LEVEL = 0.95


def populations():
    """(places in [-1, 1], probabilities) by name: skewed, tied, bounded, rare and two-humped."""
    x = (np.arange(300) + 0.5) / 300
    skewed = np.clip(np.exp(stats.norm.ppf(x)) / 10.24, 0, 1)
    humps = np.where(x < 0.5, 0.2 + 0.1 * x, 0.8 + 0.15 * x)
    even = np.full(300, 1 / 300)
    return {
        "skewed": (2 * skewed - 1, even),
        "tied": (np.linspace(-1, 1, 11), np.array([0.7, *np.full(10, 0.03)])),
        "bounded": (2 * stats.beta.ppf(x, 2, 3) - 1, even),
        "rare": (np.array([-1.0, 1.0]), np.array([0.99, 0.01])),
        "humps": (2 * np.clip(humps, 0, 1) - 1, even),
    }


def drawn(places, chances, n, draws, rng, poisson=False):
    """How many of n records stand at each place, once a draw; of a Poisson number of records."""
    sizes = rng.poisson(n, draws) if poisson else np.full(draws, n)
    return rng.multinomial(sizes, chances / chances.sum())


def discrete(width, shape, rng):
    """Discrete Gaussian noise on integers, from its definition."""
    cutoff = math.ceil(12 * width) + 2
    k = np.arange(-cutoff, cutoff + 1)
    distribution = np.exp(-0.5 * (k / width) ** 2)
    return rng.choice(k, size=shape, p=distribution / distribution.sum())


def sums(counts, places, width, weight, rng, public=None):
    """n, the sum of x, and d_0, d_1, d_2 with noise: by their definition, once a draw."""
    lost = [counts @ (places**k * (1 - places**2)) for k in range(3)]
    noise = width * rng.standard_normal((5, len(counts)))
    n = counts.sum(axis=1) + noise[0] / weight if public is None else np.full(len(counts), public)
    return n, counts @ places + noise[1], np.array(lost) + noise[2:]


def covered(ends, truth):
    """The proportion of draws whose interval holds the truth."""
    low, high = ends
    return float(np.mean((low <= truth + 1e-12) & (truth <= high + 1e-12)))


def interval_text(ends):
    """The proportion of draws whose interval says something."""
    return float(np.mean(np.isfinite(ends[0])))
