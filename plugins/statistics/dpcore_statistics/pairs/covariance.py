r"""Covariance and correlation of two columns: all moments of the second order at once.

Let x and y be the values of a record at their positions in [-1, 1].

Theorem (l2, n private). :math:`(w,x,1-x^2,y,1-y^2,xy)` is at most :math:`\sqrt{w^2+3}` long, as
:math:`u+(1-u)^2\le1` for u = x^2 in [0, 1].

Theorem (l2). Two of them, w aside, are at most :math:`\sqrt8` apart, as far as (x, y) alone may be.
Proof: let d = |x - x'| = 1 - a, so that :math:`|x+x'|\le2-d=1+a`; likewise e = 1 - b of y. Then
:math:`|xy-x'y'|\le\tfrac12(d(2-e)+(2-d)e)=1-ab`, and the squared distance is at most

.. math:: (1-a)^2+(1-a^2)^2+(1-b)^2+(1-b^2)^2+(1-ab)^2\le7-2(1+a)(1+b)+a^2b^2\le8 ,

with :math:`a^4\le a^2`, :math:`b^4\le b^2`. []

In l1 the squares have the weight 1/2: the sums are at most w + 3 long, as
:math:`|x|+\tfrac12(1-x^2)\le1`, and two of them at most 9/2 apart: :math:`2d-\tfrac12d^2+2e-
\tfrac12e^2+(d+e-de)=3(d+e)-\tfrac12(d+e)^2\le\tfrac92`. All are attained.

The covariance is that of the values themselves (divided by n). Its interval is the delta method's
where the noise is normal and the noisy n above ten of its standard deviations (or public), else a
box of intervals of all sums (Bonferroni). That of the correlation is a box of the intervals of the
covariance and of both variances.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, ClassVar

import attrs
import numpy as np

from dpcore import Answer, Distance, Public, Refused, Sum, SumQuery
from dpcore.errors import need
from dpcore.interval import NoiseDistribution, NormalDistribution
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models.figures import Figures, Statistics
from dpcore.rounding import up
from dpcore.shown import in_digits
from dpcore_statistics.bars import Ends, around, cut, cut_count, normal_quantile, quotients
from dpcore_statistics.columns import number_column
from dpcore_statistics.mean import Averaged, with_count
from dpcore_statistics.statistic import Statistic

_CERTAIN = 10.0  # standard deviations of n~ above which the delta method holds its level
_EIGHT = up(math.sqrt(8.0), roundings=1)
_THREE = up(math.sqrt(3.0), roundings=1)


@attrs.frozen(kw_only=True)
class Covariance(Averaged):
    """Covariance and correlation of two columns, and how many records have both, if private.

    Total: as every statistic.

    Args:
        other: The second column: a declared range. A record counts where neither is missing.
    """

    # Of the product of both positions, and how long (x, 1 - x^2, y, 1 - y^2, c xy) is, in l2.
    cross: ClassVar[float] = 1.0
    longest: ClassVar[float] = _THREE

    other: str

    def unsampled(self, public: Public) -> str:
        """Return the reason of a statistic without population intervals."""
        return Statistic.unsampled(self, public)

    def counted(self, public: Public) -> bool:
        """Return whether the number of records with both values is private."""
        return super().counted(public) or number_column(public.domain, self.other).may_miss

    def count_weight(self, public: Public) -> float:
        """Return w: under replacement what is free, up to sqrt(5) in l2 and 3/2 in l1."""
        if self.weight is not None or public.domain.exact is None:
            return super().count_weight(public)
        return 1.5 if self.norm(public) is Distance.L1 else 2.2360679

    def query(self, public: Public) -> SumQuery:
        """Return the query (x, b (1 - x^2), y, b (1 - y^2), xy), preceded by w if n is private."""
        need(self.other != self.column, "covariance", "two columns", "other", self.other)
        number_column(public.domain, self.other)
        norm, counted = self.norm(public), self.counted(public)
        longest = 3.0 if norm is Distance.L1 else self.longest
        clip = with_count(norm, self.count_weight(public), longest) if counted else longest
        shape = (6 if counted else 5,)
        return SumQuery(name="products", shape=shape, distance=norm, sum=Sum(clip=clip))

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return the theorems above; a record that starts or ceases to count moves by the clip."""
        clip = query.sum.clip
        diameter = 4.5 if query.distance is Distance.L1 else _EIGHT
        if query.real_size == 6:
            return ByRelation(add_remove=clip, replace_one=max(diameter, clip))
        if public.domain.exact is None:
            return Refused("a covariance without a count needs a public number of records")
        return ByRelation(add_remove=clip, replace_one=diameter)

    @property
    def values(self) -> tuple[str, ...]:
        """The two columns whose values are multiplied."""
        return (self.column, self.other)

    def terms(self, query: SumQuery, public: Public, *positions: Any) -> tuple[Any, ...]:
        """Return a record's contribution to the numbers that `query` lists."""
        (x, y), b = positions, _square(query.distance)
        products = (x, b * (1 - x * x), y, b * (1 - y * y), self.cross * x * y)
        return products if query.real_size == 5 else (self.count_weight(public), *products)

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return covariance (in the product of the file's units), correlation, private count."""
        numbers = [float(number) for number in answer.value]
        # With a public n there are five sums; a private one comes first.
        weighted, deviation, rows = None, answer.noise_distribution, []
        n = float(public.domain.records) if len(numbers) == 5 else 0.0
        if len(numbers) == 6:
            w = self.count_weight(public)
            weighted, numbers = (numbers[0], w), numbers[1:]
            n = max(1.0, weighted[0] / w)
            ends = around(weighted[0], deviation, self.miss)
            if self.publishes_count:
                counts = cut_count((ends[0] / w, ends[1] / w), public.domain)
                rows = [("count", weighted[0] / w, *counts)]
        # The sums as means of positions; their products with half-widths are in the file's units.
        moments = _Moments.of(numbers, n, weighted, _square(answer.query.distance))
        covariance, correlation = moments.covariance, moments.correlation
        low, high = moments.covariance_ends(deviation, self.miss)
        half = math.prod(
            number_column(public.domain, name).column.half_width
            for name in (self.column, self.other)
        )
        pair = f"{self.column} and {self.other}"
        rows = [
            (f"covariance of {pair}", half * covariance, half * low, half * high),
            (
                f"correlation of {pair}",
                correlation,
                *moments.correlation_ends(deviation, self.miss / 3),
            ),
            *rows,
        ]
        return Statistics.of(
            Figures(
                about={"statistic": tuple(row[0] for row in rows)},
                estimate=np.array([row[1] for row in rows]),
                low=np.array([row[2] for row in rows]),
                high=np.array([row[3] for row in rows]),
                level=self.level,
                covers="noise only: covariance and correlation of the values themselves, each "
                "clipped to its declared range, of records that have both. It does not include "
                "sampling error",
            )
        )

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Forecast the covariance's half-width, roughly, for values near the middle of both."""
        half = noise_distribution.within(self.miss) * math.prod(
            number_column(public.domain, name).column.half_width
            for name in (self.column, self.other)
        )
        pair = f"{self.column} and {self.other}"
        if not self.counted(public):
            return (f"covariance of {pair} about +- {in_digits(half / public.domain.records)}",)
        return (f"covariance of {pair} about +- {in_digits(half)}/n for n records with both",)


def _square(norm: Distance) -> float:
    """Return b, the weight of the squares."""
    return 0.5 if norm is Distance.L1 else 1.0


@attrs.frozen(kw_only=True)
class _Moments:
    """Released means, and by how much one unit of noise moves each.

    Args:
        means: Of x, 1 - x^2, y, 1 - y^2 and xy; the released sums over n.
        n: Public, or the noisy count, at least 1.
        count_noise: Of n, in units of the noise on a sum; 0 where n is public.
        square_noise: Of the sums of 1 - x^2 and 1 - y^2.
    """

    means: tuple[float, ...]
    n: float
    count_noise: float
    square_noise: float

    @classmethod
    def of(
        cls, sums: Sequence[float], n: float, count: tuple[float, float] | None, b: float
    ) -> _Moments:
        scales = (1.0, b, 1.0, b, 1.0)
        means = tuple(number / scale / n for number, scale in zip(sums, scales, strict=True))
        noise = 0.0 if count is None else 1 / count[1]
        return cls(means=means, n=n, count_noise=noise, square_noise=1 / b)

    @property
    def covariance(self) -> float:
        """Cut to what positions in [-1, 1] may have."""
        x, _, y, _, product = self.means
        return min(max(product - x * y, -1.0), 1.0)

    @property
    def variances(self) -> tuple[float, float]:
        """The variances of both columns, clamped to [0, 1]."""
        x, x_rest, y, y_rest, _ = self.means
        first, second = 1 - x_rest - x * x, 1 - y_rest - y * y
        return min(max(first, 0.0), 1.0), min(max(second, 0.0), 1.0)

    @property
    def correlation(self) -> float:
        """0 where a variance is not seen to be above 0."""
        root = math.sqrt(math.prod(self.variances))
        return 0.0 if root == 0 else min(max(self.covariance / root, -1.0), 1.0)

    def _half_width(
        self, slopes: Sequence[float], noise_distribution: NoiseDistribution, miss: float
    ) -> float | None:
        """Return the delta method's half-width of a function of the sums; None if it may not cover.

        Args:
            slopes: By n, x, 1 - x^2, y, 1 - y^2 and xy, each for a mean.
        """
        certain = self.n > _CERTAIN * noise_distribution.std * self.count_noise
        if not isinstance(noise_distribution, NormalDistribution) or (
            self.count_noise and not certain
        ):
            return None
        noises = (self.count_noise, 1.0, self.square_noise, 1.0, self.square_noise, 1.0)
        length = math.hypot(*(s * noise for s, noise in zip(slopes, noises, strict=True)))
        return (
            normal_quantile(noise_distribution, miss) * noise_distribution.width * length / self.n
        )

    def _boxes(self, noise_distribution: NoiseDistribution, miss: float) -> list[Ends]:
        """Return joint intervals of all five means."""
        half = noise_distribution.within(miss / (6 if self.count_noise else 5))
        scales = (1.0, self.square_noise, 1.0, self.square_noise, 1.0)
        boxes = []
        for place, (mean, scale) in enumerate(zip(self.means, scales, strict=True)):
            top = (mean * self.n - half * scale, mean * self.n + half * scale)
            possible = (0.0, 1.0) if place in (1, 3) else (-1.0, 1.0)
            boxes.append(cut(quotients(top, self.n, half * self.count_noise), *possible))
        return boxes

    def covariance_ends(self, deviation: NoiseDistribution | None, miss: float) -> Ends:
        """Return the interval of the covariance of positions."""
        if deviation is None:
            return -1.0, 1.0
        x, _, y, _, _ = self.means
        # By n: the mean of products falls as n rises, that of x times that of y twice as fast.
        slopes = (x * y - self.covariance, -y, 0.0, -x, 0.0, 1.0)
        if (half := self._half_width(slopes, deviation, miss)) is not None:
            return cut((self.covariance - half, self.covariance + half), -1.0, 1.0)
        first, _, second, _, product = self._boxes(deviation, miss)
        corners = [one * two for one, two in itertools.product(first, second)]
        return cut((product[0] - max(corners), product[1] - min(corners)), -1.0, 1.0)

    def _variance_ends(self, number: int, deviation: NoiseDistribution, miss: float) -> Ends:
        """Return the interval of the variance of one column's positions."""
        mean, value = self.means[2 * number], self.variances[number]
        slopes = [1 - value + mean * mean, 0.0, 0.0, 0.0, 0.0, 0.0]
        slopes[1 + 2 * number : 3 + 2 * number] = (-2 * mean, -1.0)
        if (half := self._half_width(slopes, deviation, miss)) is not None:
            return cut((value - half, value + half), 0.0, 1.0)
        boxes = self._boxes(deviation, miss)
        means, rest = boxes[2 * number], boxes[2 * number + 1]
        largest = max(means[0] ** 2, means[1] ** 2)
        smallest = 0.0 if means[0] <= 0.0 <= means[1] else min(means[0] ** 2, means[1] ** 2)
        return cut((1 - rest[1] - largest, 1 - rest[0] - smallest), 0.0, 1.0)

    def correlation_ends(self, deviation: NoiseDistribution | None, miss: float) -> Ends:
        """Return an interval of the correlation from a box of three intervals at `miss` each."""
        if deviation is None:
            return -1.0, 1.0
        ends = self.covariance_ends(deviation, miss)
        variances = [self._variance_ends(number, deviation, miss) for number in (0, 1)]
        roots = [math.sqrt(variances[0][side] * variances[1][side]) for side in (0, 1)]
        # A negative end is most distant from 0 for the smallest variances, and nearest for the
        # largest.
        low, high = (
            (end / root if root > 0 else math.copysign(math.inf, end) if end else 0.0)
            for end, root in ((ends[0], roots[ends[0] > 0]), (ends[1], roots[ends[1] < 0]))
        )
        return cut((low, high), -1.0, 1.0)
