r"""Ratio of the sums of two columns, such as cost per day, with its second moments next to it.

With x and y a record's places in both ranges, :math:`(w,x,1-x^2,y,1-y^2,xy/2)` is at most
:math:`\sqrt{w^2+9/4}` long, and two of them are at most :math:`\sqrt8` apart, w aside: the theorems
of `covariance`, whose last number moves half as far here.

With Y and X in the file's units, released sums A and B of them, and V their noise's covariance,
Fieller's set is all r with :math:`(A-rB)^2\le z^2(V_{AA}-2rV_{AB}+r^2V_{BB})`. Of the population
:math:`q^2\sum(Y-rX)^2`, at the estimated ratio, is added to the right side.
"""

from __future__ import annotations

from typing import Any, ClassVar

import attrs
import numpy as np

from dpcore import Answer, Distance, Public, SumQuery
from dpcore.errors import need
from dpcore.interval import NoiseDistribution, NormalDistribution
from dpcore.models.figures import Figures, Statistics
from dpcore.shown import in_digits
from dpcore_statistics.bars import EVERYTHING, normal_quantile
from dpcore_statistics.columns import NumberColumn, number_column
from dpcore_statistics.pairs.covariance import Covariance
from dpcore_statistics.population.sampling import (
    NOTHING,
    Ends,
    Numbers,
    Sampling,
    population_intervals,
    roots,
    sampling_of,
)

_HALF = 0.5  # of the product: it makes the noise 5 % larger, where all of it would take 18


@attrs.frozen(kw_only=True, eq=False)
class RatioSums:
    """Released sums of two columns, in the file's units: arrays of one shape.

    Args:
        top, bottom: A and B. noise: V_AA, V_AB and V_BB, for noise of width 1.
        left: The sum of (Y - r X)^2 at the estimate, cut to the possible.
        doubt: The variance of `left`, its noise with width 1 and what the draw puts there.
        possible: What the ratio cannot be below, or above: of columns without values below 0 it
            is not below 0.
    """

    top: Numbers
    bottom: Numbers
    noise: tuple[float, float, float]
    left: Numbers
    doubt: tuple[Numbers, Numbers]
    possible: tuple[float, float] = EVERYTHING

    @classmethod
    def of(
        cls, value: Any, columns: tuple[NumberColumn, NumberColumn], weight: float, n: Any = None
    ) -> RatioSums:
        """Build from (w n,) x, 1 - x^2, y, 1 - y^2 and xy/2 along the last axis, Y before X.

        Args:
            n: The number of records where that is public.
        """
        sums, of_count = np.moveaxis(np.asarray(value, dtype=np.float64), -1, 0), 0.0
        if n is None:
            n, sums, of_count = sums[0] / weight, sums[1:], 1 / weight**2
        y, y_rest, x, x_rest, product = sums
        (cy, hy), (cx, hx) = ((c.column.centre, c.column.half_width) for c in columns)
        top, bottom = cy * n + hy * y, cx * n + hx * x
        noise = (cy * cy * of_count + hy * hy, cx * cy * of_count, cx * cx * of_count + hx * hx)
        # Y - r X is a + hy y - r hx x, whose square is a sum of released numbers.
        r = np.where(bottom > 0, top, 0.0) / np.where(bottom > 0, bottom, 1.0)
        a, both, squares = cy - r * cx, -2 * r * hx * hy / _HALF, (hy * hy, r * r * hx * hx)
        left = (
            n * a * a + 2 * a * (hy * y - r * hx * x) + both * product
            + squares[0] * (n - y_rest) + squares[1] * (n - x_rest)
        )  # fmt: skip
        # The largest |Y - r X|, at a corner of both ranges.
        corners = [
            abs(v - r * u)
            for v in (columns[0].column.low, columns[0].column.high)
            for u in (columns[1].column.low, columns[1].column.high)
        ]
        largest = np.square(np.max(corners, axis=0))
        left = np.clip(left, 0.0, np.maximum(n, 1.0) * largest)
        total = squares[0] + squares[1]
        noisy = (
            of_count * np.square(a * a + total) + 4 * a * a * total + both * both
            + squares[0] ** 2 + squares[1] ** 2
        )  # fmt: skip
        doubt = (np.asarray(noisy), np.asarray(largest * left))
        return cls(top=top, bottom=bottom, noise=noise, left=np.asarray(left), doubt=doubt)

    def interval(self, sampling: Sampling, n: Any) -> Ends:
        """Return the population ratio's interval; infinite ends if the denominator may be 0."""
        squared, (of_top, of_both, of_bottom) = sampling.width**2, self.noise
        is_positive = np.asarray(self.bottom > 0)
        r = np.where(is_positive, self.top, 0.0) / np.where(is_positive, self.bottom, 1.0)
        fraction = sampling.fraction(n)
        noise = squared * (of_top - 2 * r * of_both + r * r * of_bottom)
        doubt = squared * self.doubt[0] + self.doubt[1]
        q2 = np.square(sampling.quantile(self.left * fraction + noise, fraction**2 * doubt))
        return self._ends(q2 * squared, q2 * self.left * fraction)

    def noise_interval(self, half: float) -> Ends:
        """Return the ratio of these records, for noise of the half-width `half`."""
        return self._ends(half * half, 0.0)

    def _ends(self, squared: Any, sampled: Any) -> Ends:
        of_top, of_both, of_bottom = self.noise
        a = np.square(self.bottom) - squared * of_bottom
        b = self.top * self.bottom - squared * of_both
        c = np.square(self.top) - squared * of_top - sampled
        return roots(a, b, c, *self.possible, self.bottom > 0)


