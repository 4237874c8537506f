"""Choice: what mechanisms share that publish which of many scores is good, at a pure epsilon."""

from typing import ClassVar, Self

import attrs

from dpcore.checks import positive
from dpcore.mechanism import Arithmetic, Mechanism, Needs, free
from dpcore.query import Query
from dpcore.sensitivity import Distance, Sensitivity


@attrs.frozen(kw_only=True)
class Choice(Mechanism):
    """1 at the index of one score, 0 elsewhere. Exact arithmetic."""

    needs: ClassVar[Needs] = Needs(distance=Distance.LINF, integers=True, persons=True)
    arithmetic: ClassVar[Arithmetic] = "exact"

    epsilon: float = free(validator=positive)

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> Self:
        """Return this mechanism with epsilon = 1/scale, in nats."""
        return attrs.evolve(self, epsilon=1 / scale)
