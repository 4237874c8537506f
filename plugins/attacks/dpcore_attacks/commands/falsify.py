"""`dpcore falsify SPEC`: attack the bounds that a spec's guarantee rests on."""

from pathlib import Path

import click

from dpcore.console.console import guarded
from dpcore.console.parameters import PATH, command, spec_argument
from dpcore.specs.spec import load_spec
from dpcore_attacks.commands.effort_option import effort_option


@command()
@spec_argument
@effort_option
@click.option("--seed", default=0, help="Of the search.")
@click.option("--json", is_flag=True, help="Print everything as JSON.")
@click.option(
    "--save", type=PATH, help="Where counterexamples go; the user's data folder if left out."
)
@click.option(
    "--replay", type=PATH, help="Evaluate this saved counterexample instead of searching."
)
def falsify_spec(
    spec: Path, effort: float, seed: int, json: bool, save: Path | None, replay: Path | None
) -> None:
    """Search for neighbours that break the bounds of a spec: exit code 1 if any is found.

    The search uses the spec's domain, adjacency, part and locked randomness, and synthetic records;
    the spec's data is not opened. What is refuted is attacked as printed. Of a function release the
    answers are attacked too, at the worst neighbours found.
    """
    with guarded():
        loaded = load_spec(spec)

        from dpcore_attacks.commands import (
            falsify_view as attacking,  # imported for a spec that is right
        )

        if replay is not None:
            broken = attacking.replayed(loaded, replay)
        else:
            broken = attacking.attacked(loaded, effort, seed, save, json=json)
        if broken:
            raise click.exceptions.Exit(1)
