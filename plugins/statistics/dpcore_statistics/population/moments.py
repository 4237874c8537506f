r"""Moments: four moments of a column at the sensitivity of its mean, and intervals that they give.

Let x be a value's place in [-1, 1], and :math:`u=x^2`.

Lemma. :math:`(x,1-u,x(1-u),x^2(1-u),\dots,x^K(1-u))` is at most 1 long in l2, for every K. Proof:
:math:`u+(1-u)^2(1+u+\dots+u^K)=u+(1-u)(1-u^{K+1})=1-u^{K+1}(1-u)\le1`. x by itself attains it, so
that nothing is paid next to the mean; two such vectors differ by at most 2, as two values of x do.

With :math:`d_k=\sum x^k(1-u)`: :math:`\sum x^2=n-d_0`, :math:`\sum x^3=\sum x-d_1` and
:math:`\sum x^4=n-d_0-d_2`. K = 2 here.

Lemma of a sum. For y in [0, 1], :math:`(y,cy(1-y))` is at most 1 long iff
:math:`c^2\le(1+y)/(y^2(1-y))`, whose least value is :math:`\varphi^5`, at
:math:`y=(\sqrt5-1)/2`. Then :math:`\sum y^2=\sum y-d/c`.

In l1, for Laplace noise, :math:`(x,(1-u)/2)` is at most 1 long, as
:math:`1-|x|-(1-u)/2=(1-|x|)^2/2`: one moment is free, and the fourth is bounded by the second,
:math:`(x-m)^4\le(1+|m|)^2(x-m)^2`. And :math:`(y,y(1-y))` is at most 1 long, as y (2 - y) is.
"""

from abc import abstractmethod
from typing import Any

import attrs
import numpy as np

from dpcore import Distance
from dpcore_statistics.population.sampling import (
    Ends,
    Numbers,
    Sampling,
    roots,
)

MORE = 3
"""Numbers next to the sum of x: d_0, d_1 and d_2."""

HALF = 0.5
"""What d_0 is multiplied by in l1."""

FREE_SQUARE = 3.3301
"""c of the second lemma, just below phi^(5/2)."""

_CERTAIN = 5.0  # widths of the noise of n below which a variance says nothing


def free_square(norm: Distance) -> float:
    """Return c, the factor of y (1 - y) next to y."""
    return 1.0 if norm is Distance.L1 else FREE_SQUARE


def free_terms(x: Any, norm: Distance = Distance.L2) -> tuple[Any, ...]:
    """Return a record's terms next to x: (1 - u)(1, x, x^2), where u = x^2; in l1 (1 - u)/2."""
    complement = 1 - x * x
    if norm is Distance.L1:
        return (HALF * complement,)
    return complement, complement * x, complement * (x * x)


def free_moments(positions: Numbers) -> Numbers:
    """Return the terms of many records. Shape (n, 3)."""
    return np.column_stack(free_terms(positions))


@attrs.frozen(kw_only=True, eq=False)
class SampledMean:
    """Released sums of a mean: arrays of one shape.

    Args:
        n: What the mean is over, as released or public; not cut.
        total: Of x.
        lost: What second and further moments follow from, along the first axis.
        width: s, of the noise on each of them.
        of_count: 1/w^2, the variance of the noise on n in units of s^2; 0 where n is public.
    """

    n: Any
    total: Any
    lost: Any
    width: float
    of_count: float

    @property
    def number(self) -> Numbers:
        """n, as what is divided by: at least 1."""
        return np.asarray(np.maximum(self.n, 1.0))

    @property
    def mean(self) -> Numbers:
        """The estimate, in [-1, 1]."""
        return np.asarray(np.clip(self.total / self.number, -1.0, 1.0))

    @property
    def noise_squares(self) -> Numbers:
        """The sum of the squared variances of both noises on the sum about n times the mean."""
        return np.asarray(self.width**4 * (1 + self.mean**4 * self.of_count**2))

    @property
    @abstractmethod
    def sampled(self) -> Numbers:
        """The sampling variance of the sum about n times the mean, as an estimate."""

    @property
    @abstractmethod
    def variance_of_sampled(self) -> Numbers:
        """The variance of that estimate: its noise, and what the draw puts there."""


@attrs.frozen(kw_only=True, eq=False)
class Moments(SampledMean):
    """Released sums of one column, or of one in every group or draw; d_0, d_1 and d_2 are lost.

    Args:
        of_lost: Variance of the noise on each of these, in units of s^2; in l1, where there is d_0
            only, it is 4.
    """

    of_lost: float = 1.0

    @property
    def squares(self) -> Numbers:
        """The sum of x^2, from d_0."""
        return np.asarray(self.n - self.lost[0])

    @property
    def standard_error(self) -> Numbers:
        """n V, the sum of squares about the mean, its bias added back and cut to the possible."""
        plug_in = self.squares - (np.square(self.total) - self.width**2) / self.number
        return np.asarray(np.clip(plug_in, 0.0, self.number * (1 - self.mean**2)))

    @property
    def sampled(self) -> Numbers:
        """n/(n - 1) of `standard_error`."""
        return np.asarray(self.standard_error * self.number / np.maximum(self.number - 1, 1.0))

    @property
    def fourth(self) -> Numbers:
        """The fourth central moment, no smaller than V^2 and no larger than its range allows."""
        m, n, variance = self.mean, self.number, self.standard_error / self.number
        # (x - m)^4 <= (1 + |m|)^2 (x - m)^2.
        largest = np.maximum((1 + abs(m)) ** 2 * variance, variance**2)
        if len(self.lost) < MORE:
            return np.asarray(largest)
        third, fourth = self.total - self.lost[1], self.n - self.lost[0] - self.lost[2]
        raw = fourth / n - 4 * m * third / n + 6 * m * m * self.squares / n - 3 * m**4
        return np.asarray(np.clip(raw, variance**2, largest))

    @property
    def variance_of_sampled(self) -> Numbers:
        """The variance of `sampled`: that of its noise, and that of drawing the records."""
        m, n, variance = self.mean, self.number, self.standard_error / self.number
        noise = self.width**2 * (self.of_lost + self.of_count + 4 * m * m)
        return np.asarray(noise + n * (self.fourth - variance**2))


