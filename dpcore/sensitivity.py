"""Sensitivity: how far a statistic moves between neighbours, and how far that is proved."""

from __future__ import annotations

from typing import Any

import attrs

from dpcore.adjacency import Adjacency
from dpcore.checks import fraction, non_negative, positive
from dpcore.distance import Distance
from dpcore.errors import NoClaimError, ParameterError
from dpcore.rounding import up
from dpcore.sampling.hit_law import HitLaw


@attrs.frozen
class WorstCase:
    """Proved for every pair of neighbours in the domain."""


@attrs.frozen
class OverCoins:
    """Holds with probability at least 1 - gamma over the public coins, whatever the pair.

    Such a bound may not read the coins; gamma is taken out of delta, once for every draw.
    """

    gamma: float = attrs.field(validator=fraction)


@attrs.frozen
class Conditional:
    """Proved only for pairs that both satisfy assumptions, which no run ever tests on records.

    Args:
        assumptions: Identifier of each assumption (a spec accepts it by this name), with its text.
    """

    assumptions: tuple[tuple[str, str], ...]


@attrs.frozen
class Refuted:
    """Known to be false: released only as a reproduction, marked not private."""

    reason: str


Validity = WorstCase | OverCoins | Conditional | Refuted


def _bound(instance: Any, attribute: Any, value: Any) -> None:
    if not isinstance(value, HitLaw):
        positive(instance, attribute, value)


@attrs.frozen(kw_only=True)
class Sensitivity:
    """A bound on the movement of one statistic between neighbours.

    Args:
        value: The bound, finite and > 0, rounded up, for the exact statistic; or the law of it over
            the order that the query's sampling draws.
        distance: The norm it is stated in.
        adjacency: The relation it holds for (and every smaller one).
        source: Theorem, precise enough to check.
        validity: For which pairs and coins it holds.
        solver_error: How far the computed statistic may lie from the exact one, in the same
            norm; both neighbours may err, so that twice this is added to `value`.
        covers_fallback: Whether `value` also bounds the distance of every output from 0, so that
            0 may stand for a failed statistic.
    """

    value: float | HitLaw = attrs.field(validator=_bound)
    distance: Distance = attrs.field(converter=Distance)
    adjacency: Adjacency
    source: str
    validity: Validity = attrs.field(factory=WorstCase)
    solver_error: float = attrs.field(default=0.0, validator=non_negative)
    covers_fallback: bool = False

    def __attrs_post_init__(self) -> None:
        if self.covers_fallback and isinstance(self.value, HitLaw):
            raise ParameterError(
                "Sensitivity",
                "a number as value: under an order without the record nothing may move, not even "
                "to 0",
                "covers_fallback",
                True,
            )

    @property
    def unit(self) -> float:
        """What a mechanism calibrates to: `value + 2 solver_error`, rounded up.

        Raises:
            NoClaimError: the bound is a law, of which no single number is a bound. So a mechanism
                that knows nothing of laws refuses them.
        """
        if isinstance(self.value, HitLaw):
            raise NoClaimError(
                "the sensitivity is a law over a secret order, which this mechanism cannot price; "
                "gaussian can"
            )
        return self.reach

    @property
    def reach(self) -> float:
        """The largest movement stated: `unit`, or a law's largest atom. No bound by itself."""
        value = self.value
        return self._with_error(value.largest if isinstance(value, HitLaw) else value)

    @property
    def law(self) -> HitLaw | None:
        """The law with `2 solver_error` added to every atom; None where `value` is a number."""
        if not isinstance(self.value, HitLaw):
            return None
        return self.value.shifted(2 * self.solver_error)

    def _with_error(self, value: float) -> float:
        if self.solver_error == 0.0:
            return value
        return up(value + 2 * self.solver_error, roundings=1)
