"""What a spec evaluates: its metrics are looked up, and fit the target and the groups."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import attrs

from dpcore.claims.plan.request import Request
from dpcore.domain.domain import Domain
from dpcore.errors import RegistryError, SpecError, below, need
from dpcore.learner import (
    AnyLearner,
    LinearNoiseModel,
    Model,
    ProbabilityModel,
    ScoringModel,
    promises,
)
from dpcore.registry.kinds import METRIC
from dpcore.registry.registry import Registry
from dpcore.specs.components import bind
from dpcore.specs.declared import Declared, child
from dpcore.yaml.located import Node

if TYPE_CHECKING:
    from dpcore.metrics.base import Metric
    from dpcore.metrics.groups import Groups


@attrs.frozen(kw_only=True)
class Evaluated:
    """What a hold-out is measured with.

    Args:
        metrics: By the name under which they are told.
        groups: The public groups; None where nobody asked for any.
    """

    metrics: Mapping[str, Metric] = attrs.field(factory=dict)
    groups: Groups | None = None


def evaluated(declaration: Declared, node: Node, registry: Registry) -> Evaluated:
    """`evaluate` of the spec at `node`, paid for or not.

    Raises:
        SpecError: there is no target; a metric is unknown, stands twice, is about another kind of
            target or about groups where there are none; groups are paid for here.
    """
    text = declaration.text.evaluate
    if text is None:
        return Evaluated()
    need(
        declaration.domain.labelled,
        SpecError,
        "evaluates predictions of a target, and the domain declares none",
        "evaluate",
    )
    # A hold-out without metrics is legitimate only if a release `of` another one reads it.
    if text.metrics is None:
        _require_reader(declaration)
        return Evaluated()
    groups = None
    if text.by is not None:
        # Each group's metric would be one more query on the hold-out, which no look prices.
        need(
            text.private is None,
            SpecError,
            "the operator alone sees metrics by group here; to publish them, add a release "
            "with `of: RELEASE` and a learner such as statistics.group_errors",
            ("evaluate", "by"),
        )
        from dpcore.metrics.groups import Groups

        groups = Groups.of(
            declaration.domain, (text.by,) if isinstance(text.by, str) else tuple(text.by)
        )
    # Names must differ, because answers and files are found by them.
    metric_nodes, metrics_by_name = child(node, "evaluate", "metrics"), {}
    for number, entry in enumerate(cast(list[Node], metric_nodes.value)):
        with below("evaluate", "metrics", number):
            metric: Metric = bind(entry, METRIC, registry)
            name = str((entry.mapping.get("name") or entry).value)
            need(name not in metrics_by_name, SpecError, f"{name} stands twice")
            _require(name, metric, declaration.domain, registry, grouped=groups is not None)
            metrics_by_name[name] = metric
    return Evaluated(metrics=metrics_by_name, groups=groups)


def _require_reader(declaration: Declared) -> None:
    """Raise `SpecError` where a hold-out is there for nothing."""
    text = declaration.text
    assert text.evaluate is not None, "there is a hold-out"
    for key in ("private", "by"):
        need(
            getattr(text.evaluate, key) is None,
            SpecError,
            "is about metrics: list them under metrics",
            ("evaluate", key),
        )
    releases = text.releases or ([text.release] if text.release else [])
    need(
        text.evaluate.score or any(release.of is not None for release in releases),
        SpecError,
        "needs metrics, or a release with `of: RELEASE` that tells of the hold-out",
        "evaluate",
    )


def _require(
    name: str, metric: Metric, domain: Domain, registry: Registry, *, grouped: bool
) -> None:
    """Raise `SpecError` where a metric does not fit."""
    if not metric.about(domain.labels):
        kind = f"{domain.classes} classes" if domain.classes else "a range"
        raise SpecError(f"{name} does not fit a target that is {kind}{_hint(domain, registry)}")
    need(
        not metric.needs_groups or grouped,
        SpecError,
        f"{name} is about groups: name their columns under evaluate.by",
    )


def _hint(domain: Domain, registry: Registry) -> str:
    """The metrics that defaults can make and that are about the target."""
    metrics = {}
    for name in registry.names(METRIC):
        with suppress(RegistryError):  # it cannot be used, so that it is no hint either
            metrics[name] = registry.component(METRIC, name)
    names = [
        name
        for name, metric in metrics.items()
        if all(field.default is not attrs.NOTHING for field in attrs.fields(metric) if field.init)
        and metric().about(domain.labels)
    ]
    return f"; valid: {', '.join(sorted(names))}" if names else ""


def require_measurable(looks: Evaluated, request: Request) -> None:
    """Raise `SpecError` where a metric needs what a release's model will not tell."""
    for number, (name, metric) in enumerate(looks.metrics.items()):
        for release in request.releases:
            learner = release.learner
            predicts, lack = promises(learner, Model), ""
            # The law of a score's noise is known only where the score is linear in one noisy
            # answer.
            if metric.needs_law and predicts and not promises(learner, LinearNoiseModel):
                lack = "a score that is linear in one noisy answer"
            elif (
                metric.needs_probabilities and predicts and not _has_probabilities(learner, request)
            ):
                lack = "probabilities of classes"
            need(
                not lack,
                SpecError,
                f"{name} needs {lack}, which {type(learner).__name__} (release "
                f"{release.name!r}) does not give; leave it out",
                ("evaluate", "metrics", str(number)),
            )


def _has_probabilities(learner: AnyLearner, request: Request) -> bool:
    """Whether a learner's models state probabilities of the target's classes."""
    # Of two classes, a score decides, and says how likely the second one is.
    has_scores = promises(learner, LinearNoiseModel) or promises(learner, ScoringModel)
    return promises(learner, ProbabilityModel) or (request.domain.classes == 2 and has_scores)