def moments_of(
    value: Any, width: float, weight: float, exact: int | None, norm: Distance = Distance.L2
) -> Moments:
    """Build from released numbers: (w n, sum of x, d), or (sum of x, d) if n is public.

    Args:
        value: Numbers along the last axis; one more than those of a public n where n is private.
        weight: w. exact: n, where that is public and every record counts.
        norm: In which they were bounded.
    """
    columns = np.moveaxis(np.asarray(value, dtype=np.float64), -1, 0)
    n, of_count, more = (
        np.full(columns[0].shape, float(exact or 0)),
        0.0,
        len(free_terms(0.0, norm)),
    )
    if len(columns) > 1 + more:
        n, of_count, columns = columns[0] / weight, weight**-2.0, columns[1:]
    scale = HALF if norm is Distance.L1 else 1.0
    return Moments(
        n=n, total=columns[0], lost=columns[1:] / scale, width=width, of_count=of_count,
        of_lost=scale**-2.0,
    )  # fmt: skip


def total_variance(moments: SampledMean, sampling: Sampling) -> tuple[Numbers, Numbers]:
    """Return T of the sum of x about the mean, with the noise of both sums; and T's variance."""
    fraction, noise = sampling.fraction(moments.number), moments.width**2
    total = moments.sampled * fraction + noise * (1 + moments.mean**2 * moments.of_count)
    # The noise is of known variance: what is estimated is the part of sampling.
    return total, fraction**2 * moments.variance_of_sampled


def mean_interval(moments: SampledMean, sampling: Sampling, cutoff: float = 1.0) -> Ends:
    """Return the mean of the population, as a position: Fieller's set with the sampling variance.

    Args:
        cutoff: Where ends are cut; infinite ones are for comparisons.
    """
    total, variance = total_variance(moments, sampling)
    q = sampling.quantile(total, variance) * sampling.tail(total, moments.noise_squares)
    squared = np.square(q * moments.width)
    sampled = q * q * moments.sampled * sampling.fraction(moments.number)
    a = np.square(moments.n) - squared * moments.of_count
    c = np.square(moments.total) - squared - sampled
    return roots(a, moments.total * moments.n, c, -cutoff, cutoff, np.asarray(moments.n) > 0)


def variance_interval(moments: Moments, sampling: Sampling) -> tuple[Numbers, Numbers, Numbers]:
    """Return the population variance in squared half-widths of the range: estimate and ends."""
    n, m, squared = moments.number, moments.mean, moments.width**2
    variance = moments.standard_error / n
    estimate = variance * n / np.maximum(n - 1, 1.0)
    # The derivative of Q - m^2 by each of the three noisy sums.
    of_count = np.square(1 - moments.squares / n + 2 * m * m) * moments.of_count
    noise = squared * (1 + 4 * m * m + of_count)
    sampled = n * (moments.fourth - variance**2) * sampling.fraction(n)
    of_total = (squared * (17 + moments.of_count) + n * moments.fourth) * sampling.fraction(n) ** 2
    q = sampling.quantile(sampled + noise, of_total)
    # n^2 (estimate - r)^2 <= q^2 (noise + r sampled/V): of rare values it grows with the truth.
    slope = q * q * sampled / np.maximum(variance, 1e-12)
    is_certain = np.asarray(moments.n) >= _CERTAIN * moments.width * np.sqrt(moments.of_count)
    c = np.square(n * estimate) - q * q * noise
    low, high = roots(n * n, n * n * estimate + slope / 2, c, 0.0, 1.0, is_certain)
    # What the records have lies in its interval too.
    return estimate, np.minimum(low, variance), np.maximum(high, variance)


def stream_sum(total: Any, lost: Any, sampling: Sampling, free: float = FREE_SQUARE) -> Ends:
    """Return an interval of the expected sum r of a stream's y in [0, 1].

    Its variance is r times the mean of y^2 over that of y, so it is all r with
    (T - r)^2 <= z^2 (s^2 + r sum y^2/sum y).

    Args:
        lost: The sum of c y (1 - y). free: c.
    """
    top = np.asarray(total, dtype=np.float64)
    squares = np.maximum(0.0, top - np.asarray(lost) / free)
    # Of a sum near its noise of long tails, the share is near the largest that it can be.
    doubt = 2 * sampling.width if sampling.is_laplace else 0.0
    squares, positive = squares + doubt, np.maximum(top, 0.0) + doubt
    # y^2 is no larger than y.
    proportion = np.where(top > 0, np.clip(squares / np.maximum(positive, 1e-9), 0.0, 1.0), 1.0)
    z = sampling.z * sampling.tail(
        np.maximum(top, 0.0) * proportion + sampling.width**2, sampling.width**4
    )
    c = top * top - (z * sampling.width) ** 2
    low, high = roots(np.ones_like(top), top + z * z * proportion / 2, c, -np.inf, np.inf)
    # Beyond 0 the variance is that of the noise only; the estimate lies in its interval.
    return np.minimum(low, top), np.maximum(high, top)
