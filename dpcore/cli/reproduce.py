"""`dpcore reproduce SPEC`: run a refuted or conditional claim as printed, marked not private."""

from pathlib import Path
from typing import Annotated

import typer

from dpcore.cli.check import show_plan
from dpcore.cli.console import guarded, out
from dpcore.cli.run import slow_progress
from dpcore.publish.whole_run import reproduce as as_printed


def reproduce(
    spec: Annotated[Path, typer.Argument(help="A spec file (YAML).", show_default=False)],
    source: Annotated[
        str | None, typer.Option(help="Use this file or LOADER:NAME instead of the spec's source.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Where run folders are made.")] = Path("runs"),
) -> None:
    """Run a refuted or conditional spec as printed. The result is NOT private: keep it."""
    with guarded():
        with slow_progress() as progress:
            made = as_printed(spec, source=source, runs=runs, progress=progress)
        console = out()
        show_plan(console, made.guarantee, made.lock)
        console.print(f"Reproduced, NOT PRIVATE, in {made.kept}", markup=False)
