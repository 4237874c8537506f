"""From what a spec declares to a request: every component is looked up and made.

Metrics that it evaluates are looked up as well, and fit the target and the groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import attrs

from dpcore.accountant import Accountant
from dpcore.adjacency import Adjacency
from dpcore.claims.plan.request import Accepted, Intake, Release, Request
from dpcore.domain.domain import Domain
from dpcore.errors import RegistryError, SpecError, below, need, shown
from dpcore.learner import (
    AnyLearner,
    LinearNoiseModel,
    Model,
    ProbabilityModel,
    ScoringModel,
    promises,
)
from dpcore.mechanism import Mechanism
from dpcore.randomness import PublicRandomness
from dpcore.registry.kinds import ACCOUNTANT, BOUND, LEARNER, MECHANISM, METRIC, SOURCE
from dpcore.registry.registry import Registry
from dpcore.source import Location
from dpcore.sources.opening import Unopened, location
from dpcore.specs.components import NAME, bind
from dpcore.specs.declared import Declared, Point, child, releases
from dpcore.specs.grammar import ReleaseText, SpecText
from dpcore.yaml.conversion import convert
from dpcore.yaml.located import Node, locate_errors

if TYPE_CHECKING:
    from dpcore.metrics.base import Metric
    from dpcore.metrics.groups import Groups


@attrs.frozen(kw_only=True)
class Evaluated:
    """What a hold-out is measured with.

    Args:
        metrics: By the name under which they are reported.
        groups: The public groups; None where no one asked for any.
    """

    metrics: Mapping[str, Metric] = attrs.field(factory=dict)
    groups: Groups | None = None


def evaluated(declaration: Declared, node: Node, registry: Registry) -> Evaluated:
    """`evaluate` of the spec at `node`, paid for or not.

    Raises:
        SpecError: there is no target; a metric is unknown, occurs twice, is about another kind of
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
            "the operator by itself sees metrics by group here; to publish them, add a release "
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
            need(name not in metrics_by_name, SpecError, f"{name} occurs twice")
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
        "needs metrics, or a release with `of: RELEASE` that says of the hold-out",
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
    """Return the metrics that defaults can make and that are about the target."""
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


def require_measurable(evaluations: Evaluated, request: Request) -> None:
    """Raise `SpecError` where a metric needs what a release's model will not say."""
    for number, (name, metric) in enumerate(evaluations.metrics.items()):
        for release in request.releases:
            learner = release.learner
            predicts, lack = promises(learner, Model), ""
            # The law of a score's noise is known only where the score is linear in one noisy
            # answer.
            if metric.needs_distribution and predicts and not promises(learner, LinearNoiseModel):
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
    """Return whether a learner's models state probabilities of the target's classes."""
    # Of two classes, a score decides, and says how likely the second one is.
    has_scores = promises(learner, LinearNoiseModel) or promises(learner, ScoringModel)
    return promises(learner, ProbabilityModel) or (request.domain.classes == 2 and has_scores)


MOST_RELEASES = 1000  # of a spec, at every point of its sweep together


def requested(
    declaration: Declared,
    node: Node,
    registry: Registry,
    evaluations: Evaluated,
    folder: Path | None,
) -> Request:
    """Return the request of the spec at `node`; no file that it names is opened.

    Args:
        evaluations: What it evaluates.
        folder: What paths of public records are relative to.

    Raises:
        SpecError: a component is unknown or does not take what it is given.
    """
    text, points = declaration.text, declaration.points
    # A paid evaluation is part of the request, because its metrics share the budget of the
    # releases.
    evaluation = None
    if text.evaluate and text.evaluate.private:
        with below("evaluate"):
            from dpcore.metrics.paid import PaidEvaluation

            evaluation = PaidEvaluation(
                metrics=evaluations.metrics, epsilon=text.evaluate.private.epsilon
            )
    all_releases = _releases(points, registry, text)
    if text.evaluate and text.evaluate.score:
        all_releases += _scores(declaration, all_releases, text.evaluate.score, registry)
    return Request(
        domain=declaration.domain,
        adjacency=declaration.adjacency,
        budget=declaration.budget,
        accountant=None
        if text.accountant is None
        else _accountant(child(node, "accountant"), declaration.adjacency, registry),
        releases=all_releases,
        randomness=PublicRandomness(text.randomness.public) if text.randomness else None,
        evaluation=evaluation,
        records=Intake(
            holdout=declaration.holdout,
            sealed=text.sealed,
            on_invalid=declaration.on_invalid,
            blocks=True,
        ),
        accepted=Accepted(
            assumptions=text.accept_assumptions,
            useless=text.accept_useless,
            delta=text.accept_delta,
            premises=text.premises,
        ),
        public={
            name: Unopened(
                location=location(path),
                delimiter=text.data.csv.delimiter,
                decimal=text.data.csv.decimal,
                folder=folder,
            )
            for name, path in text.data.public.items()
        },
    )


def location_of(node: Node, registry: Registry) -> Location | str:
    """`data.source` of the spec at `node`: a text, or a component.

    The component's `name` may be left out where a key is the name of a source: `{sql: ...}`.

    Raises:
        SpecError: it is neither, or the component does not take what it is given.
    """
    source = child(node, "data", "source")
    with below("data", "source"):
        if isinstance(source.value, str) and source.value:
            return source.value
        if not isinstance(source.value, dict):
            raise SpecError(f"needs text, or a mapping with a source, got {shown(source.plain())}")
        if NAME not in source.value:
            names = [key for key in source.value if key in registry.names(SOURCE)]
            if len(names) != 1:
                valid = ", ".join(registry.names(SOURCE))
                raise SpecError(f"needs the key of one source, or its name; valid: {valid}")
            name_node = attrs.evolve(source.value[names[0]], value=names[0])
            source = attrs.evolve(source, value={NAME: name_node, **source.value})
        return cast(Location, bind(source, SOURCE, registry))


