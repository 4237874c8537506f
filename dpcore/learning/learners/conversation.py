"""Conversation: a learner that remembers its answers, and what it remembers."""

import attrs

from dpcore.learner import Answer, Learner, Public
from dpcore.query import Query


@attrs.frozen(eq=False)
class Transcript:
    """Between start and model: the public facts, what is asked, and the answers so far in order.

    Args:
        queries: The plan, which public facts alone determine; built once.
    """

    public: Public
    queries: tuple[Query, ...]
    answers: tuple[Answer, ...] = ()


class Conversation(Learner):
    """A learner that remembers every answer; unless it writes `ask`, it asks each query once."""

    def start(self, public: Public) -> Transcript:
        """A transcript of the public facts, without any answer yet."""
        return Transcript(public, self.queries(public))

    def ask(self, state: Transcript) -> Query | None:
        """The planned queries, in order, each once."""
        count = len(state.answers)
        return state.queries[count] if count < len(state.queries) else None

    def update(self, state: Transcript, answer: Answer) -> Transcript:
        """The transcript with one more answer at its end."""
        return attrs.evolve(state, answers=(*state.answers, answer))
