"""`dpcore reproduce SPEC`: run a refuted or conditional claim as printed, marked not private."""

from pathlib import Path
from typing import Annotated

import typer

from dpcore.cli.check import ledger_of, show_plan
from dpcore.cli.console import guarded, out
from dpcore.cli.run import load_all_points, open_and_run
from dpcore.errors import SpecError
from dpcore.publish.folder import new_folder, public_files, write_files
from dpcore.publish.lock import lock_of
from dpcore.randomness import SecretCoins
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
        if loaded.request.sealed:
            with loaded.placed():
                raise SpecError("it has no operator channel to show a reproduction on", "sealed")
        plan = loaded.price(reproduce=True)
        points = load_all_points(loaded)
        with loaded.placed():
            plan.encode_points(points)
        ledger = ledger_of(loaded)
        folder = new_folder(runs, spec.stem)
        if ledger is not None:
            ledger.note(f"{folder.name}: a reproduction as printed, not private")
        kept = folder / "operator" / "reproduction"
        outcome = open_and_run(loaded, plan, source, SecretCoins.draw(), points)
        locked = lock_of(loaded, plan, outcome.coins)
        write_files(kept, public_files(locked, outcome.answers, outcome.models, outcome.guarantee))
        console = out()
        show_plan(console, outcome.guarantee, locked)
        console.print(f"Reproduced, NOT PRIVATE, in {kept}", markup=False)
