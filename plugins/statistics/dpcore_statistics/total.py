"""Total: the sum of one column."""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Public, Records, Refused, Sum, SumQuery
from dpcore.interval import NoiseLaw
from dpcore.learning.bounds.by_relation import ByRelation
from dpcore.learning.models.figures import Figures, Statistics
from dpcore.notebook_view import in_digits
from dpcore_statistics.bars import around
from dpcore_statistics.by_group import ByRanges
from dpcore_statistics.columns import NumberColumn, number_column

CLIPPED = (
    "noise only: where the sum of the values lies, each clipped to its declared range; missing "
    "values count as none"
)


@attrs.frozen(kw_only=True)
class Total(ByRanges):
    r"""The sum of a column's values.

    A record contributes x/M with :math:`M=\max(|low|,|high|)`: the statistic is in units of M.
    Centring the values and adding back the centre times a noisy count would cost the same: its
    least standard deviation is (|c| + R/2)/mu = M/mu.

    Total: as every statistic.

    Args:
        column: A declared range.
    """

    column: str

    def _unit(self, column: NumberColumn) -> float:
        # The largest |x|: with it as the unit a contribution is at most 1 long.
        return max(abs(column.column.low), abs(column.column.high))

    def query(self, public: Public) -> SumQuery:
        """One number, in units of M."""
        number_column(public.domain, self.column)
        return SumQuery(name="sum", shape=(1,), distance=self.norm(public), sum=Sum(clip=1.0))

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """1 under add/remove; (high - low)/M under replacement, and at least 1 where a record may
        be left out."""
        column = number_column(public.domain, self.column)
        spans = (column.column.high - column.column.low) / self._unit(column)
        # A record that starts or ceases to count moves the sum as one that comes or goes.
        may_be_absent = bool(self.where) or column.may_miss
        return ByRelation(add_remove=1.0, replace_one=max(spans, 1.0) if may_be_absent else spans)

    def rows(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: x/M, and 0 where the condition is not met or the value is missing."""
        column = number_column(public.domain, self.column)
        mask = self.chosen(block, public) & column.present(block)
        unit = self._unit(column)
        # Clipped after the division: rounding may put a value at the end of the range beyond 1.
        values = np.clip(column.value(column.scaled(block)) / unit, -1.0, 1.0)
        return np.where(mask, values, 0.0)[:, None]

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """One row, in the file's units."""
        unit = self._unit(number_column(public.domain, self.column))
        (estimate,) = answer.value
        low, high = around(float(estimate), answer.spread, self.miss)
        return Statistics.of(
            Figures(
                about={"statistic": (f"sum of {self.column}",)},
                estimate=unit * np.array([estimate]),
                low=unit * np.array([low]),
                high=unit * np.array([high]),
                level=self.level,
                covers=CLIPPED,
            )
        )

    def expected(self, public: Public, spread: NoiseLaw) -> tuple[str, ...]:
        """The half-width, the same whatever the records."""
        unit = self._unit(number_column(public.domain, self.column))
        return (f"sum of {self.column} +- {in_digits(unit * spread.within(self.miss))}",)
