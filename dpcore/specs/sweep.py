"""Sweep: one release for every combination of listed values, by rewriting the release's YAML."""

import itertools
import math
from collections.abc import Mapping
from typing import Any, cast

import attrs

from dpcore.errors import SpecError, below, near, need, shown
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
    """Every combination of `grid`, the last path varying fastest.

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
    """A copy of `spec` with `value` at a path of `grid` whose last key may be new."""

    def replace(node: Node, steps: list[str]) -> Node:
        if not steps:
            return value
        head, *tail = steps
        inner = node.value
        # Copies along the path alone: points share all other nodes. The last key may be new, so
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
