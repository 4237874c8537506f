"""Spec: one YAML file to frozen objects. Whoever reads the file can state the guarantee."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import attrs

from dpcore.accountant import Accountant
from dpcore.adjacency import REPLACE_ONE, Adjacency
from dpcore.budget import PrivacyBudget
from dpcore.components import bind, component_schema
from dpcore.domain import Categories, Column, Domain, Range
from dpcore.errors import ParameterError, SpecError
from dpcore.grammar import (
    AtMost,
    BudgetText,
    CategoriesColumn,
    Csv,
    DomainText,
    RangeColumn,
    SpecText,
    spec_schema,
)
from dpcore.kinds import ACCOUNTANT, BOUND, FEATURES, LEARNER, MECHANISM
from dpcore.mechanism import Mechanism
from dpcore.plan import Plan, Release
from dpcore.pricing import price
from dpcore.randomness import PublicCoins
from dpcore.registry import Registry
from dpcore.schedule import part_domain
from dpcore.strict import convert
from dpcore.yaml_text import Node, parse, read


@attrs.frozen(kw_only=True, eq=False)
class Spec:
    """A validated spec: what to read, what is public about it, what to publish.

    Args:
        text: The spec as plain data, for the lock.
        where: FILE:LINE:COLUMN of what is released.
        source: As written: a path relative to the spec, or LOADER:NAME.
        folder: Where the spec stands; None for one rebuilt from a lock.
        metrics: What the operator wants to see of the hold-out; empty without `evaluate`.
    """

    text: Mapping[str, Any]
    where: str
    source: str
    folder: Path | None
    csv: Csv
    domain: Domain
    adjacency: Adjacency
    budget: PrivacyBudget
    releases: tuple[Release, ...]
    accountant: Accountant | None
    coins: PublicCoins | None
    holdout: float
    metrics: tuple[str, ...]
    registry: Registry

    def price(self, coins: PublicCoins | None = None) -> Plan:
        """The priced plan, at the spec's pinned coins, else at `coins`, else at fresh ones.

        Raises:
            NoClaimError: no guarantee can be stated.
            SpecError: components do not fit together, at the place of the release.
        """
        try:
            return price(
                domain=self.domain,
                adjacency=self.adjacency,
                budget=self.budget,
                releases=self.releases,
                accountant=self.accountant,
                coins=self.coins or coins,
                holdout=self.holdout,
                registry=self.registry,
            )
        except SpecError as error:
            raise SpecError(error.message, error.where or self.where) from None


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
    text = convert(node, SpecText, "")
    domain = _domain(node, text)
    holdout = text.evaluate.holdout if text.evaluate else 0.0
    try:
        part_domain(domain, REPLACE_ONE, holdout)
    except ParameterError as error:
        raise SpecError(error.message, _at(node, "data", "domain", "records")) from None
    release = _release(_child(node, "release"), text.release.name, registry)
    accountant = None
    if text.accountant is not None:
        accountant = _accountant(_child(node, "accountant"), REPLACE_ONE, registry)
    return Spec(
        text=node.plain(),
        where=_at(node, "release"),
        source=text.data.source,
        folder=folder,
        csv=text.data.csv,
        domain=domain,
        adjacency=REPLACE_ONE,
        budget=_budget(text.budget, _child(node, "budget")),
        releases=(release,),
        accountant=accountant,
        coins=PublicCoins(text.coins.public) if text.coins else None,
        holdout=holdout,
        metrics=tuple(text.evaluate.metrics) if text.evaluate else (),
        registry=registry,
    )


def _child(node: Node, *keys: str) -> Node:
    for key in keys:
        node = cast(dict[str, Node], node.value)[key]
    return node


def _at(node: Node, *keys: str) -> str:
    return _child(node, *keys).where


def _domain(node: Node, text: SpecText) -> Domain:
    here, domain = _child(node, "data", "domain"), text.data.domain
    columns = _child(here, "columns")
    if not isinstance(columns.value, dict) or not columns.value:
        raise SpecError("data.domain.columns: needs a mapping of columns", columns.where)
    target = _child(here, "target")
    labels = _construct(target, "data.domain.target", lambda: Range(*domain.target))
    exact, limit = _count(domain)
    if text.data.target in columns.value:
        raise SpecError(
            f"data.domain.columns: the target {text.data.target!r} may not be a feature too",
            columns.where_key(text.data.target),
        )
    read_columns = {
        name: _column(child, f"data.domain.columns.{name}") for name, child in columns.value.items()
    }
    return cast(
        Domain,
        _construct(
            here,
            "data.domain",
            lambda: Domain(
                columns=read_columns,
                target=text.data.target,
                labels=labels,
                exact=exact,
                limit=limit,
                norm=domain.norm,
            ),
        ),
    )


def _count(domain: DomainText) -> tuple[int | None, int | None]:
    """(exact, limit)."""
    if isinstance(domain.records, AtMost):
        return None, domain.records.at_most
    return (None, None) if isinstance(domain.records, str) else (domain.records, None)


def _construct(node: Node, owner: str, make: Any) -> Any:
    """`make()`, with a parameter error put at its place in the file."""
    try:
        return make()
    except ParameterError as error:
        inner = node.value.get(error.field, node) if isinstance(node.value, dict) else node
        raise SpecError(f"{owner}: {error.message}", inner.where) from None


def _column(node: Node, owner: str) -> Column:
    value = node.value
    if isinstance(value, dict) and "categories" in value:
        listed = convert(node, CategoriesColumn, owner)
        categories, default = tuple(listed.categories), listed.default
        return cast(Column, _construct(node, owner, lambda: Categories(categories, default)))
    if isinstance(value, dict):
        ranged = convert(node, RangeColumn, owner)
        return cast(Column, _construct(node, owner, lambda: Range(*ranged.range, ranged.default)))
    if isinstance(value, list):
        texts = [child.value for child in value if isinstance(child.value, str)]
        numbers = [
            child.value
            for child in value
            if isinstance(child.value, int | float) and not isinstance(child.value, bool)
        ]
        if len(texts) == len(value) and value:
            return cast(Column, _construct(node, owner, lambda: Categories(tuple(texts))))
        if len(numbers) == len(value) == 2:
            return cast(Column, _construct(node, owner, lambda: Range(numbers[0], numbers[1])))
    raise SpecError(
        f"{owner}: needs [low, high], a list of texts, {{range: [low, high]}} or "
        f"{{categories: [...]}}",
        node.where,
    )


def _budget(text: BudgetText, node: Node) -> PrivacyBudget:
    def make() -> PrivacyBudget:
        if text.epsilon is not None and text.mu is None:
            return PrivacyBudget(epsilon=text.epsilon, delta=text.delta or 0.0)
        if text.mu is not None and text.epsilon is None and text.delta is not None:
            return PrivacyBudget.from_mu(text.mu, text.delta)
        raise SpecError("budget: needs {epsilon, [delta]} or {mu, delta}", node.where)

    return cast(PrivacyBudget, _construct(node, "budget", make))


def _release(node: Node, name: str, registry: Registry) -> Release:
    parts = cast(dict[str, Node], node.value)
    learner = bind(parts["learner"], LEARNER, registry, "release.learner")
    bound = None
    if "bound" in parts:
        bound = bind(parts["bound"], BOUND, registry, "release.bound")
        if bound.learner is not type(learner):
            raise SpecError(
                f"release.bound: it is about {bound.learner.__name__}, the learner is "
                f"{type(learner).__name__}",
                parts["bound"].where,
            )
    mechanism, shares = _mechanism(parts["mechanism"], registry)
    return Release(
        learner=learner, mechanism=mechanism, bound=bound, name=name, query_shares=shares
    )


def _mechanism(
    node: Node, registry: Registry
) -> tuple[Mechanism | dict[str, Mechanism], dict[str, float]]:
    """One mechanism, or one per query with optional shares."""
    if not isinstance(node.value, dict) or "name" in node.value:
        return bind(node, MECHANISM, registry, "release.mechanism"), {}
    mechanisms: dict[str, Mechanism] = {}
    shares: dict[str, float] = {}
    for query, child in node.value.items():
        where = f"release.mechanism.{query}"
        if isinstance(child.value, dict) and "share" in child.value:
            rest = dict(child.value)
            share = rest.pop("share")
            if isinstance(share.value, bool) or not isinstance(share.value, int | float):
                raise SpecError(f"{where}.share: needs a number", share.where)
            if share.value <= 0:
                raise SpecError(f"{where}.share: needs a share > 0", share.where)
            shares[query] = float(share.value)
            child = attrs.evolve(child, value=rest)
        mechanisms[query] = bind(child, MECHANISM, registry, where)
    return mechanisms, shares


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
