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
)
from dpcore.registry.registry import Registry
from dpcore.spec.components import component_schema
from dpcore.spec.grammar import spec_schema


def json_schema(registry: Registry) -> dict[str, Any]:
    """The JSON Schema of a spec with every admitted and installed component."""
    schema, definitions = spec_schema()
    for named in (ACCOUNTANT, EVENT):
        definitions[named.definition] = {"enum": registry.names(named)}
    for kind in (LEARNER, BOUND, MECHANISM, FEATURES, KERNEL):
        definitions[kind.definition], inner = component_schema(kind, registry)
        definitions.update(inner)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "dpcore spec",
        **schema,
        "$defs": definitions,
    }
