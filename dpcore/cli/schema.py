"""`dpcore schema`: the JSON Schema of specs, with every admitted component."""

from typing import Annotated

import msgspec
import typer

from dpcore.cli.console import guarded
from dpcore.registry.registry import Registry
from dpcore.siblings import sibling
from dpcore.specs.schema import json_schema


def schema(
    experiment: Annotated[
        bool, typer.Option("--experiment", help="Of a paper's experiment, not of a spec.")
    ] = False,
) -> None:
    """Write the JSON Schema of a spec to standard output, for editors and validators."""
    with guarded():
        if experiment:
            document = sibling("experiments", "grammar", "schema --experiment").json_schema()
        else:
            document = json_schema(Registry.default())
        print(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
