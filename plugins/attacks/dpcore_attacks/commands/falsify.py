"""`dpcore falsify SPEC`: attack the bounds that a spec's guarantee rests on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcore.cli.console import guarded
from dpcore.specs.spec import load_spec
from dpcore_attacks.commands.effort_option import EffortOption


def falsify_spec(
    spec: Annotated[Path, typer.Argument(help="A spec file (YAML).", show_default=False)],
    effort: EffortOption = 1.0,
    seed: Annotated[int, typer.Option(help="Of the search.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    save: Annotated[
        Path | None,
        typer.Option(help="Where counterexamples go; the user's data folder if left out."),
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(help="Evaluate this saved counterexample instead of searching.")
    ] = None,
) -> None:
    """Search for neighbours that break the bounds of a spec: exit code 1 if any is found.

    The search uses the spec's domain, adjacency, part and locked coins, and made-up records; the
    spec's data is not opened. What is refuted is attacked as printed. Of a function release the
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
            raise typer.Exit(1)
