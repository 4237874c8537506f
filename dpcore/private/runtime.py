"""The runtime: opens records, and lets nothing but released answers reach the public part.

Every answer passes a release boundary; the only release boundary whose answers a guarantee covers
is `through_mechanism`.

Answers of learners: they ask through the release boundary until they have no more to ask.

The model of a run is rebuilt from the answers only (`dpcore.transcript.rebuild`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Domain, Table
from dpcore.encoding.blocks import in_memory
from dpcore.encoding.pieces import KeptColumn
from dpcore.errors import UNREADABLE, ContractError, ReleaseError, RequestError, need, unpassed
from dpcore.exact import Exact
from dpcore.learner import Answer, Learner, Model, Public, Published, State
from dpcore.private import runtime
from dpcore.private.core_dumps import forbid_core_dumps
from dpcore.private.engines.base import Engine
from dpcore.private.engines.records import EngineRecords
from dpcore.private.hold_out import HoldOut, joined
from dpcore.private.opening import Opened, open_source, open_table
from dpcore.private.release_context import (
    Conversation,
    PastSums,
    Private,
    ReleaseBoundary,
    Reuse,
    through_mechanism,
    wide_open,
)
from dpcore.query import Query
from dpcore.randomness import LearnerRandomness, PublicRandomness, SecretRandomness
from dpcore.records import Records
from dpcore.source import Source, TableSource
from dpcore.transcript.isolated_copies import frozen
from dpcore.transcript.rebuild import Handover, IsolatedRelease, PlannedSequence, Rebuild, answer_of

if TYPE_CHECKING:
    from dpcore.claims.plan.planned_query import PlannedQuery
    from dpcore.claims.plan.schedule import Schedule, Scheduled


def encode_points(release: Scheduled, tables: Mapping[str, Table]) -> None:
    """Refuse points, since parameters predict anywhere; return None.

    Raises:
        RequestError: there are some.
    """
    need(
        release.name not in tables,
        RequestError,
        f"points came for {release.name!r}, which publishes parameters",
    )


def collect_answers(
    release: IsolatedRelease, conversation: Conversation
) -> tuple[tuple[Answer, ...], Rebuild]:
    """Ask, compute, release and update until the learner has no more queries.

    Raises:
        ContractError: a query is not planned, or the mechanism returns no finite array of its
            shape.
        ReleaseError: a private function failed where the bound does not cover that.
    """
    # Two instances: the private function works on one copy, the state machine on another, so
    # nothing that the former stores in itself reaches the model.
    private, facts = conversation.private(release)
    speaker, public = release.start(conversation.randomness, conversation.inputs())
    queries, past_sums = PlannedSequence(release.scheduled.queries), PastSums()
    answers: list[Answer] = []
    state: State = speaker.start(public)
    while (question := speaker.ask(state)) is not None:
        # A copy that no one can write to: the private function cannot change the query that the
        # public part goes on with.
        query = frozen(question)
        planned_query, number = queries.next(query)
        randomness, records = (
            conversation.learner_randomness(query, number),
            conversation.select_records(query, number),
        )
        # Equal releases on the same records share one computation, never the noise: the
        # mechanism below draws from the stream of this release and this query.
        compute = partial(_compute_statistic, private, frozen(query), records, facts, randomness)
        value, cause = conversation.reuse.once(
            release.scheduled.learner, query, facts, randomness, compute
        )
        value = past_sums.weighted(query, _require_statistic(value, cause, planned_query))
        noisy_value = conversation.release_through(
            planned_query, query, value, conversation.noise(query, number)
        )
        # Check the output of the mechanism, which may come from a plugin. Neither check looks
        # at the statistic, so what it raises is post-processing.
        owner, shape = type(planned_query.mechanism).__name__, np.shape(noisy_value)
        need(shape == query.shape, ContractError, f"{owner} changed the shape of {query.name}")
        need(np.isfinite(noisy_value).all(), ContractError, f"{owner} released what is no number")
        # From here on the learner holds the released value only; the statistic is out of its
        # reach.
        answer = answer_of(planned_query, query, number, noisy_value)
        state = speaker.update(state, answer)
        conversation.progress()
        answers.append(answer)
    return tuple(answers), partial(speaker.model, state)


def predict_holdout(
    release: IsolatedRelease, conversation: Conversation, model: Model, holdout: HoldOut
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return predictions of the model, and of the same learner from exact answers, in batches."""
    noiseless_model = cast(Model, fit_without_noise(release, conversation))
    return (
        joined([model.predict(table) for table, _ in holdout.batches()]),
        joined([noiseless_model.predict(table) for table, _ in holdout.batches()]),
    )


def fit_without_noise(release: IsolatedRelease, conversation: Conversation) -> Published:
    """PRIVATE: return the model that the same learner builds from exact answers."""
    return collect_answers(release, attrs.evolve(conversation, release_through=wide_open))[1]()


def _compute_statistic(
    private: Private, query: Query, records: Records, public: Public, secret: LearnerRandomness
) -> tuple[NDArray[Any] | Exact, str]:
    """PRIVATE: return the statistic, checked, and why it failed if it did.

    The cause of a failure may hold values of records, so that only its type is reported.

    Raises:
        SourceError: records could not be read, which is no failure of the statistic.
    """
    try:
        # SystemExit is caught too: whether a process ends, and with which text, must not depend on
        # records.
        value = private(query, records, public, secret)
        if isinstance(value, Exact) and value.shape == query.shape:
            return value, ""
        value = np.asarray(value)
        is_unfit = query.unfit(value)
        return (
            (value, "a wrong shape or no number") if is_unfit else (value.astype(query.dtype), "")
        )
    except UNREADABLE:
        raise
    except (Exception, SystemExit) as error:
        return np.empty(0), type(error).__name__


