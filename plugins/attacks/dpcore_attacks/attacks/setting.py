"""`setting`: one learner with one bound at one domain and adjacency, and its planned queries."""

import copy
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Protocol, Self, runtime_checkable

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Answer,
    Distance,
    Domain,
    Learner,
    Plan,
    Public,
    PublicRandomness,
    Query,
    Records,
    Refused,
    SecretRandomness,
    SensitivityBound,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.plan.schedule import Scheduled
from dpcore.claims.pricing.unit_claims import unit_claim
from dpcore.errors import UndeclaredError
from dpcore.functions import FunctionQuery
from dpcore.interval import NoiseDistribution
from dpcore.learner import AnyLearner, promises
from dpcore.mechanism import AnyMechanism, is_calibrated
from dpcore.models import Model
from dpcore.private.sampling import draw, scheme_of_query
from dpcore.sensitivity import AnySensitivity

_KEPT = 12  # asks of one query that are attacked


@runtime_checkable
class Checkable(Protocol):
    """A conditional bound that can say, on synthetic records, whether its assumption holds.

    No run ever calls this: an assumption tested on real records would itself be a release.
    """

    def assumption_holds(self, records: Records, learner: Any, public: Public) -> bool:
        """Return whether these records satisfy everything the bound assumes."""


@runtime_checkable
class Pathwise(Protocol):
    """A bound that states a distribution over orders, and what it claims of one order."""

    def along(
        self, query: Query, learner: Any, public: Public, order: NDArray[np.intp], changed: int
    ) -> float:
        """Return how far the statistic may move when row `changed` is replaced and rows are used in
        `order`; 0 if it is not used. Solver errors come on top."""


def seen(query: Query, records: Records, seed: int = 0) -> Records:
    """Return what a query's private function would see of synthetic records, at known
    randomness.
    """
    if query.sampling is None:
        return records
    randomness = SecretRandomness.rehearsal(seed)
    sampling = scheme_of_query(query.sampling, 1, randomness.sampling(0, query.name, 0))
    return draw(sampling, records, randomness.sampling(0, query.name, 1))


@attrs.frozen(kw_only=True, eq=False)
class Case:
    """One learner with one bound, domain and relation: the subject of an attack.

    Args:
        domain: Of the learner's part: an exact count under replacement, a limit or none under
            add/remove.
        mechanisms: What answers each query, by name; a Gaussian where nothing is given.
    """

    learner: AnyLearner
    bound: SensitivityBound
    domain: Domain
    adjacency: Adjacency
    randomness: PublicRandomness = attrs.field(factory=lambda: PublicRandomness(1))
    mu: float | None = 1.0
    mechanisms: Mapping[str, AnyMechanism] = attrs.field(factory=dict)

    @classmethod
    def of(cls, plan: Plan, scheduled: Scheduled) -> Self:
        """Return a release of a plan, under the bound that priced it."""
        return cls(
            learner=scheduled.learner,
            bound=scheduled.bound,
            domain=scheduled.part,
            adjacency=plan.request.adjacency,
            randomness=plan.randomness or PublicRandomness(1),
            mu=scheduled.mu,
            mechanisms={
                name: planned_query.mechanism for name, planned_query in scheduled.queries.items()
            },
        )

    @property
    def public(self) -> Public:
        """What learner and bound may know."""
        return Public(domain=self.domain, randomness=self.randomness, mu=self.mu)

    @property
    def name(self) -> str:
        """Learner, bound, adjacency and size, for messages."""
        size = self.domain.exact or self.domain.limit or "private"
        owners = f"{type(self.learner).__name__} / {type(self.bound).__name__}"
        return f"{owners}, {self.adjacency}, n={size}"

    def claims(self) -> tuple[tuple[Query, AnySensitivity], ...] | Refused:
        """Return every planned query in each of its norms, with its bound there; or why there is
        none.

        A bound may refuse a further norm: the query's own distance by itself is needed.
        """
        planned_claims = []
        try:
            for query in self.learner.queries(self.public):
                for norm in dict.fromkeys((query.distance, *query.norms)):
                    stated_query = attrs.evolve(query, distance=norm)
                    claim = self._claim(stated_query)
                    if isinstance(claim, Refused) and norm is not query.distance:
                        continue
                    if isinstance(claim, Refused):
                        return claim
                    # pairs of this relation could not refute a claim about another one
                    if not claim.adjacency.covers(self.adjacency):
                        return Refused(f"it holds for {claim.adjacency} only")
                    planned_claims.append((stated_query, claim))
        except UndeclaredError as error:
            return Refused(str(error))
        return tuple(planned_claims)

    def _claim(self, query: Query) -> AnySensitivity | Refused:
        claim = partial(self.bound.sensitivity, query, self.learner, self.public)
        return unit_claim(query, self.learner, self.adjacency, claim)  # as pricing does it

    def safe_claims(self) -> tuple[tuple[Query, AnySensitivity], ...] | Refused:
        """Return the claims, where any exception of the learner or the bound counts as a
        refusal.
        """
        try:
            return self.claims()
        except Exception as error:
            return Refused(f"it raised {type(error).__name__}")

    def at_size(self, records: int) -> Self:
        """Return the case with another number of records, or limit on it."""
        return self._with(self.adjacency, records)

    def under(self, adjacency: Adjacency) -> Self:
        """Return the case for another relation; a count is public exactly under replacement."""
        return self._with(adjacency, self.domain.at_most)

    def _with(self, adjacency: Adjacency, size: int | None) -> Self:
        """As pricing does it: the exact count where the relation and the bound allow it."""
        # where neighbours differ in size, the exact count is private
        if not adjacency.replaces or self.bound.withholds_count or size is None:
            domain = attrs.evolve(self.domain, exact=None, limit=size)
        else:
            domain = self.domain.of_part(size)
        return attrs.evolve(self, adjacency=adjacency, domain=domain)