@attrs.frozen(kw_only=True)
class SampledRatio(Covariance):
    """The sum of one column over that of another, of the records that have both, with what an
    interval about the population needs: `statistics.ratio` asks it where that is reported.

    Total: as every statistic.

    Args:
        column: What is above: a declared range.
        other: What is below: a declared range. Nothing is given where its sum may be 0 or less.
    """

    cross: ClassVar[float] = _HALF
    longest: ClassVar[float] = 1.5

    def unsampled(self, public: Public) -> str:
        """Return "": every ratio has an interval about the population."""
        return ""

    def query(self, public: Public) -> SumQuery:
        """Return the query of a covariance.

        Raises:
            ParameterError: the noise would not be normal.
        """
        is_normal = self.norm(public) is Distance.L2
        requirement = "l2 (Gaussian noise: a budget with a delta)"
        need(is_normal, "ratio", requirement, "distance", str(self.norm(public)))
        return super().query(public)

    def _columns(self, public: Public) -> tuple[NumberColumn, NumberColumn]:
        return number_column(public.domain, self.column), number_column(public.domain, self.other)

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return one row: the ratio in the file's units."""
        domain, (column, other) = public.domain, self._columns(public)
        n = None if self.counted(public) else float(domain.records)
        w = self.count_weight(public)
        sums, noise_distribution = (
            RatioSums.of(answer.value, (column, other), w, n),
            answer.noise_distribution,
        )
        if other.column.low >= 0:
            possible = self.cut_sum(EVERYTHING, column.column.low, column.column.high)
            sums = attrs.evolve(sums, possible=possible)
        ends = NOTHING
        if isinstance(noise_distribution, NormalDistribution):
            ends = sums.noise_interval(
                normal_quantile(noise_distribution, self.miss) * noise_distribution.width
            )
        intervals = None
        if self.samples(public):
            distribution = sampling_of(noise_distribution, self.miss, domain)
            number = float(answer.value[0]) / w if n is None else n
            wider = NOTHING if distribution is None else sums.interval(distribution, number)
            subject = f"the sum of {self.column} over that of {self.other}, each value clipped"
            intervals = population_intervals(wider, self.level, subject, domain, distribution)
        # Where nothing is reported, a sum below that noise has made small or negative is no
        # divisor.
        least = -np.inf if np.isfinite(ends[0]) else other.column.half_width
        return Statistics.of(
            Figures(
                about={"statistic": (f"ratio of {self.column} to {self.other}",)},
                estimate=np.atleast_1d(sums.top / np.maximum(sums.bottom, least)),
                low=np.atleast_1d(ends[0]),
                high=np.atleast_1d(ends[1]),
                level=self.level,
                covers="noise only: the ratio of both sums, each value clipped to its declared "
                "range, of records that have both. It does not include sampling error",
                population=intervals,
            )
        )

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Forecast the half-width, roughly, in terms of the ratio r and the denominator's sum."""
        top, bottom = (
            in_digits(noise_distribution.within(self.miss) * column.column.half_width)
            for column in self._columns(public)
        )
        pair = f"ratio of {self.column} to {self.other}"
        noise, sums = f"{top}^2 + ({bottom} r)^2", f"a ratio r and a sum S of {self.other}"
        line = f"{pair} about +- sqrt({noise})/S for {sums}"
        if not self.samples(public):
            return (line,)
        z = in_digits(Sampling(width=0.0, miss=self.miss).z)
        return (line, f"population {pair} about +- sqrt({noise} + ({z} sd)^2 n)/S")
