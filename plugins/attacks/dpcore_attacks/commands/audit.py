"""`dpcore audit SPEC`: sample a whole run on made-up neighbours, and test what it claims."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcore.cli.console import guarded
from dpcore.specs.spec import load_spec
from dpcore_attacks.commands.effort_option import EffortOption
from dpcore_attacks.effort import FEWEST


def audit_spec(
    spec: Annotated[Path, typer.Argument(help="A spec file (YAML).", show_default=False)],
    effort: EffortOption = 1.0,
    samples: Annotated[
        int | None,
        typer.Option(
            min=FEWEST,
            help="Runs of either neighbour; 10000 times the effort if left out, fewer where a run "
            "answers much.",
            show_default=False,
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.999999999, help="That no stated bound is too large.")
    ] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the search and the sampled coins.")] = 0,
    pair: Annotated[
        Path | None, typer.Option(help="Sample this saved counterexample instead of searching.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Lower confidence bounds on epsilon, from sampled runs: exit code 1 if a claim is refuted.

    The spec's data is not opened: every record is made up. What was found is written beside the
    spec, where `dpcore check` finds it.
    """
    with guarded():
        loaded = load_spec(spec)

        from dpcore_attacks.commands.audit_view import (
            audited_spec,  # imported for a spec that is right
        )

        if audited_spec(loaded, spec, effort, samples, confidence, seed, pair, json=json):
            raise typer.Exit(1)
