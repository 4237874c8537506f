"""Rebuild what a run published, from its answers only.

The public and the private part of a learner run on separate instances: copies from bytes that were
written before any record was opened. Anyone who has a published run can do what is done here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ContractError, ReplayError, need
from dpcore.learner import Answer, AnyLearner, Learner, Public, Published, State
from dpcore.query import Query
from dpcore.randomness import PublicRandomness
from dpcore.transcript.isolated_copies import Before, frozen, settled

if TYPE_CHECKING:
    from dpcore.claims.plan.planned_query import PlannedQuery
    from dpcore.claims.plan.schedule import FunctionRelease, Scheduled
    from dpcore.domain.domain import Domain

Rebuild = Callable[[], Published]  # it makes a model when it is called

Inputs = Mapping[str, Published]
"""What earlier releases published, by name."""


@attrs.frozen(kw_only=True, eq=False)
class IsolatedRelease:
    """A release whose learner and part were written down before any record was opened."""

    scheduled: Scheduled
    before: Before[tuple[AnyLearner, Domain]] = attrs.field(
        init=False,
        repr=False,
        default=attrs.Factory(
            lambda self: Before((self.scheduled.learner, self.scheduled.part)), takes_self=True
        ),
    )

    @property
    def name(self) -> str:
        """The name of the release."""
        return self.scheduled.name

    def start(self, randomness: PublicRandomness, inputs: Inputs) -> tuple[Learner, Public]:
        """Return a new copy of the learner, and the public facts that it starts from."""
        # The public part by itself sees inputs: the private function gets of them what a query's
        # `args` say, for all of which its bound holds.
        learner, part = self.before.copy()
        public = Public(domain=part, randomness=randomness, mu=self.scheduled.mu, inputs=inputs)
        return cast(Learner, learner), public

    def replay(
        self, randomness: PublicRandomness, values: Sequence[NDArray[Any]], inputs: Inputs
    ) -> tuple[Published, tuple[Answer, ...]]:
        """Return the model and all queries, from released values in order: by the public part only.

        Args:
            inputs: What the releases that it names published, copies for this call only.

        Raises:
            ReplayError: the values do not fit.
        """
        if not isinstance(self.scheduled.learner, Learner):
            return _replay_function(cast("FunctionRelease", self.scheduled), values)
        learner, public = self.start(randomness, inputs)
        queries, queue = PlannedSequence(self.scheduled.queries), iter(values)
        answers: list[Answer] = []
        state: State = learner.start(public)
        while (question := learner.ask(state)) is not None:
            query = frozen(question)
            planned_query, number = queries.next(query)
            value = next(queue, None)
            # Too few or misshapen values: this transcript belongs to another plan, so no model
            # follows from it.
            if value is None or value.shape != query.shape:
                raise ReplayError(f"release {self.name}: no fitting answer to {query.name!r}")
            answer = answer_of(planned_query, query, number, value)
            state = learner.update(state, answer)
            answers.append(answer)
        need(
            next(queue, None) is None,
            ReplayError,
            f"release {self.name}: more answers than the learner asks for",
        )
        return learner.model(state), tuple(answers)

    def rebuild(
        self, randomness: PublicRandomness, values: Sequence[NDArray[Any]], inputs: Inputs
    ) -> Published:
        """Return the model, from released values in order of asking.

        Raises:
            ReplayError: the values do not fit.
        """
        return self.replay(randomness, values, inputs)[0]


def _replay_function(
    release: FunctionRelease, values: Sequence[NDArray[Any]]
) -> tuple[Published, tuple[Answer, ...]]:
    """Return the published predictions, and the answer, from one array of rows.

    A row is a point and its prediction.
    """
    # A run of learners by itself imports no predictions.
    from dpcore.models.predictions import Predictions

    domain = release.part
    need(
        len(values) == 1 and values[0].ndim == 2 and values[0].shape[1] == domain.width + 1,
        ReplayError,
        f"release {release.name}: needs one array of points and answers",
    )
    (rows,) = values
    points = np.ascontiguousarray(rows[:, :-1])
    model = Predictions(domain=domain, points=points, values=domain.uncentre(rows[:, -1]))
    planned_query = release.planned_query
    return model, (
        Answer(query=planned_query.query, number=1, value=rows, mechanism=planned_query.mechanism),
    )


def answer_of(
    planned_query: PlannedQuery, query: Query, number: int, value: NDArray[Any]
) -> Answer:
    """Return a released value as the learner gets it."""
    return Answer(
        query=query,
        number=number,
        value=value,
        mechanism=planned_query.mechanism,
        noise_distribution=planned_query.noise_distribution,
    )


class PlannedSequence:
    """The planned queries of a release, counted down."""

    def __init__(self, queries: Mapping[str, PlannedQuery]) -> None:
        self._planned_queries = queries
        self._counts: Counter[str] = Counter()

    def next(self, query: Query) -> tuple[PlannedQuery, int]:
        """Return the plan of this ask and its number.

        Raises:
            ContractError: the query is not planned as it is, or was asked too often.
        """
        planned_query = self._planned_queries.get(query.name)
        # The guarantee composes the planned asks only, so another query or one more ask would not
        # be paid for.
        if planned_query is None or query != planned_query.query:  # `args` are no part of equality
            raise ContractError(f"the query {query.name!r} was asked but not planned like this")
        self._counts[query.name] += 1
        number = self._counts[query.name]
        need(
            number <= planned_query.query.at_most,
            ContractError,
            f"the query {query.name!r} was planned for {planned_query.query.at_most} asks, one "
            f"more came",
        )
        return planned_query, number


class Handover:
    """What the releases of one run published, for later ones that name it as an input.

    Every consumer gets a copy of its own, of the moment when the object was rebuilt from answers:
    what one of them does to it reaches no one else.
    """

    def __init__(self, releases: Sequence[IsolatedRelease]) -> None:
        self._names = {name for entry in releases for name in entry.scheduled.release.inputs}
        self._objects: dict[str, Before[Published]] = {}

    def is_input(self, name: str) -> bool:
        """Return whether some release takes what the release `name` publishes."""
        return name in self._names

    def keep(self, name: str, published: Published) -> None:
        """Keep what the release `name` published, rebuilt from its answers, if another takes it."""
        if self.is_input(name):
            self._objects[name] = Before(settled(published))

    def inputs(self, release: IsolatedRelease) -> Inputs:
        """Return new copies of the inputs of a release."""
        objects: dict[str, Any] = {**self._objects, **release.scheduled.inputs}
        return {name: objects[name].copy() for name in release.scheduled.release.inputs}


def isolate(releases: Sequence[Scheduled]) -> tuple[IsolatedRelease, ...]:
    """Write down every learner and its part, before any record is opened."""
    return tuple(IsolatedRelease(scheduled=scheduled) for scheduled in releases)


def rebuild(
    releases: Sequence[IsolatedRelease],
    answers: Mapping[str, Sequence[NDArray[Any]]],
    randomness: PublicRandomness,
) -> dict[str, Published]:
    """Rebuild the models that released answers determine, by release name.

    Raises:
        ReplayError: the answers do not fit the plan.
    """
    models: dict[str, Published] = {}
    handover = Handover(releases)
    for release in releases:
        values, inputs = answers.get(release.name, ()), handover.inputs(release)
        model = models[release.name] = release.rebuild(randomness, values, inputs)
        handover.keep(release.name, model)
    return models
