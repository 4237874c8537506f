r"""Variance: it comes free with the mean.

Let x be a value at its position in [-1, 1].

Theorem (n public, l2). :math:`(\sum x, b\sum x^2)` moves by at most 2 when a record is replaced,
the same as :math:`\sum x` only, for every :math:`b\le b^*=\varphi^{5/2}/2=1.66509...`, phi the
golden ratio. Proof: the squared movement :math:`(x-y)^2(1+b^2(x+y)^2)` is largest at
:math:`|x+y|=2-|x-y|=s`, where :math:`(2-s)^2(1+b^2s^2)\le4` iff :math:`b^2\le(4-s)/(s(2-s)^2)`,
whose least value, at :math:`s=3-\sqrt5`, is :math:`\varphi^5/4`.

Theorem (n private, l2). :math:`(w, x, 1-x^2)` is at most :math:`\sqrt{1+w^2}` long, as
:math:`u+(1-u)^2\le1` for u = x^2 in [0, 1]; two of them differ by at most 2 (as above, b = 1).

In l1: :math:`(\sum x, \tfrac12\sum x^2)` moves by at most :math:`d+\tfrac d2(2-d)\le2`, d = |x-y|,
and :math:`|x|+\tfrac12(1-x^2)\le1`.

The plug-in :math:`V=Q-m^2` has bias :math:`-\sigma_x^2/n^2`, which is added back; V is cut to
[0, 1 - m^2]. Its interval is the delta method's where the noisy n is above ten of its standard
deviations (or public), else a box of intervals of the sums (Bonferroni).
"""

import math
from typing import Any, NamedTuple

import attrs
import numpy as np

from dpcore import Answer, Distance, Public, Refused, Sum, SumQuery
from dpcore.interval import NoiseDistribution, NormalDistribution
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models.figures import Figures, PopulationIntervals, Statistics
from dpcore.rounding import up
from dpcore_statistics.bars import Ends, around, cut, cut_count, normal_quantile, quotients, ratio
from dpcore_statistics.columns import number_column
from dpcore_statistics.mean import (
    Averaged,
    column_ends,
    count_ends,
    expected_mean,
    in_units,
    with_count,
)
from dpcore_statistics.population.moments import (
    MORE,
    free_terms,
    mean_interval,
    variance_interval,
)
from dpcore_statistics.population.sampling import (
    NOTHING,
    nothing_unless,
    population_intervals,
    stacked_ends,
)

FREE = 1.665
"""b of the first theorem, below phi^(5/2)/2."""

_CERTAIN = 10.0  # standard deviations of n~ above which the delta method holds its level


class _Moments(NamedTuple):
    """Released sums, in units of records: S, the sum of squares' estimate, n, and their noise."""

    total: float
    squares: float
    number: float
    count_noise: float  # in units of the noise on S
    square_noise: float


