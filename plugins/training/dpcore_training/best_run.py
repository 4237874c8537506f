r"""The best of a random number of runs of several candidates, at the price of random stopping.

`best_of` pays for every candidate, because it publishes what each of them learned. Here a run draws
a candidate at random, trains it, and scores it on the same records; a coin of probability 1/m ends
the runs, and of all of them the one with the best noisy score is published. What that costs next to
one run grows with the logarithm of m at most, however many candidates there are.

Theorem: every step of a run is a sum over records of vectors at most 1 long, of each record only
and of the run's earlier answers: a candidate's exact sum over the longest contribution that it
declares, or, for the score, 1 - 2 l with a loss l in [0, 1]. So a step moves by at most 1 when a
record comes or goes, by 2 when one is replaced, at equal transcripts. The sum of n records is
rounded to doubles twice, by at most :math:`2^{-51}n` in length.
"""

import copy
import math
from collections.abc import Iterator
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import (
    Adjacency,
    Answer,
    Distance,
    Domain,
    Learner,
    OneShot,
    Public,
    Query,
    Records,
    Refused,
    Sensitivity,
    SensitivityBound,
    SummingLearner,
    SumQuery,
)
from dpcore.bound import Claims
from dpcore.checks import fraction, positive_integer
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.domain import Table
from dpcore.errors import ContractError, ParameterError, UnknownCountError, need
from dpcore.functions import Process
from dpcore.learner import State, promises
from dpcore.learners.bounds.by_relation import ByRelation
from dpcore.learners.bounds.sum import SumBound
from dpcore.models import ScoringProbabilityModel
from dpcore.randomness import LearnerRandomness
from dpcore.rounding import up
from dpcore.summing import sums_exactly
from dpcore_models.learners.best_of import ChosenModel
from dpcore_models.learners.losses import LOSS_UNIT, require_clip, total_loss
from dpcore_training.random_stopping import ANSWERS, CANDIDATE, SCORE, RandomStopping, RunsQuery

MOST = 1000
"""Candidates: a run tries few of so many, and every one is priced."""

_OWNER = "best_run"
_NEEDED = "learners with one exact sum on all records, which publish scores and probabilities"


def _require_candidates(instance: Any, attribute: Any, value: tuple[Learner, ...]) -> None:
    """From two to `MOST` learners whose sums the core adds, and whose models score."""
    need(len(value) <= MOST, _OWNER, f"at most {MOST} candidates", attribute.name, len(value))
    fits = [
        sums_exactly(candidate) and candidate.total and promises(candidate, ScoringProbabilityModel)
        for candidate in value
    ]
    if len(fits) < 2 or not all(fits):
        names = [type(candidate).__name__ for candidate in value]
        raise ParameterError(_OWNER, f"two or more {_NEEDED}", attribute.name, names)


def _require_runs(instance: Any, attribute: Any, value: int) -> None:
    """A validator: an integer of at least 2."""
    positive_integer(instance, attribute, value)
    need(value >= 2, _OWNER, "at least 2 runs on average", attribute.name, value)


