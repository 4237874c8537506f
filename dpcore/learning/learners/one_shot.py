"""OneShot: a learner that asks each of its queries once, and then assembles its model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import attrs
from numpy.typing import NDArray

from dpcore.learner import Answer, Learner, Public, Published, State
from dpcore.query import Query


@attrs.frozen(eq=False)
class _Collected:
    public: Public
    answers: tuple[Answer, ...] = ()


class OneShot(Learner):
    """A learner that asks each of its queries once and then assembles a model."""

    @abstractmethod
    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> Published:
        """The model from the released values, by query name."""

    def start(self, public: Public) -> State:
        """No answers yet."""
        return _Collected(public)

    def ask(self, state: State) -> Query | None:
        """The planned queries, in order, each once."""
        queries = self.queries(state.public)
        asked = len(state.answers)
        return queries[asked] if asked < len(queries) else None

    def update(self, state: State, answer: Answer) -> State:
        """Remember the answer."""
        return attrs.evolve(state, answers=(*state.answers, answer))

    def model(self, state: State) -> Published:
        """Assemble."""
        return self.assembled({answer.query.name: answer for answer in state.answers}, state.public)

    def assembled(self, answers: Mapping[str, Answer], public: Public) -> Published:
        """`assemble`, for whoever needs the law of the noise too."""
        return self.assemble({name: answer.value for name, answer in answers.items()}, public)
