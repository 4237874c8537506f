"""Count: how many records meet a condition."""

from typing import Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, Public, Records, Refused, Sum, SumQuery
from dpcore.checks import one_of
from dpcore.interval import NoiseLaw
from dpcore.learning.bounds.by_relation import ByRelation
from dpcore.learning.models.figures import Figures, Statistics
from dpcore_statistics.bars import around, cut_count
from dpcore_statistics.by_group import ByRanges
from dpcore_statistics.histogram import ONE_CELL_NORMS


@attrs.frozen(kw_only=True)
class Count(ByRanges):
    """The number of records or of persons, or of those that meet a condition.

    Total: as every statistic.

    Args:
        of: What is counted: records, or persons, each of whom counts once if any of their records
            meets the condition. For domains with `people`.
    """

    of: Literal["records", "persons"] = attrs.field(
        default="records", validator=one_of("records", "persons")
    )

    @property
    def counted_unit(self) -> Literal["records", "persons"] | None:
        """What is counted: records, or persons."""
        return self.of

    def query(self, public: Public) -> SumQuery:
        """One query for one integer, exact and not negative."""
        # An exponent of 0 is a unit of 1: integers are not rounded, so nothing is added for that.
        return SumQuery(
            name="count",
            shape=(1,),
            distance=self.norm(public),
            values="integers",
            sum=Sum(clip=1.0, sign="non_negative", exponent=0),
        )

    def planned(self, public: Public) -> SumQuery:
        """The same of all groups, whose counts are disjoint: bounded in both norms."""
        query = super().planned(public)
        return attrs.evolve(query, norms=ONE_CELL_NORMS) if self.by else query

    def moved(self, query: SumQuery, public: Public) -> ByRelation | Refused:
        """1 under add/remove; 1 under replacement with a condition, 0 without where n is public.

        Where a person is the unit n is private, and records that are replaced one by one are steps
        between persons who have fewer and more of them, so that 1 is claimed of them too.
        """
        # A count of all records is public under replacement; `StatisticBound` then refuses it.
        count_is_public = not self.where and public.domain.people is None
        return ByRelation(add_remove=1.0, replace_one=0.0 if count_is_public else 1.0)

    def rows(self, query: SumQuery, block: Records, public: Public) -> NDArray[np.float64]:
        """PRIVATE: 1 where the condition is met."""
        return self.chosen(block, public).astype(np.float64)[:, None]

    def tables(self, answer: Answer, public: Public) -> Statistics:
        """One table of one row: the count with its interval, cut to what is possible."""
        (estimate,) = answer.value
        low, high = cut_count(around(float(estimate), answer.spread, self.miss), public.domain)
        return Statistics.of(
            Figures(
                about={"statistic": (self._label(public),)},
                estimate=np.array([estimate]),
                low=np.array([low]),
                high=np.array([high]),
                level=self.level,
                covers="noise only: where the exact count lies",
            )
        )

    def _label(self, public: Public) -> str:
        """Says what is counted, where it may be records or persons."""
        is_said = self.states_unit and public.domain.people is not None
        return f"count of {self.of}" if is_said else "count"

    def expected(self, public: Public, spread: NoiseLaw) -> tuple[str, ...]:
        """The half-width, the same whatever the records."""
        return (f"count +- {spread.within(self.miss):.4g}",)
