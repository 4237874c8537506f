"""Ask: one planned query with its bound and its mechanism."""

import math
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, Protocol, Self, cast

import attrs
from numpy.typing import NDArray

from dpcore.accountant import Accountant
from dpcore.adjacency import Adjacency
from dpcore.claims.sampling import amplify, amplify_sum
from dpcore.domain.domain import Domain
from dpcore.errors import ContractError, NoClaimError, need
from dpcore.event import Event
from dpcore.interval import NoiseDistribution
from dpcore.mechanism import AnyMechanism, Mechanism, Prepared, is_calibrated
from dpcore.query import Query, SumQuery
from dpcore.sensitivity import AnySensitivity, OverRandomness


@attrs.frozen(kw_only=True, eq=False, slots=False)
class PlannedQuery:
    """One planned query with its bound and mechanism; `share` is relative to all others.

    A mechanism whose free field is set is explicit: composed as it is.
    """

    query: Query
    sensitivity: AnySensitivity
    mechanism: AnyMechanism
    share: float

    def __attrs_post_init__(self) -> None:
        need(
            isinstance(self.sensitivity, self.mechanism.needs.sensitivities),
            NoClaimError,
            f"its sensitivity is a distribution over the order of records, which mechanism "
            f"{type(self.mechanism).__name__} cannot price (gaussian can)",
        )
        # Noise scaled in one norm covers no move that is bounded in another.
        need(
            self.sensitivity.distance == self.mechanism.needs.distance,
            ContractError,
            f"{type(self.mechanism).__name__} needs a {self.mechanism.needs.distance} bound, the "
            f"sensitivity is stated in {self.sensitivity.distance}",
        )

    def at(self, scale: float) -> Self:
        """Return the same query with its mechanism's free field set."""
        return attrs.evolve(self, mechanism=self.mechanism.at(scale, self.query, self.taken))

    def event(self) -> Event:
        """Return the cost of one query, amplified by its sampling.

        Raises:
            ContractError: the mechanism is not calibrated.
        """
        return cost(self._calibrated, self.query, self.taken)

    @cached_property
    def release(self) -> Prepared:
        """The calibrated mechanism, with what the plan determines computed once."""
        # Pricing matches the two: only a query of a function has a mechanism that releases nothing.
        return cast(Mechanism, self._calibrated).prepared(self.query, self.taken)

    @cached_property
    def noise_distribution(self) -> NoiseDistribution | None:
        """The law of the calibrated noise on each coordinate, where the mechanism states one."""
        return self._calibrated.noise_distribution(self.query, self.taken)

    def noiseless(self, value: NDArray[Any], query: Query) -> NDArray[Any]:
        """PRIVATE: return what releases of a value spread around."""
        return cast(Mechanism, self._calibrated).noiseless(value, query)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields only, without what is computed from them."""
        return {
            name: value
            for name, value in vars(self).items()
            if name not in ("release", "noise_distribution")
        }

    @property
    def taken(self) -> Any:
        """The sensitivity, of a class that the mechanism takes; with bands, of all answers that
        one sum enters, together."""
        # Everything of a mechanism is about what its noise has to hide: noise, grid, intervals,
        # event.
        sensitivity: Any = self.sensitivity
        moved = self.query.moved(sensitivity.largest)
        return (
            sensitivity
            if moved == sensitivity.largest
            else attrs.evolve(sensitivity, value=moved, range=None, diameter=None)
        )

    @property
    def charged(self) -> int:
        """How many of its events a run pays for: the queries that one record can be in."""
        query_count, sampling = self.query.at_most, self.query.sampling
        return query_count if sampling is None else sampling.charged(query_count)

    @property
    def _calibrated(self) -> AnyMechanism:
        """The mechanism, whose free field is set: without it nothing is priced or released."""
        need(
            is_calibrated(self.mechanism),
            ContractError,
            f"{type(self.mechanism).__name__} is priced once it is calibrated",
        )
        return self.mechanism


class PaidQueries(Protocol):
    """What is asked of a hold-out about released models, and paid for."""

    def queries(
        self, releases: tuple[str, ...], domain: Domain, adjacency: Adjacency, holdout: float
    ) -> tuple[PlannedQuery, ...]:
        """Return every query, with its noise.

        Args:
            releases: Names of those that publish a model.
            domain: Of all records.
            holdout: Proportion of them that is in the hold-out.
        """

    def stated(self, statistics: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, float]]:
        """Return {release: {metric: value}} from released statistics, by query name."""


def cost(mechanism: AnyMechanism, query: Query, sensitivity: Any) -> Event:
    """Return the cost of one query, amplified by its sampling."""
    event = mechanism.event(query, sensitivity)
    if query.sampling is None:
        return event
    # A record that is not drawn is not looked at: that makes one query cheaper.
    if not isinstance(query, SumQuery):
        return amplify(query.sampling, event)
    # Of a sum it is also known what a record moves by being drawn or not: its clip at most. Where
    # the sensitivity is larger, as for a replacement, that second move is priced by itself.
    absent_event, clip = event, query.moved(query.longest(sensitivity.distance))
    if clip < sensitivity.largest:
        absent_event = mechanism.event(query, sensitivity, clip)
    return amplify_sum(query.sampling, event, absent_event)


def compose(queries: Iterable[PlannedQuery], accountant: Accountant) -> Accountant:
    """Return the accountant after every query, each as often as a record may be in it.

    Raises:
        NoClaimError: an event has no claim that this accountant can add up.
    """
    # Every query is charged as often as it may happen, however often it does.
    for planned_query in queries:
        accountant = accountant.compose(planned_query.event(), planned_query.charged)
    return accountant


def failure_over_randomness(queries: Iterable[PlannedQuery]) -> float:
    """Bound the probability, over public randomness, that some query's bound fails: by addition."""
    validities = [planned_query.sensitivity.validity for planned_query in queries]
    # A union bound: it needs no independence of bounds that share their randomness.
    return math.fsum(
        validity.gamma for validity in validities if isinstance(validity, OverRandomness)
    )
