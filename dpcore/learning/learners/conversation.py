"""Conversation: a learner that remembers its answers, and what it remembers."""

import attrs

from dpcore.learner import Answer, Learner, Public
from dpcore.query import Query


@attrs.frozen(eq=False)
class Transcript:
    """Between start and model: the public facts, and the answers so far in order."""

    public: Public
    answers: tuple[Answer, ...] = ()


class Conversation(Learner):
    """A learner that remembers every answer; unless it writes `ask`, it asks each query once."""

    def start(self, public: Public) -> Transcript:
        """A transcript of the public facts, without any answer yet."""
        return Transcript(public)

    def ask(self, state: Transcript) -> Query | None:
        """The planned queries, in order, each once."""
        # The plan is a function of public facts, so that no answer changes it.
        queries = self.queries(state.public)
        count = len(state.answers)
        return queries[count] if count < len(queries) else None

    def update(self, state: Transcript, answer: Answer) -> Transcript:
        """The transcript with one more answer at its end."""
        return attrs.evolve(state, answers=(*state.answers, answer))
