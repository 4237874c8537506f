"""`dpcore schema`: the JSON Schema of specs, with every admitted component."""

import msgspec

from dpcore.cli.console import guarded
from dpcore.registry.registry import Registry
from dpcore.spec.schema import json_schema


def schema() -> None:
    """Write the JSON Schema of a spec to standard output, for editors and validators."""
    with guarded():
        found = json_schema(Registry.default())
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
