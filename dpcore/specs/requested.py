"""From what a spec declares to a request: every component is looked up and made."""

from pathlib import Path
from typing import Any, cast

import attrs

from dpcore.accountant import Accountant
from dpcore.adjacency import Adjacency
from dpcore.claims.plan.request import Accepted, Intake, Release, Request
from dpcore.errors import SpecError, below, need, shown
from dpcore.learner import Model, promises
from dpcore.mechanism import Mechanism
from dpcore.randomness import PublicCoins
from dpcore.registry.kinds import ACCOUNTANT, BOUND, LEARNER, MECHANISM, SOURCE
from dpcore.registry.registry import Registry
from dpcore.source import Location
from dpcore.sources.opening import Unopened, location
from dpcore.specs.components import NAME, bind
from dpcore.specs.declared import Declared, child
from dpcore.specs.evaluate_key import Evaluated
from dpcore.specs.grammar import ReleaseText, SpecText
from dpcore.specs.sweep import Point, releases
from dpcore.yaml.conversion import convert
from dpcore.yaml.error_positions import locate_errors
from dpcore.yaml.located import Node

MOST_RELEASES = 1000  # of a spec, at every point of its sweep together


def requested(
    declaration: Declared, node: Node, registry: Registry, looks: Evaluated, folder: Path | None
) -> Request:
    """The request of the spec at `node`; no file that it names is opened.

    Args:
        looks: What it evaluates.
        folder: What paths of public records are relative to.

    Raises:
        SpecError: a component is unknown or does not take what it is given.
    """
    text, points = declaration.text, declaration.points
    # A paid look is part of the request, because its metrics share the budget of the releases.
    look = None
    if text.evaluate and text.evaluate.private:
        with below("evaluate"):
            from dpcore.metrics.paid import PrivateLook

            look = PrivateLook(metrics=looks.metrics, epsilon=text.evaluate.private.epsilon)
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
        coins=PublicCoins(text.coins.public) if text.coins else None,
        look=look,
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
    """Every release of every point; the points of a sweep are numbered in their names."""
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
    """What `evaluate.score` buys: a release of each model's error on the hold-out.

    Args:
        score: The share of the budget.

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
    share = score / (1 - score) * sum(r.share for r in plain_releases) / len(models)
    return tuple(
        Release(
            learner=learner(power=2 if declaration.domain.classes else 1),
            mechanism=None,
            name=f"{model.name}-score",
            share=share,
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
    shares: dict[str, float] = {}
    if "mechanism" in parts:
        with below("mechanism"):
            mechanism, shares = _mechanism(parts["mechanism"], registry)
    return Release(
        learner=learner,
        mechanism=mechanism,
        bound=bound,
        name=text.name,
        share=text.share,
        query_shares=shares,
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
    shares: dict[str, float] = {}
    for query, entry in node.value.items():
        with below(query):
            if isinstance(entry.value, dict) and "share" in entry.value:
                # `share` belongs to the release, so it is taken out before the mechanism's strict
                # struct reads the mapping.
                fields = dict(entry.value)
                shares[query] = _share(fields.pop("share"))
                entry = attrs.evolve(entry, value=fields)
            mechanisms[query] = bind(entry, MECHANISM, registry)
    return mechanisms, shares


def _share(node: Node) -> float:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise SpecError(f"needs a share > 0, got {shown(value)}", "share")
    return float(value)


def _accountant(node: Node, adjacency: Adjacency, registry: Registry) -> Accountant:
    with below("accountant"):
        if not isinstance(node.value, str):
            raise SpecError("needs the name of an accountant")
        return cast(Accountant, registry.component(ACCOUNTANT, node.value)(adjacency))