@attrs.frozen(kw_only=True)
class BestRun(OneShot):
    """Train candidates a secret number of times, and publish the run with the best private score.

    The candidates may differ in anything: rates, clips, layers, steps. Of k of them a given one is
    tried at all with probability runs/(runs + k - 1).

    Total: where all candidates are; a score that is no finite number counts as the largest loss.

    Args:
        candidates: From two to a thousand learners with one exact sum on all records.
        runs: How many runs there are on average, m >= 2; the number has the geometric law, and is
            never published.
        share: Of a run's budget, for its score.
        clip: Of numbers, c in (0, 1]: an error of that part of the label's range is a loss of 1.
    """

    bounds: ClassVar[tuple[str, ...]] = ("training.best_run",)
    publishes: ClassVar[type[Any]] = ScoringProbabilityModel
    total: ClassVar[bool] = True

    candidates: tuple[SummingLearner, ...] = attrs.field(
        converter=tuple, validator=_require_candidates
    )
    runs: int = attrs.field(default=10, validator=_require_runs)
    share: float = attrs.field(default=0.1, validator=fraction)
    clip: float = attrs.field(default=0.25, validator=require_clip)

    def part(self, public: Public) -> Public:
        """Return what a candidate knows: no input, for its runs are all from its own start."""
        mu = None if public.mu is None else public.mu * math.sqrt(1 - self.share)
        return attrs.evolve(public, mu=mu, inputs={})

    def sums(self, public: Public) -> tuple[SumQuery, ...]:
        """Return the one query of every candidate.

        Raises:
            ParameterError: a candidate plans something else than one exact sum on all records.
        """
        sums: list[SumQuery] = []
        for number, candidate in enumerate(self.candidates, start=1):
            query, *other_queries = candidate.queries(self.part(public))
            if other_queries or not isinstance(query, SumQuery) or not _is_plain(query):
                where = f"candidate {number} ({type(candidate).__name__})"
                raise ParameterError(
                    _OWNER, f"{_NEEDED}, without batch and bands", "candidates", where
                )
            sums.append(query)
        return tuple(sums)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """Return one: the process of a run.

        Raises:
            ParameterError: a candidate plans something else than one exact sum on all records.
            UnknownCountError: no number of records, and no limit on it, is declared.
        """
        need(
            public.domain.at_most is not None,
            UnknownCountError,
            "best_run rounds sums of a public number of records: declare one, or at_most",
        )
        sums = tuple((query.at_most, query.real_size) for query in self.sums(public))
        return (
            RunsQuery(
                name="run",
                shape=(ANSWERS + max(planned_queries * size for planned_queries, size in sums),),
                distance=Distance.L2,
                mechanism=RandomStopping(),
                steps=1 + max(planned_queries for planned_queries, _ in sums),
                sums=sums,
                mean=self.runs,
                score=self.share,
            ),
        )

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerRandomness
    ) -> Any:
        """PRIVATE: from a run's transcript to its next sum; it draws nothing, and keeps none."""
        run = _Run(learner=self, query=query, records=records, public=public, secret=secret)
        return Process(function=run.step, shape=query.shape, steps=run.query.steps)

    def state_after(self, transcript: NDArray[np.float64], count: int, public: Public) -> State:
        """The state of the transcript's candidate after its first `count` answers.

        Candidates are given no distribution of the noise, which the transcript does not hold.
        """
        index = self.chosen(transcript)
        query, part = self.sums(public)[index], self.part(public)
        candidate, size = self.candidates[index], query.real_size
        answers = transcript[ANSWERS:] * query.longest(Distance.L2)
        state = candidate.start(part)
        for number in range(count):
            planned_query = candidate.ask(state)
            if planned_query is None:
                break
            value = answers[number * size : (number + 1) * size].reshape(planned_query.shape)
            answer = Answer(
                query=planned_query, number=number + 1, value=value, mechanism=Gaussian()
            )
            state = candidate.update(state, answer)
        return state

    def chosen(self, transcript: NDArray[np.float64]) -> int:
        """Which candidate a transcript is of."""
        place = float(np.clip(transcript[CANDIDATE], 0, len(self.candidates) - 1))
        return int(np.rint(place))

    def assemble(self, answers: dict[str, NDArray[Any]], public: Public) -> "ChosenNetwork":
        """Return the model of the published run."""
        (transcript,) = answers.values()
        model = self.model_of(transcript, public)
        return ChosenNetwork(model=model, chosen=self.chosen(transcript))

    def model_of(self, transcript: NDArray[np.float64], public: Public) -> Any:
        """Return the model that follows from a run's answers."""
        index = self.chosen(transcript)
        query_count = self.sums(public)[index].at_most
        return self.candidates[index].model(self.state_after(transcript, query_count, public))

    def resources(self, domain: Domain) -> tuple[int, int]:
        """Return the largest candidate's memory, and the work of as many runs as there are on
        average.
        """
        costs = list(_costs(self.candidates, domain))
        memory, work = (max(numbers) for numbers in zip(*costs, strict=True)) if costs else (0, 0)
        return memory, self.runs * work


def _is_plain(query: SumQuery) -> bool:
    """Return whether a sum is over all records, each for itself, and answered by itself."""
    return query.sampling is None and query.bands is None and query.sum.person is None


