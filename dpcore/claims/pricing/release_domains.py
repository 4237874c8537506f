"""Which records each release sees, and under which relation: the learners', or evaluated ones."""

from collections.abc import Sequence

from dpcore.adjacency import Adjacency
from dpcore.claims.plan.parts import evaluated_adjacency, evaluated_domain, part_domain
from dpcore.claims.plan.planned_query import PlannedQuery
from dpcore.claims.plan.request import Release, Request
from dpcore.claims.plan.schedule import Scheduled
from dpcore.domain.domain import Domain
from dpcore.errors import SpecError, near, need
from dpcore.learner import Learner, Model, ScoringModel, promises


def domain_and_adjacency(request: Request, release: Release) -> tuple[Domain, Adjacency]:
    """Return the domain of a release's records, and what neighbours are among them.

    The learners' part; of a release `of` another one, evaluated records.

    Raises:
        SpecError: that other one, or an input, is none of the run's, is later or publishes no
            model; or the learner does not publish statistics, or takes no inputs.
        ParameterError: there is no hold-out.
    """
    _require_inputs(request, release)
    domain, adjacency, fraction = request.domain, request.adjacency, request.records.holdout
    if release.of is None:
        return part_domain(domain, adjacency, fraction), adjacency
    # Evaluated records are hold-out ones with a model's predictions, which the model never saw.
    source = _find_source(request.releases, release)
    part = evaluated_domain(
        domain, adjacency, fraction, scored=promises(source.learner, ScoringModel)
    )
    return part, evaluated_adjacency(adjacency)


def plan_evaluation(request: Request, group: Sequence[Scheduled]) -> tuple[PlannedQuery, ...]:
    """Return the hold-out queries about a group of releases; none without a paid evaluation."""
    if request.evaluation is None:
        return ()
    names = tuple(scheduled.name for scheduled in group if promises(scheduled.learner, Model))
    return request.evaluation.queries(
        names, request.domain, request.adjacency, request.records.holdout
    )


def _require_inputs(request: Request, release: Release) -> None:
    """Raise `SpecError` unless all inputs are published before, and the learner can start there."""
    names = [candidate.name for candidate in request.releases]
    need(
        release.name not in request.public or len(names) == 1,
        SpecError,
        f"public records are called {release.name!r}: give the release another name",
        "name",
    )
    earlier = [*request.public, *names[: names.index(release.name)]]
    kinds = "release, or public records" if request.public else "release"
    for number, name in enumerate(release.inputs):
        # Only what is published before: its answers are fixed, and have been paid for.
        need(
            name in earlier and name not in release.inputs[:number],
            SpecError,
            f"needs an earlier {kinds}, each once ({', '.join(earlier) or 'there is none'}), got "
            f"{name!r}{near(name, earlier)}",
            ("inputs", str(number)),
        )
    need(
        not release.inputs or isinstance(release.learner, Learner),
        SpecError,
        f"{type(release.learner).__name__} is a function, which is fitted in one step: it has no "
        f"public start that could take inputs",
        "inputs",
    )


def _find_source(releases: Sequence[Release], release: Release) -> Release:
    place = [candidate.name for candidate in releases].index(release.name)
    # Only an earlier release: its model must be fixed before its errors are asked for.
    group = [candidate for candidate in releases[:place] if promises(candidate.learner, Model)]
    source = next((candidate for candidate in group if candidate.name == release.of), None)
    if source is None:
        names = [candidate.name for candidate in group]
        raise SpecError(
            f"needs an earlier release that predicts ({', '.join(names) or 'there is none'}), got "
            f"{release.of!r}{near(str(release.of), names)}",
            "of",
        )
    need(
        isinstance(source.learner, Learner),
        SpecError,
        f"{source.name} is a function, of which no model is published",
        "of",
    )
    need(
        not promises(release.learner, Model),
        SpecError,
        f"{type(release.learner).__name__} predicts; what is reported of another release are "
        f"statistics, such as statistics.group_errors",
        "learner",
    )
    return source
