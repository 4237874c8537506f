"""Theorem: in l1, one record more or less moves the table by at most 2, a changed label by at most
2, a replaced record by at most 4.

Proof: a record with scaled label |y| <= 1 adds |y| to one sum and 1 to one count. A replaced record
leaves one bin and enters another; a changed label moves one sum by |y - y'| <= 2. All attained.
"""

from typing import ClassVar

import attrs

from acme_bins.histogram import Histogram
from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Adjacency,
    Distance,
    Learner,
    Public,
    Query,
    Refused,
    Sensitivity,
    SensitivityBound,
)
from dpcore.rounding import up

_LABELS = 1 << 22  # roundings of floating-point sums of up to a million labels


@attrs.frozen(kw_only=True)
class HistogramBound(SensitivityBound):
    """The theorem above. No number of records enters, so that it may be private."""

    learner: ClassVar[type[Learner]] = Histogram

    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """By the least relation of the theorem that covers the asked one."""
        for relation, moved in ((ADD_REMOVE, 2.0), (REPLACE_LABEL, 2.0), (REPLACE_ONE, 4.0)):
            if relation.covers(adjacency):
                return Sensitivity(
                    value=up(moved, roundings=_LABELS),
                    distance=Distance.L1,
                    adjacency=relation,
                    source="acme-private-bins, counting",
                )
        return Refused(f"nothing is known for {adjacency}")
