"""Price a request by claims only: from bounds and noise to a plan with its guarantee.

Where the budget is missed, the part of the request at fault is found, for the error's place.
"""

import itertools
import math
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

import attrs
import numpy as np

from dpcore.accountant import Accountant
from dpcore.bound import Components
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.accounting.methods.renyi import ZcdpAccountant
from dpcore.claims.plan.parts import part_domain
from dpcore.claims.plan.plan import Plan
from dpcore.claims.plan.planned_query import PlannedQuery, compose, failure_over_randomness
from dpcore.claims.plan.request import RELEASE, PublicInput, Request
from dpcore.claims.plan.schedule import Schedule, Scheduled, with_inputs
from dpcore.claims.pricing.bounds_in_force import Bounds
from dpcore.claims.pricing.calibration import calibrate
from dpcore.claims.pricing.release_domains import domain_and_adjacency, plan_evaluation
from dpcore.claims.pricing.statement import publication, statement
from dpcore.domain.domain import Domain
from dpcore.errors import (
    NoClaimError,
    RandomnessWithheldError,
    ReleaseError,
    SpecError,
    below,
    need,
)
from dpcore.guarantee import ReleaseKind
from dpcore.mechanism import Mechanism, is_calibrated
from dpcore.randomness import PublicRandomness, SecretRandomness

if TYPE_CHECKING:
    from dpcore.functions.interactive import Interactive
    from dpcore.functions.learner import FunctionQuery

_WITHHELD = PublicRandomness(None)


@attrs.frozen(kw_only=True, eq=False)
class Bounded:
    """A request whose every query has its bound, and no noise yet.

    Args:
        components: What was looked up for it.
        randomness: The public randomness if a bound had to read them.
        groups: The releases, in groups that are calibrated each by itself.
        kind: What a run publishes.
        gamma: The part of delta that goes to bounds that may fail over the public randomness.
        accountant: Empty; the one that states the guarantee.
    """

    request: Request
    components: Components
    randomness: PublicRandomness | None
    groups: list[list[Scheduled]]
    kind: ReleaseKind
    gamma: float
    accountant: Accountant

    @property
    def releases(self) -> list[Scheduled]:
        """The releases of all groups, in order."""
        return [*itertools.chain(*self.groups)]

    @property
    def queries(self) -> list[list[tuple[int, PlannedQuery]]]:
        """Of every group, each with its proportion of the group, and the number of its release.

        Raises:
            SpecError: a share is 0 in floats next to the others.
        """
        number = itertools.count()
        return [
            [
                (n, planned_query)
                for member, n in zip(group, number, strict=False)
                for planned_query in _weigh_queries(member, n)
            ]
            for group in self.groups
        ]


def require_consistent(request: Request) -> Domain:
    """Refuse a request that contradicts itself; return the domain of the learners' part.

    Raises:
        SpecError: a part does not go with another.
        ParameterError: the number of records does not go with the relation or the hold-out.
    """
    need(
        not request.records.sealed or request.records.on_invalid != "refuse",
        SpecError,
        "a sealed run maps every record into the domain: project",
        "on_invalid",
    )
    _judge_delta(request)
    _require_names(request)
    return part_domain(request.domain, request.adjacency, request.records.holdout)


def find_bounds(request: Request, components: Components) -> Bounded:
    """Find the bound of every query: no noise is sought for a release that no theorem covers.

    Raises:
        NoClaimError: a bound refuses or is refuted, or bounds use up delta.
        SpecError: components do not fit together.
    """
    reads_randomness, bounded_groups = _bound_groups(request, components)
    releases = [*itertools.chain(*bounded_groups)]
    kind = publication(releases, request.evaluation)
    # Bounds that may fail over the randomness take their part of delta; noise is priced at the
    # rest.
    gamma = failure_over_randomness(
        planned_query for entry in releases for planned_query in entry.queries.values()
    )
    _check_over_randomness(gamma, request, reads_randomness)
    return Bounded(
        request=request,
        components=components,
        randomness=reads_randomness,
        groups=bounded_groups,
        kind=kind,
        gamma=gamma,
        accountant=_accountant(request),
    )


def calibrate_plan(bounded: Bounded, inputs: Mapping[str, PublicInput]) -> Plan:
    """Find the least noise that meets the budget, and state the guarantee.

    Args:
        inputs: What the request declares as public, by name.

    Raises:
        NoClaimError: an assumption is not accepted, or no noise meets the budget.
    """
    request, gamma = bounded.request, bounded.gamma
    schedule = _calibrate_groups(bounded, inputs)
    return Plan(
        schedule=schedule,
        guarantee=statement(schedule, bounded.kind, bounded.accountant, gamma, bounded.components),
        # Such a bound needs randomness that no one could choose: every run draws its own.
        randomness=None
        if gamma
        else bounded.randomness or request.randomness or PublicRandomness.draw(),
        components=bounded.components,
    )