def _releases(points: tuple[Point, ...], registry: Registry, text: SpecText) -> tuple[Release, ...]:
    """Return every release of every point; the points of a sweep are numbered in their names."""
    count = sum(1 for point in points for _ in releases(point.node))
    need(
        count <= MOST_RELEASES,
        SpecError,
        f"{count} releases, at most {MOST_RELEASES}: write several specs that share a ledger",
        "releases",
    )
    by_name: dict[str, Release] = {}
    for number, point in enumerate(points, start=1):
        for keys, node in releases(point.node):
            # Each point has its own copy of the text, so errors point at the value that the sweep
            # puts in.
            with locate_errors(point.node), below(*keys):
                release = _release(node, registry)
                if len(points) > 1:
                    release = attrs.evolve(
                        release,
                        name=f"{release.name}-{number}",
                        point=dict(point.values),
                        # A release `of` another one follows that release's own point.
                        of=None if release.of is None else f"{release.of}-{number}",
                        inputs=tuple(
                            # Public records are the same at every point.
                            name if name in text.data.public else f"{name}-{number}"
                            for name in release.inputs
                        ),
                        group=number if text.sweep and text.sweep.budget == "each" else 0,
                    )
                need(
                    release.name not in by_name,
                    SpecError,
                    f"two releases are called {release.name!r}",
                    "name",
                )
                by_name[release.name] = release
    return tuple(by_name.values())


def _scores(
    declaration: Declared, plain_releases: tuple[Release, ...], score: float, registry: Registry
) -> tuple[Release, ...]:
    """Return what `evaluate.score` buys: a release of each model's error on the hold-out.

    Args:
        score: The fraction of the budget.

    Raises:
        SpecError: there is no model, or every point of a sweep has the whole budget.
        RegistryError: dpcore-statistics is missing.
    """
    models = [r for r in plain_releases if r.of is None and promises(r.learner, Model)]
    with below("evaluate", "score"):
        need(
            # With `each` the releases of a point are composed by themselves; a score is of none.
            models
            and (declaration.text.sweep is None or declaration.text.sweep.budget == "divided"),
            SpecError,
            "needs a release that predicts the target, and of a sweep budget: divided (with each, "
            "no part of the budget is left for scores)",
        )
        learner = registry.component(LEARNER, "statistics.group_errors")
    # Shares are relative to each other: those of the scores are `score` of all.
    fraction = score / (1 - score) * sum(r.share for r in plain_releases) / len(models)
    return tuple(
        Release(
            learner=learner(power=2 if declaration.domain.classes else 1),
            mechanism=None,
            name=f"{model.name}-score",
            share=fraction,
            of=model.name,
            point=model.point,
        )
        for model in models
    )


def _release(node: Node, registry: Registry) -> Release:
    text = convert(node, ReleaseText)
    parts = cast(dict[str, Node], node.value)
    with below("learner"):
        learner = bind(parts["learner"], LEARNER, registry)
    bound = None
    # Left out, the bound is the learner's own. A bound of another learner is refused here, because
    # its theorem says nothing about this one.
    if "bound" in parts:
        with below("bound"):
            bound = bind(parts["bound"], BOUND, registry)
            if not bound.is_about(learner):
                owner = getattr(bound, "learner", None)
                owner_name = (owner and registry.name_of(LEARNER, owner)) or "another"
                name = registry.name_of(LEARNER, type(learner))
                raise SpecError(f"it is about learner {owner_name}, the learner is {name}")
    mechanism: Any = None
    fractions: dict[str, float] = {}
    if "mechanism" in parts:
        with below("mechanism"):
            mechanism, fractions = _mechanism(parts["mechanism"], registry)
    return Release(
        learner=learner,
        mechanism=mechanism,
        bound=bound,
        name=text.name,
        share=text.share,
        query_shares=fractions,
        predictions_at=text.predictions_at,
        of=text.of,
        inputs=text.inputs,
    )


def _mechanism(
    node: Node, registry: Registry
) -> tuple[Mechanism | dict[str, Mechanism], dict[str, float]]:
    """One mechanism, or one per query with optional shares."""
    if not isinstance(node.value, dict) or "name" in node.value:
        return bind(node, MECHANISM, registry), {}
    mechanisms: dict[str, Mechanism] = {}
    fractions: dict[str, float] = {}
    for query, entry in node.value.items():
        with below(query):
            if isinstance(entry.value, dict) and "share" in entry.value:
                # `fraction` belongs to the release, so it is taken out before the mechanism's
                # strict struct reads the mapping.
                fields = dict(entry.value)
                fractions[query] = _fraction(fields.pop("share"))
                entry = attrs.evolve(entry, value=fields)
            mechanisms[query] = bind(entry, MECHANISM, registry)
    return mechanisms, fractions


def _fraction(node: Node) -> float:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise SpecError(f"needs a share > 0, got {shown(value)}", "share")
    return float(value)


def _accountant(node: Node, adjacency: Adjacency, registry: Registry) -> Accountant:
    with below("accountant"):
        if not isinstance(node.value, str):
            raise SpecError("needs the name of an accountant")
        return cast(Accountant, registry.component(ACCOUNTANT, node.value)(adjacency))
