"""Which records each release sees, and under which relation: the learners', or evaluated ones."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from dpcore.adjacency import Adjacency
from dpcore.domain.domain import Domain
from dpcore.errors import SpecError, near
from dpcore.functions.learner import FunctionLearner
from dpcore.plan.parts import part_domain
from dpcore.plan.request import Release, Request
from dpcore.running.predictions_as_records import evaluated_adjacency, evaluated_domain


@attrs.frozen(kw_only=True)
class Seen:
    """What one release sees.

    Args:
        part: What is public about its records.
        adjacency: What neighbours are among them.
    """

    part: Domain
    adjacency: Adjacency


def seen(request: Request, release: Release) -> Seen:
    """The learners' part; of a release `of` another one, evaluated records.

    Raises:
        SpecError: that other one is none of the run's, stands later or publishes no model, or the
            learner does not publish statistics.
        ParameterError: there is no hold-out.
    """
    domain, adjacency, share = request.domain, request.adjacency, request.holdout
    if release.of is None:
        return Seen(part=part_domain(domain, adjacency, share), adjacency=adjacency)
    about = _evaluated(request.releases, release)
    part = evaluated_domain(domain, adjacency, share, scored=about.learner.scores)
    return Seen(part=part, adjacency=evaluated_adjacency(adjacency))


def _evaluated(releases: Sequence[Release], release: Release) -> Release:
    names = [one.name for one in releases]
    place = names.index(release.name)
    group = [one for one in releases[:place] if one.learner.predicts]
    found = next((one for one in group if one.name == release.of), None)
    if found is None:
        listed = ", ".join(one.name for one in group) or "there is none"
        raise SpecError(
            f"needs an earlier release that predicts ({listed}), got "
            f"{release.of!r}{near(str(release.of), [one.name for one in group])}",
            "of",
        )
    if isinstance(found.learner, FunctionLearner):
        raise SpecError(f"{found.name} is a function, of which no model is published", "of")
    if release.learner.predicts:
        raise SpecError(
            f"{type(release.learner).__name__} predicts; what is told of another release are "
            f"statistics, such as statistics.group_errors",
            "learner",
        )
    return found