def _judge_delta(request: Request) -> None:
    """Warn of a delta so large that publishing some records as they are would meet the claim.

    Anyone who publishes each of n records with a probability of delta is (0, delta)-differentially
    private, and publishes n delta of them.

    Raises:
        SpecError: it is 0.5 or more, and no one says that this is meant.
    """
    delta, records = request.budget.delta, request.domain.at_most
    leak = f"delta = {delta:g} allows that a record is published as it is with that probability"
    need(
        delta < 0.5 or request.accepted.delta,
        SpecError,
        f"{leak}: choose one far below 1/records, or say that it is meant by accept_delta",
        ("budget", "delta"),
    )
    if records is not None and delta * records > 1 and not request.accepted.delta:
        message = f"{leak}, and {records} records are declared: choose one far below 1/{records}"
        warnings.warn(message, UserWarning, stacklevel=4)


def _require_names(request: Request) -> None:
    """Refuse two releases of one name."""
    names = [release.name for release in request.releases]
    # The paid evaluation's answers stand among the others under its own name.
    if len({*names, RELEASE}) < len(names) + 1:
        duplicate = next(i for i, name in enumerate(names) if name in (RELEASE, *names[:i]))
        raise SpecError(
            f"releases need different names, none of them {RELEASE!r}, got {', '.join(names)}",
            f"releases.{duplicate}.name",
        )


def _bound_groups(
    request: Request, components: Components
) -> tuple[PublicRandomness | None, list[list[Scheduled]]]:
    """Return the randomness if a bound had to read them, and uncalibrated releases by group."""
    mu = request.budget.mu

    def evaluate(randomness: PublicRandomness) -> list[list[Scheduled]]:
        bounded_groups: list[list[Scheduled]] = []
        number = itertools.count()
        for group in request.groups:
            total = math.fsum(release.share for release in group)
            # Squares of mu add up, so that a release's part of mu is the root of its share.
            hints = [None if mu is None else mu * math.sqrt(r.share / total) for r in group]
            bounded_groups.append([])
            for release, hint in zip(group, hints, strict=True):
                with below("releases", next(number)):
                    bounds = Bounds(
                        *domain_and_adjacency(request, release),
                        components,
                        request.accepted.reproduce,
                    )
                    bounded_groups[-1].append(bounds.release(release, hint, randomness))
        return bounded_groups

    # First without randomness: a bound that has to read them says so by raising.
    try:
        return None, evaluate(_WITHHELD)
    except RandomnessWithheldError:
        public_randomness = request.randomness or PublicRandomness.draw()
        return public_randomness, evaluate(public_randomness)


def _check_over_randomness(
    gamma: float, request: Request, reads_randomness: PublicRandomness | None
) -> None:
    """Refuse pinned or read randomness where a bound holds with a probability over them."""
    if not gamma:
        return
    # The failure probability is over randomness that are independent of bound and data.
    need(
        request.randomness is None,
        SpecError,
        "a bound holds with a probability over the public randomness: do not pin them",
        "coins.public",
    )
    need(
        reads_randomness is None,
        SpecError,
        "a bound that is a probability over the public randomness may not read them",
    )
    need(
        gamma < request.budget.delta,
        NoClaimError,
        f"the bounds' failure probability {gamma!r} uses up delta={request.budget.delta!r}",
        "budget.delta",
    )


def _accountant(request: Request) -> Accountant:
    """Return the accountant asked for, or the core's own.

    Raises:
        SpecError: it is about another relation.
    """
    accountant = request.accountant or AutoAccountant(request.adjacency)
    need(
        accountant.adjacency == request.adjacency,
        SpecError,
        f"the accountant is about {accountant.adjacency}, the run about {request.adjacency}",
        "accountant",
    )
    return accountant


