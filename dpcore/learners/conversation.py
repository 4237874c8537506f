"""`conversation`: learners that remember their answers, and those that query each query once."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import attrs
from numpy.typing import NDArray

from dpcore.learner import Answer, Learner, Public, Published
from dpcore.query import Query


@attrs.frozen(eq=False)
class Transcript:
    """Between start and model: the public facts, what is asked, and the answers so far in order.

    Args:
        queries: The plan, which public facts only determine; built once.
    """

    public: Public
    queries: tuple[Query, ...]
    answers: tuple[Answer, ...] = ()


class Conversation(Learner):
    """A learner that remembers every answer; unless it writes `ask`, it asks each query once."""

    def start(self, public: Public) -> Transcript:
        """Return a transcript of the public facts, without any answer yet."""
        return Transcript(public, self.queries(public))

    def ask(self, state: Transcript) -> Query | None:
        """Ask the planned queries in order, each once."""
        count = len(state.answers)
        return state.queries[count] if count < len(state.queries) else None

    def update(self, state: Transcript, answer: Answer) -> Transcript:
        """Return the transcript with one more answer at its end."""
        return attrs.evolve(state, answers=(*state.answers, answer))


class OneShot(Conversation):
    """A learner that asks each of its queries once and then assembles a model."""

    @abstractmethod
    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> Published:
        """Return the model from the released values, by query name."""

    def model(self, state: Transcript) -> Published:
        """Return the model that `assembled` makes of all released answers."""
        return self.assembled({answer.query.name: answer for answer in state.answers}, state.public)

    def assembled(self, answers: Mapping[str, Answer], public: Public) -> Published:
        """`assemble`, for anyone who needs the distribution of the noise too."""
        return self.assemble({name: answer.value for name, answer in answers.items()}, public)
