"""`dpcore run SPEC`: open the data, release, and write a run folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dpcore.console.console import (
    columns,
    flush,
    give_up,
    guarded,
    note,
    out,
    show_json,
    slow_progress,
)
from dpcore.console.options import (
    engine_choice,
    engine_option,
    expected_option,
    limit_process,
    limited,
    local_cluster_option,
    memory_option,
    rich_role_option,
    scheduler_option,
    useless_option,
    work_option,
)
from dpcore.console.parameters import PATH, command, explain_option, json_option, spec_argument
from dpcore.errors import OperatorFileError
from dpcore.shown import in_digits, interval_cells
from dpcore.specs.spec import load_spec

if TYPE_CHECKING:
    from dpcore.console.layout import Page
    from dpcore.published.folder import MetricInterval, Run


@command()
@spec_argument
@click.option("--source", help="Use this file or LOADER:NAME instead of the spec's source.")
@click.option("--runs", type=PATH, default=Path("runs"), help="Where run folders are made.")
@engine_option
@scheduler_option
@local_cluster_option
@rich_role_option
@memory_option
@work_option
@expected_option
@useless_option
@click.option(
    "--rehearsal",
    type=int,
    metavar="SEED",
    help="Use known secret randomness: repeatable, and not private at all.",
)
@explain_option
@json_option
def run(
    spec: Path,
    source: str | None,
    runs: Path,
    engine: str | None,
    scheduler: str | None,
    local_cluster: int | None,
    rich_role: bool,
    memory: str | None,
    work: str | None,
    expected: int | None,
    useless: bool,
    rehearsal: int | None,
    explain: bool,
    json: bool,
) -> None:
    """Open the data, publish the release in a new run folder, and state its guarantee."""
    with guarded():
        loaded = limited(load_spec(spec), memory, work, expected, useless=useless)
        bytes_allowed = loaded.limits.memory
        # A wrong option ends here, before any budget is reserved.
        choice = engine_choice(engine, scheduler, local_cluster, bytes_allowed)

        # imported for a spec that is right
        from dpcore.console.run_view import run_lines, show_figures, show_noise, show_objects
        from dpcore.published.folder import UNCOVERED, paid
        from dpcore.runs.run_spec import run as whole_run

        with slow_progress() as progress:
            outcome = whole_run(
                loaded,
                source=source,
                engine=choice,
                runs=runs,
                rehearsal=rehearsal,
                rich_role=rich_role,
                limit=lambda plan: limit_process(plan.resources, bytes_allowed),
                progress=progress,
            )
        # The run is on disk and paid for: from here on a failure is one of showing it.
        with _guard_display(outcome):
            note(outcome.note)
            if json:
                show_json(_describe(outcome, rehearsal is not None))
                return
            console = out()
            if not explain:
                for line in run_lines(outcome, is_rehearsal=rehearsal is not None):
                    console.print(line)
                return
            from dpcore.console.plan_view import show_plan

            show_plan(console, outcome.guarantee, outcome.lock, outcome.plan)
            show_objects(console, outcome)
            show_figures(console, outcome.tables)
            show_noise(console, outcome.models)
            for name, why in outcome.operator.get("stand-ins", {}).items():
                console.print(f"{name}: {why}.")
            if "evaluation" in outcome.operator:
                _show_evaluation(console, outcome.operator["evaluation"], UNCOVERED)
            if outcome.evaluation:
                _show_paid_evaluation(console, paid(outcome))
            # Last, so that no one overlooks that a rehearsal is not private.
            heading = "Published in" if rehearsal is None else "Rehearsed, NOT PRIVATE, in"
            console.print(f"{heading} {outcome.kept}")


def _describe(outcome: Run, is_rehearsal: bool) -> dict[str, Any]:
    """What a run shows, as data."""
    return {
        **outcome.lock.plan,
        "guarantee": outcome.guarantee.to_dict(),
        "tables": {name: table.columns for name, table in outcome.tables.items()},
        "hold-out": outcome.evaluation,
        "operator": {
            k: outcome.operator[k] for k in outcome.operator if k in ("evaluation", "stand-ins")
        },
        "rehearsed, not private" if is_rehearsal else "published": str(outcome.kept),
    }


@contextlib.contextmanager
def _guard_display(outcome: Run) -> Iterator[None]:
    """Showing a run that is published: nothing that fails here takes it back."""
    message = f"published in {outcome.kept}"
    try:
        yield
        flush()
    except (OSError, SystemExit):  # a closed pipe ends rich
        # An exit code of its own: anyone who runs this must not run it again, which would cost
        # anew.
        give_up()
        raise OperatorFileError(f"{message}; standard output cannot be written") from None
    except KeyboardInterrupt:
        raise KeyboardInterrupt(message) from None


def _show_paid_evaluation(console: Page, evaluation: Iterable[MetricInterval]) -> None:
    title = "Hold-out, released with noise: covered by the guarantee and published."
    rows = [
        (
            m.release,
            f"hold-out {m.metric}",
            *interval_cells(m.value, m.low, m.high),
        )
        for m in evaluation
    ]
    console.print(columns("release", "metric", "value", "low", "high", title=title, rows=rows))
    console.print("95 % intervals of the noise alone.")


def _show_evaluation(
    console: Page, evaluation: Mapping[str, Mapping[str, Mapping[str, float]]], title: str
) -> None:
    predictors = ("private", "constant", "without noise")
    rows = [
        (release, f"hold-out {metric}", *(in_digits(errors[who]) for who in predictors))
        for release, metrics in evaluation.items()
        for metric, errors in metrics.items()
    ]
    console.print(columns("release", "metric", *predictors, title=title, rows=rows))
