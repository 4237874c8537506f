"""Total: the sum of one column."""

from typing import Any, ClassVar

import attrs
import numpy as np

from dpcore import Answer, Public, Refused, Sum, SumQuery
from dpcore.interval import NoiseDistribution
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models.figures import Figures, Statistics
from dpcore.shown import in_digits
from dpcore_statistics.bars import around
from dpcore_statistics.by_group import OfValues
from dpcore_statistics.columns import NumberColumn, number_column
from dpcore_statistics.population.moments import free_square, stream_sum
from dpcore_statistics.population.sampling import NOTHING, population_intervals

CLIPPED = (
    "noise only: where the sum of the values lies, each clipped to its declared range; missing "
    "values count as none"
)


@attrs.frozen(kw_only=True)
class Total(OfValues):
    r"""The sum of a column's values.

    A record contributes x/M with :math:`M=\max(|low|,|high|)`: the statistic is in units of M.
    Centring the values and adding back the centre times a noisy count would cost the same: its
    least standard deviation is (|c| + R/2)/mu = M/mu.

    Total: as every statistic.

    Args:
        column: A declared range.
    """

    distinguishes_laplace: ClassVar[bool] = True

    def unsampled(self, public: Public) -> str:
        """Return why there is no population interval: only a stream's sum of one sign has one."""
        domain, column = public.domain, number_column(public.domain, self.column).column
        if domain.sampled != "independent":
            return "sampled: independent (of a finite population take the mean)"
        if domain.exact is not None and not (self.where or self.by or column.missing):
            return "a private number of records (of a public one take the mean)"
        return (
            "" if column.low * column.high >= 0 else "a range on one side of 0 (or take the mean)"
        )

    def _unit(self, column: NumberColumn) -> float:
        # The largest |x|: with it as the unit a contribution is at most 1 long.
        return max(abs(column.column.low), abs(column.column.high))

    def query(self, public: Public) -> SumQuery:
        """Return the query for the sum in units of M, and for the squares if sampled."""
        # Where no value is below 0, no two clipped persons lie farther apart than the clip.
        low, size = number_column(public.domain, self.column).column.low, 1 + self.samples(public)
        total = Sum(clip=1.0, sign="non_negative" if low >= 0 else "any")
        return SumQuery(name="sum", shape=(size,), distance=self.norm(public), sum=total)

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return 1 under add/remove; (high - low)/M replaced, >= 1 if a record may be left out."""
        column = number_column(public.domain, self.column)
        spans = (column.column.high - column.column.low) / self._unit(column)
        # A record that starts or ceases to count moves the sum as one that comes or goes.
        may_be_absent = bool(self.where) or column.may_miss
        return ByRelation(add_remove=1.0, replace_one=max(spans, 1.0) if may_be_absent else spans)

    def terms(self, query: SumQuery, public: Public, *positions: Any) -> tuple[Any, ...]:
        """Return x/M, and the term that the sum of squares follows from."""
        column = number_column(public.domain, self.column)
        value = column.column.centre + column.column.half_width * positions[0]
        # Clipped after the division: rounding may put a value at the end of the range beyond 1.
        number = (value / self._unit(column)).clip(-1.0, 1.0)
        # By the lemma of a sum it lengthens nothing.
        size = abs(number)
        return (number, free_square(self.norm(public)) * size * (1 - size))[: query.real_size]

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return one row, in the file's units."""
        column = number_column(public.domain, self.column)
        unit, (lowest, highest) = self._unit(column), (column.column.low, column.column.high)
        estimate, intervals = answer.value[0], None
        if self.samples(public):
            sampling = self.sampling(answer.noise_distribution, self.miss, public)
            # Of values below 0 all represent their sizes.
            sign = -1.0 if highest <= 0 else 1.0
            free, top = free_square(self.norm(public)), sign * estimate
            ends: Any = NOTHING
            if sampling is not None:
                smallest, largest = stream_sum(top, answer.value[1], sampling, free)
                ends = self.cut_sum((float(smallest), float(largest)), 0.0, 1.0)
            ends = ends if sign > 0 else (0.0 - ends[1], 0.0 - ends[0])
            subject = "the expected sum of such a stream, each value clipped to its declared range"
            ends = (unit * ends[0], unit * ends[1])
            intervals = population_intervals(ends, self.level, subject, public.domain, sampling)
        noise_ends = around(float(estimate), answer.noise_distribution, self.miss)
        low, high = self.cut_sum(noise_ends, lowest, highest)
        return Statistics.of(
            Figures(
                about={"statistic": (f"sum of {self.column}",)},
                estimate=unit * np.array([estimate]),
                low=unit * np.array([low]),
                high=unit * np.array([high]),
                level=self.level,
                covers=CLIPPED,
                population=intervals,
            )
        )

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Return the half-width, the same whatever the records."""
        unit = self._unit(number_column(public.domain, self.column))
        return (
            f"sum of {self.column} +- {in_digits(unit * noise_distribution.within(self.miss))}",
        )