@attrs.frozen(kw_only=True)
class Variance(Averaged):
    """Mean, variance and standard deviation of a column, and the number of values if private.

    The variance is that of the values themselves (divided by n).

    Total: as every statistic.
    """

    def pays_for_population(self, public: Public) -> bool:
        """Return whether n is public, without groups: squares then have a larger weight."""
        return not self.by and not self.counted(public)

    def _square(self, norm: Distance, counted: bool, sampled: bool) -> float:
        """Return b, the weight of the squares, or of 1 - x^2."""
        if norm is Distance.L1:
            return 0.5
        return 1.0 if counted or sampled else FREE

    def query(self, public: Public) -> SumQuery:
        """Return the query (x, b x^2), (w n, x, b (1 - x^2)), or [n,] the sum and moments."""
        norm, counted, sampled = self.norm(public), self.counted(public), self.samples(public)
        b = self._square(norm, counted, sampled)
        if counted:
            # By the theorem (x, 1 - x^2) is at most 1 long, so the count adds as it does to a mean.
            clip = with_count(norm, self.count_weight(public), 1.0)
        elif sampled:
            clip = 1.0  # by the lemma of moments
        else:
            clip = 1 + b if norm is Distance.L1 else up(math.hypot(1.0, b), roundings=3)
        shape = (1 + MORE + counted if sampled else 2 + counted,)
        return SumQuery(name="moments", shape=shape, distance=norm, sum=Sum(clip=clip))

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return the theorems above: 2 for a replaced record, or the clip if that is longer."""
        # Under replacement the squares cost nothing: 2 is what the sum of x by itself moves by.
        if query.real_size in (2, 1 + MORE):
            return ByRelation(add_remove=query.sum.clip, replace_one=2.0)
        return ByRelation(add_remove=query.sum.clip, replace_one=max(2.0, query.sum.clip))

    def terms(self, query: SumQuery, public: Public, *positions: Any) -> tuple[Any, ...]:
        """Return a record's contribution to the numbers that `query` lists."""
        (position,), size = positions, query.real_size
        b = self._square(query.distance, size == 3, size > MORE)
        if size == 2:
            return position, b * position * position
        if size == 1 + MORE:
            return position, *free_terms(position)
        moments = free_terms(position) if size > MORE else (b * (1 - position * position),)
        return self.count_weight(public), position, *moments

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return mean, variance, standard deviation in the file's units, and a private count."""
        domain, deviation = public.domain, answer.noise_distribution
        column = number_column(domain, self.column)
        half, b = (
            column.column.half_width,
            self._square(answer.query.distance, self.counted(public), self.samples(public)),
        )
        rows = []
        # n is public: two sums, and no row for the count.
        if answer.query.real_size in (2, 1 + MORE):
            count = float(domain.records)
            total, squares = (float(number) for number in answer.value[:2])
            # Next to moments it is the sum of 1 - x^2 that is released.
            squares = count - squares if answer.query.real_size > MORE else squares
            moments = _Moments(total, squares / b, count, 0.0, 1 / b)
            ends = around(total, deviation, self.miss)
            mean_ends = cut((ends[0] / count, ends[1] / count), -1.0, 1.0)
        else:
            # n is private: the third sum is of 1 - x^2, and the count gives that of x^2.
            w = self.count_weight(public)
            weighted, total, complement = (float(number) for number in answer.value[:3])
            count = max(1.0, weighted / w)
            moments = _Moments(total, count - complement / b, count, 1 / w, 1 / b)
            mean_ends = ratio(total, weighted, w, deviation, self.miss, 1.0)
            ends = around(weighted, deviation, self.miss)
            if self.publishes_count:
                rows = [("count", weighted / w, *cut_count((ends[0] / w, ends[1] / w), domain))]
        mean = min(max(moments.total / moments.number, -1.0), 1.0)
        value = _variance(moments, deviation)
        ends = _interval(moments, value, mean, deviation, self.miss)
        rows = [
            (f"mean of {self.column}", *in_units(column, mean, mean_ends)),
            (f"variance of {self.column}", *times(half * half, value, *ends)),
            (
                f"standard deviation of {self.column}",
                *times(half, math.sqrt(value), math.sqrt(ends[0]), math.sqrt(ends[1])),
            ),
            *rows,
        ]
        intervals = self._population(answer, public, len(rows)) if self.samples(public) else None
        return Statistics.of(
            Figures(
                about={"statistic": tuple(row[0] for row in rows)},
                estimate=np.array([row[1] for row in rows]),
                low=np.array([row[2] for row in rows]),
                high=np.array([row[3] for row in rows]),
                level=self.level,
                covers="noise only: mean and variance of the values themselves, each clipped to "
                "its declared range and missing ones left out. It does not include sampling error",
                population=intervals,
                dates=column.date_rows(1),
            )
        )

    def _population(self, answer: Answer, public: Public, rows: int) -> PopulationIntervals:
        """Return population intervals of mean, variance, standard deviation and a listed count."""
        column, (moments, distribution) = (
            number_column(public.domain, self.column),
            self.moments(answer, public),
        )
        wider, half = [NOTHING] * 3, column.column.half_width
        if distribution is not None:
            _, low, high = variance_interval(moments, distribution)
            wider = [
                column_ends(column, mean_interval(moments, distribution)),
                (half * half * low, half * half * high),
                (half * np.sqrt(np.maximum(low, 0.0)), half * np.sqrt(high)),
            ]
            # Ends that reveal nothing stay infinite.
            wider[2] = nothing_unless(np.isfinite(low), *wider[2])
        ends = stacked_ends([*wider, count_ends(moments, public.domain, distribution)][:rows])
        subject = "mean and variance of the population, each value clipped to its declared range"
        return population_intervals(ends, self.level, subject, public.domain, distribution)

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Forecast the mean's half-width: exact with a public n, else rough, for central values."""
        return expected_mean(self, public, noise_distribution)