def _costs(candidates: tuple[SummingLearner, ...], domain: Domain) -> Iterator[tuple[int, int]]:
    """Memory and work of those candidates that state them."""
    for candidate in candidates:
        resources = getattr(candidate, "resources", None)
        if resources is not None:
            yield resources(domain)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class _Run:
    """PRIVATE: the records, and what asks about them."""

    learner: BestRun
    query: Any
    records: Records
    public: Public
    secret: LearnerRandomness

    def step(self, number: int, transcript: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the candidate's next sum, or its score, at its place; zeros elsewhere."""
        learner, result = self.learner, np.zeros(self.query.shape)
        index, is_last = learner.chosen(transcript), number == self.query.steps - 1
        candidate, (planned_queries, _) = learner.candidates[index], self.query.sums[index]
        if is_last:
            result[SCORE] = self._score(learner.model_of(transcript, self.public))
            return result
        query = None
        if number < planned_queries:
            query = candidate.ask(learner.state_after(transcript, number, self.public))
        # A candidate that has no more to ask adds zeros, for all records alike.
        if isinstance(query, SumQuery):
            part = learner.part(self.public)
            planned = learner.sums(self.public)[index]
            message = f"the query {query.name!r} was asked but not planned like this"
            need(query == planned, ContractError, message)
            # On a copy: what a candidate keeps of records must not reach its later asks.
            worker = copy.deepcopy(candidate)
            total: Any = worker.statistic(query, self.records, part, self.secret)
            longest = query.longest(Distance.L2)
            result[self.query.place(index, number)] = total.floats().ravel() / longest
        return result

    def _score(self, model: Any) -> float:
        """Return the sum of 1 - 2 l over records: more is better."""
        loss = total_loss(model, self.records, self.public.domain, self.learner.clip)
        return math.ldexp(len(self.records) * (1 << -LOSS_UNIT) - 2 * loss, LOSS_UNIT)


@attrs.frozen
class BestRunBound(SensitivityBound):
    """1 for a record that comes or goes, 2 for one that is replaced, with each candidate's bound.

    What each candidate moves is in its declaration; its own bound is asked for premises.
    """

    learner: ClassVar[type[Learner]] = BestRun

    def about(
        self, learner: BestRun, public: Public, adjacency: Adjacency, claims: Claims
    ) -> SensitivityBound | Refused:
        """Return the same, with the premises of one bound for each candidate."""
        premises: list[str] = []
        for number, (candidate, query) in enumerate(
            zip(learner.candidates, learner.sums(public), strict=True), start=1
        ):
            part = learner.part(public)
            claim = _own_claim(candidate, query, part, adjacency, claims)
            if isinstance(claim, Refused):
                return Refused(f"candidate {number} ({type(candidate).__name__}): {claim.reason}")
            sums = SumBound().sensitivity(query, candidate, part, adjacency)
            assert not isinstance(sums, Refused), "a candidate's query declares a sum"
            premises += [*sums.premises, *claim.premises]
        return CandidatesBound(tuple(dict.fromkeys(premises)))

    def sensitivity(
        self, query: Query, learner: BestRun, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Refused: it is not known which bounds the candidates have."""
        return Refused("the candidates' bounds are chosen when a run is priced")


@attrs.frozen
class CandidatesBound(SensitivityBound):
    """The same, with what the candidates' bounds take for granted: what a plan rests on."""

    learner: ClassVar[type[Learner]] = BestRun

    premises: tuple[str, ...]

    def sensitivity(
        self, query: Query, learner: BestRun, public: Public, adjacency: Adjacency
    ) -> Sensitivity | Refused:
        """Return the theorem above, for all transcripts."""
        relation, moved = ByRelation(add_remove=1.0, replace_one=2.0).under(adjacency)
        return Sensitivity(
            value=moved,
            solver_error=up(math.ldexp(public.domain.at_most or 1, -51), roundings=1),
            distance=query.distance,
            adjacency=relation,
            source=f"steps of runs: sums of vectors at most 1 long ({relation})",
            premises=self.premises,
        )


def _own_claim(
    candidate: SummingLearner, query: SumQuery, public: Public, adjacency: Adjacency, claims: Claims
) -> Any:
    """Return a claim of the candidate's first bound that covers the run's relation, or a
    refusal.
    """
    refusals = []
    for name, bound in claims.of_learner(candidate):
        # One that withholds the number of records would have its candidate plan without it.
        if not bound.is_about(candidate) or bound.withholds_count:
            continue
        claim = bound.sensitivity(
            attrs.evolve(query, distance=Distance.L2), candidate, public, adjacency
        )
        if isinstance(claim, Refused):
            refusals.append(f"{name}: {claim.reason}")
        elif claim.adjacency.covers(adjacency):
            return claim
    return Refused("; ".join(refusals) or "no bound of its own is about it")


@attrs.frozen(kw_only=True, eq=False)
class ChosenNetwork(ChosenModel):
    """The model of the best run, and of which candidate it is."""

    model: ScoringProbabilityModel

    def probabilities(self, table: Table) -> NDArray[Any]:
        """Return the chosen model's probabilities of every class, shape (n, classes)."""
        return self.model.probabilities(table)