def conversation(
    case: Case, answers: Iterator[NDArray[Any]] | None, rng: np.random.Generator, scale: float
) -> Iterator[tuple[Any, Query, Answer]]:
    """Drive the public state machine with synthetic answers: (state before, ask, answer).

    Args:
        answers: Values to give, in order; random ones of size `scale` if None.
    """
    # on a copy: whatever the learner keeps in itself does not reach the next conversation
    learner = copy.deepcopy(case.learner)
    if not isinstance(learner, Learner):
        return  # a learner of a function has no state machine
    state = learner.start(case.public)
    numbers: dict[str, int] = {}
    noise_distributions = {} if promises(learner, Model) else _noise_distributions(case)
    while (query := learner.ask(state)) is not None:
        numbers[query.name] = numbers.get(query.name, 0) + 1
        value = made_up(query, rng, scale) if answers is None else next(answers)
        # as a run would answer, number, mechanism and noise distribution included: only the value
        # is made up
        answer = Answer(
            query=query,
            number=numbers[query.name],
            value=value,
            mechanism=case.mechanisms.get(query.name, Gaussian(noise_multiplier=1.0)),
            noise_distribution=noise_distributions.get(query.name),
        )
        yield state, query, answer
        state = learner.update(state, answer)


def _noise_distributions(case: Case) -> dict[str, NoiseDistribution]:
    """Return the noise of every query whose mechanism is calibrated, by its name."""
    claims = case.safe_claims()
    noise_distributions: dict[str, NoiseDistribution] = {}
    for query, claim in () if isinstance(claims, Refused) else claims:
        mechanism = case.mechanisms.get(query.name)
        stated_claim = mechanism and claim.in_norm(mechanism.needs.distance, query.real_size)
        if mechanism is not None and is_calibrated(mechanism) and stated_claim is not None:
            noise_distribution = mechanism.noise_distribution(query, stated_claim)
            noise_distributions |= (
                {} if noise_distribution is None else {query.name: noise_distribution}
            )
    return noise_distributions


def made_up(query: Query, rng: np.random.Generator, scale: float) -> NDArray[Any]:
    """Return a random value that could be an answer to `query`."""
    value: NDArray[Any] = scale * rng.normal(size=query.shape)
    if query.field == "complex":
        value = value + 1j * scale * rng.normal(size=query.shape)
    # such an answer is a matrix of products: positive definite, and a learner may invert it
    if query.distance is Distance.PSD_ROWS and value.ndim == 2:
        value = value @ value.T / value.shape[1] + np.eye(value.shape[0])
    return value


def queries_of(case: Case, name: str, rng: np.random.Generator) -> list[Query]:
    """Asks of one query with arguments that answers of any size can lead to.

    Answers are noisy, so that every real number can be one: the machine is driven with random
    answers from tiny to huge, and up to a dozen of the asks it then makes are kept. A function is
    asked for as planned.
    """
    (planned,) = (query for query in case.learner.queries(case.public) if query.name == name)
    if isinstance(planned, FunctionQuery):
        return [planned]
    queries: list[Query] = []
    for scale in (0.0, 1.0, 30.0, 1e4):
        planned_queries = [
            query for _, query, _ in conversation(case, None, rng, scale) if query.name == name
        ]
        # a single query without arguments does not depend on answers
        if len(planned_queries) == 1 and planned_queries[0].args is None:
            return planned_queries
        # the first, the last and two at random: arguments drift from ask to ask
        indices = (
            {0, len(planned_queries) - 1, *rng.integers(len(planned_queries), size=2)}
            if planned_queries
            else set()
        )
        queries.extend(planned_queries[index] for index in sorted(indices))
    return queries[:_KEPT]
