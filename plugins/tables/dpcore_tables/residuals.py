r"""Scale and clip of residuals, from released noisy histograms of their sizes only.

The bins are cut at 2^-7, 2^-6.5, ..., 1, labels are in [0, 1]. A few ghost counts at |r| near 1
would triple a moment; a quantile of the running maximum, a threshold and shrinkage to 0.12 do not
notice them.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcore_tables.normal import gaussian_below
from dpcore_tables.sums import EDGES

USUAL = 0.12
_QUANTILE, _NORMAL = 0.7, 1.04  # of |N(0, 1)|
_LEAST = 0.25  # of a clip, in units of sigma
_OF_CELLS = 0.6
_FLATTEST = 0.05  # share below a clip
_MIDDLES = np.concatenate([[EDGES[0] / 2], (EDGES[:-1] + EDGES[1:]) / 2])
CLIPS: tuple[float, ...] = tuple(2.0 ** (-6 + i / 2) for i in range(13))


class Clipped(NamedTuple):
    """Of clipped residuals the share that is not cut off, and the root mean square."""

    share: float
    size: float


UNCLIPPED = Clipped(1.0, 0.0)


class Residuals(NamedTuple):
    """What is known of residuals: sigma, and the proportions of the bins of their sizes."""

    sigma: float
    shares: NDArray[np.float64]

    def below(self, clip: float) -> float:
        """The share that is not clipped, from 0.3 to 1."""
        return min(max(float(self.shares[clip >= _MIDDLES].sum()), 0.3), 1.0)

    def within(self, clip: float) -> float:
        """Return the same, of the bin that the clip is in a part: what standard errors need."""
        starts = np.concatenate([[0.0], EDGES[:-1]])
        parts = np.clip((clip - starts) / (EDGES - starts), 0.0, 1.0)
        return min(max(float(self.shares @ parts), 0.3), 1.0)

    def drawn(self, count: int, drawn: np.random.Generator) -> NDArray[np.float64]:
        """Synthetic residuals of these sizes and either sign, shape (count,)."""
        starts = np.concatenate([[0.0], EDGES[:-1]])
        bins = drawn.choice(len(EDGES), count, p=self.shares / self.shares.sum())
        sizes = starts[bins] + drawn.random(count) * (EDGES - starts)[bins]
        return np.asarray(sizes * drawn.choice([-1.0, 1.0], count))

    def clipped(self, clip: float) -> "Clipped":
        """Return what chance makes of clipped residuals."""
        starts = np.concatenate([[0.0], EDGES[:-1]])
        parts = np.clip((clip - starts) / (EDGES - starts), 0.0, 1.0)
        size = math.sqrt(float(self.shares @ np.minimum(_MIDDLES, clip) ** 2))
        return Clipped(max(float(self.shares @ parts), _FLATTEST), size)

    def beyond(self, clip: float) -> float:
        """Return the mean of what is cut off."""
        return float(self.shares @ np.maximum(_MIDDLES - clip, 0.0))


def measured(
    counts: NDArray[np.float64], noise: float, records: float, usual: float = USUAL
) -> Residuals:
    """Sigma by a quantile, shape by a threshold, both shrunk to the usual where noise is large."""
    # Noise against records: 1 for a large table, near 0 where the histogram is mostly noise.
    trust = 1 / (1 + (8 * noise / records) ** 2)
    # Noisy counts may fall; the running maximum is a distribution function again.
    running = np.maximum.accumulate(np.cumsum(counts))
    goal = _QUANTILE * max(float(running[-1]), 1.0)
    index = int(np.searchsorted(running, goal))
    index = min(index, len(counts) - 1)
    low = 0.0 if index == 0 else float(running[index - 1])
    low_edge = 0.0 if index == 0 else float(EDGES[index - 1])
    part = (goal - low) / max(float(running[index]) - low, 1e-9)
    quantile = low_edge + (float(EDGES[index]) - low_edge) * min(max(part, 0.0), 1.0)
    sigma = float((quantile / _NORMAL) ** trust * usual ** (1 - trust))
    # Ghosts: counts beyond two sigma that noise by itself explains would triple a moment.
    clean_counts = np.maximum(counts, 0.0)
    is_distant = 2 * _NORMAL * sigma < _MIDDLES
    clean_counts = np.where(is_distant & (clean_counts < 2.5 * noise), 0.0, clean_counts)
    likely = _half_normal(sigma)
    total = float(clean_counts.sum())
    proportions = clean_counts / total if total > 0 else likely
    return Residuals(sigma, trust * proportions + (1 - trust) * likely)


def best_clip(known: Residuals, noise: float, records: float, width: int) -> float:
    r"""Noise against what clipping cuts off, both from released numbers.

    Of d functions with :math:`\sum v^2` near 1, noise s moves predictions by a variance of
    :math:`\sum_f(s/nfv_f)^2\approx(ds/nf)^2`, with f the share that is not clipped.

    Args:
        noise: Standard deviation per unit of clip of the gradient.
    """
    variance = known.sigma**2

    def cost(clip: float) -> float:
        # The variance that noise adds to predictions; the cost below levels off at sigma^2.
        blurred = (width * clip * noise / (records * known.below(clip))) ** 2
        return float(blurred * variance / (blurred + variance) + known.beyond(clip) ** 2)

    # Clips are from a short public list, and not so small that hardly a residual is below.
    allowed = [clip for clip in CLIPS if clip >= _LEAST * known.sigma] or [1.0]
    return min(allowed, key=cost)


def clip_of_cells(known: Residuals) -> float:
    """Return the clip of sums over the cells of tables, of which there are many: small, as noise
    rules them, and what it cuts off comes with later sums."""
    return min((clip for clip in CLIPS if clip >= _OF_CELLS * known.sigma), default=1.0)


def _half_normal(sigma: float) -> NDArray[np.float64]:
    ends = np.concatenate([[0.0], EDGES[:-1], [math.inf]])
    below = 2 * gaussian_below(ends / sigma) - 1
    return np.asarray(np.diff(below))