def times(factor: float, estimate: float, low: float, high: float) -> tuple[float, float, float]:
    """Multiply a number and its interval by a factor."""
    return factor * estimate, factor * low, factor * high


def _variance(moments: _Moments, deviation: NoiseDistribution | None) -> float:
    """Return V = Q - m^2 plus its bias, clamped to [0, (1 - m)(1 + m)]."""
    mean = min(max(moments.total / moments.number, -1.0), 1.0)
    bias = 0.0 if deviation is None else (deviation.std / moments.number) ** 2
    # The square of the noisy mean is too large by the noise's variance over n^2: add it back.
    plug_in = moments.squares / moments.number - (moments.total / moments.number) ** 2
    return min(max(plug_in + bias, 0.0), (1 - mean) * (1 + mean))


def _interval(
    moments: _Moments,
    value: float,
    mean: float,
    noise_distribution: NoiseDistribution | None,
    miss: float,
) -> Ends:
    """Return the variance's interval: by the delta method, or a box."""
    if noise_distribution is None:
        return 0.0, 1.0
    count_is_public = not moments.count_noise
    # The delta method needs a normal distribution, and an n that is far from 0 for certain.
    if isinstance(noise_distribution, NormalDistribution) and (
        count_is_public or moments.number > _CERTAIN * noise_distribution.std * moments.count_noise
    ):
        # The derivative of the variance by each noisy sum; with a public n the count has none.
        of_count = 0.0 if count_is_public else (1 - value - mean * mean + 2 * mean * mean)
        slope = math.hypot(moments.square_noise, 2 * mean, of_count * moments.count_noise)
        half = (
            normal_quantile(noise_distribution, miss)
            * noise_distribution.width
            * slope
            / moments.number
        )
        return cut((value - half, value + half), 0.0, 1.0)
    return _box(moments, noise_distribution, miss)


def _box(moments: _Moments, noise_distribution: NoiseDistribution, miss: float) -> Ends:
    """Return the range of Q - m^2 over every sum in its interval."""
    # Bonferroni: every sum lies in its interval, but for a proportion of the miss each.
    parts = 2 if not moments.count_noise else 3
    half = noise_distribution.within(miss / parts)
    top = (moments.total - half, moments.total + half)
    count_half = half * moments.count_noise
    means = cut(quotients(top, moments.number, count_half), -1.0, 1.0)
    # without a public n the released sum is that of 1 - x^2, so that Q = 1 - (it)/n
    complement = moments.number - moments.squares if moments.count_noise else moments.squares
    complement_ends = (
        complement - half * moments.square_noise,
        complement + half * moments.square_noise,
    )
    proportions = cut(quotients(complement_ends, moments.number, count_half), 0.0, 1.0)
    squares = (1 - proportions[1], 1 - proportions[0]) if moments.count_noise else proportions
    largest = max(means[0] ** 2, means[1] ** 2)
    smallest = 0.0 if means[0] <= 0.0 <= means[1] else min(means[0] ** 2, means[1] ** 2)
    return cut((squares[0] - largest, squares[1] - smallest), 0.0, 1.0)
