"""`dpcore test PLUGIN`: every law and every attack on all that a plugin provides."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from dpcore.cli.console import guarded, out
from dpcore.cli.efforts import EffortOption, SecondsOption
from dpcore.cli.verdicts import NO_PROOF, SYNTHETIC, keep, show_findings, show_verdicts
from dpcore.conformance.effort import Effort
from dpcore.conformance.kit import examine
from dpcore.registry.registry import Registry


def examine_plugin(
    plugin: Annotated[
        str, typer.Argument(help="An admitted plugin, or dpcore itself.", show_default=False)
    ],
    effort: EffortOption = 1.0,
    seed: Annotated[int, typer.Option(help="Of the search.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    every: Annotated[bool, typer.Option("--all", help="A line for every verdict.")] = False,
    save: Annotated[
        Path | None,
        typer.Option(help="Where counterexamples go; the user's data folder if left out."),
    ] = None,
    seconds: SecondsOption = None,
) -> None:
    """Put a plugin to the test: exit code 0 if no law is broken, else 1. No data is opened."""
    with guarded():
        registry = Registry.default()
        report = examine(plugin, registry, Effort().times(effort), seed)
        saved = keep(report.findings, registry, save)
        if json:
            found = {**report.to_dict(), "counterexamples": [str(path) for path in saved]}
            print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        else:
            console = out()
            show_verdicts(console, report.verdicts, everything=every)
            show_findings(console, report.findings)
            for path in saved:
                console.print(f"counterexample: {path}", markup=False)
            broken = sorted({verdict.law.id for verdict in report.verdicts if verdict.failed})
            verdict = f"breaks {', '.join(broken)}" if broken else "breaks no law"
            console.print(f"{plugin} {verdict}. {SYNTHETIC} {NO_PROOF}", markup=False)
        if not report.passed:
            raise typer.Exit(1)
