"""SensitivityBound: a theorem about how far a learner's statistics move between neighbours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import attrs

from dpcore.adjacency import Adjacency
from dpcore.learner import Learner, Public
from dpcore.query import Query
from dpcore.sensitivity import Sensitivity


@attrs.frozen
class Refused:
    """No bound for this query, learner, domain and adjacency, and why."""

    reason: str


class SensitivityBound(ABC):
    """A theorem: what a learner's statistics may move by. Frozen; knows nothing of records."""

    learner: ClassVar[type[Learner]]
    """The learner it is about, matched exactly."""

    withholds_count: ClassVar[bool] = False
    """Whether the learner must not know the exact number of records, even where it is public."""

    def about(self, learner: Learner, named: Callable[[str], SensitivityBound]) -> SensitivityBound:
        """This bound for one learner: one about learners within a learner finds theirs by name."""
        return self

    @abstractmethod
    def sensitivity(
        self, query: Query, learner: Learner, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """The bound for a planned query, valid for every `args` that an ask may carry.

        Args:
            query: As planned by `learner.queries(public)`.
            learner: Its parameters are the bound's: a number is written once.
            public: The domain of the learner's part, the public coins, the target mu.
            adjacency: The run's; the result must cover it.
        """
