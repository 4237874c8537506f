r"""Private ranks: released moments and histograms of columns, and what they make of a number.

:math:`z=\mathrm{clip}((u-m)/(2\sqrt v),\pm1.5)` of an encoded number u is in one of 768 equal
cells; a released table gives :math:`\cos(\pi t)` of each cell, where t is the rank of its middle.
Higher levels follow by :math:`\cos((k+1)\pi t)=2\cos(\pi t)\cos(k\pi t)-\cos((k-1)\pi t)`, so that
what a record's number becomes is made of products, differences and a gather only: the same bits
wherever it is.
"""

import math

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore_tables.normal import gaussian_below

LIMIT = 1.5
BINS = 24
CELLS = 768
_PSEUDO = 0.05
_HEAVY, _SURE, _CUTOFF = 0.008, 3.0, 1.5
WIDENING = 2.0


@attrs.frozen(kw_only=True, eq=False)
class Ranks:
    """Of all numeric columns, in their order.

    Args:
        means, widths: Of encoded numbers: m and 2 sqrt(v), shape (K,).
        waves: cos(pi t) of every cell, shape (K, 768).
        proportions: The released proportion of every one of 24 bins of z, shape (K, 24).
    """

    means: NDArray[np.float64]
    widths: NDArray[np.float64]
    waves: NDArray[np.float64]
    shares: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        means: NDArray[np.float64],
        variances: NDArray[np.float64],
        proportions: NDArray[np.float64],
    ) -> "Ranks":
        """From released means, variances and proportions of bins (rows that add up to 1)."""
        widths = WIDENING * np.sqrt(variances)
        return cls(means=means, widths=widths, waves=_waves(proportions), shares=proportions)

    @classmethod
    def from_array(cls, packed: NDArray[np.float64]) -> "Ranks":
        """Return the inverse of `array`: waves follow from shares."""
        means, widths, proportions = packed[:, 0], packed[:, 1], packed[:, 2:]
        return cls(means=means, widths=widths, waves=_waves(proportions), shares=proportions)

    @property
    def array(self) -> NDArray[np.float64]:
        """All that fixes them, shape (K, 26)."""
        return np.column_stack([self.means, self.widths, self.shares])

    @property
    def plain_fractions(self) -> NDArray[np.float64]:
        """Shares less the little mass that is everywhere, so that ranks rise; shape (K, 24)."""
        plain = np.maximum(self.shares * (1 + _PSEUDO) - _PSEUDO / BINS, 0.0)
        return np.asarray(plain / plain.sum(axis=1, keepdims=True))

    def quantiles(self, number: int, places: NDArray[np.float64]) -> NDArray[np.float64]:
        """z of given ranks of one column."""
        # The inverse of the distribution function, on the middles of its cells.
        middles = (np.arange(CELLS) + 0.5) * (2 * LIMIT / CELLS) - LIMIT
        return np.asarray(np.interp(places, _places(self.shares[[number]])[0], middles))

    def only(self, number: int) -> "Ranks":
        """Return the same ranks with one numeric column only, by its number among them."""
        return attrs.evolve(
            self,
            means=self.means[[number]],
            widths=self.widths[[number]],
            waves=self.waves[[number]],
            shares=self.shares[[number]],
        )

    def parts(self, numbers: NDArray[np.float64], count: int) -> NDArray[np.intp]:
        """Which of `count` parts of equal rank encoded numbers are in; shape (n, K) to (K, n)."""
        indices = cells(self.standard(numbers))
        places = np.minimum(np.floor(_places(self.shares) * count).astype(np.intp), count - 1)
        return np.take_along_axis(places, indices, axis=1)

    def tail(self, number: int, above: bool) -> tuple[float, float]:
        """Where a number's tail begins, at the end of the cells, and where its declared range ends:
        distances of encoded numbers from the mean."""
        mean = float(self.means[number])
        return LIMIT * float(self.widths[number]), 1 - mean if above else 1 + mean

    def ramp(self, number: int, above: bool, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """0 within the cells, and from there in a straight line to 1 where the range ends.

        Args:
            encoded: Of this number, shape (n,).
        """
        start, end = self.tail(number, above)
        distances = (encoded - self.means[number]) * (1.0 if above else -1.0)
        return np.asarray(np.clip((distances - start) / (end - start), 0.0, 1.0))

    def ramp_square(self, number: int, above: bool) -> float:
        """The mean square of a ramp, were the released tail that of a Pareto law of index 3."""
        start, end = self.tail(number, above)
        return float((start / end) ** 2 * self.shares[number, -1 if above else 0])

    def tails(self, noise: float) -> list[tuple[int, bool]]:
        """Numbers of which many stand in an end cell, far from the end of the declared range, and
        whether that is the upper one.

        Args:
            noise: Of the released shares.
        """
        tails = []
        for number, proportions in enumerate(self.shares):
            for above, proportion in ((True, proportions[-1]), (False, proportions[0])):
                start, end = self.tail(number, above)
                if proportion >= _HEAVY + _SURE * noise and end >= _CUTOFF * start:
                    tails.append((number, above))
        return tails

    def standard(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """z of encoded numbers; shape (n, K) to (K, n)."""
        z = (numbers.T - self.means[:, None]) / self.widths[:, None]
        return np.clip(z, -LIMIT, LIMIT)


def likely_means(found: NDArray[np.float64], diameter: float = 0.9) -> NDArray[np.float64]:
    """Noisy means of encoded numbers, kept inside."""
    return np.asarray(np.clip(found, -diameter, diameter))


def likely_variances(found: NDArray[np.float64], noise: float) -> NDArray[np.float64]:
    """Noisy variances, at least half the noise's standard deviation."""
    return np.asarray(np.clip(found, min(max(0.0005, noise / 2), 0.35), 0.35))


def _waves(proportions: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.cos(math.pi * _places(proportions)))


def _places(proportions: NDArray[np.float64]) -> NDArray[np.float64]:
    """t of the middle of every cell, shape (K, 768)."""
    # A distribution function that is linear within each bin.
    ends = np.concatenate([np.zeros((len(proportions), 1)), np.cumsum(proportions, axis=1)], axis=1)
    middles = (np.arange(CELLS) + 0.5) * (BINS / CELLS)
    bins = middles.astype(np.intp)
    ranks = ends[:, bins] + proportions[:, bins] * (middles - bins)
    return np.asarray(np.clip(ranks, 0, 1))


def cells(z: NDArray[np.float64], count: int = CELLS) -> NDArray[np.intp]:
    """Which of `count` equal cells every z is in."""
    indices = np.floor((z + LIMIT) * (count / (2 * LIMIT))).astype(np.intp)
    return np.clip(indices, 0, count - 1)


def usual_proportions(columns: int) -> NDArray[np.float64]:
    """Return the proportions of bins where nothing is released of them: a Gaussian's; shape
    (columns, 24).
    """
    ends = np.linspace(-LIMIT, LIMIT, BINS + 1) * WIDENING
    below = gaussian_below(ends)
    below[0], below[-1] = 0.0, 1.0  # what is farther is at the ends
    return _rounded_off(np.tile(np.diff(below), (columns, 1)))


def released_proportions(
    counts: NDArray[np.float64], noise: float, records: float
) -> NDArray[np.float64]:
    """Return the proportions of bins from their noisy counts, shape (columns, 24)."""
    # Where noise is large against a bin's usual count, believe a Gaussian's shares instead.
    trust = 1 / (1 + (BINS * noise / records) ** 2)
    usual = usual_proportions(len(counts))
    return _rounded_off(np.maximum(trust * counts / records + (1 - trust) * usual, 0.0))


def _rounded_off(proportions: NDArray[np.float64]) -> NDArray[np.float64]:
    # A little mass everywhere: the distribution function rises, so that it has an inverse.
    padded = proportions + _PSEUDO / BINS
    return np.asarray(padded / padded.sum(axis=1, keepdims=True))
