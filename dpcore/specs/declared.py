"""What a spec declares: columns, counts, adjacency and budget, from located YAML to objects.

A sweep becomes one release for every combination of listed values: the release's YAML is rewritten.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import attrs

from dpcore.adjacency import RELATIONS, Adjacency, replace_features
from dpcore.claims.accounting.budget import PrivacyBudget
from dpcore.claims.plan.parts import part_domain
from dpcore.domain.bins import Binned
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Dates, Range, Texts
from dpcore.domain.conditions import Condition
from dpcore.domain.domain import Column, Domain, People
from dpcore.errors import SpecError, below, map_below, near, need, shown
from dpcore.specs.columns import condition, declared_column, derivation
from dpcore.specs.grammar import (
    AtMost,
    BudgetText,
    DataText,
    DomainText,
    ReplaceFeatures,
    SampledOf,
    SpecText,
)
from dpcore.yaml.conversion import convert
from dpcore.yaml.located import Node

MOST_POINTS = 1000


@attrs.frozen(eq=False)
class Point:
    """One combination.

    Args:
        node: The spec with the combination's values in place.
        values: By dotted path, as plain data.
    """

    node: Node
    values: Mapping[str, Any]


def points(spec: Node, grid: Node) -> tuple[Point, ...]:
    """Return every combination of `grid`, the last path varying fastest.

    Raises:
        SpecError: a path leads nowhere below `release` or `releases`, a list is empty, or there
            are more than 1000 combinations.
    """
    need(grid.mapping, SpecError, "needs a mapping from dotted paths to lists")
    choices: list[tuple[str, list[Node]]] = []
    for path, values in grid.mapping.items():
        with below(path):
            if not isinstance(values.value, list) or not values.value:
                raise SpecError("needs a list of values")
        need(
            path.split(".")[0] in ("release", "releases"),
            SpecError,
            f"{shown(path)}: a path starts with release or releases",
            key=path,
        )
        # Try each path once before building all combinations, so that a wrong one fails at its key.
        _replace(spec, path, values.value[0], grid)
        choices.append((path, values.value))
    need(
        math.prod(len(values) for _, values in choices) <= MOST_POINTS,
        SpecError,
        f"more than {MOST_POINTS} combinations",
    )
    combinations = []
    for combination in itertools.product(*(values for _, values in choices)):
        node, point_values = spec, {}
        for (path, _), value in zip(choices, combination, strict=True):
            node = _replace(node, path, value, grid)
            point_values[path] = value.plain()
        combinations.append(Point(node, point_values))
    return tuple(combinations)


def _replace(spec: Node, path: str, value: Node, grid: Node) -> Node:
    """Return a copy of `spec` with `value` at a path of `grid` whose last key may be new."""

    def replace(node: Node, steps: list[str]) -> Node:
        if not steps:
            return value
        head, *tail = steps
        inner = node.value
        # Copies along the path only: points share all other nodes. The last key may be new, so
        # that a sweep can set a field that the spec leaves to its default.
        if isinstance(inner, dict) and (head in inner or not tail):
            replacement = replace(inner[head], tail) if head in inner else value
            keys = {head: grid.keys[path], **node.keys}
            return attrs.evolve(node, value={**inner, head: replacement}, keys=keys)
        if isinstance(inner, list) and head.isdecimal() and int(head) < len(inner):
            index = int(head)
            replacement = replace(inner[index], tail)
            return attrs.evolve(node, value=[*inner[:index], replacement, *inner[index + 1 :]])
        hint = near(head, inner) if isinstance(inner, dict) else ""
        raise SpecError(f"{shown(path)} leads nowhere at {shown(head)}{hint}", key=path)

    return replace(spec, path.split("."))


def releases(spec: Node) -> list[tuple[tuple[str, ...], Node]]:
    """`release`, or each of `releases`, with the keys that lead to it."""
    if "release" in spec.mapping:
        return [(("release",), spec.mapping["release"])]
    entries = cast(list[Node], spec.mapping["releases"].value)
    return [(("releases", str(number)), node) for number, node in enumerate(entries)]


@attrs.frozen(kw_only=True)
class Declared:
    """What the text of a spec says, before any component is looked up.

    Args:
        points: The spec once for every point of its sweep.
    """

    text: SpecText
    domain: Domain
    adjacency: Adjacency
    budget: PrivacyBudget
    holdout: float
    points: tuple[Point, ...]
    on_invalid: Literal["refuse", "project"]


def declared(node: Node) -> Declared:
    """Return what the spec at `node` declares.

    Raises:
        SpecError: at the key that is unknown, missing, impossible or at odds with another.
    """
    # A ledger names persons in its adjacency; a spec says with its data whose a record is.
    relation = node.mapping.get("adjacency", node).mapping
    way = "needs add_remove or replace_one, and data.domain.people: {column: ID, records: N}"
    need("person" not in relation, SpecError, way, "adjacency")
    text = convert(node, SpecText)
    need(
        text.release is not None or text.releases is not None,
        SpecError,
        "needs either 'release' or 'releases'",
    )
    need(
        text.release is None or text.releases is None,
        SpecError,
        "needs either 'release' or 'releases', not both",
        key="releases",
    )
    domain = declared_domain(node, text.data)
    adjacency = declared_adjacency(text, domain)
    holdout = text.evaluate.holdout if text.evaluate else 0.0
    # Refuse a split that the declared count and unit do not admit, before a component is looked up.
    part_domain(domain, adjacency, holdout)
    sweep_points: tuple[Point, ...] = (Point(node, {}),)
    if text.sweep:
        with below("sweep", "grid"):
            sweep_points = points(node, child(node, "sweep", "grid"))
    return Declared(
        text=text,
        domain=domain,
        adjacency=adjacency,
        budget=declared_budget(text.budget),
        holdout=holdout,
        points=sweep_points,
        on_invalid=_on_invalid(text),
    )


def child(node: Node, *keys: str) -> Node:
    """Return the node at a path of keys that is known to exist."""
    for key in keys:
        node = node.mapping[key]
    return node


def declared_adjacency(text: SpecText, domain: Domain) -> Adjacency:
    """`adjacency`, whose forms the grammar has checked; of a person, where people are declared.

    Raises:
        SpecError: it is not about whole records, and people are declared.
    """
    with below("adjacency"):
        # A declared person lifts the relation from one record to all records of one person.
        return domain.relation(_of_records(text.adjacency))


def _of_records(text: str | ReplaceFeatures) -> Adjacency:
    if isinstance(text, str):
        return RELATIONS[text]
    inner = text.replace_features
    with below("replace_features"):
        return replace_features(inner.radius, label=inner.label == "free")


def declared_domain(node: Node, data: DataText) -> Domain:
    """`data.domain` of the spec at `node`.

    Raises:
        SpecError: at the column, range or count that is impossible.
    """
    with below("data", "domain"):
        return _domain(child(node, "data", "domain"), data)


def _domain(here: Node, data: DataText) -> Domain:
    columns, domain = child(here, "columns"), data.domain
    need(columns.mapping, SpecError, "needs a mapping of columns", "columns")
    need(
        data.target is None or data.target not in columns.mapping,
        SpecError,
        f"the target {shown(data.target)} may not be a feature too",
        "columns",
        key=data.target,
    )
    labels = _target_labels(here, data)
    features = map_below(declared_column, columns.mapping.items(), "columns")
    group_columns = _groups(here, [*features, data.target])
    records = domain.records
    rules = {**features, **group_columns, **({data.target: labels} if data.target else {})}
    return Domain(
        columns=features,
        target=data.target,
        labels=labels,
        # A private count is not in the domain at all, so nothing that is priced can depend on it.
        exact=records if isinstance(records, int) else None,
        limit=records.at_most if isinstance(records, AtMost) else None,
        norm=domain.norm,
        people=_people(domain, [*features, *group_columns, data.target]),
        groups=group_columns,
        sampled=domain.sampled.of if isinstance(domain.sampled, SampledOf) else domain.sampled,
        derived={
            name: derived
            for node in (columns, *filter(None, [here.mapping.get("groups")]))
            for name, column in node.mapping.items()
            if (derived := derivation(column)) is not None
        },
        only=_only(here, rules),
    )


def _only(here: Node, rules: Mapping[str, Any]) -> dict[str, Condition]:
    """`data.domain.only`.

    Raises:
        SpecError: at a column that is not declared, or a condition of no form.
    """
    if "only" not in here.mapping:
        return {}
    conditions, node = {}, child(here, "only")
    need(isinstance(node.value, dict) and node.value, SpecError, "needs columns", "only")
    for name, entry in node.mapping.items():
        with below("only", name):
            way = "needs a declared column: list it under groups where it is no feature"
            need(name in rules, SpecError, way)
            conditions[name] = condition(entry, rules[name])
    return conditions


def _groups(here: Node, reserved_names: Sequence[str | None]) -> dict[str, Column]:
    """`data.domain.groups`.

    Raises:
        SpecError: at one that is a feature or the target, or is no column.
    """
    if "groups" not in here.mapping:
        return {}
    node, groups = child(here, "groups"), {}
    need(isinstance(node.value, dict), SpecError, "needs a mapping of columns", "groups")
    for name, column in node.mapping.items():
        with below("groups", name):
            need(
                name not in reserved_names,
                SpecError,
                f"{shown(name)} is a feature or the target: it is there already",
            )
            groups[name] = declared_column(column)
    return groups


def _people(domain: DomainText, reserved_names: Sequence[str | None]) -> People | None:
    """Raises SpecError at a column that is a feature or the target."""
    if (text := domain.people) is None:
        return None
    need(
        text.column not in reserved_names,
        SpecError,
        f"needs a column that is neither feature nor target, got {shown(text.column)}",
        ("people", "column"),
    )
    return People(column=text.column, records=text.records)


def _target_labels(here: Node, data: DataText) -> Range | Classes | None:
    """Return the target's labels, where there is a target.

    Raises:
        SpecError: its column is named and not described, or the reverse.
    """
    has_labels = "target" in here.mapping
    requirement = (
        "a range or classes, as data.target names a column"
        if data.target
        else "data.target, the name of the column that it describes"
    )
    need(
        has_labels == (data.target is not None),
        SpecError,
        f"needs {requirement}; a domain without a target leaves both out",
        "target",
    )
    return _labels(child(here, "target")) if has_labels else None


def _labels(node: Node) -> Range | Classes:
    """`data.domain.target`, in the forms of a column: a range, or categories as classes."""
    with below("target"):
        column = declared_column(node)
        is_made = isinstance(column, Binned) or derivation(node) is not None
        need(not is_made, SpecError, "needs a column as it is: no bins, and not derived")
        if isinstance(column, Dates | Texts):
            raise SpecError("needs numbers or classes: dates and texts are features only")
        need(
            not isinstance(column, Range) or not column.missing,
            SpecError,
            "needs a label in every record: a target may not be missing",
            "missing",
        )
        if isinstance(column, Range):
            return column
        return Classes(column.values, column.default, column.spellings, column.as_text)


def declared_budget(text: BudgetText) -> PrivacyBudget:
    """`budget`.

    Raises:
        SpecError: at the parameter that is impossible, or where the form is none of the three.
    """
    with below("budget"):
        # Exactly one of the three, so that the meaning of delta is never in doubt.
        keys = {name for name in ("epsilon", "rho", "mu") if getattr(text, name) is not None}
        if keys == {"epsilon"} and text.epsilon is not None:
            return PrivacyBudget(epsilon=text.epsilon, delta=text.delta or 0.0)
        if keys == {"mu"} and text.mu is not None and text.delta is not None:
            return PrivacyBudget.from_mu(text.mu, text.delta)
        if keys == {"rho"} and text.rho is not None and text.delta is not None:
            return PrivacyBudget.from_rho(text.rho, text.delta)
        raise SpecError("needs {epsilon, [delta]}, {rho, delta} or {mu, delta}")


def _on_invalid(text: SpecText) -> Literal["refuse", "project"]:
    """`refuse` unless asked otherwise; a sealed run projects and has no operator channel.

    Raises:
        SpecError: a sealed run is asked to refuse or to evaluate.
    """
    # Refusing a record says one bit about it to anyone who started the run. A sealed run may say
    # nothing but what it publishes.
    if not text.sealed:
        return text.on_invalid or "refuse"
    need(
        text.on_invalid != "refuse",
        SpecError,
        "a sealed run maps every record into the domain: project",
        "on_invalid",
    )
    need(
        text.evaluate is None or not text.evaluate.metrics or text.evaluate.private is not None,
        SpecError,
        "a sealed run has no operator to show it to; pay for it with private",
        "evaluate",
    )
    return "project"
