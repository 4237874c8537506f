"""OneShot: a learner that asks each of its queries once, and then assembles its model."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from dpcore.learner import Answer, Public, Published
from dpcore.learning.learners.conversation import Conversation, Transcript


class OneShot(Conversation):
    """A learner that asks each of its queries once and then assembles a model."""

    @abstractmethod
    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> Published:
        """The model from the released values, by query name."""

    def model(self, state: Transcript) -> Published:
        """The model that `assembled` makes of all released answers."""
        return self.assembled({answer.query.name: answer for answer in state.answers}, state.public)

    def assembled(self, answers: Mapping[str, Answer], public: Public) -> Published:
        """`assemble`, for whoever needs the law of the noise too."""
        return self.assemble({name: answer.value for name, answer in answers.items()}, public)
