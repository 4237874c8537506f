"""The runtime: opens records, and lets nothing but released answers reach the public part.

The public and the private part of a learner run on separate instances. Every answer passes a door;
the only door whose answers a guarantee covers is `through_mechanism`. The model is rebuilt from the
answers by `replay`, which is also what anyone else can do with a published run.
"""

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.domain.domain import Table
from dpcore.errors import ContractError, ReleaseError, ReplayError, SourceError
from dpcore.learner import Answer, Learner, Model, Public, State
from dpcore.query import Query
from dpcore.randomness import LearnerCoins, PublicCoins, SecretCoins, Stream
from dpcore.records.records import Records
from dpcore.running.ask import Ask
from dpcore.running.parts import held_out
from dpcore.running.reuse import Reuse
from dpcore.running.schedule import Schedule, Scheduled
from dpcore.running.serving import is_function, published, serve


@attrs.frozen(eq=False, repr=False)
class Opened:
    """PRIVATE: the projected records, shuffled and split."""

    train: Records
    holdout: Table
    holdout_labels: NDArray[Any]


class Door(Protocol):
    """What a statistic must pass to become an answer."""

    def __call__(
        self, ask: Ask, query: Query, value: NDArray[Any], noise: Stream
    ) -> NDArray[Any]: ...


def through_mechanism(ask: Ask, query: Query, value: NDArray[Any], noise: Stream) -> NDArray[Any]:
    """The private door: the calibrated mechanism."""
    return ask.release(value, query, noise)


def wide_open(ask: Ask, query: Query, value: NDArray[Any], noise: Stream) -> NDArray[Any]:
    """No privacy at all: the release without its noise, for the operator's comparison only."""
    return ask.mechanism.noiseless(value, query)


def open_records(schedule: Schedule, table: Table, secret: SecretCoins) -> Opened:
    """Project, shuffle in secret, and split: never by values.

    Raises:
        SourceError: a column is missing, the number of records is not the declared one, or a
            record does not fit and the schedule refuses that.
    """
    request = schedule.request
    domain = request.domain
    absent = [name for name in (*domain.columns, domain.target) if name not in table]
    if absent:
        raise SourceError(f"column {absent[0]!r} is missing")
    if request.on_invalid == "refuse":
        for column, row, rule in domain.misfits(table):
            raise SourceError(f"column {column!r}, record {row + 1}: needs {rule}")
    records = domain.project(table)
    count = len(records)
    if domain.exact is not None and count != domain.exact:
        raise SourceError(f"{domain.exact} records are declared, the source has {count}")
    if domain.limit is not None and count > domain.limit:
        raise SourceError(f"at most {domain.limit} records are declared, the source has {count}")
    order = secret.runtime("shuffle").permutation(count)
    if request.adjacency.membership:
        kept_out = secret.runtime("split").uniform(count) < request.holdout
        holdout, train = order[kept_out], order[~kept_out]
    else:
        cut = held_out(count, request.holdout)
        holdout, train = order[:cut], order[cut:]
    columns = (*domain.columns, domain.target)
    return Opened(
        train=records.take(train),
        holdout={name: np.asarray(table[name])[holdout] for name in columns},
        holdout_labels=domain.uncentre(records.labels[holdout]),
    )


def release(
    schedule: Schedule,
    opened: Opened,
    coins: PublicCoins,
    secret: SecretCoins,
    door: Door = through_mechanism,
    progress: Callable[[], None] = lambda: None,
    points: Mapping[str, NDArray[np.float64]] | None = None,
    reuse: Reuse | None = None,
) -> tuple[tuple[Answer, ...], ...]:
    """Run every release; the answers in order of asking, one tuple a release.

    Args:
        progress: Called after every answer.
        points: Encoded points to predict at, by the name of each function release.
        reuse: What was computed on the same records before; nothing if None.

    Raises:
        ReleaseError: a private function failed; nothing is released and the budget is spent.
    """
    reuse = Reuse() if reuse is None else reuse
    return tuple(
        tuple(
            serve(number, scheduled, opened.train, points[scheduled.name], coins, secret, reuse)
            if points and is_function(scheduled)
            else _converse(number, scheduled, opened, coins, secret, reuse, door, progress)
        )
        for number, scheduled in enumerate(schedule.releases)
    )


