"""SensitivityBound: a theorem about how far a learner's statistics move between neighbours."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Protocol

import attrs

from dpcore.adjacency import Adjacency
from dpcore.learner import AnyLearner, Public
from dpcore.mechanism import AnyMechanism
from dpcore.query import Query
from dpcore.sensitivity import AnySensitivity


@attrs.frozen
class Refused:
    """No bound for this query, learner, domain and adjacency, and why."""

    reason: str


class Components(Protocol):
    """What a plan may be made of: what is admitted, and whose code it is."""

    def of_learner(self, learner: AnyLearner) -> Iterator[tuple[str, SensitivityBound]]:
        """Return a learner's bounds by name, in order of preference."""

    def mechanism(self, name: str) -> type[AnyMechanism]:
        """Return the mechanism that goes by a name."""

    def distributions(self, objects: Iterable[Any]) -> dict[str, str]:
        """Return the distributions on whose code objects, or classes, rest: versions by name."""

    def premises(self) -> tuple[str, ...]:
        """Return the assumptions of a guarantee about the code that was used so far."""


def own_distribution(components: Components, kind: type[Any]) -> dict[str, str]:
    """Return the version of the distribution that has a class, by its name.

    With all that it rests on, where a package has another name than its distribution.
    """
    versions, package = components.distributions([kind]), kind.__module__.partition(".")[0]
    own = package.replace("_", "-")
    return {own: versions[own]} if own in versions else versions


class Claims(Protocol):
    """What a bound about learners within a learner may ask while a run is priced."""

    def of_learner(self, learner: AnyLearner) -> Iterator[tuple[str, SensitivityBound]]:
        """Return a learner's bounds by name, in order of preference."""

    def claim(
        self, bound: SensitivityBound, query: Query, learner: AnyLearner, public: Public, name: str
    ) -> AnySensitivity | Refused:
        """Return a bound's claim about a query, or its refusal.

        It is refused if the run's relation, or the mechanism of the query that the run plans as
        `name`, has no use for it.
        """


class SensitivityBound(ABC):
    """A theorem: what a learner's statistics may move by. Frozen; knows nothing of records."""

    learner: ClassVar[type[AnyLearner] | None] = None
    """The learner it is about, matched exactly; None where the learner itself holds it."""

    withholds_count: ClassVar[bool] = False
    """Whether the learner must not know the exact number of records, even where it is public."""

    def is_about(self, learner: AnyLearner) -> bool:
        """Return whether the bound names the learner's class, or that class itself lists it.

        A subclass inherits no theorem: its statistic may be another one.
        """
        if self.learner is None:
            return self in vars(type(learner)).get("bounds", ())
        return self.learner is type(learner)

    def about(
        self, learner: Any, public: Public, adjacency: Adjacency, claims: Claims
    ) -> SensitivityBound | Refused:
        """Return the bound that is in force for one learner: this one, unless it rests on others.

        One about learners within a learner chooses theirs here, once, while a run is priced.

        Args:
            claims: Which bounds there are, and what they claim that the run can price.
        """
        return self

    @abstractmethod
    def sensitivity(
        self, query: Query, learner: Any, public: Public, adjacency: Adjacency
    ) -> AnySensitivity | Refused:
        """Return the bound for a planned query, valid for every `args` that a query may carry.

        Args:
            query: As planned by `learner.queries(public)`.
            learner: Of the class it is about. Its parameters are the bound's: each is written once.
            public: The domain of the learner's part, the public randomness, the target mu.
            adjacency: The run's; the result must cover it.
        """
