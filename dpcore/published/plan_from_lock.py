"""`plan_from_lock`: rebuild a plan as its lock states it, asking no bound and seeking no noise.

Sensitivities, noise and epsilon are the lock's. What costs nothing is derived anew: the queries,
the mechanisms' other fields, the shares and every sentence of the guarantee. So a lock that another
version would price differently is still the plan that its run kept; `load_run` composes what the
locked terms cost, and whether they are right is what pricing the spec says.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, cast

import attrs

from dpcore.adjacency import Adjacency
from dpcore.bound import Components, Refused, SensitivityBound
from dpcore.claims.plan.cost_statement import Limits
from dpcore.claims.plan.parts import part_domain
from dpcore.claims.plan.plan import Plan
from dpcore.claims.plan.planned_query import PlannedQuery, failure_over_randomness
from dpcore.claims.plan.request import Release, Request
from dpcore.claims.plan.schedule import Schedule, Scheduled, with_inputs
from dpcore.claims.pricing.bounds_in_force import Bounds
from dpcore.claims.pricing.release_domains import domain_and_adjacency, plan_evaluation
from dpcore.claims.pricing.statement import publication, state_guarantee
from dpcore.errors import ReplayError, map_below, need
from dpcore.learner import AnyLearner, Public
from dpcore.mechanism import AnyMechanism, free_field, is_calibrated
from dpcore.query import Query
from dpcore.randomness import PublicRandomness
from dpcore.registry.distributions import AdmittedComponents
from dpcore.registry.registry import Registry
from dpcore.resources.cost_estimate import require_room, with_queries
from dpcore.sensitivity import AnySensitivity
from dpcore.sources.public_inputs import read_inputs


@attrs.frozen(kw_only=True)
class LockedQuery:
    """What a lock says of one query.

    Args:
        noise: The value of the mechanism's free field.
    """

    sensitivity: AnySensitivity
    noise: Any


@attrs.frozen(kw_only=True)
class LockedRelease:
    """What a lock says of one release.

    Args:
        mu: The hint that its learner planned with.
        withholds_count: Whether its learner must not know the exact number of records.
        queries: By query name.
    """

    mu: float | None
    withholds_count: bool
    queries: Mapping[str, LockedQuery]


@attrs.frozen(kw_only=True)
class Terms:
    """What a lock says that pricing would have to find out.

    Args:
        epsilon: Of the whole run; infinite where nothing is guaranteed.
        accountant: Which composition stated it.
        distributions: On whose code it rests: versions by name.
        releases: In the order of the request's.
        evaluation: Of the paid evaluation, by query name.
    """

    epsilon: float
    accountant: str
    distributions: Mapping[str, str]
    releases: Sequence[LockedRelease]
    evaluation: Mapping[str, LockedQuery]


@attrs.frozen(kw_only=True, eq=False)
class LockedBound(SensitivityBound):
    """In place of a theorem: what a lock says of a release's queries."""

    queries: Mapping[str, LockedQuery]

    def is_about(self, learner: AnyLearner) -> bool:
        """Return True: the lock is about the very learner that its spec names."""
        return True

    def sensitivity(
        self, query: Query, learner: Any, public: Public, adjacency: Adjacency
    ) -> AnySensitivity | Refused:
        """Return the sensitivity that the lock states for this query, or a refusal."""
        locked = self.queries.get(query.name)
        return Refused("the lock says nothing of it") if locked is None else locked.sensitivity