def _converse(
    release_number: int,
    scheduled: Scheduled,
    opened: Opened,
    coins: PublicCoins,
    secret: SecretCoins,
    reuse: Reuse,
    door: Door,
    progress: Callable[[], None],
) -> Iterator[Answer]:
    """Ask, compute, release, update, until the learner has no more to ask."""
    public = scheduled.public(coins)
    speaker, private = copy.deepcopy(scheduled.learner), copy.deepcopy(scheduled.learner)
    asks = _Asks(scheduled.asks)
    state = speaker.start(public)
    while (query := speaker.ask(state)) is not None:
        ask, number = asks.next(query)
        facts, own = scheduled.public(coins), secret.learner(release_number, query.name, number)
        seen = _sampled(ask, number, opened.train, secret, release_number)
        compute = partial(_computed, private, query, seen, facts, own)
        value, cause = reuse.once(scheduled.learner, query, facts, own, compute)
        value = _statistic(value, cause, ask)
        noise = secret.noise(release_number, query.name, number)
        released = door(ask, query, value, noise)
        if np.shape(released) != query.shape:
            raise ContractError(f"{type(ask.mechanism).__name__} changed the shape of {query.name}")
        if not np.isfinite(released).all():
            raise ContractError(f"{type(ask.mechanism).__name__} released what is no number")
        answer = Answer(query=query, number=number, value=released, mechanism=ask.mechanism)
        state = speaker.update(state, answer)
        progress()
        yield answer


class _Asks:
    """The planned asks, counted down."""

    def __init__(self, planned: Mapping[str, Ask]) -> None:
        self._planned = planned
        self._asked: Counter[str] = Counter()

    def next(self, query: Query) -> tuple[Ask, int]:
        """The plan of this ask and its number.

        Raises:
            ContractError: the query is not planned as it is, or was asked too often.
        """
        ask = self._planned.get(query.name)
        if ask is None or query != ask.query:  # `args` are no part of equality
            raise ContractError(f"the query {query.name!r} was asked but not planned like this")
        self._asked[query.name] += 1
        number = self._asked[query.name]
        if number > ask.query.at_most:
            raise ContractError(
                f"the query {query.name!r} was planned for {ask.query.at_most} asks, one more came"
            )
        return ask, number


def _sampled(ask: Ask, number: int, records: Records, secret: SecretCoins, release: int) -> Records:
    """PRIVATE: what one ask sees of the records."""
    query = ask.query
    if query.sampling is None:
        return records
    return query.sampling.draw(records, secret.sampling(release, query.name, number))


def _computed(
    learner: Learner, query: Query, records: Records, public: Public, secret: LearnerCoins
) -> tuple[NDArray[Any], str]:
    """PRIVATE: the statistic, checked, and why it failed if it did.

    The cause of a failure may hold values of records, so that only its type is told.
    """
    try:
        value = np.asarray(learner.statistic(query, records, public, secret))
        real = query.field == "real"
        fits = value.shape == query.shape and not (real and np.iscomplexobj(value))
        value = value.astype(query.dtype) if fits else value
        cause = "" if fits and bool(np.isfinite(value).all()) else "a wrong shape or no number"
    except (Exception, SystemExit) as error:
        value, cause = np.empty(0), type(error).__name__
    return value, cause


def _statistic(value: NDArray[Any], cause: str, ask: Ask) -> NDArray[Any]:
    """PRIVATE: a copy of the value; 0 stands for a failure only where the bound covers that.

    Raises:
        ReleaseError: the computation failed, and the bound does not.
    """
    query = ask.query
    if not cause:
        return value.copy()
    if ask.sensitivity.covers_fallback:
        return np.zeros(query.shape, dtype=query.dtype)
    raise ReleaseError(f"the private computation of {query.name!r} failed ({cause})") from None


def replay(scheduled: Scheduled, coins: PublicCoins, answers: Iterable[NDArray[Any]]) -> Model:
    """The model, from released values in order of asking: the public state machine alone.

    Raises:
        ReplayError: there are fewer or more answers than the learner asks for.
    """
    if is_function(scheduled):
        return published(scheduled, list(answers))
    learner = copy.deepcopy(scheduled.learner)
    asks = _Asks(scheduled.asks)
    waiting = iter(answers)
    state: State = learner.start(scheduled.public(coins))
    while (query := learner.ask(state)) is not None:
        ask, number = asks.next(query)
        value = next(waiting, None)
        if value is None or value.shape != query.shape:
            raise ReplayError(f"release {scheduled.name}: no fitting answer to {query.name!r}")
        answer = Answer(query=query, number=number, value=value, mechanism=ask.mechanism)
        state = learner.update(state, answer)
    if next(waiting, None) is not None:
        raise ReplayError(f"release {scheduled.name}: more answers than the learner asks for")
    return learner.model(state)
