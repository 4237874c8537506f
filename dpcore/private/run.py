"""Run a plan: open its records, release, replay the answers, and state the guarantee."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from dpcore.checks import describe_type
from dpcore.domain.domain import Table
from dpcore.encoding.admission import premises_of
from dpcore.errors import ContractError, RequestError, below, map_below, need
from dpcore.guarantee import Guarantee, Payer
from dpcore.learner import Learner
from dpcore.private.admission import admit, require_apart
from dpcore.private.engines.base import Engine
from dpcore.private.engines.local import LocalEngine
from dpcore.private.outcome import Outcome
from dpcore.private.release_context import (
    Conversation,
    ReleaseBoundary,
    do_nothing,
    through_mechanism,
)
from dpcore.private.runtime import kind_of, open_records, release
from dpcore.private.sealed_output import run_silenced
from dpcore.randomness import PublicRandomness, SecretRandomness
from dpcore.records import Records
from dpcore.resources.room import require_disk
from dpcore.source import DeclaredSource, Source
from dpcore.transcript.rebuild import IsolatedRelease, isolate, rebuild
from dpcore.transcript.replay_process import CleanProcess, Replayer

if TYPE_CHECKING:
    from dpcore.claims.plan.plan import Plan
    from dpcore.private.function_answers import Predictor


def run(
    plan: Plan,
    table: Table | Source | DeclaredSource,
    *,
    engine: Engine | None = None,
    secret: SecretRandomness | None = None,
    release_through: ReleaseBoundary | None = None,
    progress: Callable[[], None] | None = None,
    points: Mapping[str, Table] | None = None,
    reservation: Payer | None = None,
    replaying: Replayer | None = None,
    code: Iterable[Any] = (),
    releases: tuple[IsolatedRelease, ...] | None = None,
) -> Outcome:
    """Open the records and release: what `Plan.run` says, with its arguments and its errors.

    Args:
        releases: The plan's, isolated by a caller who has touched the table since.
    """
    # Learners are written down first: reading a stream, or a lazy frame, opens records.
    releases = releases or isolate(plan.schedule.releases)
    release_through, progress = release_through or through_mechanism, progress or do_nothing
    # What public facts and types refuse is refused first: after `begin` the budget is spent.
    for planned_query in plan.schedule.queries:
        if planned_query.query.sampling is not None:
            from dpcore.private.sampling import require_draw  # where something is sampled

            require_draw(planned_query.query.sampling)
    encoded = encode_points(plan, {} if points is None else points)
    records, code = admit(plan.request, table), (*code, *_location_of(table))
    require_apart(plan.request.domain, records, plan.request.public)
    if engine is not None:
        require_fit(plan, engine, lambda: records)
    # A reservation that is not begun serves again, once there is room.
    is_spooled = isinstance(records, Source) and (engine is None or engine.is_local)
    if is_spooled and plan.resources is not None:
        spool, needs = None if engine is None else engine.spool, plan.resources
        require_disk(spool, needs.disk, needs.memory, plan.limits.memory)
    secret = SecretRandomness.draw() if secret is None else secret
    if reservation is not None:
        _begin(plan, reservation, secret, release_through)
    # Secret randomness serve one run. Noise that is drawn twice from one stream could be
    # subtracted.
    secret.begin()
    sealed = plan.request.records.sealed
    step = do_nothing if sealed else progress  # of a sealed run no more is given than its end
    # An engine of the caller's stays open; one that is made here is closed, and its spools go.
    with (
        LocalEngine() if engine is None else contextlib.nullcontext(engine) as holder,
        CleanProcess() if replaying is None else contextlib.nullcontext(replaying) as replayer,
    ):
        reading = partial(
            _release_records, plan, releases, records, holder, secret, release_through, code
        )
        work = partial(reading, step, encoded, reservation, replayer)
        return run_silenced(work) if sealed else work()


def require_fit(
    plan: Plan, engine: Engine, records: Callable[[], Table | Source] | None = None
) -> None:
    """Refuse an engine that cannot serve this plan, or add where those records are, unspent.

    Raises:
        RequestError: a learner needs all records in one memory, which the engine lacks; it is
            not ready; it says of a run that is sealed; or it cannot add what is asked.
    """
    is_engine, way = isinstance(engine, Engine), "LocalEngine() or one of dpcore_engines"
    need(is_engine, "a run", f"an engine: {way}", "engine", describe_type(engine))
    for number, entry in enumerate(plan.schedule.releases):
        if entry.release.of is not None:
            continue  # the hold-out is in this memory
        if not (entry.reads.in_blocks or engine.one_memory):
            # The location makes the error point at the learner's line of the spec.
            with below("releases", number, "learner"):
                raise RequestError(
                    f"{entry.name}: {type(entry.learner).__name__} reads {entry.reads.value}, "
                    f"which needs all records in one memory, and {type(engine).__name__} holds "
                    f"them in several: use the local engine, or a learner that reads sums"
                )
    need(
        not engine.reports_misfits or not plan.request.records.sealed,
        RequestError,
        "a sealed run shows no progress: make the engine without",
    )
    engine.ready()
    if records is not None:
        from dpcore.private.workload import workload_of

        engine.accept(lambda: workload_of(plan.schedule, records(), plan.randomness))


def _release_records(
    plan: Plan,
    releases: tuple[IsolatedRelease, ...],
    table: Table | Source,
    engine: Engine,
    secret: SecretRandomness,
    release_through: ReleaseBoundary,
    code: tuple[Any, ...],
    progress: Callable[[], None],
    encoded: Mapping[str, NDArray[np.float64] | None],
    reservation: Payer | None,
    replaying: Replayer,
) -> Outcome:
    """PRIVATE inside: run the releases on the records, up to what is published."""
    # A bound that fails with a probability over the public randomness needs new ones for each run.
    randomness = PublicRandomness.draw() if plan.randomness is None else plan.randomness.again()
    domain = plan.request.domain
    # It starts before a record is opened, and compares before anything leaves this block.
    with replaying.of(releases, randomness.again()) as replay:
        opened = open_records(plan.schedule, table, secret, engine)
        answers, ends = release(
            releases,
            domain,
            opened.train,
            randomness,
            secret,
            release_through,
            progress,
            encoded,
            opened,
        )
        replayed = replay(answers, ends)
    code = (type(engine), *code)
    guarantee = _guarantee(plan, secret, table, code, replayed.place, engine.premises)
    if release_through is not through_mechanism:
        # Fail closed: an outcome keeps its guarantee only through the one private release boundary.
        guarantee = guarantee.with_provenance(voided="the answers did not come from the mechanism")
    names = [entry.name for entry in releases]
    answers_by_release = dict(zip(names, answers, strict=True))
    values = {name: tuple(a.value for a in group) for name, group in answers_by_release.items()}
    # The paid evaluation comes last: it may use the models, and no model may use it.
    if plan.schedule.evaluation and (paid_evaluation := plan.request.evaluation) is not None:
        from dpcore.claims.plan.request import RELEASE
        from dpcore.private.paid_evaluation import evaluate_paid

        queries = plan.schedule.evaluation
        # Other objects than the published ones: these see the hold-out, and are dropped.
        evaluation_models = rebuild(releases, values, randomness.again())
        answers_by_release[RELEASE] = tuple(
            evaluate_paid(
                paid_evaluation,
                queries,
                evaluation_models,
                opened,
                domain,
                secret,
                len(names),
                release_through,
            )
        )
    return Outcome(
        models=dict(zip(names, replayed.models, strict=True)),
        arrays=dict(zip(names, replayed.arrays, strict=True)),
        descriptions=dict(zip(names, replayed.descriptions, strict=True)),
        answers=answers_by_release,
        guarantee=guarantee if reservation is None else reservation.commit(guarantee),
        randomness=randomness,
        opened=opened,
        note=replayed.note,
    )


def open_function(
    plan: Plan,
    table: Table | Source | DeclaredSource,
    *,
    secret: SecretRandomness | None = None,
    reservation: Payer | None = None,
) -> Predictor:
    """Open the records and serve a function: what `Plan.open` says."""
    # An oracle's answers depend on later questions: there is no transcript to replay yet.
    releases = isolate(plan.schedule.releases)
    if len(releases) > 1 or isinstance(releases[0].scheduled.learner, Learner):
        raise ContractError("only a plan of one function release can be opened; run it")
    # Secure randomness that the caller holds could be used for a second oracle, and the difference
    # of two answers with equal noise is exact.
    need(
        secret is None or not secret.secure,
        ContractError,
        "an oracle draws secret randomness of its own: give none",
    )
    records = admit(plan.request, table)
    secret = SecretRandomness.draw() if secret is None else secret
    if reservation is not None:
        _begin(plan, reservation, secret, through_mechanism)
    work = partial(
        _open_oracle, plan, releases[0], records, secret, reservation, _location_of(table)
    )
    return run_silenced(work) if plan.request.records.sealed else work()


def _open_oracle(
    plan: Plan,
    release: IsolatedRelease,
    table: Table | Source,
    secret: SecretRandomness,
    reservation: Payer | None,
    code: tuple[Any, ...],
) -> Predictor:
    """PRIVATE inside: open the records, and make an oracle of them."""
    from dpcore.private.function_answers import Predictor, fit_function, open_oracle

    randomness = PublicRandomness.draw() if plan.randomness is None else plan.randomness.again()
    opened = open_records(plan.schedule, table, secret)
    # Only the learners' part reaches the oracle; a hold-out is dropped here.
    records = cast(Records, opened.train)  # a function's records are in memory
    conversation = Conversation(number=0, records=records, randomness=randomness, secret=secret)
    oracle = open_oracle(release, fit_function(release, conversation), conversation)
    replayed = "nowhere: an oracle answers later questions"
    guarantee = _guarantee(plan, secret, table, code, replayed)
    return Predictor(
        domain=release.scheduled.part,
        oracle=oracle,
        guarantee=guarantee if reservation is None else reservation.commit(guarantee),
    )


def _begin(
    plan: Plan, reservation: Payer, secret: SecretRandomness, release_through: ReleaseBoundary
) -> None:
    # A ledger's entries are claims about real releases, and a rehearsal is none.
    need(
        secret.secure and release_through is through_mechanism,
        ContractError,
        "known randomness or another release boundary guarantee nothing a ledger could hold",
    )
    reservation.begin(plan.charge())


def _guarantee(
    plan: Plan,
    secret: SecretRandomness,
    table: Table | Source,
    code: tuple[Any, ...],
    replayed: str,
    engine_premises: tuple[str, ...] = (),
) -> Guarantee:
    """Return the plan's, on the premises of the release boundary through which the records came."""
    # A table by its class: it holds records.
    boundaries = plan.components.distributions((type(table), *code))
    moments = [rule.premise(name) for name, rule in plan.request.domain.dates.items()]
    provenance = plan.guarantee.provenance
    return plan.guarantee.with_provenance(
        distributions=dict(sorted({**boundaries, **provenance.distributions}.items())),
        boundary_premises=(*premises_of(table), *moments, *engine_premises),
        replayed=replayed,
        voided=provenance.voided if secret.secure else "secret randomness is known",
    )


def encode_points(plan: Plan, tables: Mapping[str, Table]) -> dict[str, NDArray[np.float64] | None]:
    """Encode the points of every function release, without any record.

    Raises:
        RequestError: they are not given for exactly these, or are too many.
        SourceError: a column is missing.
    """
    # A misspelt release name must not pass silently: the run would end without its predictions
    # after the budget is spent.
    if unknown := sorted({*tables} - {scheduled.name for scheduled in plan.schedule.releases}):
        raise RequestError(f"points came for {unknown[0]!r}, which is no release of the plan")
    encoded = map_below(
        lambda scheduled: kind_of(scheduled).encode_points(scheduled, tables),
        enumerate(plan.schedule.releases),
        "releases",
    )
    return {plan.schedule.releases[number].name: points for number, points in encoded.items()}


def _location_of(table: Table | Source | DeclaredSource) -> tuple[Any, ...]:
    """Return what named the records, if it is known here.

    Its source may be of another distribution.
    """
    return (table.location,) if isinstance(table, DeclaredSource) else ()
