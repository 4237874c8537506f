"""`dpcore reproduce SPEC`: run a refuted or conditional claim as printed, marked not private."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpcore.cli.console import guarded, out
from dpcore.cli.run import slow_progress
from dpcore.spec.spec import load_spec


def reproduce(
    spec: Annotated[Path, typer.Argument(help="A spec file (YAML).", show_default=False)],
    source: Annotated[
        str | None, typer.Option(help="Use this file or LOADER:NAME instead of the spec's source.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Where run folders are made.")] = Path("runs"),
) -> None:
    """Run a refuted or conditional spec as printed. The result is NOT private: keep it."""
    with guarded():
        loaded = load_spec(spec)

        from dpcore.cli.plans import show_plan  # imported for a spec that is right
        from dpcore.publish.whole_run import reproduce as as_printed

        with slow_progress() as progress:
            made = as_printed(loaded, source=source, runs=runs, progress=progress)
        console = out()
        show_plan(console, made.guarantee, made.lock)
        console.print(f"Reproduced, NOT PRIVATE, in {made.kept}", markup=False)
