r"""Ratio: the sum of one column over the sum of another, such as costs per day, also by group.

Both sums are released in one query, each value in units of the largest size in its declared range:
(x/X, y/Y) is in a box within :math:`[-1,1]\times[0,1]`.

Theorem: the most distant corner of the box is :math:`\sqrt2` long in l2, and 2 in l1: what a record
that comes or goes moves. A replaced one moves the diagonal of the box, or as much as one that comes
or goes where that is more and records may be left out. All of it is attained, as the values of two
columns may be any of their ranges.
"""

import math

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Distance, Public, Records, Refused, Sum, SumQuery
from dpcore.errors import need
from dpcore.interval import NoiseDistribution
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.models.figures import Figures, Statistics
from dpcore.rounding import up
from dpcore.shown import in_digits
from dpcore_statistics.bars import cut, ratio
from dpcore_statistics.by_group import ByRanges
from dpcore_statistics.columns import NumberColumn, number_column
from dpcore_statistics.pairs.sampled_ratio import SampledRatio
from dpcore_statistics.statistic import ROOT_TWO


@attrs.frozen(kw_only=True)
class Ratio(ByRanges):
    """The sum of a column divided by the sum of another one, whose values are not negative.

    The interval is Fieller's set for normal noise, and of other noise a box: it holds at every
    size, and says nothing where the sum below the line is not given from 0. Where `interval` is
    `both` or `population`, the sums of squares and products that sampling error needs are
    released next to both sums, which costs noise (`SampledRatio`).

    Total: as every statistic.

    Args:
        column: Of the sum above the line: a declared range.
        over: Of the sum below the line: a declared range that does not go below 0, unless the
            population is asked for. A record without one of both values counts in neither sum.
    """

    column: str
    over: str

    def unsampled(self, public: Public) -> str:
        """Return "": every ratio has an interval about the population."""
        return ""

    def pays_for_population(self, public: Public) -> bool:
        """Return True: more numbers are released than the two sums."""
        return True

    def _sampled(self, public: Public) -> SampledRatio | None:
        """Return the sampled statistic if population intervals are requested; else None."""
        if not self.samples(public):
            return None
        return SampledRatio(
            column=self.column,
            other=self.over,
            where=self.where,
            level=self.level,
            distance=self.distance,
            interval=self.interval,
            cut_at_zero=self.cut_at_zero,
        )

    def _columns(self, public: Public) -> tuple[NumberColumn, NumberColumn]:
        """Return both columns.

        Raises:
            ParameterError: one is no declared range, they are the same, or the second one may have
                values below 0.
        """
        columns = number_column(public.domain, self.column), number_column(public.domain, self.over)
        is_fit = columns[1].column.low >= 0 and self.over != self.column
        need(is_fit, "ratio", "another column, of numbers not below 0", "over", self.over)
        return columns

    def _units(self, public: Public) -> list[float]:
        """Return X and Y, the largest absolute values in the declared ranges."""
        columns = self._columns(public)
        return [max(abs(column.column.low), abs(column.column.high)) for column in columns]

    def query(self, public: Public) -> SumQuery:
        """Return both sums, in units of X and of Y."""
        if (sampled := self._sampled(public)) is not None:
            return sampled.query(public)
        self._columns(public)
        norm = self.norm(public)
        clip = 2.0 if norm is Distance.L1 else ROOT_TWO
        return SumQuery(name="ratio", shape=(2,), distance=norm, sum=Sum(clip=clip))

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """Return the theorem above for the box of both declared ranges."""
        if (sampled := self._sampled(public)) is not None:
            return sampled.moved(query, public)
        columns, longest = self._columns(public), query.sum.clip
        spans = [
            (column.column.high - column.column.low) / unit
            for column, unit in zip(columns, self._units(public), strict=True)
        ]
        diagonal = sum(spans) if query.distance is Distance.L1 else math.hypot(*spans)
        may_be_absent = bool(self.where) or any(column.may_miss for column in columns)
        diameter = up(diagonal, roundings=6)
        return ByRelation(
            add_remove=longest, replace_one=max(diameter, longest) if may_be_absent else diameter
        )

    def rows(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: return (x/X, y/Y), and zeros for a record that does not count."""
        if (sampled := self._sampled(public)) is not None:
            return sampled.rows(query, block, public)
        columns, mask, values = self._columns(public), self.chosen(block, public), []
        for column, unit in zip(columns, self._units(public), strict=True):
            mask = mask & column.present(block)
            # Clipped after the division: rounding may put an end of the range beyond 1.
            values.append(np.clip(column.value(column.scaled(block)) / unit, -1.0, 1.0))
        return np.where(mask[:, None], np.column_stack(values), 0.0)

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """Return one row, in the file's units."""
        if (sampled := self._sampled(public)) is not None:
            return sampled.tables(answer, public)
        top, bottom = (float(number) for number in answer.value)
        above, lowest = (column.column for column in self._columns(public))
        units, noise_distribution = self._units(public), answer.noise_distribution
        # No x is larger than X, and no y smaller than its range says.
        cutoff = units[1] / lowest.low if lowest.low > 0 else math.inf
        ends = ratio(top, bottom, 1.0, noise_distribution, self.miss, cutoff)
        ends = self.cut_sum(ends, above.low, above.high)
        # Below one standard deviation of the noise a sum is not given from 0.
        divisor = max(bottom, 1.0 if noise_distribution is None else noise_distribution.std)
        estimate = cut((top / divisor, top / divisor), -cutoff, cutoff)[0]
        unit = units[0] / units[1]
        return Statistics.of(
            Figures(
                about={"statistic": (f"{self.column} per {self.over}",)},
                estimate=unit * np.array([estimate]),
                low=unit * np.array([ends[0]]),
                high=unit * np.array([ends[1]]),
                level=self.level,
                covers="noise only: where the quotient of the two sums lies, each value clipped to "
                "its declared range; a record without one of them counts in neither sum",
            )
        )

    def expected(self, public: Public, noise_distribution: NoiseDistribution) -> tuple[str, ...]:
        """Return the half-widths of both sums, the same whatever the records."""
        if (sampled := self._sampled(public)) is not None:
            return sampled.expected(public, noise_distribution)
        names, half = (self.column, self.over), noise_distribution.within(self.miss)
        intervals = [
            f"sum of {name} +- {in_digits(unit * half)}"
            for name, unit in zip(names, self._units(public), strict=True)
        ]
        return (f"the quotient of two sums: {intervals[0]}, {intervals[1]}",)
