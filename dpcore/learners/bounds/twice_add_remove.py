"""From add/remove to a replacement relation, at twice the sensitivity."""

from typing import Any, ClassVar

import attrs

from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE, Adjacency
from dpcore.bound import Refused, SensitivityBound
from dpcore.learner import AnyLearner, Public
from dpcore.query import Query
from dpcore.rounding import UNIT
from dpcore.sensitivity import Conditional, OverRandomness, Sensitivity


@attrs.frozen(kw_only=True)
class TwiceAddRemove(SensitivityBound):
    """Twice an add/remove bound covers replace-one and every smaller relation.

    Proof: replacing z by z' is removing z and adding z', two steps of the same map, and norms obey
    the triangle inequality. The map must not change with the number of records in between, so that
    the learner is not given the exact number, even where it is public: it sees an upper bound.
    Where the inner bound has an allowance for failure (`covers_fallback`) or for a solver, the
    result has it too.

    Args:
        bound: A bound for add/remove.
    """

    withholds_count: ClassVar[bool] = True

    bound: SensitivityBound
    learner: type[AnyLearner] | None = attrs.field(  # type: ignore[misc]  # the inner bound's, per instance
        init=False, default=attrs.Factory(lambda self: self.bound.learner, takes_self=True)
    )

    def sensitivity(
        self, query: Query, learner: Any, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Twice the inner bound; refuses what the inner bound refuses."""
        if not REPLACE_ONE.covers(adjacency):
            return Refused(f"it converts to replace-one, which does not cover {adjacency}")
        # Each of the two steps, z out and z' in, is an add/remove pair of the same map.
        if isinstance(inner := self.bound.sensitivity(query, learner, public, ADD_REMOVE), Refused):
            return inner
        if not inner.adjacency.covers(ADD_REMOVE):
            return Refused(f"{type(self.bound).__name__} holds for {inner.adjacency}")
        if isinstance(inner.validity, Conditional):
            return Refused(
                "a conditional bound cannot be doubled: the dataset in between need not satisfy "
                "its assumptions"
            )
        # A law states how likely each movement is; that of the sum of two steps does not follow.
        if not isinstance(inner, Sensitivity):
            return Refused(
                "a distribution over orders cannot be doubled: both steps share the order"
            )
        validity = inner.validity
        if isinstance(validity, OverRandomness):  # either of the two steps may fail
            validity = OverRandomness(min(2 * validity.gamma, 1 - UNIT))
        return attrs.evolve(
            inner,
            validity=validity,
            value=2 * inner.value,
            adjacency=REPLACE_ONE,
            source=f"twice add/remove (triangle inequality): {inner.source}",
        )
