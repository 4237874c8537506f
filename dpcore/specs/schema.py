"""The JSON Schema of specs, for editors that check YAML while it is written."""

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
    """Return the JSON Schema of a spec with every admitted and installed component."""
    schema, definitions = spec_schema()
    for kind_of_name in (ACCOUNTANT, EVENT):
        definitions[kind_of_name.definition] = {"enum": registry.names(kind_of_name)}
    for kind in (LEARNER, BOUND, MECHANISM, FEATURES, KERNEL, METRIC):
        definitions[kind.definition], inner = component_schema(kind, registry)
        definitions.update(inner)
    for name, definition in definitions.items():
        # A rule may represent any number below the budget and the releases, and nowhere else.
        if name.startswith(_RULED) and "properties" in definition:
            definition["properties"] = {
                key: _or_rule(property_schema)
                for key, property_schema in definition["properties"].items()
            }
    definitions["rule"] = RULES
    definitions[SOURCE.definition], inner = _source_schema(registry)
    definitions.update(inner)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dpcore spec",
        **schema,
        "$defs": definitions,
    }


def _or_rule(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a number's schema that takes a rule of choice, too; any other as it is."""
    cases = schema.get("anyOf", [schema])
    types = {case.get("type") for case in cases}
    # A rule yields a number, so it is only where nothing but a number (or null) fits.
    if not types <= {"number", "integer", "null"} or types == {"null"}:
        return schema
    return {
        **{key: schema[key] for key in ("description", "default") if key in schema},
        "if": {"type": "object"},
        "then": {"$ref": "#/$defs/rule"},
        "else": schema,
    }


def _source_schema(registry: Registry) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of `data.source`: a text, or a component whose name may be left out next to its own key."""
    schema, inner = component_schema(SOURCE, registry)
    short_forms = []
    for case in schema["then"]["allOf"]:
        definition = inner[case["then"]["$ref"].rpartition("/")[2]]
        name = case["if"]["properties"]["name"]["const"]
        if name in definition["properties"]:
            # Each source's own key says which one it is, so the name is not needed next to it.
            properties = {
                key: value for key, value in definition["properties"].items() if key != "name"
            }
            required = [key for key in definition["required"] if key != "name"]
            short_forms.append({**definition, "properties": properties, "required": required})
    mapping = {"if": {"required": ["name"]}, "then": schema["then"], "else": {"anyOf": short_forms}}
    return {
        "description": schema["description"],
        "if": {"type": "object"},
        "then": mapping,
        "else": {"type": "string", "minLength": 1},
    }, inner
