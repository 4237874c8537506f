r"""Independence: a test of a released two-way table, by simulation from public randomness.

With noise of width s on every cell, :math:`T=\sum(\tilde O-E)^2/(E+s^2)`, E from the positive parts
of the noisy margins. Tables drawn from the fitted model of independence, with the same number of
records and the same noise, have the same T computed from margins of their own. The p value is
:math:`(1+\#\{T^*\ge T\})/(B+1)`. The classical law of T holds for tables without noise only: on
noisy ones it rejects up to every time.

Of fewer records than :math:`4s` times the root of the number of cells nothing is reported: p is 1.
"""

import math

import numpy as np

from dpcore.interval import NoiseDistribution, NormalDistribution
from dpcore_statistics.population.sampling import Numbers

DRAWS = 999
_FEWEST = 4.0


def independence(
    counts: Numbers,
    deviation: NoiseDistribution | None,
    draws: np.random.Generator,
    times: int = DRAWS,
) -> tuple[float, float, bool]:
    """Test independence: return T, p and whether to report, for noisy counts (rows, columns)."""
    if not isinstance(deviation, NormalDistribution):
        return 0.0, 1.0, False
    squared = deviation.width**2
    statistic = float(_distance(counts[None], squared)[0])
    total = float(counts.sum())
    if total < _FEWEST * deviation.width * math.sqrt(counts.size):
        return statistic, 1.0, False
    # Records drawn from the fitted model, with the noise that the release has.
    model = _fitted(counts[None])[0]
    sampled = draws.multinomial(round(total), (model / model.sum()).ravel(), size=times)
    tables = sampled.reshape(times, *counts.shape) + _noise(
        deviation, (times, *counts.shape), draws
    )
    larger = int(np.count_nonzero(_distance(tables, squared) >= statistic))
    return statistic, (1 + larger) / (times + 1), True


def _fitted(tables: Numbers) -> Numbers:
    """Return E of every table: the product of its margins, negative parts set to 0."""
    rows = np.maximum(tables.sum(axis=2, keepdims=True), 0.0)
    columns = np.maximum(tables.sum(axis=1, keepdims=True), 0.0)
    of_rows = np.maximum(rows.sum(axis=1, keepdims=True), 1.0)
    of_columns = np.maximum(columns.sum(axis=2, keepdims=True), 1.0)
    total = np.maximum(tables.sum(axis=(1, 2), keepdims=True), 1.0)
    return np.asarray(total * (rows / of_rows) * (columns / of_columns))


def _distance(tables: Numbers, squared: float) -> Numbers:
    """Return T of every table."""
    expected = _fitted(tables)
    return np.asarray((np.square(tables - expected) / (expected + squared)).sum(axis=(1, 2)))


def _noise(
    noise_distribution: NormalDistribution, shape: tuple[int, ...], draws: np.random.Generator
) -> Numbers:
    """Return the noise of a release: on a coarse grid by its own law."""
    if noise_distribution.width > 64 * noise_distribution.step:
        return noise_distribution.width * draws.standard_normal(shape)
    steps = noise_distribution.width / noise_distribution.step
    cutoff = math.ceil(12 * steps) + 1
    values = np.arange(-cutoff, cutoff + 1)
    weights = np.exp(-0.5 * np.square(values / steps))
    return noise_distribution.step * draws.choice(values, size=shape, p=weights / weights.sum())
