r"""The best of a random number of private runs, of which nothing else is published.

A process (`dpcore.functions.Process`) says what a run asks: from the answers that the run has so
far to the next sum of its candidate, in units in which no record adds a vector longer than 1. The
mechanism draws everything: which candidate, the noise of every sum, and the noise of the score.
After each run a coin decides whether another one follows, so that K runs have the geometric law of
a public mean. The run with the best noisy score is published, its score with it, and no other
number.

Claim: with mu = 1/noise_multiplier a run is mu-Gaussian, for all candidates alike: T sums get noise
of sqrt(T/(1 - s)) times noise_multiplier each, the score of sqrt(1/s) times it, and squares of mu
add up, whatever later steps do with earlier answers. A draw of the candidate by public weights is a
mixture, which no curve rises by. What is published then costs what `RandomStoppingEvent` says of K
geometric runs, for any score. Of runs that tie the first is published: as all runs have one law,
that is a draw among those that tie.

How long a run takes says how many runs there were, as every other clock does.

Source: Papernot & Steinke (2022), arXiv:2110.03620; Koskela, Redberg & Wang (2024),
arXiv:2402.06137; see `dpcore.claims.events.random_stopping`.
"""

import math
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Distance, Event, Mechanism, Query, Sensitivity
from dpcore.checks import fraction, positive
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.random_stopping import RandomStoppingEvent
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.noise.exponential import uniform_below
from dpcore.errors import ContractError, need
from dpcore.functions import Process, ProcessQuery
from dpcore.mechanism import Arithmetic, Needs, Prepared, free
from dpcore.randomness import Stream
from dpcore.rounding import up

CANDIDATE, SCORE, ANSWERS = 0, 1, 2
"""What a transcript holds, by place: the candidate, its score, and from here on its answers."""


@attrs.frozen(kw_only=True)
class RunsQuery(ProcessQuery):
    """A question whose process leads from a run's transcript to the run's next sum, or score.

    A transcript is one vector: the candidate's number, its score, and its answers in order, zeros
    behind them. Step t < T of a candidate that asks T times gives its next sum, at the place of
    answer t; the last step of all gives the score, at its place. All other numbers are zeros.

    Args:
        sums: Of each candidate how often it asks, and how many numbers an answer has.
        mean: How many runs there are on average, at least 2.
        score: What proportion of a run's budget its score gets.
    """

    sums: tuple[tuple[int, int], ...]
    mean: int
    score: float = attrs.field(validator=fraction)

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        counts = [number for pair in self.sums for number in pair]
        need(counts and min(counts) >= 1, "RunsQuery", "sums to ask for", "sums", self.sums)
        need(self.mean >= 2, "RunsQuery", "a mean of at least 2 runs", "mean", self.mean)
        shape = (ANSWERS + max(queries * size for queries, size in self.sums),)
        need(self.shape == shape, "RunsQuery", f"the shape {shape}", "shape", self.shape)
        steps = 1 + max(queries for queries, _ in self.sums)
        need(self.steps == steps, "RunsQuery", f"{steps} steps", "steps", self.steps)

    def place(self, candidate: int, number: int) -> slice:
        """Where a transcript of a candidate has answer `number`, counted from 0."""
        _, size = self.sums[candidate]
        return slice(ANSWERS + number * size, ANSWERS + (number + 1) * size)


