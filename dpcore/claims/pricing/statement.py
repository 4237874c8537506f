"""Statement: the guarantee that a calibrated schedule is entitled to."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dpcore.accountant import Accountant
from dpcore.bound import Components
from dpcore.claims.accounting.budget import PrivacyBudget
from dpcore.claims.plan.planned_query import PaidQueries, PlannedQuery, compose
from dpcore.claims.plan.request import RELEASE, Request
from dpcore.claims.plan.schedule import Schedule, Scheduled
from dpcore.domain.domain import Domain
from dpcore.errors import NoClaimError, ParameterError, SpecError, near, need
from dpcore.guarantee import (
    NO_FAILURE,
    Assumption,
    Basis,
    Guarantee,
    Noise,
    Provenance,
    QueryGuarantee,
    ReleaseKind,
    Statistic,
)
from dpcore.mechanism import AnyMechanism
from dpcore.query import SumQuery
from dpcore.sensitivity import Conditional, Refuted

_WITH_STATISTICS = {
    ReleaseKind.PARAMETERS: ReleaseKind.PARAMETERS_AND_STATISTICS,
    ReleaseKind.PREDICTIONS: ReleaseKind.STATISTICS_AND_PREDICTIONS,
    ReleaseKind.PARAMETERS_AND_PREDICTIONS: ReleaseKind.ALL,
}
_WITHOUT_QUESTIONS = (
    ReleaseKind.PARAMETERS,
    ReleaseKind.STATISTICS,
    ReleaseKind.PARAMETERS_AND_STATISTICS,
)


def statement(
    schedule: Schedule,
    kind: ReleaseKind,
    accountant: Accountant,
    gamma: float,
    components: Components,
) -> Guarantee:
    """State the guarantee of a run of a schedule.

    Args:
        kind: What it publishes.
        accountant: Empty, for the run's relation.
        gamma: The part of delta that goes to the public randomness.
        components: What the schedule was made of.

    Raises:
        NoClaimError: an assumption is not accepted, or the run is sealed and may fail.
        SpecError: a reproduction of what is neither refuted nor conditional.
    """
    delta = schedule.request.budget.delta_with(gamma)
    # Epsilon is stated at what delta has left next to the randomness; their part is a union bound.
    composed = compose(schedule.queries, accountant)
    return state_guarantee(
        schedule,
        kind,
        gamma,
        epsilon=composed.epsilon(delta).upper,
        accountant=composed.explain(delta) + _target(schedule.request.budget),
        distributions=components.distributions(_components(schedule, accountant)),
    )


def state_guarantee(
    schedule: Schedule,
    kind: ReleaseKind,
    gamma: float,
    *,
    epsilon: float,
    accountant: str,
    distributions: Mapping[str, str],
) -> Guarantee:
    """State a run's guarantee at an epsilon that is already known: no event is composed.

    Args:
        epsilon: The upper end, at what is left of delta next to gamma.
        accountant: Which composition gave it.
        distributions: On whose code it rests: versions by name.
    """
    request, planned_queries = schedule.request, schedule.queries
    # A reproduction has figures and no guarantee.
    voided = _explain_reproduction(planned_queries) if request.accepted.reproduce else None
    return Guarantee(
        epsilon=epsilon,
        delta=request.budget.delta,
        adjacency=request.adjacency,
        release=kind,
        basis=Basis(
            assumptions=() if request.accepted.reproduce else _assumptions(schedule),
            # All that the theorems take for granted: of data, machine, bounds and questions.
            premises=(
                *_premises(request.domain, request.records.on_invalid),
                *request.accepted.premises,
                *_room(request),
                *dict.fromkeys(
                    text
                    for planned_query in planned_queries
                    for text in planned_query.sensitivity.premises
                ),
                *_questions(kind),
                *dict.fromkeys(text for entry in schedule.releases for text in entry.premises),
            ),
            accountant=accountant,
            sources=_sources(planned_queries, gamma),
            queries=tuple(_query_guarantees(schedule)),
        ),
        provenance=Provenance(distributions=distributions, voided=voided),
    )


def _assumptions(schedule: Schedule) -> tuple[Assumption, ...]:
    """Return the assumptions of the claim, each accepted by name.

    Raises:
        NoClaimError: an assumption is not accepted, or the run is sealed and may fail.
        ParameterError: something is accepted that nothing needs.
    """
    request = schedule.request
    assumptions = {
        name: Assumption(name, text)
        for planned_query in schedule.queries
        if isinstance(planned_query.sensitivity.validity, Conditional)
        for name, text in planned_query.sensitivity.validity.assumptions
    }
    # A learner that may fail says by failing. That it does not is an assumption like any other.
    if not all(release.learner.total for release in request.releases):
        if request.records.sealed:
            raise NoClaimError(
                "a sealed run refuses a learner that is not total: it may fail",
                f"releases.{_find_resting(schedule, NO_FAILURE.name)}.learner",
            )
        assumptions[NO_FAILURE.name] = NO_FAILURE
    # What is accepted in vain would mislead anyone who reads the spec.
    for number, name in enumerate(request.accepted.assumptions):
        if name not in assumptions:
            listed = " and ".join(sorted(assumptions)) or "no assumptions"
            raise ParameterError(
                "this plan", listed, "accept_assumptions", name, "accept_assumptions",
                message=f"this plan needs {listed}; remove {name!r}{near(name, assumptions)}",
                key=str(number),
            )  # fmt: skip
    # Each is accepted by name: no one agrees to what the spec does not spell out.
    for name, assumption in sorted(assumptions.items()):
        if name not in request.accepted.assumptions:
            raise NoClaimError(
                f"the claim rests on the assumption {name!r} ({assumption.text}); to accept it, "
                f"list it under accept_assumptions",
                f"releases.{_find_resting(schedule, name)}.learner",
            )
    return tuple(assumptions[name] for name in sorted(assumptions))


def _find_resting(schedule: Schedule, name: str) -> int:
    """Return the number of the first release whose claim rests on an assumption."""
    for number, scheduled in enumerate(schedule.releases):
        validities = (
            planned_query.sensitivity.validity for planned_query in scheduled.queries.values()
        )
        names = {n for v in validities if isinstance(v, Conditional) for n, _ in v.assumptions}
        if name in names or (name == NO_FAILURE.name and not scheduled.learner.total):
            return number
    return 0


def publication(releases: Iterable[Scheduled], evaluation: PaidQueries | None) -> ReleaseKind:
    """Return the kind of publication of a run.

    Raises:
        SpecError: some functions are asked and others are not, or a paid evaluation needs a
            function.
    """
    kinds = [scheduled.publishes for scheduled in releases]
    model_kinds = {*kinds} - {ReleaseKind.STATISTICS}
    # Parameters stay when a run ends and an oracle does not: one run cannot publish both.
    if ReleaseKind.FUNCTION in model_kinds and len({*kinds}) > 1:
        path = f"releases.{kinds.index(ReleaseKind.FUNCTION)}.predictions_at"
        need(
            ReleaseKind.PREDICTIONS not in model_kinds,
            SpecError,
            "functions with and without predictions_at need runs of their own",
            path,
        )
        raise SpecError(
            "a function next to parameters needs predictions_at: its oracle ends with the run", path
        )
    lack = (
        "a function release publishes answers only; the operator's own evaluation works"
        if model_kinds
        else "only statistics are published"
    )
    need(
        evaluation is None or model_kinds == {ReleaseKind.PARAMETERS},
        SpecError,
        f"a paid evaluation evaluates published models, and {lack}",
        "evaluate.private",
    )
    kind, *other_kinds = model_kinds or {ReleaseKind.STATISTICS}
    kind = ReleaseKind.PARAMETERS_AND_PREDICTIONS if other_kinds else kind
    return _WITH_STATISTICS.get(kind, kind) if ReleaseKind.STATISTICS in kinds else kind


def _explain_reproduction(queries: Sequence[PlannedQuery]) -> str:
    """Explain why a reproduction is not private.

    Raises:
        SpecError: nothing in it is refuted or conditional.
    """
    reasons = []
    for planned_query in queries:
        validity = planned_query.sensitivity.validity
        if isinstance(validity, Refuted):
            reasons.append(f"refuted: {validity.reason}")
        elif isinstance(validity, Conditional):
            reasons += [f"rests on {name}: {text}" for name, text in validity.assumptions]
    need(reasons, SpecError, "nothing here is refuted or conditional: run it instead", "releases.0")
    return "a reproduction as printed; " + "; ".join(dict.fromkeys(reasons))


def _target(budget: PrivacyBudget) -> str:
    return "" if budget.rho is None else f"; calibrated to {budget.rho!r}-zCDP"


def _premises(domain: Domain, on_invalid: str) -> tuple[str, ...]:
    derivations = {
        name: f", which is {column.describe()}" for name, column in domain.derived.items()
    }
    rules = ", ".join(
        f"{name}: {column.describe()}{derivations.get(name, '')}"
        for name, column in domain.read.items()
    )
    conditions = [
        f"{name}: {condition.describe(domain.rules[name])}"
        for name, condition in domain.only.items()
    ]
    only = (
        [f"rows count only with {', '.join(conditions)}; others are left out"] if conditions else []
    )
    # Bounds hold for records in the domain only: the premise says how they got there.
    fits = (
        f"every record {'that counts ' if conditions else ''}fits the declared columns ({rules})"
        if on_invalid == "refuse"
        else f"the declared columns ({rules}), into which every record is mapped"
    )
    unit, qualifier = (
        ("one person is at most one record", "")
        if domain.people is None
        else (domain.people.premise, " that are used")
    )
    rows = "rows, counted or left out" if conditions else "records"
    most = [] if domain.limit is None else [f"there are at most {domain.limit} {rows}{qualifier}"]
    count = most if domain.exact is None else [f"there are exactly {domain.exact} {rows}"]
    return (fits, *only, *count, unit)


def _room(request: Request) -> tuple[str, ...]:
    """State the premise that a sealed run never fails for want of room.

    Such a failure would reveal the number of records.
    """
    premise = "memory, disk and time suffice for every admissible number of records"
    return (premise,) if request.records.sealed and request.domain.exact is None else ()


def _questions(kind: ReleaseKind) -> tuple[str, ...]:
    """State the premise about the choice of questions, if the run publishes answers."""
    premise = "questions are chosen without the records, though maybe from earlier answers"
    return () if kind in _WITHOUT_QUESTIONS else (premise,)


def _components(schedule: Schedule, accountant: Accountant) -> Iterable[Any]:
    """Yield every component on which a claim rests."""
    return (
        *(
            (
                item.learner,
                item.bound,
                *(planned_query.mechanism for planned_query in item.queries.values()),
            )
            for item in schedule.releases
        ),
        accountant,
        schedule.request.evaluation,
    )


def _query_guarantees(schedule: Schedule) -> Iterator[QueryGuarantee]:
    """Yield what holds of each query's arithmetic, in the order of the schedule's asks."""
    groups = [(item.name, (*item.queries.values(),), item.premises) for item in schedule.releases]
    # A paid evaluation is about all models, so that it rests on what any of them rests on.
    of_all = tuple(dict.fromkeys(text for _, _, premises in groups for text in premises))
    groups.append((RELEASE, schedule.evaluation, of_all))
    for release, planned_query, premises in (
        (name, planned_query, p) for name, queries, p in groups for planned_query in queries
    ):
        error, is_sum = (
            planned_query.sensitivity.solver_error,
            isinstance(planned_query.query, SumQuery),
        )
        statistic = Statistic.ALLOWANCE if error else Statistic.COMPUTED
        # A mechanism that takes no integers gets an exact sum rounded to floats, and no bound knows
        # how far.
        is_exact = planned_query.mechanism.arithmetic == "exact" and (
            planned_query.mechanism.needs.integers or not is_sum
        )
        exact_noise = Noise.CHOICE if _is_choice(planned_query.mechanism) else Noise.GRID
        yield QueryGuarantee(
            release=release,
            query=planned_query.query.name,
            noise=exact_noise if is_exact else Noise.FLOATS,
            statistic=Statistic.SUM if is_sum else statistic,
            allowance=error,
            premises=premises,
        )


def _is_choice(mechanism: AnyMechanism) -> bool:
    """Return whether the mechanism publishes which of several values it chose."""
    if mechanism.needs.additive:
        return False
    # Their noise is imported with them.
    from dpcore.claims.mechanisms.choice import Choice
    from dpcore.claims.mechanisms.randomized_response import RandomizedResponse

    return isinstance(mechanism, Choice | RandomizedResponse)


def _sources(queries: Sequence[PlannedQuery], gamma: float) -> tuple[str, ...]:
    samplings = [
        planned_query.query.sampling
        for planned_query in queries
        if planned_query.query.sampling is not None
    ]
    sources = (
        *(planned_query.sensitivity.source for planned_query in queries),
        *(planned_query.mechanism.source for planned_query in queries),
        *(sampling.source for sampling in samplings if sampling.source),
        *([f"{gamma:.3g} of delta for the public randomness"] if gamma else ()),
    )
    return tuple(dict.fromkeys(sources))
