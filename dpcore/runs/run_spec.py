"""A spec's whole run, in the one safe order: lock, points, reserve, open, release, write, look.

What can be refused is refused before anything is spent, what is spent is spent before a record is
opened, and a run folder that ends up empty is removed.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import msgspec

from dpcore.claims.plan.plan import Plan
from dpcore.claims.plan.request import Request
from dpcore.domain.domain import Table
from dpcore.errors import (
    NotPublishedError,
    SpecError,
    below,
    need,
)
from dpcore.guarantee import ReleaseKind
from dpcore.private.admission import admit, require_apart
from dpcore.private.core_dumps import forbid_core_dumps
from dpcore.private.engines.base import Engine
from dpcore.private.engines.choice import EngineChoice, Local
from dpcore.private.outcome import Outcome
from dpcore.private.run import encode_points, require_fit, run as run_plan
from dpcore.private.sealed_output import no_output, run_silenced
from dpcore.published.files import (
    after_publication,
    locked_folder,
    private_folder,
    replace_file,
    reported_failures,
    write_files,
)
from dpcore.published.folder import (
    PUBLIC,
    REHEARSAL,
    REPRODUCTION,
    UNCOVERED,
    Run,
    means,
    public_files,
)
from dpcore.published.lock import lock_of, locked
from dpcore.randomness import SecretRandomness
from dpcore.resources.room import require_disk
from dpcore.source import Source
from dpcore.sources.opening import Unopened, open_source
from dpcore.specs.spec import Spec, load_spec
from dpcore.transcript.rebuild import IsolatedRelease, isolate
from dpcore.transcript.replay_process import CleanProcess

if TYPE_CHECKING:
    from dpcore.ledger.book import Ledger, Reservation

Progress = Callable[[int, int], None]
"""Stated how many answers there are so far, and how many there may be."""


def run(
    spec: Spec | Path | str,
    *,
    table: Table | Unopened | None = None,
    source: str | None = None,
    ledger: Ledger | None = None,
    progress: Progress | None = None,
    engine: EngineChoice | None = None,
    runs: Path | str = "runs",
    rehearsal: int | None = None,
    expected: int | None = None,
    limit: Callable[[Plan], None] = lambda plan: None,
    rich_role: bool = False,
) -> Run:
    """Open the data of a spec, publish its releases in a new run folder, and state the guarantee.

    Args:
        spec: A spec, or the path of one. Its lock is kept next to its file as `dpcore check` does.
        table: The records, by column, or what `read_csv` returns; read from `source` if None.
        source: A file or LOADER:NAME in place of the spec's own source.
        ledger: What the run is charged to, where the spec names none.
        progress: Called before the first answer and after every one; never in a sealed run.
        engine: What holds the records of a source; this machine's threads and disk if None.
        runs: Where run folders are made.
        rehearsal: Seed of known secret randomness: repeatable, and not private at all.
        expected: A public estimate of a private number of records, for the room that they need.
        limit: Stated the plan before anything is made or spent, to limit this process or to refuse.
        rich_role: Whether the operator lets a query reach a server as a role of many rights.

    Raises:
        ResourceError: the run needs more memory, work or disk than there is.
        SpecError: the spec is wrong, a sealed run is rehearsed, a function has no points, or the
            spec names another ledger.
        NoClaimError: no guarantee can be stated.
        RequestError: the engine is not ready, or does not hold what a learner reads.
        BudgetExceededError, LedgerError: the ledger refuses, or cannot be used.
        SourceError: the records or points are missing or do not fit the domain.
        ReleaseError: a private function failed; of a sealed run, anything did once it was open.
        NotPublishedError: the files could not be written; or, in the place of every other error,
            something failed once a ledger was charged, and what was reserved stays spent.
        OperatorFileError: the release is published, and its operator's file is missing.
    """
    start = time.monotonic()
    spec = spec if isinstance(spec, Spec) else load_spec(spec)
    sealed = spec.request.records.sealed
    # A table that was handed over is in memory, however its learners read.
    blocks = table is None or isinstance(table, Unopened)
    limits = spec.limits if expected is None else attrs.evolve(spec.limits, expected=expected)
    request = Request.of(spec.request, blocks=blocks)
    locked_spec = locked(attrs.evolve(spec, request=request, limits=limits))
    # A rehearsal shows private figures to the operator, and a sealed run has no operator.
    with spec.locate_errors():
        message = "it has no operator channel to show a rehearsal on (--rehearsal)"
        need(not sealed or rehearsal is None, SpecError, message, "sealed")
    secret = SecretRandomness.draw() if rehearsal is None else SecretRandomness.rehearsal(rehearsal)
    plan = locked_spec.plan
    limit(plan)
    releases = isolate(plan.schedule.releases)  # before a table is touched
    # Points and ledger are looked up before the folder is made: a refusal leaves no trace.
    records = None if table is None else admit(spec.request, table)
    place = spec.source if table is None and source is None else None
    code = (engine, table.location if isinstance(table, Unopened) else place)
    points = points_of(spec, plan)
    work = _Work(
        spec, plan, points, secret, records, source, progress, code,
        rich_role=rich_role, releases=releases,
    )  # fmt: skip
    forbid_core_dumps()  # before records are opened, and before the engine starts processes
    if spec.request.public:
        require_apart(spec.request.domain, work.records(), spec.request.public)
    book = ledger_of(spec, ledger)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(_folder(runs, spec))
        channel = PUBLIC if rehearsal is None else REHEARSAL
        spent = stack.enter_context(reported_failures(folder / channel, sealed))
        with no_output() if sealed else contextlib.nullcontext():  # what it starts inherits that
            live_engine = stack.enter_context((engine or Local()).opened(folder))
        # The engine is ready and the records are closed: what it cannot hold is refused unspent.
        require_fit(plan, live_engine, work.records)
        disk = plan.resources.disk if live_engine.is_local else 0
        size, memory = disk + plan.resources.published, plan.resources.memory
        require_disk(folder, size, memory, limits.memory)
        work = attrs.evolve(work, engine=live_engine)
        # What the schema of the records shows is refused unspent, too.
        admit(plan.request, work.records())
        # Spent here, before a record is opened. The randomness of a rehearsal is known, so that
        # nothing would be private about it: the ledger notes the paid evaluation and charges
        # nothing.
        reservation, warning = None, ""
        if book is not None and rehearsal is None:
            # Looks at the records next to the release, for the operator and not paid for.
            evaluations = (f"hold-out {', '.join(spec.metrics)}",) if spec.metrics else ()
            reservation = plan.reserve(book, folder.name, evaluations)
            spent.append(reservation)
            warning = reservation.warning
        elif book is not None:
            book.note(f"{folder.name}: a rehearsal with known randomness")
        # The only step that sees records, and all that is published of them. Of a sealed run one
        # sentence is reported: how full the disk is now may follow records.
        outcome = run_silenced(partial(work.open, reservation), sealed)
        result = run_silenced(partial(work.write, outcome, folder, channel), sealed)
        notes = (locked_spec.note, outcome.note, live_engine.note, warning)
        result = attrs.evolve(result, note="; ".join(filter(None, notes)))
        # An evaluation by the operator would say more than the guarantee covers.
        if sealed:
            return result
        with after_publication(result.kept):
            return attrs.evolve(result, operator=_operator(spec, plan, outcome, folder, start))


def reproduce(
    spec: Spec | Path | str,
    *,
    source: str | None = None,
    progress: Progress | None = None,
    runs: Path | str = "runs",
) -> Run:
    """Run a refuted or conditional claim as printed. The result is not private.

    Raises:
        SpecError: nothing in it is refuted or conditional, or it is sealed.
    """
    spec = spec if isinstance(spec, Spec) else load_spec(spec)
    with spec.locate_errors():
        message = "it has no operator channel to show a reproduction on"
        need(not spec.request.records.sealed, SpecError, message, "sealed")
    # Refuted bounds are priced as printed: a number comes out, and no guarantee with it.
    plan = spec.price(reproduce=True)
    secret = SecretRandomness.draw()
    work = _Work(spec, plan, points_of(spec, plan), secret, None, source, progress)
    book = ledger_of(spec)
    with _folder(runs, spec) as folder:
        if book is not None:
            book.note(f"{folder.name}: a reproduction as printed, not private")
        return work.write(work.open(None), folder, REPRODUCTION)


@attrs.frozen(eq=False, repr=False)
class _Work:
    """PRIVATE: one run on its way from its source to its folder."""

    spec: Spec
    plan: Plan
    points: dict[str, Table]
    secret: SecretRandomness
    table: Table | Source | None
    source: str | None
    progress: Progress | None
    code: tuple[Any, ...] = ()
    engine: Engine | None = None
    rich_role: bool = False
    releases: tuple[IsolatedRelease, ...] | None = None

    def open(self, reservation: Reservation | None) -> Outcome:
        """Read the records and release, saying the progress."""
        records, limit, counts = self.records(), self.plan.most_queries, itertools.count(1)
        progress = None if self.spec.request.records.sealed else self.progress
        tell = progress or (lambda done, limit: None)
        # How far a run is may depend on records: a sealed run has no progress to say.
        tell(0, limit)
        with CleanProcess() as replayer:
            return run_plan(
                self.plan,
                records,
                engine=self.engine,
                secret=self.secret,
                progress=lambda: tell(next(counts), limit),
                points=self.points,
                reservation=reservation,
                replaying=replayer,
                code=self.code,
                releases=self.releases,
            )

    def write(self, outcome: Outcome, folder: Path, channel: str) -> Run:
        """Write the public files, all or none, and return the run that they are."""
        lock, guarantee = lock_of(self.spec, self.plan, outcome.randomness), outcome.guarantee
        # From released answers only, so that publishing it costs nothing more.
        paid_evaluation = self.spec.request.evaluation
        paid_metrics = (
            {} if paid_evaluation is None else paid_evaluation.stated(means(outcome.answers))
        )
        files = public_files(
            lock, outcome.answers, outcome.models, outcome.arrays, guarantee, paid_metrics,
            outcome.descriptions,
        )  # fmt: skip
        _publish(folder, channel, files)
        return Run(
            folder=folder, channel=channel, spec=self.spec, lock=lock,
            plan=attrs.evolve(self.plan, randomness=outcome.randomness), guarantee=guarantee,
            models=outcome.models,
            answers={
                name: tuple(a.value for a in series) for name, series in outcome.answers.items()
            },
            evaluation=paid_metrics, files=files, descriptions=outcome.descriptions,
        )  # fmt: skip

    def records(self) -> Table | Source:
        """Return a table that was handed over, or a source, which is opened later."""
        if self.table is not None:
            return self.table
        spec, domain = self.spec, self.spec.request.domain
        refuse = spec.request.records.on_invalid == "refuse"
        place, folder = (spec.source, spec.folder) if self.source is None else (self.source, Path())
        with spec.locate_errors() if self.source is None else contextlib.nullcontext():
            ways = {"refuse": refuse, "total": not refuse, "rich_role": self.rich_role}
            return open_source(place, folder, spec.csv, domain, **ways)


def _publish(folder: Path, channel: str, files: dict[str, bytes]) -> None:
    """Write a channel's files, all or none; below `operator` for their owner only.

    Raises:
        NotPublishedError: none was written.
    """
    private = channel != PUBLIC
    try:
        if private:
            private_folder((folder / channel).parent)
        write_files(folder / channel, files, private=private)
    except OSError as error:
        with contextlib.suppress(OSError):
            (folder / channel).parent.rmdir()  # if it is empty: the run's, or `operator`
        why = f"{folder}: cannot be written ({error.strerror})"
        raise NotPublishedError(f"the records were answered, not published: {why}") from None


def points_of(spec: Spec, plan: Plan) -> dict[str, Table]:
    """Return the points of every function release, by its name; public files, read before the
    records.

    Raises:
        SpecError: a function release has no points: a run can only publish answers.
        RequestError: they are more than are paid for.
        SourceError: the points are missing or do not fit the domain.
    """
    points = {}
    with spec.locate_errors():
        for number, scheduled in enumerate(plan.schedule.releases):
            need(
                scheduled.publishes is not ReleaseKind.FUNCTION,
                SpecError,
                "a function is asked, not published: add predictions_at, or open it in Python",
                f"releases.{number}",
            )
            if scheduled.release.predictions_at is not None:
                from dpcore.sources.text import load_points

                with below("releases", number, "predictions_at"):
                    points[scheduled.name] = load_points(
                        scheduled.release.predictions_at, spec.folder, spec.csv, spec.request.domain
                    )
        encode_points(plan, points)  # what public facts refuse is not charged to a ledger
    return points


def ledger_of(spec: Spec, ledger: Ledger | None = None) -> Ledger | None:
    """Return the ledger that a run of a spec is charged to: the spec's, else the given one.

    Raises:
        SpecError: the spec names one that does not exist, or another than the given one.
        LedgerError: it cannot be used.
    """
    if spec.ledger is None:
        return ledger
    # A run that no ledger pays for imports none of it.
    from dpcore.ledger.book import Ledger
    from dpcore.ledger.locations import place_of

    with spec.locate_errors(), below("ledger"):
        place = place_of(spec.ledger, spec.folder)
        if ledger is None:
            return Ledger.open(place, spec.registry, spec.analyst)
        # A path names a file and a name one of the user's ledgers: both must be this very ledger.
        path = ledger.journal.path
        name = ledger.name if isinstance(path, Path) else path
        same = Path(path).resolve() == place.resolve() if isinstance(place, Path) else name == place
        need(same, SpecError, f"the spec is charged to {spec.ledger!r}, not to {name!r}")
        whose = f"the spec is charged to analyst {spec.analyst!r}, not to {ledger.analyst!r}"
        need(spec.analyst in (None, ledger.analyst), SpecError, whose)
    return ledger


def _folder(runs: Path | str, spec: Spec) -> contextlib.AbstractContextManager[Path]:
    """A new run folder, removed again if nothing was written to it."""
    return locked_folder(Path(runs), "spec" if spec.path is None else spec.path.stem)


def _operator(
    spec: Spec, plan: Plan, outcome: Outcome, folder: Path, start: float
) -> dict[str, Any]:
    """Everything that may depend on records beyond the answers, marked as such, and written."""
    notes: dict[str, Any] = {"warning": UNCOVERED}
    # Made of private records, so that it stays in a folder for the owner only.
    if spec.metrics:
        from dpcore.private.evaluation import evaluation

        report = evaluation(plan, outcome, spec.metrics, spec.groups)
        notes["evaluation"] = report.figures
        notes["curves"] = {
            name: {metric: item.to_dict() for metric, item in pictures.items()}
            for name, pictures in report.curves.items()
            if pictures
        }
        if stand_ins := {item.name: item.note for item in plan.schedule.releases if item.note}:
            notes["stand-ins"] = stand_ins
    notes["seconds"] = round(time.monotonic() - start, 3)
    operator = private_folder(folder / "operator")
    content = msgspec.json.format(msgspec.json.encode(notes), indent=2)
    try:
        replace_file(operator / "run.json", content + b"\n", private=True)
    except OSError:
        with contextlib.suppress(OSError):
            operator.rmdir()
        raise
    return notes
