"""Answers of learners: they ask through the door until they have no more to ask.

The model of a run is rebuilt from the answers alone (`dpcore.transcript.rebuild`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Table
from dpcore.errors import UNREADABLE, ContractError, ReleaseError, RequestError, need
from dpcore.exact import Exact
from dpcore.learner import Answer, Model, Public, Published, State
from dpcore.private.hold_out import HoldOut, joined
from dpcore.private.release_context import Conversation, PastSums, Private, wide_open
from dpcore.query import Query
from dpcore.randomness import LearnerCoins
from dpcore.records import Records
from dpcore.transcript.isolated_copies import frozen
from dpcore.transcript.rebuild import IsolatedRelease, PlannedAsks, Rebuild, answer_of

if TYPE_CHECKING:
    from dpcore.claims.plan.planned_query import Ask
    from dpcore.claims.plan.schedule import Scheduled


def encode_points(release: Scheduled, tables: Mapping[str, Table]) -> None:
    """None: parameters predict anywhere, so points are refused.

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
    """Ask, compute, release, update, until the learner has no more to ask.

    Raises:
        ContractError: a query is not planned, or the mechanism returns no finite array of its
            shape.
        ReleaseError: a private function failed where the bound does not cover that.
    """
    # Two instances: the private function works on one copy, the state machine on another, so
    # nothing that the former stores in itself reaches the model.
    private, facts = conversation.private(release)
    speaker, public = release.start(conversation.coins, conversation.inputs())
    asks, past_sums = PlannedAsks(release.scheduled.asks), PastSums()
    answers: list[Answer] = []
    state: State = speaker.start(public)
    while (question := speaker.ask(state)) is not None:
        # A copy that nobody can write to: the private function cannot change the ask that the
        # public part goes on with.
        query = frozen(question)
        ask, number = asks.next(query)
        coins, records = (
            conversation.learner_coins(query, number),
            conversation.select_records(query, number),
        )
        # Equal releases on the same records share one computation, never the noise: the
        # mechanism below draws from the stream of this release and this ask.
        compute = partial(_compute_statistic, private, frozen(query), records, facts, coins)
        value, cause = conversation.reuse.once(
            release.scheduled.learner, query, facts, coins, compute
        )
        value = past_sums.weighted(query, _require_statistic(value, cause, ask))
        noisy_value = conversation.door(ask, query, value, conversation.noise(query, number))
        # Check the output of the mechanism, which may come from a plugin. Neither check looks
        # at the statistic, so what it raises is post-processing.
        owner, shape = type(ask.mechanism).__name__, np.shape(noisy_value)
        need(shape == query.shape, ContractError, f"{owner} changed the shape of {query.name}")
        need(np.isfinite(noisy_value).all(), ContractError, f"{owner} released what is no number")
        # From here on the learner holds the released value alone; the statistic is out of its
        # reach.
        answer = answer_of(ask, query, number, noisy_value)
        state = speaker.update(state, answer)
        conversation.progress()
        answers.append(answer)
    return tuple(answers), partial(speaker.model, state)


def predict_holdout(
    release: IsolatedRelease, conversation: Conversation, model: Model, holdout: HoldOut
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Predictions of the model, and of the same learner from exact answers; batch by batch."""
    noiseless_model = cast(Model, fit_without_noise(release, conversation))
    return (
        joined([model.predict(table) for table, _ in holdout.batches()]),
        joined([noiseless_model.predict(table) for table, _ in holdout.batches()]),
    )


def fit_without_noise(release: IsolatedRelease, conversation: Conversation) -> Published:
    """PRIVATE: the model that the same learner builds from exact answers."""
    return collect_answers(release, attrs.evolve(conversation, door=wide_open))[1]()


def _compute_statistic(
    private: Private, query: Query, records: Records, public: Public, secret: LearnerCoins
) -> tuple[NDArray[Any] | Exact, str]:
    """PRIVATE: the statistic, checked, and why it failed if it did.

    The cause of a failure may hold values of records, so that only its type is told.

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


def _require_statistic(value: NDArray[Any] | Exact, cause: str, ask: Ask) -> NDArray[Any] | Exact:
    """PRIVATE: a copy of the value; 0 stands for a failure only where the bound covers that.

    An exact sum stays one for mechanisms that take integers.

    Raises:
        ReleaseError: the computation failed, and the bound does not.
    """
    query = ask.query
    if isinstance(value, Exact):
        return value if ask.mechanism.needs.integers else value.floats()
    if not cause:
        return value.copy()
    # Publishing 0 on failure moves the statistic between neighbours, so it is allowed only where
    # the bound's theorem counts that move.
    if ask.sensitivity.covers_fallback:
        return np.asarray(query.nothing())
    raise ReleaseError(f"the private computation of {query.name!r} failed ({cause})") from None
