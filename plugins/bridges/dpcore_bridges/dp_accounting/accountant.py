"""dpcore's accountants behind dp-accounting's interface, for whatever speaks its events."""

import math
from typing import Any

from dp_accounting import DpEvent, NeighboringRelation, PrivacyAccountant

from dpcore.accountant import Accountant
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.errors import NoClaimError, need
from dpcore_bridges.dp_accounting.reading import (
    RefusedDpEventError,
    from_dp_event,
    not_private,
)
from dpcore_bridges.dp_accounting.relations import adjacency_of

_LEAST = 1e-30  # delta: below it, get_delta looks no further
_STEP = 1e-6  # in the logarithm of delta
_CUTOFF = 1e9  # nats: represents an infinite target


class DpcoreAccountant(PrivacyAccountant):
    """Reads DpEvents, composes them with a dpcore accountant, quotes certified upper ends.

    Unlike dpcore's own accountants it changes in `compose`, as the interface asks; an event that
    is refused leaves nothing behind.

    Args:
        neighboring_relation: `ADD_OR_REMOVE_ONE` or `REPLACE_ONE`.
        accountant: For that relation, empty or with what is spent already; `auto` if None.

    Raises:
        AdjacencyError: the relation has no counterpart.
        ParameterError: `accountant` is about another relation.
    """

    def __init__(
        self,
        neighboring_relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE,
        accountant: Accountant | None = None,
    ) -> None:
        adjacency = adjacency_of(neighboring_relation)
        super().__init__(neighboring_relation)
        inner = AutoAccountant(adjacency) if accountant is None else accountant
        need(
            inner.adjacency == adjacency,
            "DpcoreAccountant",
            f"an accountant for {adjacency}",
            "accountant",
            inner,
        )
        self._accountant = inner
        self._exposed = False

    def _maybe_compose(self, event: DpEvent, count: int, do_compose: bool) -> Any:
        """Compose, or (`do_compose` False) only try to: None, or what is at fault, and why."""
        # accountants are immutable: what is refused half-way leaves this one as it was
        composed, exposed = self._accountant, self._exposed
        nothing = not_private(composed.adjacency)
        try:
            for part, times in from_dp_event(event, self.neighboring_relation):
                if part == nothing:
                    exposed = exposed or count > 0
                else:
                    composed = composed.compose(part, times * (count if do_compose else 1))
        except RefusedDpEventError as refusal:
            return self.CompositionErrorDetails(refusal.dp_event, str(refusal))
        except NoClaimError as refusal:
            return self.CompositionErrorDetails(event, str(refusal))
        if do_compose:
            self._accountant, self._exposed = composed, exposed
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """Return the upper end at `target_delta`, in nats; infinity where nothing finite can be
        said.

        Raises:
            ValueError: `target_delta` is outside [0, 1].
        """
        need(
            0 <= target_delta <= 1,
            ValueError,
            f"target_delta must be in [0, 1], got {target_delta!r}",
        )
        if self._exposed:
            return math.inf
        if target_delta == 1:
            return 0.0
        try:
            return self._accountant.epsilon(target_delta).upper
        except NoClaimError:
            return math.inf

    def get_delta(self, target_epsilon: float) -> float:
        """Return a delta at which the upper end is at most `target_epsilon`: the least, to a part
        in 10^6.

        No less than 1e-30, unless it is 0. Found by asking for epsilons, so that it holds exactly
        when `get_epsilon` of it does.

        Raises:
            ValueError: `target_epsilon` is not >= 0.
        """
        need(
            target_epsilon >= 0, ValueError, f"target_epsilon must be >= 0, got {target_epsilon!r}"
        )
        # without noise nothing is claimed: delta is 1 at every epsilon
        if self._exposed:
            return 1.0
        if self.get_epsilon(0.0) <= min(target_epsilon, _CUTOFF):
            return 0.0

        # epsilon falls in delta, so bisection finds the least delta; `above` suffices throughout
        def suffices(log_delta: float) -> bool:
            return self.get_epsilon(math.exp(log_delta)) <= min(target_epsilon, _CUTOFF)

        below, above = math.log(_LEAST), 0.0
        if suffices(below):
            return _LEAST
        while above - below > _STEP:
            middle = 0.5 * (below + above)
            below, above = (below, middle) if suffices(middle) else (middle, above)
        return math.exp(above)