def _calibrate_groups(bounded: Bounded, inputs: Mapping[str, PublicInput]) -> Schedule:
    """Calibrate every group so that it meets the budget together with its paid evaluation."""
    request, accountant = bounded.request, bounded.accountant
    delta = request.budget.delta_with(bounded.gamma)
    # A target in zCDP is met in zCDP; the run's accountant then states its epsilon.
    goal = accountant if request.budget.rho is None else ZcdpAccountant(request.adjacency)
    releases: list[Scheduled] = []
    evaluations: list[PlannedQuery] = []
    for group, numbered_queries in zip(bounded.groups, bounded.queries, strict=True):
        # Each group meets the budget with its own look; the guarantee composes all groups.
        evaluation = plan_evaluation(request, group)
        queries = [*(planned_query for _, planned_query in numbered_queries), *evaluation]
        try:
            calibrated_queries = iter(calibrate(queries, goal, request.budget.epsilon, delta))
        except NoClaimError as error:
            queries_by_release = {
                n: [*member.queries.values()] for n, member in enumerate(group, start=len(releases))
            }
            error.steps = find_fault(request, queries_by_release, evaluation, goal)
            raise
        for scheduled in group:
            release_queries = {name: next(calibrated_queries) for name in scheduled.queries}
            require_drawable(len(releases), [*release_queries.values()])
            releases.append(attrs.evolve(scheduled, queries=release_queries))
        evaluations += evaluation
    return Schedule(
        request=request, releases=with_inputs(releases, inputs), evaluation=tuple(evaluations)
    )


def _weigh_queries(scheduled: Scheduled, number: int) -> list[PlannedQuery]:
    """Return a release's queries, each weighted relative to all releases of the group.

    Raises:
        SpecError: a share is 0 in floats next to the others.
    """
    queries = [
        attrs.evolve(planned_query, share=planned_query.share * scheduled.release.share)
        for planned_query in scheduled.queries.values()
    ]
    need(
        all(planned_query.share > 0 for planned_query in queries),
        SpecError,
        "a query's part of the budget is below all floats: raise its share",
        ("releases", str(number)),
    )
    return queries


def find_fault(
    request: Request,
    queries: Mapping[int, Sequence[PlannedQuery]],
    evaluation: Sequence[PlannedQuery],
    goal: Accountant,
) -> tuple[str, ...]:
    """Return the path of what exceeds the budget by itself, or cannot be added; else the budget's.

    Args:
        queries: Of a group that could not be calibrated, by the number of their release.
        evaluation: Its paid evaluation.
    """
    # The paid evaluation's noise is fixed. If it alone exceeds the budget, no release can make up
    # for it.
    if evaluation and _exceeds(request, evaluation, goal):
        return ("evaluate", "private", "epsilon")
    for number, release_queries in queries.items():
        # Noise that the spec fixes cannot be calibrated: alone it may already cost too much.
        explicit_queries = [
            planned_query
            for planned_query in release_queries
            if is_calibrated(planned_query.mechanism)
        ]
        if _unpriced(release_queries, goal) or (
            explicit_queries and _exceeds(request, explicit_queries, goal)
        ):
            return ("releases", str(number), "mechanism")
    return ("budget",)


def _exceeds(request: Request, queries: Sequence[PlannedQuery], goal: Accountant) -> bool:
    """Return whether asks whose noise is given cost more than there is."""
    try:
        cost = compose(queries, goal).epsilon(request.budget.delta).upper
    except NoClaimError:
        # At delta = 0 many events have no claim at all: then the budget is at fault, not the query.
        return request.budget.delta > 0
    return cost > request.budget.epsilon


def _unpriced(queries: Sequence[PlannedQuery], goal: Accountant) -> bool:
    """Return whether a query has no price, or one that the accountant cannot add up."""
    try:
        for planned_query in queries:
            goal.compose(
                (
                    planned_query
                    if is_calibrated(planned_query.mechanism)
                    else planned_query.at(1.0)
                ).event()
            )
    except NoClaimError:
        return True
    return False


def require_drawable(number: int, queries: Sequence[PlannedQuery]) -> None:
    """Raise `NoClaimError` where the noise of a release is too wide to be drawn exactly.

    A mechanism of functions is tried on the function 0 at the middle of the domain, with known
    randomness: what it cannot draw there, it could not draw on any records.
    """
    for planned_query in queries:
        try:
            if isinstance(planned_query.mechanism, Mechanism):
                # The plan's sampler is built here, and refuses what it cannot draw exactly.
                _ = planned_query.release
            else:
                # A function's query and mechanism, which are not imported to be priced.
                query, mechanism = (
                    cast("FunctionQuery", planned_query.query),
                    cast("Interactive", planned_query.mechanism),
                )
                noise = SecretRandomness.rehearsal(0).noise(number, query.name, 1)
                oracle = mechanism.open(query.nothing(), query, planned_query.taken, noise)
                oracle.ask(np.zeros((1, query.width)))
        except ReleaseError as error:
            with below("releases", number, "mechanism"):
                raise NoClaimError(f"query {planned_query.query.name!r}: {error.message}") from None
        except Exception:
            return  # a run meets it again, and may be sealed: then it is not given
