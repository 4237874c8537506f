"""`dpcore run SPEC`: open the data, release, and write a run folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dpcore.cli.console import (
    JsonOption,
    columns,
    flush,
    give_up,
    guarded,
    note,
    out,
    show_json,
)
from dpcore.cli.engine_options import (
    EngineOption,
    LocalClusterOption,
    SchedulerOption,
    engine_choice,
)
from dpcore.cli.limit_options import MemoryOption, WorkOption, limited
from dpcore.cli.progress import slow_progress
from dpcore.errors import OperatorFileError
from dpcore.specs.spec import load_spec

if TYPE_CHECKING:
    from rich.console import Console

    from dpcore.publish.folder import Run
    from dpcore.publish.paid_metrics import Paid


def run(
    spec: Annotated[Path, typer.Argument(help="A spec file (YAML).", show_default=False)],
    source: Annotated[
        str | None, typer.Option(help="Use this file or LOADER:NAME instead of the spec's source.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Where run folders are made.")] = Path("runs"),
    engine: EngineOption = None,
    scheduler: SchedulerOption = None,
    local_cluster: LocalClusterOption = None,
    memory: MemoryOption = None,
    work: WorkOption = None,
    rehearsal: Annotated[
        int | None,
        typer.Option(
            metavar="SEED", help="Use known secret coins: repeatable, and not private at all."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Open the data, publish the release in a new run folder, and state its guarantee."""
    with guarded():
        loaded = limited(load_spec(spec), memory, work)
        chosen = engine_choice(engine, scheduler, local_cluster)

        # imported for a spec that is right
        from dpcore.cli.plan_view import show_figures, show_noise, show_plan
        from dpcore.publish.evaluation import UNCOVERED
        from dpcore.publish.paid_metrics import paid, plan_of
        from dpcore.publish.whole_run import run as whole_run

        with slow_progress() as progress:
            made = whole_run(
                loaded,
                source=source,
                engine=chosen,
                runs=runs,
                rehearsal=rehearsal,
                progress=progress,
            )
        with _published(made):
            if made.note:
                note(made.note)
            if json:
                show_json(_told(made, rehearsal is not None))
                return
            console = out()
            show_plan(console, made.guarantee, made.lock)
            show_figures(console, made.tables)
            show_noise(console, made.models)
            for name, why in made.operator.get("stand-ins", {}).items():
                console.print(f"{name}: {why}.", markup=False)
            if "evaluation" in made.operator:
                _show_evaluation(console, made.operator["evaluation"], UNCOVERED)
            if made.evaluation:
                _show_look(console, paid(made, plan_of(made)))
            what = "Published in" if rehearsal is None else "Rehearsed, NOT PRIVATE, in"
            console.print(f"{what} {made.kept}", markup=False)


def _told(made: Run, rehearsed: bool) -> dict[str, Any]:
    """What a run shows, as data."""
    return {
        **made.lock.plan,
        "guarantee": made.guarantee.to_dict(),
        "tables": {name: table.columns for name, table in made.tables.items()},
        "hold-out": made.evaluation,
        "operator": {
            k: made.operator[k] for k in made.operator if k in ("evaluation", "stand-ins")
        },
        "rehearsed, not private" if rehearsed else "published": str(made.kept),
    }


@contextlib.contextmanager
def _published(made: Run) -> Iterator[None]:
    """Showing a run that is published: nothing that fails here takes it back."""
    told = f"published in {made.kept}"
    try:
        yield
        flush()
    except (OSError, SystemExit):  # a closed pipe ends rich
        give_up()
        raise OperatorFileError(f"{told}; standard output cannot be written") from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(told) from None


def _show_look(console: Console, look: Iterable[Paid]) -> None:
    title = "Hold-out, through the door: covered by the guarantee and published."
    table = columns("release", "metric", "value", "low", "high", title=title)
    for one in look:
        edges = (f"{edge:.6g}" for edge in (one.value, one.low, one.high))
        table.add_row(one.release, f"hold-out {one.metric}", *edges)
    console.print(table)
    console.print("95 % intervals of the noise alone.", markup=False)


def _show_evaluation(
    console: Console, evaluation: Mapping[str, Mapping[str, Mapping[str, float]]], title: str
) -> None:
    table = columns("release", "metric", "private", "constant", "without noise", title=title)
    for release, metrics in evaluation.items():
        for metric, errors in metrics.items():
            table.add_row(
                release,
                f"hold-out {metric}",
                *(f"{errors[who]:.6g}" for who in ("private", "constant", "without noise")),
            )
    console.print(table)
