"""Spec: one YAML file to frozen objects. Whoever reads the file can state the guarantee."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast

import attrs

from dpcore.accountant import Accountant
from dpcore.accounting.budget import PrivacyBudget
from dpcore.adjacency import Adjacency
from dpcore.domain.domain import Domain
from dpcore.errors import DpcoreError, SpecError, below, shown
from dpcore.mechanism import Mechanism
from dpcore.pricing.price import price
from dpcore.randomness import PublicCoins
from dpcore.registry.kinds import ACCOUNTANT, BOUND, FEATURES, LEARNER, MECHANISM
from dpcore.registry.registry import Registry
from dpcore.running.metrics import METRICS
from dpcore.running.plan import Plan, Release
from dpcore.running.private_look import PrivateLook
from dpcore.running.schedule import part_domain
from dpcore.spec.components import bind, component_schema
from dpcore.spec.declared import (
    child,
    declared_adjacency,
    declared_budget,
    declared_domain,
)
from dpcore.spec.grammar import Csv, ReleaseText, SpecText, spec_schema
from dpcore.spec.sweep import Point, points, releases
from dpcore.strict_yaml.conversion import convert
from dpcore.strict_yaml.located import Node, parse, read
from dpcore.strict_yaml.places import place, placed


@attrs.frozen(kw_only=True, eq=False)
class Spec:
    """A validated spec: what to read, what is public about it, what to publish.

    Args:
        text: The spec as plain data, for the lock.
        points: The spec as it was read, once for every point of a sweep.
        source: As written: a path relative to the spec, or LOADER:NAME.
        folder: Where the spec stands; None for one rebuilt from a lock.
        releases: In order; a sweep's points one after the other.
        separate: How many equal groups of releases are each calibrated to the whole budget.
        metrics: What the operator wants to see of the hold-out without paying.
        look: What is paid for and published instead.
        ledger: Name of the ledger that every run is charged to, if any.
        sealed: Whether the asker is not the curator: nothing but public files leaves the run.
    """

    text: Mapping[str, Any]
    points: tuple[Point, ...]
    source: str
    folder: Path | None
    csv: Csv
    domain: Domain
    adjacency: Adjacency
    budget: PrivacyBudget
    releases: tuple[Release, ...]
    separate: int
    accountant: Accountant | None
    coins: PublicCoins | None
    holdout: float
    metrics: tuple[str, ...]
    look: PrivateLook | None
    ledger: str | None
    sealed: bool
    on_invalid: Literal["refuse", "project"]
    accept_assumptions: tuple[str, ...]
    registry: Registry

    def price(self, coins: PublicCoins | None = None, *, reproduce: bool = False) -> Plan:
        """The priced plan, at the spec's pinned coins, else at `coins`, else at fresh ones.

        Args:
            reproduce: Price refuted and conditional claims as printed, without any guarantee.

        Raises:
            NoClaimError: no guarantee can be stated.
            SpecError: components do not fit together, at the place of the one that does not.
        """
        with self.placed():
            return price(
                domain=self.domain,
                adjacency=self.adjacency,
                budget=self.budget,
                releases=self.releases,
                separate=self.separate,
                look=self.look,
                accountant=self.accountant,
                coins=self.coins or coins,
                holdout=self.holdout,
                sealed=self.sealed,
                on_invalid=self.on_invalid,
                accept_assumptions=self.accept_assumptions,
                registry=self.registry,
                reproduce=reproduce,
            )

    @contextmanager
    def placed(self) -> Iterator[None]:
        """What is raised inside about a part of the request says where it stands in the file.

        A release is counted over all points of a sweep; a value that a sweep puts in is at fault
        where the sweep lists it.
        """
        try:
            yield
        except DpcoreError as error:
            node, steps = self.points[0].node, error.steps
            if len(steps) > 1 and steps[0] == "releases":
                point, number = divmod(int(steps[1]), len(releases(node)))
                node = self.points[point].node
                error.steps = (*releases(node)[number][0], *steps[2:])
            place(error, node)
            raise


def load_spec(path: Path, registry: Registry | None = None) -> Spec:
    """Read and validate a spec file. No data is opened.

    Raises:
        SpecError: at file:line:column.
    """
    return _spec(read(path), path.parent, registry or Registry.default())


def spec_of_text(text: str, name: str, registry: Registry | None = None) -> Spec:
    """The same from text, with paths relative to nowhere."""
    return _spec(parse(text, name), None, registry or Registry.default())


def _spec(node: Node, folder: Path | None, registry: Registry) -> Spec:
    with placed(node):
        return _declared(node, folder, registry)


def _declared(node: Node, folder: Path | None, registry: Registry) -> Spec:
    text = convert(node, SpecText)
    if text.release is None and text.releases is None:
        raise SpecError("needs either 'release' or 'releases'")
    if text.release is not None and text.releases is not None:
        raise SpecError("needs either 'release' or 'releases', not both", key="releases")
    domain, adjacency = declared_domain(node, text.data), declared_adjacency(text)
    holdout = text.evaluate.holdout if text.evaluate else 0.0
    part_domain(domain, adjacency, holdout)
    budget = declared_budget(text.budget)
    swept: tuple[Point, ...] = (Point(node, {}),)
    if text.sweep:
        with below("sweep", "grid"):
            swept = points(node, child(node, "sweep", "grid"))
    metrics = _metrics(text, domain)
    look = None
    if text.evaluate and text.evaluate.private:
        look = PrivateLook(metrics=metrics, epsilon=text.evaluate.private.epsilon)
    accountant = None
    if text.accountant is not None:
        accountant = _accountant(child(node, "accountant"), adjacency, registry)
    return Spec(
        text=node.plain(),
        points=swept,
        source=text.data.source,
        folder=folder,
        csv=text.data.csv,
        domain=domain,
        adjacency=adjacency,
        budget=budget,
        releases=_releases(swept, registry),
        separate=len(swept) if text.sweep and text.sweep.budget == "each" else 1,
        accountant=accountant,
        coins=PublicCoins(text.coins.public) if text.coins else None,
        holdout=holdout,
        metrics=metrics if look is None else (),
        look=look,
        ledger=text.ledger,
        sealed=text.sealed,
        on_invalid=_on_invalid(text),
        accept_assumptions=tuple(text.accept_assumptions),
        registry=registry,
    )


def _metrics(text: SpecText, domain: Domain) -> tuple[str, ...]:
    """`evaluate.metrics`, each of them about the declared kind of target.

    Raises:
        SpecError: at a metric of ranges where the target is classes, or the reverse.
    """
    if text.evaluate is None:
        return ()
    fitting = sorted(name for name in METRICS if METRICS[name].reach(domain.labels) is not None)
    for number, metric in enumerate(text.evaluate.metrics):
        if metric not in fitting:
            kind = "classes" if domain.classes else "a range"
            raise SpecError(
                f"{metric} does not fit a target that is {kind}; valid: {', '.join(fitting)}",
                ("evaluate", "metrics", str(number)),
            )
    return tuple(text.evaluate.metrics)


def _on_invalid(text: SpecText) -> Literal["refuse", "project"]:
    """`refuse` unless asked otherwise; a sealed run projects and has no operator channel.

    Raises:
        SpecError: a sealed run is asked to refuse or to evaluate.
    """
    if not text.sealed:
        return text.on_invalid or "refuse"
    if text.on_invalid == "refuse":
        raise SpecError("a sealed run maps every record into the domain: project", "on_invalid")
    if text.evaluate is not None and text.evaluate.private is None:
        raise SpecError(
            "a sealed run has no operator to show it to; pay for it with private", "evaluate"
        )
    return "project"


def _releases(swept: tuple[Point, ...], registry: Registry) -> tuple[Release, ...]:
    """Every release of every point; the points of a sweep are numbered in their names."""
    found: list[Release] = []
    for number, point in enumerate(swept, start=1):
        for keys, node in releases(point.node):
            with placed(point.node), below(*keys):
                release = _release(node, registry)
                if len(swept) > 1:
                    release = attrs.evolve(
                        release, name=f"{release.name}-{number}", point=dict(point.values)
                    )
                if any(release.name == other.name for other in found):
                    raise SpecError(f"two releases are called {release.name!r}", "name")
                found.append(release)
    return tuple(found)


def _release(node: Node, registry: Registry) -> Release:
    text = convert(node, ReleaseText)
    parts = cast(dict[str, Node], node.value)
    with below("learner"):
        learner = bind(parts["learner"], LEARNER, registry)
    bound = None
    if "bound" in parts:
        with below("bound"):
            bound = bind(parts["bound"], BOUND, registry)
            if bound.learner is not type(learner):
                raise SpecError(
                    f"it is about learner {registry.name_of(LEARNER, bound.learner)}, the learner "
                    f"is {registry.name_of(LEARNER, type(learner))}"
                )
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
    )


def _mechanism(
    node: Node, registry: Registry
) -> tuple[Mechanism | dict[str, Mechanism], dict[str, float]]:
    """One mechanism, or one per query with optional shares."""
    if not isinstance(node.value, dict) or "name" in node.value:
        return bind(node, MECHANISM, registry), {}
    mechanisms: dict[str, Mechanism] = {}
    shares: dict[str, float] = {}
    for query, given in node.value.items():
        with below(query):
            if isinstance(given.value, dict) and "share" in given.value:
                rest = dict(given.value)
                shares[query] = _share(rest.pop("share"))
                given = attrs.evolve(given, value=rest)
            mechanisms[query] = bind(given, MECHANISM, registry)
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