def plan_from_terms(
    request: Request, terms: Terms, randomness: PublicRandomness, registry: Registry, limits: Limits
) -> Plan:
    """Return the plan of a request by the terms of its lock.

    Args:
        randomness: The lock's.
        registry: Where components are looked up.
        limits: What this machine may do.

    Raises:
        ReplayError: the lock does not fit the request, or states more than the budget.
        DpcoreError: components do not fit together, or the machine has not enough room.
    """
    part = part_domain(request.domain, request.adjacency, request.records.holdout)
    # Room is this machine's, so that it is asked for anew; the price in privacy is not.
    require_room(request, part, limits)
    need(
        len(terms.releases) == len(request.releases),
        ReplayError,
        "the lock has another number of releases than its spec",
    )
    pairs = enumerate(zip(request.releases, terms.releases, strict=True))
    components = AdmittedComponents(registry)
    schedule_pair = partial(_schedule_release, request, randomness, components)
    releases = [*map_below(schedule_pair, pairs, "releases").values()]
    evaluation = _evaluation(request, releases, terms)
    with_all = with_inputs(releases, read_inputs(request))
    schedule = Schedule(request=request, releases=with_all, evaluation=evaluation)
    # Added up from the locked bounds themselves: a lock cannot leave a failure out.
    gamma = failure_over_randomness(schedule.queries)
    _require_budget(request, terms, gamma)
    return Plan(
        schedule=schedule,
        guarantee=state_guarantee(
            schedule,
            publication(releases, request.evaluation),
            gamma,
            epsilon=terms.epsilon,
            accountant=terms.accountant,
            distributions=terms.distributions,
        ),
        randomness=None if gamma else randomness,
        components=components,
        resources=with_queries(releases, request, part, limits),
        limits=limits,
    )


def _schedule_release(
    request: Request,
    randomness: PublicRandomness,
    components: Components,
    pair: tuple[Release, LockedRelease],
) -> Scheduled:
    """Schedule one release by the lock's sensitivities and noise."""
    release, locked = pair
    part, adjacency = domain_and_adjacency(request, release)
    if locked.withholds_count:
        part = attrs.evolve(part, exact=None, limit=part.at_most)
    # With `locked` a bound speaks of persons already, and is not asked about one record again.
    bounds = Bounds(part, adjacency, components, request.accepted.reproduce, locked=True)
    locked_release = attrs.evolve(release, bound=LockedBound(queries=locked.queries))
    scheduled = bounds.release(locked_release, locked.mu, randomness)
    # Only noise comes from the lock; queries, shares and mechanisms are those of its spec.
    return attrs.evolve(
        scheduled,
        queries={
            name: attrs.evolve(
                planned_query,
                # The lock says the noise, unless the spec has set it.
                mechanism=planned_query.mechanism
                if is_calibrated(planned_query.mechanism)
                else _set_noise(planned_query.mechanism, locked.queries[name].noise),
                share=planned_query.share * release.share,
            )
            for name, planned_query in scheduled.queries.items()
        },
    )


def _set_noise(mechanism: AnyMechanism, noise: Any) -> AnyMechanism:
    """Return the mechanism with its free field set."""
    fields = {free_field(type(mechanism)): noise}
    return cast(AnyMechanism, attrs.evolve(cast(Any, mechanism), **fields))


def _evaluation(
    request: Request, releases: Sequence[Scheduled], terms: Terms
) -> tuple[PlannedQuery, ...]:
    """Return the hold-out queries, group by group, by the terms of the lock."""
    # Planned as in pricing; a lock that says nothing of one of these queries is refused.
    groups = groupby(releases, lambda scheduled: scheduled.release.group)
    return tuple(
        _apply_lock(planned_query, terms)
        for _, group in groups
        for planned_query in plan_evaluation(request, [*group])
    )


def _apply_lock(planned_query: PlannedQuery, terms: Terms) -> PlannedQuery:
    locked = terms.evaluation.get(planned_query.query.name)
    if locked is None:
        raise ReplayError(f"the lock says nothing of {planned_query.query.name!r}")
    mechanism = _set_noise(planned_query.mechanism, locked.noise)
    return attrs.evolve(planned_query, sensitivity=locked.sensitivity, mechanism=mechanism)


def _require_budget(request: Request, terms: Terms, gamma: float) -> None:
    """Raise `ReplayError` where the lock states more than its spec allows."""
    budget = request.budget
    need(
        not gamma or gamma < budget.delta,
        ReplayError,
        "the lock's failure probability uses up its spec's delta",
    )
    # Of separate groups each meets the budget.
    need(
        request.accepted.reproduce
        or len(request.groups) > 1
        or 0 <= terms.epsilon <= budget.epsilon,
        ReplayError,
        f"the lock states epsilon={terms.epsilon!r}, its spec allows {budget.epsilon!r}",
    )
