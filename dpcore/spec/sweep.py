"""Sweep: one release for every combination of listed values, by rewriting the release's YAML."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, cast

import attrs

from dpcore.errors import SpecError
from dpcore.strict_yaml.located import Node

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
    """Every combination of `grid`, the last path varying fastest.

    Raises:
        SpecError: a path leads nowhere below `release` or `releases`, a list is empty, or there
            are more than 1000 combinations.
    """
    if not isinstance(grid.value, dict) or not grid.value:
        raise SpecError("sweep.grid: needs a mapping from dotted paths to lists", grid.where)
    choices: list[tuple[str, list[Node]]] = []
    for path, values in grid.value.items():
        if not isinstance(values.value, list) or not values.value:
            raise SpecError(f"sweep.grid.{path}: needs a list of values", values.where)
        if path.split(".")[0] not in ("release", "releases"):
            raise SpecError(
                f"sweep.grid.{path}: a path starts with release or releases", grid.where_key(path)
            )
        _replace(spec, path.split("."), values.value[0], grid.where_key(path))
        choices.append((path, values.value))
    if math.prod(len(values) for _, values in choices) > MOST_POINTS:
        raise SpecError(f"sweep.grid: more than {MOST_POINTS} combinations", grid.where)
    found = []
    for combination in itertools.product(*(values for _, values in choices)):
        node, told = spec, {}
        for (path, _), value in zip(choices, combination, strict=True):
            node = _replace(node, path.split("."), value, grid.where_key(path))
            told[path] = value.plain()
        found.append(Point(node, told))
    return tuple(found)


def _replace(node: Node, steps: list[str], value: Node, where: str) -> Node:
    """A copy of `node` with `value` at a path whose last key may be new."""
    if not steps:
        return value
    head, *rest = steps
    inner = node.value
    if isinstance(inner, dict) and (head in inner or not rest):
        below = _replace(inner[head], rest, value, where) if head in inner else value
        return attrs.evolve(node, value={**inner, head: below})
    if isinstance(inner, list) and head.isdecimal() and int(head) < len(inner):
        index = int(head)
        changed = _replace(inner[index], rest, value, where)
        return attrs.evolve(node, value=[*inner[:index], changed, *inner[index + 1 :]])
    raise SpecError(f"sweep.grid: the path leads nowhere at {head!r}", where)


def release_nodes(spec: Node) -> list[Node]:
    """The nodes of `release` or `releases`."""
    parts = cast(dict[str, Node], spec.value)
    if "release" in parts:
        return [parts["release"]]
    return cast(list[Node], parts["releases"].value)
