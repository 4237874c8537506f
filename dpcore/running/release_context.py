"""Conversation: what one release of a run holds while it is under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.engines.records import EngineRecords
from dpcore.errors import ContractError
from dpcore.exact import Exact
from dpcore.plan.ask import Ask
from dpcore.query import Query
from dpcore.randomness import LearnerCoins, PublicCoins, SecretCoins, Stream
from dpcore.records.records import Records
from dpcore.running.reuse import Reuse


class Door(Protocol):
    """What a statistic must pass to become an answer."""

    def __call__(
        self, ask: Ask, query: Query, value: NDArray[Any] | Exact, noise: Stream
    ) -> NDArray[Any]: ...


def through_mechanism(
    ask: Ask, query: Query, value: NDArray[Any] | Exact, noise: Stream
) -> NDArray[Any]:
    """The private door: the calibrated mechanism."""
    return ask.release(value, query, noise)


def wide_open(ask: Ask, query: Query, value: NDArray[Any] | Exact, noise: Stream) -> NDArray[Any]:
    """No privacy at all: the release without its noise, for the operator's comparison only."""
    return ask.noiseless(np.asarray(value), query)


def _nothing() -> None: ...


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Conversation:
    """PRIVATE: one release's records, coins and door.

    Args:
        number: Of the release among the run's, so that its coins are its own.
        records: The learners' part; behind an engine, `EngineRecords` in their place.
        coins: The public side's.
        hidden: The private side's own object of the same coins: what a private function keeps
            there, nobody publishes.
        points: Encoded points that a function is asked about; None for other releases.
        reuse: What the run's releases computed before.
        progress: Called after every answer.
    """

    number: int
    records: Records
    coins: PublicCoins
    secret: SecretCoins
    hidden: PublicCoins = attrs.field(
        default=attrs.Factory(lambda self: self.coins.again(), takes_self=True)
    )
    points: NDArray[np.float64] | None = None
    reuse: Reuse = attrs.field(factory=Reuse)
    door: Door = through_mechanism
    progress: Callable[[], None] = _nothing

    def own(self, query: Query, number: int) -> LearnerCoins:
        """The private function's coins for one ask."""
        return self.secret.learner(self.number, query.name, number)

    def noise(self, query: Query, number: int) -> Stream:
        """The mechanism's stream for one ask."""
        return self.secret.noise(self.number, query.name, number)

    def seen(self, query: Query, number: int) -> Records:
        """What one ask sees of the records.

        Of a table the places are those after the secret shuffle, behind an engine those in the
        source: another draw of the same law.
        """
        if query.sampling is None:
            return self.records
        drawn = self.secret.sampling(self.number, query.name, number)
        if isinstance(self.records, EngineRecords):
            held: EngineRecords = self.records
            if held.used is not None:
                persons = query.sampling.chosen_persons(drawn.by_place, held.used)
                return cast(Records, held.sampled(persons))
            chosen = query.sampling.chosen(drawn.by_place, held.places, len(held), held.split)
            return cast(Records, held.sampled(chosen))
        if self.records.persons is not None and not query.sampling.by_person:
            raise ContractError(f"{type(query.sampling).__name__} draws no persons")
        return query.sampling.draw(self.records, drawn)
