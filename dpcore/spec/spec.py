"""Spec: one YAML file to frozen objects. Whoever reads the file can state the guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast

import attrs

from dpcore.accountant import Accountant
from dpcore.adjacency import Adjacency
from dpcore.domain.domain import Domain
from dpcore.errors import ParameterError, SpecError
from dpcore.mechanism import Mechanism
from dpcore.pricing.price import price
from dpcore.randomness import PublicCoins
from dpcore.registry.kinds import ACCOUNTANT, BOUND, FEATURES, LEARNER, MECHANISM
from dpcore.registry.registry import Registry
from dpcore.running.metrics import METRICS
from dpcore.running.parts import part_domain
from dpcore.running.plan import Plan
from dpcore.running.private_look import PrivateLook
from dpcore.running.request import Release, Request
from dpcore.spec.components import bind, component_schema
from dpcore.spec.declared import (
    child,
    declared_adjacency,
    declared_budget,
    declared_domain,
)
from dpcore.spec.grammar import Csv, ReleaseText, SpecText, spec_schema
from dpcore.spec.sweep import Point, points, release_nodes
from dpcore.strict_yaml.conversion import convert
from dpcore.strict_yaml.located import Node, parse, read


@attrs.frozen(kw_only=True, eq=False)
class Spec:
    """A validated spec: what to ask for, and where the records stand.

    Args:
        text: The spec as plain data, for the lock.
        where: FILE:LINE:COLUMN of what is released.
        request: What is priced. A sweep's points are releases one after the other.
        source: As written: a path relative to the spec, or LOADER:NAME.
        path: Of its file; None for one rebuilt from a lock.
        metrics: What the operator wants to see of the hold-out without paying.
        ledger: Name of the ledger that every run is charged to, if any.
        registry: Where every component was found.
    """

    text: Mapping[str, Any]
    where: str
    request: Request
    source: str
    path: Path | None
    csv: Csv
    metrics: tuple[str, ...]
    ledger: str | None
    registry: Registry

    @property
    def folder(self) -> Path | None:
        """What its paths are relative to."""
        return None if self.path is None else self.path.parent

    def price(self, coins: PublicCoins | None = None, *, reproduce: bool = False) -> Plan:
        """The priced plan, at the spec's pinned coins, else at `coins`, else at fresh ones.

        Args:
            reproduce: Price refuted and conditional claims as printed, without any guarantee.

        Raises:
            NoClaimError: no guarantee can be stated.
            SpecError: components do not fit together, at the place of the release.
        """
        try:
            return price(self.request, coins=self.request.coins or coins, reproduce=reproduce)
        except SpecError as error:
            raise SpecError(error.message, error.where or self.where) from None


def load_spec(path: Path | str, registry: Registry | None = None) -> Spec:
    """Read and validate a spec file. No data is opened.

    Raises:
        SpecError: at file:line:column.
    """
    return _spec(read(Path(path)), Path(path), registry or Registry.default())


def spec_of_text(text: str, name: str, registry: Registry | None = None) -> Spec:
    """The same from text, with paths relative to nowhere."""
    return _spec(parse(text, name), None, registry or Registry.default())


def _spec(node: Node, path: Path | None, registry: Registry) -> Spec:
    text = convert(node, SpecText, "")
    if (text.release is None) == (text.releases is None):
        raise SpecError("needs either 'release' or 'releases'", node.where)
    domain, adjacency = declared_domain(node, text.data), declared_adjacency(text)
    holdout = text.evaluate.holdout if text.evaluate else 0.0
    try:
        part_domain(domain, adjacency, holdout)
    except ParameterError as error:
        raise SpecError(error.message, child(node, "data", "domain", "records").where) from None
    swept = points(node, child(node, "sweep", "grid")) if text.sweep else (Point(node, {}),)
    metrics = _metrics(text, domain, node)
    look = None
    if text.evaluate and text.evaluate.private:
        look = PrivateLook(metrics=metrics, epsilon=text.evaluate.private.epsilon)
    accountant = None
    if text.accountant is not None:
        accountant = _accountant(child(node, "accountant"), adjacency, registry)
    request = Request(
        domain=domain,
        adjacency=adjacency,
        budget=declared_budget(text.budget, child(node, "budget")),
        releases=_releases(swept, registry),
        separate=len(swept) if text.sweep and text.sweep.budget == "each" else 1,
        accountant=accountant,
        coins=PublicCoins(text.coins.public) if text.coins else None,
        holdout=holdout,
        look=look,
        sealed=text.sealed,
        on_invalid=_on_invalid(text, node),
        accept_assumptions=text.accept_assumptions,
        registry=registry,
    )
    return Spec(
        text=node.plain(),
        request=request,
        where=child(node, "release" if text.release else "releases").where,
        source=text.data.source,
        path=path,
        csv=text.data.csv,
        metrics=metrics if look is None else (),
        ledger=text.ledger,
        registry=registry,
    )


def _metrics(text: SpecText, domain: Domain, node: Node) -> tuple[str, ...]:
    """`evaluate.metrics`, each of them about the declared kind of target.

    Raises:
        SpecError: at a metric of ranges where the target is classes, or the reverse.
    """
    if text.evaluate is None:
        return ()
    fitting = sorted(name for name in METRICS if METRICS[name].reach(domain.labels) is not None)
    for metric in text.evaluate.metrics:
        if metric not in fitting:
            kind = "classes" if domain.classes else "a range"
            raise SpecError(
                f"evaluate.metrics: {metric} does not fit a target that is {kind}; "
                f"valid: {', '.join(fitting)}",
                child(node, "evaluate", "metrics").where,
            )
    return tuple(text.evaluate.metrics)


def _on_invalid(text: SpecText, node: Node) -> Literal["refuse", "project"]:
    """`refuse` unless asked otherwise; a sealed run projects and has no operator channel.

    Raises:
        SpecError: a sealed run is asked to refuse or to evaluate.
    """
    if not text.sealed:
        return text.on_invalid or "refuse"
    if text.on_invalid == "refuse":
        raise SpecError(
            "on_invalid: a sealed run maps every record into the domain: project",
            child(node, "on_invalid").where,
        )
    if text.evaluate is not None and text.evaluate.private is None:
        raise SpecError(
            "evaluate: a sealed run has no operator to show it to; pay for it with private",
            child(node, "evaluate").where,
        )
    return "project"


def _releases(swept: tuple[Point, ...], registry: Registry) -> tuple[Release, ...]:
    """Every release of every point; the points of a sweep are numbered in their names."""
    releases: list[Release] = []
    for number, point in enumerate(swept, start=1):
        for node in release_nodes(point.node):
            release = _release(node, registry)
            if len(swept) > 1:
                release = attrs.evolve(
                    release, name=f"{release.name}-{number}", point=dict(point.values)
                )
            if any(release.name == other.name for other in releases):
                raise SpecError(f"two releases are called {release.name!r}", node.where)
            releases.append(release)
    return tuple(releases)


def _release(node: Node, registry: Registry) -> Release:
    text = convert(node, ReleaseText, "release")
    parts = cast(dict[str, Node], node.value)
    learner = bind(parts["learner"], LEARNER, registry, "release.learner")
    bound = None
    if "bound" in parts:
        bound = bind(parts["bound"], BOUND, registry, "release.bound")
        if not bound.is_about(learner):
            about = getattr(bound.learner, "__name__", "no learner")
            raise SpecError(
                f"release.bound: it is about {about}, the learner is {type(learner).__name__}",
                parts["bound"].where,
            )
    mechanism, shares = _mechanism(parts["mechanism"], registry)
    return Release(
        learner=learner,
        mechanism=mechanism,
        bound=bound,
        name=text.name,
        share=text.share,
        query_shares=shares,
        predictions_at=text.predictions_at,
    )


def _mechanism(
    node: Node, registry: Registry
) -> tuple[Mechanism | dict[str, Mechanism], dict[str, float]]:
    """One mechanism, or one per query with optional shares."""
    if not isinstance(node.value, dict) or "name" in node.value:
        return bind(node, MECHANISM, registry, "release.mechanism"), {}
    mechanisms: dict[str, Mechanism] = {}
    shares: dict[str, float] = {}
    for query, given in node.value.items():
        where = f"release.mechanism.{query}"
        if isinstance(given.value, dict) and "share" in given.value:
            rest = dict(given.value)
            shares[query] = _share(rest.pop("share"), f"{where}.share")
            given = attrs.evolve(given, value=rest)
        mechanisms[query] = bind(given, MECHANISM, registry, where)
    return mechanisms, shares


def _share(node: Node, where: str) -> float:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise SpecError(f"{where}: needs a share > 0, got {value!r}", node.where)
    return float(value)


def _accountant(node: Node, adjacency: Adjacency, registry: Registry) -> Accountant:
    if not isinstance(node.value, str):
        raise SpecError("accountant: needs the name of an accountant", node.where)
    try:
        return cast(Accountant, registry.component(ACCOUNTANT, node.value)(adjacency))
    except SpecError as error:
        raise SpecError(f"accountant: {error.message}", node.where) from error


def json_schema(registry: Registry) -> dict[str, Any]:
    """The JSON Schema of a spec with every admitted and installed component."""
    schema, definitions = spec_schema()
    definitions[ACCOUNTANT.definition] = {"enum": registry.names(ACCOUNTANT)}
    for kind in (LEARNER, BOUND, MECHANISM, FEATURES):
        definitions[kind.definition], inner = component_schema(kind, registry)
        definitions.update(inner)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dpcore spec",
        **schema,
        "$defs": definitions,
    }
