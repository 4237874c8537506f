"""`dpcore run SPEC`: open the data, release, and write a run folder."""

import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from dpcore.cli.check import lock_plan, show_plan
from dpcore.cli.console import SlowProgress, guarded, out
from dpcore.domain import Table
from dpcore.evaluation import UNCOVERED, evaluate
from dpcore.lock import lock_of
from dpcore.plan import Outcome, Plan
from dpcore.run_folder import new_folder, public_files, write_files
from dpcore.source import load_table
from dpcore.spec import Spec


def run(
    spec: Annotated[Path, typer.Argument(help="A spec file (YAML).", show_default=False)],
    source: Annotated[
        str | None, typer.Option(help="Use this file or LOADER:NAME instead of the spec's source.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Where run folders are made.")] = Path("runs"),
) -> None:
    """Open the data, publish the release in a new run folder, and state its guarantee."""
    with guarded():
        started = time.monotonic()
        loaded, plan, _ = lock_plan(spec)
        folder = new_folder(runs, spec.stem)
        try:
            table = _open(loaded, source)
            with SlowProgress(plan.most_asks, "releasing") as bar:
                outcome = plan.run(table, progress=bar.step)
            locked = lock_of(loaded, plan, outcome.coins)
            write_files(
                folder / "public",
                public_files(locked, outcome.answers, outcome.models, outcome.guarantee),
            )
        except BaseException:
            _remove_if_empty(folder)
            raise
        console = out()
        show_plan(console, plan, locked)
        _operator(console, loaded, plan, outcome, folder, started)
        console.print(f"Published in {folder / 'public'}", markup=False)


def _open(spec: Spec, override: str | None) -> Table:
    if override is not None:
        return load_table(override, Path(), spec.csv, spec.domain)
    return load_table(spec.source, spec.folder, spec.csv, spec.domain)


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError:
        return  # something was written; it stays for the operator to look at


def _operator(
    console: Console, spec: Spec, plan: Plan, outcome: Outcome, folder: Path, started: float
) -> None:
    """Everything that may depend on records beyond the answers, marked as such."""
    notes: dict[str, Any] = {"warning": UNCOVERED}
    if spec.metrics:
        notes["evaluation"] = evaluate(plan, outcome, spec.metrics)
        _show_evaluation(console, notes["evaluation"])
    notes["seconds"] = round(time.monotonic() - started, 3)
    operator = folder / "operator"
    operator.mkdir()
    (operator / "run.json").write_bytes(
        msgspec.json.format(msgspec.json.encode(notes), indent=2) + b"\n"
    )


def _show_evaluation(console: Console, evaluation: dict[str, dict[str, dict[str, float]]]) -> None:
    table = RichTable(box=box.SIMPLE_HEAD, title=UNCOVERED, title_justify="left", pad_edge=False)
    for heading in ("release", "metric", "private", "constant", "without noise"):
        table.add_column(heading)
    for release, metrics in evaluation.items():
        for metric, errors in metrics.items():
            table.add_row(
                release,
                f"hold-out {metric}",
                *(f"{errors[who]:.6g}" for who in ("private", "constant", "without noise")),
            )
    console.print(table)
