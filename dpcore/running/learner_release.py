"""Conversing: a release of a learner that asks through the door and publishes a model.

The public and the private part of a learner run on separate instances. The model is rebuilt from
the answers alone, which is also what anyone else can do with a published run.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Table
from dpcore.errors import (
    UNREADABLE,
    ContractError,
    ReleaseError,
    ReplayError,
    RequestError,
    SpecError,
    need,
)
from dpcore.exact import Exact
from dpcore.guarantee import ReleaseKind
from dpcore.isolate.isolated_copies import frozen
from dpcore.learner import Answer, Learner, Model, Public, Published, State, promises
from dpcore.plan.ask import Ask
from dpcore.query import Query
from dpcore.randomness import LearnerCoins, PublicCoins
from dpcore.records.records import Records
from dpcore.running.hold_out import HoldOut, joined
from dpcore.running.release_context import Conversation, PastSums, wide_open
from dpcore.running.schedule import NO_INPUTS, Inputs, Private, Rebuild, Scheduled


@attrs.frozen(kw_only=True, eq=False)
class Conversing(Scheduled):
    """A release of a `Learner`."""

    def __attrs_post_init__(self) -> None:
        need(
            self.release.predictions_at is None,
            SpecError,
            f"points are for functions: the release {self.name!r} publishes parameters, and "
            f"parameters predict anywhere",
            "predictions_at",
        )

    @property
    def publishes(self) -> ReleaseKind:
        """Parameters where the learner predicts, else statistics: tables of numbers."""
        return ReleaseKind.PARAMETERS if promises(self.learner, Model) else ReleaseKind.STATISTICS

    def points(self, tables: Mapping[str, Table]) -> None:
        """None: parameters predict anywhere, so points are refused with a `RequestError`."""
        need(
            self.name not in tables,
            RequestError,
            f"points came for {self.name!r}, which publishes parameters",
        )

    def answers(self, held: Conversation) -> tuple[tuple[Answer, ...], Rebuild]:
        """Ask, compute, release, update, until the learner has no more to ask.

        Raises:
            ContractError: a query is not planned, or the mechanism returns no finite array of its
                shape.
            ReleaseError: a private function failed where the bound does not cover that.
        """
        # Two instances: the private function works on one copy, the state machine on another, so
        # nothing that the former stores in itself reaches the model.
        private, facts = self.private(held)
        speaker, public = self._speaker(held.coins, held.inputs())
        asks, past_sums = _Asks(self.asks), PastSums()
        answers: list[Answer] = []
        state: State = speaker.start(public)
        while (question := speaker.ask(state)) is not None:
            # A copy that nobody can write to: the private function cannot change the ask that the
            # public part goes on with.
            query = frozen(question)
            ask, number = asks.next(query)
            coins, records = held.own(query, number), held.seen(query, number)
            # Equal releases on the same records share one computation, never the noise: the
            # mechanism below draws from the stream of this release and this ask.
            compute = partial(_compute_statistic, private, frozen(query), records, facts, coins)
            value, cause = held.reuse.once(self.learner, query, facts, coins, compute)
            value = past_sums.weighted(query, _require_statistic(value, cause, ask))
            noisy_value = held.door(ask, query, value, held.noise(query, number))
            # Check the output of the mechanism, which may come from a plugin. Neither check looks
            # at the statistic, so what it raises is post-processing.
            owner, shape = type(ask.mechanism).__name__, np.shape(noisy_value)
            need(shape == query.shape, ContractError, f"{owner} changed the shape of {query.name}")
            need(
                np.isfinite(noisy_value).all(), ContractError, f"{owner} released what is no number"
            )
            # From here on the learner holds the released value alone; the statistic is out of its
            # reach.
            answer = _answer(ask, query, number, noisy_value)
            state = speaker.update(state, answer)
            held.progress()
            answers.append(answer)
        return tuple(answers), partial(speaker.model, state)

    def retold(
        self, coins: PublicCoins, values: Sequence[NDArray[Any]], inputs: Inputs = NO_INPUTS
    ) -> tuple[Published, tuple[Answer, ...]]:
        """The model and its asks, from the learner's state machine and the released values."""
        learner, public = self._speaker(coins, inputs)
        asks, queue = _Asks(self.asks), iter(values)
        answers: list[Answer] = []
        state: State = learner.start(public)
        while (question := learner.ask(state)) is not None:
            query = frozen(question)
            ask, number = asks.next(query)
            value = next(queue, None)
            # Too few or misshapen values: this transcript belongs to another plan, so no model
            # follows from it.
            if value is None or value.shape != query.shape:
                raise ReplayError(f"release {self.name}: no fitting answer to {query.name!r}")
            answer = _answer(ask, query, number, value)
            state = learner.update(state, answer)
            answers.append(answer)
        need(
            next(queue, None) is None,
            ReplayError,
            f"release {self.name}: more answers than the learner asks for",
        )
        return learner.model(state), tuple(answers)

    def evaluated(
        self, held: Conversation, model: Model, holdout: HoldOut
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Predictions of the model, and of the same learner from exact answers; batch by batch."""
        noiseless_model = cast(Model, self.without_noise(held))
        return (
            joined([model.predict(table) for table, _ in holdout.batches()]),
            joined([noiseless_model.predict(table) for table, _ in holdout.batches()]),
        )

    def without_noise(self, held: Conversation) -> Published:
        """PRIVATE: the model that the same learner builds from exact answers."""
        return self.answers(attrs.evolve(held, door=wide_open))[1]()

    def _speaker(self, coins: PublicCoins, inputs: Inputs) -> tuple[Learner, Public]:
        # The public part alone sees inputs: the private function gets of them what an ask's `args`
        # say, for all of which its bound holds.
        learner, part = self.before.copy()
        public = Public(domain=part, coins=coins, mu=self.mu, inputs=inputs)
        return cast(Learner, learner), public


def _answer(ask: Ask, query: Query, number: int, value: NDArray[Any]) -> Answer:
    return Answer(
        query=query, number=number, value=value, mechanism=ask.mechanism, spread=ask.spread
    )


class _Asks:
    """The planned asks, counted down."""

    def __init__(self, asks: Mapping[str, Ask]) -> None:
        self._asks = asks
        self._counts: Counter[str] = Counter()

    def next(self, query: Query) -> tuple[Ask, int]:
        """The plan of this ask and its number.

        Raises:
            ContractError: the query is not planned as it is, or was asked too often.
        """
        ask = self._asks.get(query.name)
        # The guarantee composes the planned asks alone, so another query or one more ask would not
        # be paid for.
        if ask is None or query != ask.query:  # `args` are no part of equality
            raise ContractError(f"the query {query.name!r} was asked but not planned like this")
        self._counts[query.name] += 1
        number = self._counts[query.name]
        need(
            number <= ask.query.at_most,
            ContractError,
            f"the query {query.name!r} was planned for {ask.query.at_most} asks, one more came",
        )
        return ask, number


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
        return value if ask.mechanism.takes_integers else value.floats()
    if not cause:
        return value.copy()
    # Publishing 0 on failure moves the statistic between neighbours, so it is allowed only where
    # the bound's theorem counts that move.
    if ask.sensitivity.covers_fallback:
        return np.asarray(query.nothing())
    raise ReleaseError(f"the private computation of {query.name!r} failed ({cause})") from None