def _require_statistic(
    value: NDArray[Any] | Exact, cause: str, planned_query: PlannedQuery
) -> NDArray[Any] | Exact:
    """PRIVATE: return a copy of the value; 0 represents a failure only where the bound covers that.

    An exact sum stays one for mechanisms that take integers.

    Raises:
        ReleaseError: the computation failed, and the bound does not.
    """
    query = planned_query.query
    if isinstance(value, Exact):
        return value if planned_query.mechanism.needs.integers else value.floats()
    if not cause:
        return value.copy()
    # Publishing 0 on failure moves the statistic between neighbours, so it is allowed only where
    # the bound's theorem counts that move.
    if planned_query.sensitivity.covers_fallback:
        return np.asarray(query.nothing())
    raise ReleaseError(f"the private computation of {query.name!r} failed ({cause})") from None


def open_records(
    schedule: Schedule,
    records: Table | Source,
    secret: SecretRandomness,
    engine: Engine | None = None,
) -> Opened:
    """Project and split a table in memory, or a source in blocks if the learners can use them.

    Args:
        engine: Holds the records of a source; closed by the caller.

    Raises:
        SourceError: a column is missing, the number of records is not the declared one, or a
            record does not fit and the schedule refuses that.
    """
    forbid_core_dumps()
    with unpassed("the records cannot be read"):
        return _opened(schedule, records, secret, engine)


def _opened(
    schedule: Schedule, records: Table | Source, secret: SecretRandomness, engine: Engine | None
) -> Opened:
    if not isinstance(records, Source):
        return open_table(schedule.request, records, secret)
    # What a session keeps in memory goes to no disk.
    is_kept = isinstance(records, TableSource) and all(
        isinstance(column, KeptColumn) for column in records.table.values()
    )
    # One learner that needs all rows decides for the run, since all releases share one split.
    if engine is None or is_kept or not schedule.reads.in_blocks:
        return open_table(schedule.request, in_memory(records, schedule.request.domain), secret)
    return open_source(schedule.request, records, secret, engine)


def kind_of(scheduled: Scheduled) -> Any:
    """Return the module of a release's answers: `runtime`, or `function_answers`.

    A run of learners only does not import the latter.
    """
    if isinstance(scheduled.learner, Learner):
        return runtime
    from dpcore.private import function_answers

    return function_answers


def release(
    releases: Sequence[IsolatedRelease],
    domain: Domain,
    records: Records | EngineRecords,
    randomness: PublicRandomness,
    secret: SecretRandomness,
    release_through: ReleaseBoundary = through_mechanism,
    progress: Callable[[], None] = lambda: None,
    points: Mapping[str, NDArray[np.float64] | None] | None = None,
    opened: Opened | None = None,
    stand_ins: Mapping[str, Private] | None = None,
) -> tuple[tuple[tuple[Answer, ...], ...], tuple[Rebuild, ...]]:
    """Run every release; return its answers in order of asking, and what rebuilds its model.

    Both are by release, one conversation each.

    Such a model is for comparisons only: an object that was here while records were open is not
    published where a clean process makes another.

    Args:
        releases: From before any record was opened.
        domain: Of the run's records.
        records: The learners' part.
        opened: PRIVATE: with the hold-out, for releases of other ones; needed where there are any.
        progress: Called after every answer.
        points: Encoded points to predict at, by the name of each function release.
        stand_ins: In an audit, what is computed in place of private functions, by release.

    Raises:
        ReleaseError: a private function failed; nothing is released and the budget is spent.
    """
    first = Conversation(
        number=0,
        records=cast(Records, records),  # folds only, of learners that read in blocks
        randomness=randomness,
        secret=secret,
        release_through=release_through,
        progress=progress,
    )
    answers: dict[str, tuple[Answer, ...]] = {}
    ends: list[Rebuild] = []
    handover = Handover(releases)

    # Adaptive composition: a later release may depend on released answers, and on the earlier
    # private side through nothing else. So what it gets is rebuilt from these values.
    def rebuild(name: str) -> Published:
        values = [answer.value for answer in answers[name]]
        entry = next(candidate for candidate in releases if candidate.name == name)
        return entry.rebuild(randomness.again(), values, handover.inputs(entry))

    for number, entry in enumerate(releases):
        scheduled = entry.scheduled
        # The number names the streams of each release, so no two releases share randomness or
        # noise.
        conversation = attrs.evolve(
            first,
            number=number,
            points=(points or {}).get(scheduled.name),
            inputs=partial(handover.inputs, entry),
            stand_in=(stand_ins or {}).get(scheduled.name),
        )
        if (subject := scheduled.release.of) is not None:
            from dpcore.private.predictions_as_records import evaluated_records

            assert opened is not None, "a release of another one needs the hold-out"
            model = cast(Model, rebuild(subject))
            # These are other records, so nothing that was computed before may be used again.
            conversation = attrs.evolve(
                conversation,
                records=evaluated_records(scheduled.part, model, opened, domain),
                reuse=Reuse(),
            )
        answers[scheduled.name], end = kind_of(scheduled).collect_answers(entry, conversation)
        ends.append(end)
        if handover.is_input(scheduled.name):
            handover.keep(scheduled.name, rebuild(scheduled.name))
    return tuple(answers.values()), tuple(ends)
