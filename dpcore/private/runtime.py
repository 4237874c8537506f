"""The runtime: opens records, and lets nothing but released answers reach the public part.

Every answer passes a door; the only door whose answers a guarantee covers is `through_mechanism`.
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
from dpcore.errors import unpassed
from dpcore.learner import Answer, Learner, Model, Published
from dpcore.private import learner_answers
from dpcore.private.core_dumps import forbid_core_dumps
from dpcore.private.engines.base import Engine
from dpcore.private.engines.records import EngineRecords
from dpcore.private.opening import Opened, open_source, open_table
from dpcore.private.release_context import Conversation, Door, Private, Reuse, through_mechanism
from dpcore.randomness import PublicCoins, SecretCoins
from dpcore.records import Records
from dpcore.source import Source, TableSource
from dpcore.transcript.rebuild import Handover, IsolatedRelease, Rebuild

if TYPE_CHECKING:
    from dpcore.claims.plan.schedule import Schedule, Scheduled


def open_records(
    schedule: Schedule, records: Table | Source, secret: SecretCoins, engine: Engine | None = None
) -> Opened:
    """Project, and split: a table in memory, a source in blocks where the learners can.

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
    schedule: Schedule, records: Table | Source, secret: SecretCoins, engine: Engine | None
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
    """`learner_answers`, or `function_answers`, which a run of learners alone does not import."""
    if isinstance(scheduled.learner, Learner):
        return learner_answers
    from dpcore.private import function_answers

    return function_answers


def release(
    releases: Sequence[IsolatedRelease],
    domain: Domain,
    records: Records | EngineRecords,
    coins: PublicCoins,
    secret: SecretCoins,
    door: Door = through_mechanism,
    progress: Callable[[], None] = lambda: None,
    points: Mapping[str, NDArray[np.float64] | None] | None = None,
    opened: Opened | None = None,
    stand_ins: Mapping[str, Private] | None = None,
) -> tuple[tuple[tuple[Answer, ...], ...], tuple[Rebuild, ...]]:
    """Run every release; the answers in order of asking, and what makes the model at the end of
    each conversation: both by release.

    Such a model is for comparisons alone: an object that was here while records were open is not
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
        records=cast(Records, records),  # folds alone, of learners that read in blocks
        coins=coins,
        secret=secret,
        door=door,
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
        return entry.rebuild(coins.again(), values, handover.inputs(entry))

    for number, entry in enumerate(releases):
        scheduled = entry.scheduled
        # The number names the streams of each release, so no two releases share coins or noise.
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
