"""`dpcore audit SPEC`: sample a whole run on synthetic neighbours, and test what it claims."""

from pathlib import Path

import click

from dpcore.console.console import guarded
from dpcore.console.parameters import PATH, command, spec_argument
from dpcore.specs.spec import load_spec
from dpcore_attacks.commands.effort_option import effort_option
from dpcore_attacks.effort import FEWEST


@command()
@spec_argument
@effort_option
@click.option(
    "--samples",
    type=click.IntRange(min=FEWEST),
    help="Runs of either neighbour; 10000 times the effort if left out, fewer where a run "
    "answers much.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0.5, 0.999999999),
    default=0.95,
    help="That no stated bound is too large.",
)
@click.option("--seed", default=0, help="Of the search and the sampled randomness.")
@click.option("--pair", type=PATH, help="Sample this saved counterexample instead of searching.")
@click.option("--json", is_flag=True, help="Print everything as JSON.")
def audit_spec(
    spec: Path,
    effort: float,
    samples: int | None,
    confidence: float,
    seed: int,
    pair: Path | None,
    json: bool,
) -> None:
    """Lower confidence bounds on epsilon, from sampled runs: exit code 1 if a claim is refuted.

    The spec's data is not opened: every record is made up. What was found is written next to the
    spec, where `dpcore check` finds it.
    """
    with guarded():
        loaded = load_spec(spec)

        from dpcore_attacks.commands.audit_view import (
            audited_spec,  # imported for a spec that is right
        )

        if audited_spec(loaded, spec, effort, samples, confidence, seed, pair, json=json):
            raise click.exceptions.Exit(1)
