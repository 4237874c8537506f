"""`dpcore run SPEC`: open the data, release, and write a run folder."""

from __future__ import annotations

import contextlib
import io
import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from dpcore.cli.check import ledger_of, lock_plan, show_plan
from dpcore.cli.console import SlowProgress, columns, guarded, out
from dpcore.domain.domain import Table
from dpcore.errors import ReleaseError, SpecError, below
from dpcore.functions.learner import FunctionLearner
from dpcore.ledger.book import Reservation
from dpcore.publish.evaluation import UNCOVERED, evaluate
from dpcore.publish.folder import new_folder, public_files, write_files
from dpcore.publish.lock import lock_of
from dpcore.randomness import SecretCoins
from dpcore.running.plan import Outcome, Plan
from dpcore.running.private_look import RELEASE, stated
from dpcore.sources.text import load_points, load_table
from dpcore.spec.spec import Spec

if TYPE_CHECKING:
    from rich.console import Console

SEALED_FAILURE = "The sealed run failed; nothing was released."


def run(
    spec: Annotated[Path, typer.Argument(help="A spec file (YAML).", show_default=False)],
    source: Annotated[
        str | None, typer.Option(help="Use this file or LOADER:NAME instead of the spec's source.")
    ] = None,
    runs: Annotated[Path, typer.Option(help="Where run folders are made.")] = Path("runs"),
    rehearsal: Annotated[
        int | None,
        typer.Option(
            metavar="SEED", help="Use known secret coins: repeatable, and not private at all."
        ),
    ] = None,
) -> None:
    """Open the data, publish the release in a new run folder, and state its guarantee."""
    with guarded():
        started = time.monotonic()
        loaded, plan, _ = lock_plan(spec)
        if loaded.request.sealed and rehearsal is not None:
            with loaded.placed():
                raise SpecError("it has no operator channel to show --rehearsal on", "sealed")
        secret = SecretCoins.draw() if rehearsal is None else SecretCoins.rehearsal(rehearsal)
        points = load_all_points(loaded)
        with loaded.placed():
            plan.encode_points(points)  # what public facts refuse is not charged to a ledger
        ledger = ledger_of(loaded)
        folder = new_folder(runs, spec.stem)
        kept = folder / ("public" if rehearsal is None else "operator/rehearsal")
        try:
            release = _sealed if loaded.request.sealed else open_and_run
            reservation = None
            if ledger is not None and rehearsal is None:
                reservation = plan.reserve(ledger, folder.name, _uncovered(loaded))
            elif ledger is not None:
                ledger.note(f"{folder.name}: a rehearsal with known coins")
            outcome = release(loaded, plan, source, secret, points, reservation)
            locked = lock_of(loaded, plan, outcome.coins)
            write_files(
                kept, public_files(locked, outcome.answers, outcome.models, outcome.guarantee)
            )
        except BaseException:
            _remove_if_empty(folder)
            raise
        console = out()
        show_plan(console, outcome.guarantee, locked)
        if not loaded.request.sealed:
            _operator(console, loaded, plan, outcome, folder, started)
        if RELEASE in outcome.answers:
            means = {answer.query.name: answer.value for answer in outcome.answers[RELEASE]}
            _show_look(console, stated(means))
        what = "Published in" if rehearsal is None else "Rehearsed, NOT PRIVATE, in"
        console.print(f"{what} {kept}", markup=False)


Points = dict[str, Table]


def load_all_points(spec: Spec) -> Points:
    """The points of every function release, by its name; public files, read before the records.

    Raises:
        SpecError: a function release has no points: a run can only publish answers.
        SourceError: the points are missing or do not fit the domain.
    """
    found = {}
    for number, release in enumerate(spec.request.releases):
        if release.predictions_at is not None:
            with spec.placed(), below("releases", number, "predictions_at"):
                found[release.name] = load_points(
                    release.predictions_at, spec.folder, spec.csv, spec.request.domain
                )
        elif isinstance(release.learner, FunctionLearner):
            with spec.placed():
                raise SpecError(
                    "a function is asked, not published: add predictions_at, or open it in Python",
                    f"releases.{number}",
                )
    return found


def _uncovered(spec: Spec) -> tuple[str, ...]:
    """Looks at the records beside the release, for the operator and not paid for."""
    return (f"hold-out {', '.join(spec.metrics)}",) if spec.metrics else ()


def open_and_run(
    spec: Spec,
    plan: Plan,
    source: str | None,
    secret: SecretCoins,
    points: Points,
    reservation: Reservation | None = None,
) -> Outcome:
    """Read the records, with progress on standard error, and release."""
    table = _open(spec, source)
    with SlowProgress(plan.most_asks, "releasing") as bar:
        return plan.run(
            table, secret=secret, progress=bar.step, points=points, reservation=reservation
        )


def _sealed(
    spec: Spec,
    plan: Plan,
    source: str | None,
    secret: SecretCoins,
    points: Points,
    reservation: Reservation | None,
) -> Outcome:
    """Once records are opened, tell nothing but success or one fixed sentence."""
    failed = False
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        try:
            table = _open(spec, source)
            outcome = plan.run(table, secret=secret, points=points, reservation=reservation)
        except Exception:
            failed = True
    if failed:
        raise ReleaseError(SEALED_FAILURE)
    return outcome


def _open(spec: Spec, override: str | None) -> Table:
    if override is not None:
        return load_table(override, Path(), spec.csv, spec.request.domain)
    with spec.placed():
        return load_table(spec.source, spec.folder, spec.csv, spec.request.domain)


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
        if told := {one.name: one.note for one in plan.schedule.releases if one.note}:
            notes["stand-ins"] = told
            for name, note in told.items():
                console.print(f"{name}: {note}.", markup=False)
        _show_evaluation(console, notes["evaluation"])
    notes["seconds"] = round(time.monotonic() - started, 3)
    operator = folder / "operator"
    operator.mkdir(exist_ok=True)
    (operator / "run.json").write_bytes(
        msgspec.json.format(msgspec.json.encode(notes), indent=2) + b"\n"
    )


def _show_look(console: Console, look: dict[str, dict[str, float]]) -> None:
    title = "Hold-out, through the door: covered by the guarantee and published."
    table = columns("release", "metric", "value", title=title)
    for release, metrics in look.items():
        for metric, value in metrics.items():
            table.add_row(release, f"hold-out {metric}", f"{value:.6g}")
    console.print(table)


def _show_evaluation(console: Console, evaluation: dict[str, dict[str, dict[str, float]]]) -> None:
    table = columns("release", "metric", "private", "constant", "without noise", title=UNCOVERED)
    for release, metrics in evaluation.items():
        for metric, errors in metrics.items():
            table.add_row(
                release,
                f"hold-out {metric}",
                *(f"{errors[who]:.6g}" for who in ("private", "constant", "without noise")),
            )
    console.print(table)
