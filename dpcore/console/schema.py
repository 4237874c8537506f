"""`dpcore schema`: the JSON Schema of specs, with every admitted component."""

import click

from dpcore.console.console import guarded, show_json
from dpcore.console.parameters import command
from dpcore.registry.registry import Registry
from dpcore.siblings import sibling
from dpcore.specs.schema import json_schema


@command()
@click.option("--experiment", is_flag=True, help="Of a paper's experiment, not of a spec.")
def schema(experiment: bool) -> None:
    """Write the JSON Schema of a spec to standard output, for editors and validators."""
    with guarded():
        show_json(
            sibling("experiments", "grammar", "schema --experiment").json_schema()
            if experiment
            else json_schema(Registry.default())
        )
