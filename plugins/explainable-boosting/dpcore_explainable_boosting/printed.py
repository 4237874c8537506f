r"""DP-EBM for numbers as its public code has it, refuted: for `dpcore reproduce`.

The code adds noise for :math:`R=\max y-\min y` to every sum of residuals. Scores start at 0 and not
within the range, so that the first sums are of labels: one in [9000, 10000] moves a sum by 10,000,
where 1,000 is charged. Nothing clips later residuals either, and noise carries scores out of any
range. (interpret-core 0.7.8, where a thread on this was closed as no bug.)
"""

from typing import ClassVar

import attrs

from dpcore import (
    ADD_REMOVE,
    Adjacency,
    Distance,
    Domain,
    Learner,
    Public,
    Query,
    Range,
    Refused,
    Sensitivity,
    SensitivityBound,
    SumQuery,
)
from dpcore.checks import positive, positive_integer
from dpcore.errors import UnfitTargetError, need
from dpcore.sensitivity import Refuted
from dpcore_explainable_boosting.boosting import CyclicBoosting

WRONG = (
    "noise is for the width of the declared range, while sums are of residuals from 0 that nothing "
    "clips: a label of 10,000 in [9000, 10000] moves one by ten times as much; take "
    "explainable_boosting.cyclic"
)
_CUTOFF = 1000.0


@attrs.frozen(kw_only=True)
class Printed(CyclicBoosting):
    """DP-EBM for numbers as published: residuals from 0, in effect not clipped.

    One thing is not as published: a fair proportion of the records is of their released number,
    where the code reads the exact one.

    Args:
        rounds: How often each column is updated.
        rate: What part of a leaf's mean residual an update adds.
        bins: Of a column, about.
        leaves: Of an update.
    """

    rounds: int = attrs.field(default=300, validator=positive_integer)
    rate: float = attrs.field(default=0.01, validator=positive)

    bounds: ClassVar[tuple[str, ...]] = ("explainable_boosting.printed",)  # refuted

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return the cells of all columns once, and the leaves of one column for each update.

        Raises:
            UnfitTargetError: the label is a class, of which the published noise is enough.
        """
        need(
            not public.domain.classes,
            UnfitTargetError,
            "of classes the published noise is sound: take explainable_boosting.cyclic",
        )
        return super().queries(public)

    def weight_column(self) -> None:
        """None: the published noise is for the largest weight in the data, which is no one's to
        read."""

    def unit(self, domain: Domain) -> float:
        """1: residuals are counted in the range R itself."""
        return 1.0

    def longest(self) -> float:
        """Return a thousand ranges, which represent no clip: integers need an end."""
        return _CUTOFF

    def first_score(self, domain: Domain) -> float:
        """0 in the file's units, which may be far from the declared range."""
        assert isinstance(domain.labels, Range), "numbers only"
        return -domain.labels.centre / (2 * domain.label_bound)


@attrs.frozen(kw_only=True)
class PrintedBound(SensitivityBound):
    """One R for a record that comes or goes, as the public code has it; refuted."""

    learner: ClassVar[type[Learner]] = Printed

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """1, as an update is in units of R; of the counts what they do move by."""
        if not ADD_REMOVE.covers(adjacency):
            return Refused(
                "the published noise is for a record that comes or goes; "
                "take explainable_boosting.cyclic"
            )
        assert isinstance(query, SumQuery), "all queries are sums"
        return Sensitivity(
            value=query.sum.clip if query.name == "counts" else 1.0,
            distance=Distance.L2,
            adjacency=ADD_REMOVE,
            source="Nori et al. (2021), the public code of DP-EBM",
            validity=Refuted(WRONG),
        )
