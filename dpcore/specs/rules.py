"""Rules of choice: `{rule: PAPER/STATEMENT, take: NAME}` becomes a number before a spec is read.

A paper's choice of lambda, epsilon, a rate or a number of steps or features is a statement's number
(`dpcore theory`), computed from what is in the spec: from public facts only. A lock holds the
number itself, so that a replay needs no statement.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

import attrs

from dpcore.errors import SpecError, below, map_below, nearest, need, shown
from dpcore.yaml.located import Node

if TYPE_CHECKING:
    from dpcore.learners.statement import Statement
    from dpcore.registry.registry import Registry

RULE, TAKE, WHICH, TIMES, WHOLE = "rule", "take", "which", "times", "whole"
RECORDS = "records"
"""In the place of a parameter's value: the declared number of records, where it is public."""

RULES: dict[str, Any] = {
    "title": "rule",
    "description": "A paper's choice of a number, computed from what is in the spec.",
    "type": "object",
    "properties": {
        RULE: {"type": "string", "description": "The statement: PAPER/STATEMENT."},
        TAKE: {"type": "string", "description": "Which of its numbers, where it has several."},
        WHICH: {
            "enum": ["printed", "corrected"],
            "description": "As printed, or as corrected: that by default, where there is one.",
        },
        TIMES: {"type": "number", "description": "A constant that multiplies the number."},
        WHOLE: {"type": "boolean", "description": "Whether it is rounded up to an integer."},
    },
    "required": [RULE],
    "additionalProperties": {"anyOf": [{"type": "number"}, {"const": RECORDS}]},
}
"""The JSON Schema of a rule; other keys are the statement's parameters."""

_OWN = (RULE, TAKE, WHICH, TIMES, WHOLE)
_WHERE = ("budget", "release", "releases")


def with_rules(node: Node, registry: Registry | None) -> Node:
    """Return the spec at `node` with the numbers of its rules, below its budget and its releases.

    Keys of a rule: `rule`, the statement; `take`, which of its numbers, where it has several;
    `which`, `corrected` (if there is one, by default) or `printed`; `times`, a constant, since
    papers choose up to constants; `whole: true` rounds up to an integer; all others are parameters.

    Raises:
        SpecError: at a rule that is none, or has no finite number.
    """
    if not isinstance(node.value, dict):
        return node
    value = dict(node.value)
    # Only these parts may hold a rule: what the domain declares is an input of rules, never their
    # result.
    reader = _Reader(_records(node), registry)
    for key in _WHERE:
        if key in value:
            with below(key):
                value[key] = reader.replace_rules(value[key])
    return attrs.evolve(node, value=value) if reader.has_rules else node


def _records(node: Node) -> int | None:
    """Return the declared number of records, if it is public."""
    for key in ("data", "domain", "records"):
        if not isinstance(node.value, dict) or key not in node.value:
            return None
        node = node.value[key]
    return node.value if isinstance(node.value, int) else None


@attrs.define
class _Reader:
    """Replaces rules by numbers, from the leaves up to the root."""

    records: int | None
    registry: Registry | None
    has_rules: bool = False

    def replace_rules(self, node: Node) -> Node:
        """`node` with the rules in it replaced."""
        if isinstance(node.value, list):
            return attrs.evolve(
                node, value=[*map_below(self.replace_rules, enumerate(node.value)).values()]
            )
        if not isinstance(node.value, dict):
            return node
        # The number is where the rule was, so an error about it points at the rule.
        if RULE in node.value:
            self.has_rules = True
            return attrs.evolve(node, value=self.number(node.value), keys={})
        return attrs.evolve(node, value=map_below(self.replace_rules, node.value.items()))

    def number(self, rule: dict[str, Node]) -> int | float:
        """Return the number that a rule chooses, an integer where `whole` says so."""
        # Imported late: a spec without rules is read without a registry.
        from dpcore.registry.plugin_files import find_entry
        from dpcore.registry.registry import Registry

        plain = {key: entry.plain() for key, entry in rule.items()}
        registry = Registry.default() if self.registry is None else self.registry
        with below(RULE):
            statement: Statement = find_entry(registry, "theory", "statement", str(plain[RULE]))
        values = statement.values(
            {key: self._parameter(key, value) for key, value in plain.items() if key not in _OWN}
        )
        result = self._pick_number(self._side(values, plain), plain) * self._times(plain)
        need(
            math.isfinite(result), SpecError, "the rule has no finite number for these values", RULE
        )
        rounds_up = plain.get(WHOLE, False)
        need(isinstance(rounds_up, bool), SpecError, "needs true or false", WHOLE)
        return math.ceil(result) if rounds_up else result

    def _parameter(self, key: str, value: Any) -> int | float:
        """Return a number, or the public number of records."""
        if value == RECORDS:
            # A number that depends on a private count would be published in the lock.
            if self.records is None:
                raise SpecError("the number of records is private here: give a public number", key)
            return self.records
        need(
            not isinstance(value, bool) and isinstance(value, int | float),
            SpecError,
            f"needs a number, or {RECORDS!r}, got {shown(value)}",
            key,
        )
        return cast(float, value)

    def _side(self, values: dict[str, dict[str, float]], plain: dict[str, Any]) -> dict[str, float]:
        """As corrected, unless asked otherwise or there is no correction."""
        which = plain.get(WHICH, [*values][-1])
        need(which in values, SpecError, f"needs {' or '.join(values)}, got {shown(which)}", WHICH)
        return values[cast(str, which)]

    def _pick_number(self, side: dict[str, float], plain: dict[str, Any]) -> float:
        take = plain.get(TAKE, next(iter(side)) if len(side) == 1 else None)
        need(
            take in side,
            SpecError,
            f"needs one of {', '.join(side)}{nearest(str(take), side)}",
            TAKE if TAKE in plain else RULE,
        )
        return side[cast(str, take)]

    def _times(self, plain: dict[str, Any]) -> float:
        times = plain.get(TIMES, 1)
        need(
            not isinstance(times, bool) and isinstance(times, int | float) and times > 0,
            SpecError,
            "needs a number > 0",
            TIMES,
        )
        return float(times)