@attrs.frozen(kw_only=True)
class RandomStopping(Mechanism):
    """Runs candidates a secret number of times, and publishes the run with the best score.

    Args:
        noise_multiplier: 1/mu of one run, its score included; calibrated if left out.
    """

    needs: ClassVar[Needs] = Needs(distance=Distance.L2, query=RunsQuery)
    arithmetic: ClassVar[Arithmetic] = "exact"
    source: ClassVar[str] = (
        "Papernot & Steinke (2022), arXiv:2110.03620, by the curve of a geometric number of runs"
    )

    noise_multiplier: float = free(validator=positive)

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "RandomStopping":
        """noise_multiplier = scale: one run costs mu = 1/scale, and the best of them more."""
        return attrs.evolve(self, noise_multiplier=scale)

    def event(self, query: Query, sensitivity: Sensitivity, moved: float | None = None) -> Event:
        """Return the best of K runs, each a Gaussian of the largest mu that a candidate's run
        has.
        """
        runs, squares = _runs(query), []
        score_mu = _mu(self._noise(1, runs.score), 1, sensitivity)
        for queries, size in {*runs.sums}:
            mu = _mu(self._noise(queries, 1 - runs.score), size, sensitivity)
            squares.append(queries * mu * mu + score_mu * score_mu)
        run = GaussianEvent(
            mu=up(math.sqrt(max(squares)), roundings=8), adjacency=sensitivity.adjacency
        )
        return RandomStoppingEvent(event=run, mean=float(runs.mean), shape=1.0)

    def _noise(self, query_count: int, part: float) -> Gaussian:
        """Of each of `queries` vectors that together get this proportion of a run."""
        return Gaussian(noise_multiplier=self.noise_multiplier * math.sqrt(query_count / part))

    def release(
        self, value: NDArray[Any], query: Query, sensitivity: Sensitivity, noise: Stream
    ) -> NDArray[Any]:
        """Return the transcript of the best run.

        Raises:
            ContractError: the query is of another kind, or the value is no process.
            ReleaseError: a step failed.
        """
        return self.prepared(query, sensitivity)(value, query, noise)

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """With the grids and samplers of every candidate's sums, and of the score."""
        runs = _runs(query)
        score = self._noise(1, runs.score).prepared(_vector(1), sensitivity)
        sums = tuple(
            self._noise(queries, 1 - runs.score).prepared(_vector(size), sensitivity)
            for queries, size in runs.sums
        )
        return _Runs(sums=sums, score=score)

    def noiseless(self, value: NDArray[Any], query: Query) -> NDArray[Any]:
        """PRIVATE: return the best transcript of one run of every candidate, without noise."""
        runs = _runs(query)
        process = runs.process(value)
        exact = _Runs(sums=(_exact,) * len(runs.sums), score=_exact)
        transcripts = [
            exact.run(process, runs, candidate, Stream(b"", ()))
            for candidate in range(len(runs.sums))
        ]
        return max(transcripts, key=lambda transcript: float(transcript[SCORE]))


@attrs.frozen(kw_only=True, eq=False)
class _Runs:
    """What adds noise to every candidate's sums, and to scores: it holds nothing of a value."""

    sums: tuple[Prepared, ...]
    score: Prepared

    def __call__(self, value: NDArray[Any], query: Query, noise: Stream) -> NDArray[Any]:
        runs = _runs(query)
        process, best = runs.process(value), None
        while True:
            (candidate,) = uniform_below(len(runs.sums), 1, noise).tolist()
            transcript = self.run(process, runs, candidate, noise)
            # Of runs that tie the first stays.
            if best is None or transcript[SCORE] > best[SCORE]:
                best = transcript
            # Another run with probability 1 - 1/mean, whatever the runs before gave.
            (coin,) = uniform_below(runs.mean, 1, noise).tolist()
            if coin == 0:
                return best

    def run(
        self, process: Process, runs: RunsQuery, candidate: int, noise: Stream
    ) -> NDArray[np.float64]:
        """PRIVATE until it is chosen: the transcript of one run of a candidate."""
        transcript = np.zeros(runs.shape)
        transcript[CANDIDATE] = candidate
        queries, _ = runs.sums[candidate]
        steps = [(number, runs.place(candidate, number)) for number in range(queries)]
        steps.append((runs.steps - 1, slice(SCORE, SCORE + 1)))
        for number, place in steps:
            # A step sees noisy answers only: its own exact sum is not kept.
            exact = process.step(number, transcript)[place]
            release = self.score if place.start == SCORE else self.sums[candidate]
            transcript[place] = release(exact, _vector(exact.size), noise)
        return transcript


def _vector(size: int) -> Query:
    """Return what the noise of one sum, or of a score, is for."""
    return Query(name="part of a run", shape=(size,), distance=Distance.L2)


def _mu(gaussian: Gaussian, size: int, sensitivity: Sensitivity) -> float:
    """Return what one vector costs."""
    mu = gaussian.event(_vector(size), sensitivity).claims.mu
    assert mu is not None, "Gaussian noise of a plain sensitivity"
    return mu


def _exact(value: NDArray[Any], query: Query, noise: Stream) -> NDArray[Any]:
    """PRIVATE: return the value as it is, for the operator's comparison only."""
    return value


def _runs(query: Query) -> RunsQuery:
    """Return the query, if it is about runs of candidates.

    Raises:
        ContractError: it is not.
    """
    if not isinstance(query, RunsQuery):
        raise ContractError(f"RandomStopping is for runs of candidates, {query.name!r} has none")
    return query
