"""The JSON Schema of specs, for editors that check YAML while it is written."""

from __future__ import annotations

from typing import Any

from dpcore.registry.kinds import (
    ACCOUNTANT,
    BOUND,
    EVENT,
    FEATURES,
    KERNEL,
    LEARNER,
    MECHANISM,
    METRIC,
    SOURCE,
)
from dpcore.registry.registry import Registry
from dpcore.specs.components import component_schema
from dpcore.specs.grammar import spec_schema
from dpcore.specs.rules import RULES

_RULED = (
    "BudgetText", "ReleaseText",
    *(f"{kind.definition}_" for kind in (LEARNER, BOUND, MECHANISM, FEATURES, KERNEL)),
)  # fmt: skip


def json_schema(registry: Registry) -> dict[str, Any]:
    """The JSON Schema of a spec with every admitted and installed component."""
    schema, definitions = spec_schema()
    for named in (ACCOUNTANT, EVENT):
        definitions[named.definition] = {"enum": registry.names(named)}
    for kind in (LEARNER, BOUND, MECHANISM, FEATURES, KERNEL, METRIC):
        definitions[kind.definition], inner = component_schema(kind, registry)
        definitions.update(inner)
    for name, own in definitions.items():
        if name.startswith(_RULED) and "properties" in own:
            own["properties"] = {key: _or_rule(one) for key, one in own["properties"].items()}
    definitions["rule"] = RULES
    definitions[SOURCE.definition], inner = _source_schema(registry)
    definitions.update(inner)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dpcore spec",
        **schema,
        "$defs": definitions,
    }


def _or_rule(own: dict[str, Any]) -> dict[str, Any]:
    """A number's schema that takes a rule of choice, too; any other as it is."""
    cases = own.get("anyOf", [own])
    types = {case.get("type") for case in cases}
    if not types <= {"number", "integer", "null"} or types == {"null"}:
        return own
    told: dict[str, Any] = {key: own[key] for key in ("description", "default") if key in own}
    return {**told, "if": {"type": "object"}, "then": {"$ref": "#/$defs/rule"}, "else": own}


def _source_schema(registry: Registry) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of `data.source`: a text, or a component whose name may be left out beside its own key."""
    named, inner = component_schema(SOURCE, registry)
    short = []
    for case in named["then"]["allOf"]:
        own = inner[case["then"]["$ref"].rpartition("/")[2]]
        name = case["if"]["properties"]["name"]["const"]
        if name in own["properties"]:
            rest = {key: value for key, value in own["properties"].items() if key != "name"}
            required = [key for key in own["required"] if key != "name"]
            short.append({**own, "properties": rest, "required": required})
    mapping = {"if": {"required": ["name"]}, "then": named["then"], "else": {"anyOf": short}}
    return {
        "description": named["description"],
        "if": {"type": "object"},
        "then": mapping,
        "else": {"type": "string", "minLength": 1},
    }, inner
