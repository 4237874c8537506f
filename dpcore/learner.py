"""Learner: a public state machine with one private function.

Everything a learner does is public except one function, the only one that sees records. The
runtime runs the public and the private part on separate instances, and rebuilds the model from the
answers only, so that whatever is published is a function of what came through the release boundary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ContractError
from dpcore.randomness import LearnerRandomness, PublicRandomness

if TYPE_CHECKING:
    from dpcore.domain.domain import Domain, Table
    from dpcore.interval import NoiseDistribution
    from dpcore.mechanism import AnyMechanism
    from dpcore.query import Query
    from dpcore.records import Records

State = Any
"""Whatever a learner remembers between answers: a function of public facts and answers."""


@attrs.frozen(kw_only=True)
class Public:
    """All that the public part of a learner, and a bound, may know.

    Args:
        domain: Declared facts about the learner's part of the records.
        randomness: The published randomness.
        mu: The target budget as a Gaussian-DP parameter times sqrt(the release's share), or None
            for pure budgets: a hint for step counts and clips, on which no claim rests.
        inputs: What earlier releases published, by name: of those that the release names, rebuilt
            from their answers. `start` by itself gets them. The private function, the plan of
            queries
            and bounds have none: what the former needs of them, it gets in a query's `args`, so
            that a bound that holds for all `args` holds whatever was published before.
    """

    domain: Domain
    randomness: PublicRandomness
    mu: float | None = None
    inputs: Mapping[str, Published] = attrs.field(factory=dict, repr=False)


def _read_only(value: NDArray[Any]) -> NDArray[Any]:
    # A copy, so that no one who holds the original can change what was published.
    copy = np.array(value)
    copy.flags.writeable = False
    return copy


@attrs.frozen(kw_only=True, eq=False)
class Answer:
    """What the release boundary let through for one query. Public.

    Args:
        query: The query, with its `args`.
        number: 1 for the first query of this query, counting up.
        value: The released value, read-only, of the query's shape.
        mechanism: The calibrated mechanism that released it.
        noise_distribution: The law of its noise on each coordinate, where the mechanism states one.
    """

    query: Query
    number: int
    value: NDArray[Any] = attrs.field(converter=_read_only)
    mechanism: AnyMechanism
    noise_distribution: NoiseDistribution | None = None


class Published(Protocol):
    """What a release publishes, a function of its answers: a model, tables, or an object of a
    class of its own, whose arrays have names."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything fitted, by name: the contents of `model.npz`."""


@runtime_checkable
class Model(Published, Protocol):
    """Predictions, and the arrays that determine them."""

    def predict(self, table: Table) -> NDArray[Any]:
        """Return predictions in the file's units, clipped to the label range, or classes.

        Shape (n,).
        """


@runtime_checkable
class ScoringModel(Model, Protocol):
    """A model that predicts from encoded columns too."""

    def score(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return centred predictions before any clipping, shape (n,), of rows of shape (n, p)."""


@runtime_checkable
class ProbabilityModel(Model, Protocol):
    """A model of classes that says how likely each of them is."""

    def probabilities(self, table: Table) -> NDArray[np.float64]:
        """Return the probability of every class, in declared order; shape (n, classes)."""


@runtime_checkable
class LinearNoiseModel(Model, Protocol):
    """A model that knows the law of its noise: predictions come from a score that is linear in the
    coordinates of the learner's only answer, which is asked once."""

    def lengths(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the standard deviation of the score where every real coordinate has noise of 1.
        (n,).
        """


@runtime_checkable
class LinearScoreModel(ScoringModel, LinearNoiseModel, Protocol):
    """A model whose score is linear in the coordinates of its only answer."""


@runtime_checkable
class ScoringProbabilityModel(ScoringModel, ProbabilityModel, Protocol):
    """A model of a number or of classes, with scores and probabilities."""


@runtime_checkable
class Transformer(Published, Protocol):
    """A map of rows to new columns, such as principal components: it predicts no target."""

    def transform(self, table: Table) -> NDArray[np.float64]:
        """Return the new columns of each row, finite; shape (n, len(column_names()))."""

    def column_names(self) -> tuple[str, ...]:
        """Return the names of the new columns, in order."""


def published_kinds(learner: Any) -> tuple[type[Any], ...]:
    """Return all kinds that a learner, or its class, declares that it publishes."""
    kinds = learner.publishes
    return kinds if isinstance(kinds, tuple) else (kinds,)


class AnyLearner(ABC):
    """A learner of either kind: one that converses (`Learner`), or one of a function.

    Frozen; every field is public. All but its one private function is public too.
    """

    bounds: ClassVar[tuple[Any, ...]]
    """Its sensitivity bounds, themselves or by registered name, in order of preference."""

    total: ClassVar[bool]
    """Whether the private function returns a fitting value for every dataset in the domain; the
    reason is in the class's docstring."""

    publishes: ClassVar[type[Any] | tuple[type[Any], ...]] = Model
    """The most that holds of what it publishes: `Published` (tables of numbers), `Model`, another
    protocol that extends one of them, a class of its own that does, or several of these. A `Model`
    needs a declared target, and only a `ProbabilityModel` serves one of three or more classes,
    whose labels are codes, not sizes."""

    def __init_subclass__(cls, **fields: Any) -> None:
        super().__init_subclass__(**fields)
        # A class that merely has the methods of a protocol would promise none of them.
        for kind in published_kinds(cls):
            if isinstance(kind, type) and Published not in kind.__mro__:
                raise ContractError(
                    f"{cls.__name__} publishes {kind.__name__}, which extends no protocol of "
                    f"dpcore.learner: name Published, Model, ScoringModel or another one of them"
                )

    @abstractmethod
    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return every query that the learner may ask, each at most `at_most` times.

        Pure in `public`.
        """

    def cut_columns(self, domain: Domain) -> tuple[str, ...]:
        """Return the ranges whose numbers the learner compares with public edges.

        `dpcore.encoding.columns.cells_of` compares them.

        Records behind an engine hold the numbers of these only next to what is encoded.
        """
        return ()

    def forecast(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> tuple[str, ...]:
        """Predict the widths of confidence intervals, one sentence each, before any record is read.

        Args:
            noise_distributions: The calibrated noise of its queries, by name, where mechanisms
                state it.
        """
        return ()

    def relative_half_width(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> float:
        """Return the widest half-width, relative to the range of its number by declared facts.

        Args:
            noise_distributions: As for `forecast`.

        Returns:
            1 or more where the release says nothing; 0 where public facts do not say.
        """
        return 0.0

    def least_records(
        self, public: Public, noise_distributions: Mapping[str, NoiseDistribution]
    ) -> float:
        """Return the approximate number of records below which the results are meaningless.

        It follows from public facts only.

        Where there are surely fewer, a run is refused before anything is charged, unless that is
        accepted. No claim rests on it.

        Args:
            noise_distributions: As for `forecast`.

        Returns:
            0 where public facts do not say.
        """
        return 0.0

    @abstractmethod
    def statistic(
        self, query: Any, records: Records, public: Public, secret: LearnerRandomness
    ) -> Any:
        """PRIVATE, pure: return the value of `query` (with its `args`) before any noise.

        Returns:
            An array of the query's shape, or an `Exact` sum of it; of a function an `Expansion`.
        """


class Learner(AnyLearner):
    """An algorithm as a conversation: public questions about private records, noisy answers."""

    @abstractmethod
    def start(self, public: Public) -> State:
        """Return the state before the first answer."""

    @abstractmethod
    def ask(self, state: State) -> Query | None:
        """Return the next query, a planned one with only `args` set; None when finished."""

    @abstractmethod
    def update(self, state: State, answer: Answer) -> State:
        """Return the state after one more answer."""

    @abstractmethod
    def model(self, state: State) -> Published:
        """Return the published model, or tables, once `ask` has returned None."""


def promises(learner: AnyLearner | type[AnyLearner], kind: type[Any]) -> bool:
    """Return whether a learner declares that it publishes a `kind`, such as `Model`.

    Args:
        kind: A protocol of this module.
    """
    # By name: `issubclass` asks for the methods of a protocol, which a class may have by chance.
    return any(kind in published.__mro__ for published in published_kinds(learner))


def describe_kinds(learner: AnyLearner | type[AnyLearner]) -> str:
    """Describe what a learner declares that it publishes: `tables`, or the names of classes."""
    names = [kind.__name__ for kind in published_kinds(learner) if kind is not Published]
    return " and ".join(names) or "tables"
