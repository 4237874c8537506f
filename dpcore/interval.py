"""Interval: two ends of a number that is not known exactly. Spread: the law of its noise."""

import math
from abc import ABC, abstractmethod
from statistics import NormalDist
from typing import Any, Self, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import need
from dpcore.shown import Shown

_ROUND_UP = 1 + 2.0**-30  # covers the roundings of a sum of exponentials, and of a quantile
_NARROW = 64.0  # widths in steps below which tails are summed
_TINY = 1e-25  # and the least tail that a sum over 12 widths can say


@attrs.frozen
class Interval(Shown):
    """`lower <= truth <= upper`, for the curves as claimed. The upper end is what is quoted."""

    lower: float
    upper: float

    def __attrs_post_init__(self) -> None:
        need(
            self.lower <= self.upper,  # false of NaN
            ValueError,
            f"not an interval: [{self.lower!r}, {self.upper!r}]",
        )

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    @property
    def width(self) -> float:
        """How much is not known."""
        return self.upper - self.lower


class NoiseDistribution(ABC):
    """The distribution of the noise on one released number: public, and the source of its
    half-width.

    Args:
        rounding: How far the statistic may lie, next to the noise, from what was rounded to a grid.
    """

    rounding: float

    @property
    @abstractmethod
    def std(self) -> float:
        """The noise's standard deviation, or a little more."""

    @abstractmethod
    def quantile(self, miss: float) -> float:
        """Return w with P(|noise| > w) <= miss, the least one up to a step of a grid."""

    def over(self, weight: float) -> Self:
        """Return the distribution of the noise once the number is divided by `weight` > 0."""
        names = ("width", "scale", "step", "rounding")
        fields = {name: getattr(self, name) / weight for name in names if hasattr(self, name)}
        scaled_distribution: Self = attrs.evolve(cast(Any, self), **fields)
        return scaled_distribution

    def within(self, miss: float) -> float:
        """Return the distance that a release's error exceeds with probability `miss` at most."""
        return self.quantile(miss) + self.rounding


@attrs.frozen(kw_only=True)
class NormalDistribution(NoiseDistribution):
    r"""A Gaussian, or a discrete one on multiples of `step`.

    With s the width in steps, :math:`P(|Z|>w)\le P(|N(0,s^2)|>w)` for every integer w >= 0, as the
    sum over k > w of a decreasing function is below its integral from w, and the sum over all k is
    at least :math:`s\sqrt{2\pi}` (Poisson's summation). Below s = 64 the sum itself is taken.

    Args:
        width: Standard deviation of the Gaussian, or the parameter of the discrete one.
        step: Of the grid; 0 for real noise.
    """

    width: float
    step: float = 0.0
    rounding: float = 0.0

    @property
    def std(self) -> float:
        """`width`: a discrete Gaussian's standard deviation is no larger."""
        return self.width

    def quantile(self, miss: float) -> float:
        """Bound a quantile by the sum of the tail, or the normal quantile rounded up to a step."""
        z = -NormalDist().inv_cdf(miss / 2) * _ROUND_UP
        if not self.step:
            return z * self.width
        steps = self.width / self.step
        if steps >= _NARROW or miss < _TINY:
            return self.step * math.ceil(z * steps)
        # Below 64 steps the integral is a coarse bound: the tail is summed, from its small end,
        # where no large term hides a small one.
        weights = [math.exp(-0.5 * (k / steps) ** 2) for k in range(math.ceil(12 * steps) + 2)]
        total, tail = 2 * math.fsum(weights) - weights[0], 0.0
        for w in range(len(weights) - 1, 0, -1):
            tail += 2 * weights[w]
            if tail * _ROUND_UP > miss * total:
                return self.step * w
        return 0.0


@attrs.frozen(kw_only=True)
class LaplaceDistribution(NoiseDistribution):
    """A Laplace law, or P(z) proportional to exp(-|z|/scale) on multiples of `step`.

    Args:
        scale: Of the noise.
        step: Of the grid; 0 for real noise.
    """

    scale: float
    step: float = 0.0
    rounding: float = 0.0

    @property
    def std(self) -> float:
        """sqrt(2) scale: that of the discrete law is no larger."""
        return math.sqrt(2.0) * self.scale

    def quantile(self, miss: float) -> float:
        """Return scale log(1/miss); on a grid the least w with 2 q^(w+1)/(1+q) <= miss."""
        if not self.step:
            return max(0.0, self.scale * math.log(1 / miss) * _ROUND_UP)
        steps = self.scale / self.step
        beyond = math.log(2 / (miss * (1 + math.exp(-1 / steps)))) * _ROUND_UP
        return self.step * max(0, math.ceil(steps * beyond - 1))


@attrs.frozen(kw_only=True, eq=False)
class TabulatedDistribution(NoiseDistribution):
    """Noise on multiples of `step` whose tails are tabulated, and periodic beyond the table.

    Args:
        step: Of the grid.
        beyond: Upper ends of P(|noise| > w steps) for w = 0, 1, ..., shape (k,), nonincreasing.
        period: The last so many are repeated, each time exp(-decay) times as high.
        decay: > 0.
        deviation: The root of the noise's second moment, in steps, or a little more.
    """

    step: float
    beyond: NDArray[np.float64] = attrs.field(repr=False)
    period: int
    decay: float
    deviation: float
    rounding: float = 0.0

    @property
    def std(self) -> float:
        """`deviation` in the units of the number."""
        return self.deviation * self.step

    def quantile(self, miss: float) -> float:
        """Return the least w with P(|noise| > w) <= miss, by the table and its periodic repetition.

        The last part of the table repeats.
        """
        repeats = 0
        if self.beyond[-1] > miss:
            excess = math.log(self.beyond[-self.period] * _ROUND_UP / miss) / self.decay
            repeats = max(0, math.floor(excess))
        # of the last period, shrunk so often; one period more where rounding hides the first w
        tail = self.beyond * (math.exp(-self.decay * repeats) * _ROUND_UP)
        tail = tail[-self.period :] if repeats else tail
        fits = np.flatnonzero(tail <= miss)
        first = int(fits[0]) if fits.size else tail.size
        start = self.beyond.size - self.period + repeats * self.period if repeats else 0
        return self.step * (start + first)


@attrs.frozen(kw_only=True)
class ChoiceDistribution(NoiseDistribution):
    """How far the score of a chosen candidate lies below the best one.

    With probability proportional to exp(-gap/scale), B candidates: P(gap > w) <= B exp(-w/scale).

    Args:
        scale: Range sensitivity over epsilon.
        candidates: B.
    """

    scale: float
    candidates: int
    rounding: float = 0.0

    @property
    def std(self) -> float:
        """scale (1 + log B): what the gap is at most on average."""
        return self.scale * (1 + math.log(self.candidates))

    def quantile(self, miss: float) -> float:
        """Return scale log(B/miss), rounded up: the bound above, solved for w."""
        return self.scale * math.log(self.candidates / miss) * _ROUND_UP


def apart(miss: float, count: int) -> float:
    """Return the error rate of each of `count` independent intervals with joint rate `miss`."""
    # 1 - (1 - miss)^(1/count), without the cancellation where `miss` is small.
    return -math.expm1(math.log1p(-miss) / count)
