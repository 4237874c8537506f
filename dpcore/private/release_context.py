"""`release_context`: hold what one release of a run needs while it is under way.

Releases of one run that ask the same thing of the same records compute it once (`Reuse`). A private
function is pure: what it returns is determined by the learner's fields, the query, the public facts
and the records, unless it reads its secret randomness, which are never the same twice. Only noise
differs between such releases, and every one draws its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import fingerprint
from dpcore.errors import ContractError, need
from dpcore.exact import Exact
from dpcore.learner import AnyLearner, Public, Published
from dpcore.private.engines.records import EngineRecords
from dpcore.query import Query, SumQuery
from dpcore.randomness import LearnerRandomness, PublicRandomness, SecretRandomness, Stream
from dpcore.records import Records
from dpcore.transcript.rebuild import IsolatedRelease

if TYPE_CHECKING:
    from dpcore.claims.plan.planned_query import PlannedQuery

Value = TypeVar("Value")


class Reuse:
    """PRIVATE: what private functions returned on one part of the records, for one run.

    Two computations count as the same where the learner, the query and the public facts are the
    same down to the last byte of their serialised fields; whatever cannot be serialised is computed
    anew. Queries with `args` follow earlier answers, and those with `sampling` see records drawn
    for one ask only: neither are kept.
    """

    def __init__(self) -> None:
        self._values: dict[tuple[bytes, ...], Any] = {}

    def once(
        self,
        learner: AnyLearner,
        query: Query,
        public: Public,
        secret: LearnerRandomness,
        compute: Callable[[], Value],
    ) -> Value:
        """Return the result of `statistic` for these arguments, computed now or before.

        The caller leaves it unchanged.

        Args:
            learner: Before any copy of it has seen records.
            secret: What `statistic` has; if it reads them, its result is not kept.
        """
        # The secret randomness is no part of the key: a result that depended on it is never
        # stored.
        facts = (public.domain, public.randomness.key, public.mu)
        once = query.args is not None or query.sampling is not None
        key = () if once else fingerprint(learner, query, *facts)
        if key in self._values:
            return cast(Value, self._values[key])
        result = compute()
        # A computation that read its secret randomness must be done again, with the randomness of
        # its own ask: two releases with common randomness would no longer compose as independent
        # mechanisms.
        if key and not secret.read:
            self._values[key] = result
        return result


Private = Callable[..., Any]
"""A private function: query, records, public facts and learner randomness to a value."""


class ReleaseBoundary(Protocol):
    """What a statistic must pass to become an answer."""

    def __call__(
        self, planned_query: PlannedQuery, query: Query, value: NDArray[Any] | Exact, noise: Stream
    ) -> NDArray[Any]: ...


def through_mechanism(
    planned_query: PlannedQuery, query: Query, value: NDArray[Any] | Exact, noise: Stream
) -> NDArray[Any]:
    """Return the private release boundary: the calibrated mechanism."""
    return planned_query.release(value, query, noise)


def wide_open(
    planned_query: PlannedQuery, query: Query, value: NDArray[Any] | Exact, noise: Stream
) -> NDArray[Any]:
    """Return the release without its noise, for the operator's comparison only.

    It has no privacy at all.
    """
    return planned_query.noiseless(np.asarray(value), query)


def do_nothing() -> None:
    """Do nothing: the default function that reports progress."""


class PastSums:
    """PRIVATE: the last sums of every query with bands, which die with the conversation."""

    def __init__(self) -> None:
        self._sums: dict[str, deque[Exact]] = {}

    def weighted(self, query: Query, value: NDArray[Any] | Exact) -> NDArray[Any] | Exact:
        """Return the value to release: the query's, or the sum of it and earlier ones by bands.

        Raises:
            ContractError: a query with bands got no exact sum.
        """
        if not isinstance(query, SumQuery) or query.bands is None:
            return value
        if not isinstance(value, Exact):
            raise ContractError(f"the bands of {query.name!r} are for exact sums")
        # Every ask adds one sum, whatever it is: the theorem counts asks.
        sums = self._sums.setdefault(query.name, deque(maxlen=len(query.bands)))
        sums.appendleft(value)
        total = Exact.zeros(value.shape, value.exponent)
        for weight, past_sum in zip(query.bands, sums, strict=False):
            total += past_sum.times(weight)
        return total

    def __reduce__(self) -> Any:
        raise TypeError("past sums are private, and stay where they were added")


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Conversation:
    """PRIVATE: one release's records, randomness and release boundary.

    Args:
        number: Of the release among the run's, so that its randomness is its own.
        records: The learners' part; behind an engine, `EngineRecords` in their place.
        randomness: The public side's.
        hidden: The private side's own object of the same randomness: what a private function keeps
            there, no one publishes.
        points: Encoded points that a function is asked about; None for other releases.
        reuse: What the run's releases computed before.
        progress: Called after every answer.
        inputs: New copies of what the public part takes from earlier releases, at every call.
        stand_in: In an audit, what is computed in place of the learner's private function.
    """

    number: int
    records: Records
    randomness: PublicRandomness
    secret: SecretRandomness
    hidden: PublicRandomness = attrs.field(
        default=attrs.Factory(lambda self: self.randomness.again(), takes_self=True)
    )
    points: NDArray[np.float64] | None = None
    reuse: Reuse = attrs.field(factory=Reuse)
    release_through: ReleaseBoundary = through_mechanism
    progress: Callable[[], None] = do_nothing
    inputs: Callable[[], Mapping[str, Published]] = dict
    stand_in: Private | None = None

    def private(self, release: IsolatedRelease) -> tuple[Private, Public]:
        """PRIVATE: return copies of the private function and its public facts.

        Its randomness is its own.
        """
        # The copies come from bytes written before any record was opened: what the private function
        # leaves in them is lost with them.
        learner, part = release.before.copy()
        public = Public(domain=part, randomness=self.hidden, mu=release.scheduled.mu)
        return self.stand_in or learner.statistic, public

    def learner_randomness(self, query: Query, number: int) -> LearnerRandomness:
        """Return the private function's randomness in one query, by the query and its number."""
        return self.secret.learner(self.number, query.name, number)

    def noise(self, query: Query, number: int) -> Stream:
        """Return the stream of one query's noise, which only the mechanism reads."""
        return self.secret.noise(self.number, query.name, number)

    def select_records(self, query: Query, number: int) -> Records:
        """Return the records that one query sees.

        Of a table the places are those after the secret shuffle, behind an engine those in the
        source: another draw of the same law.
        """
        # Amplification by sampling assumes that each query draws its own sample, in secret: the
        # stream is named by release, query and number, and no learner sees it.
        if query.sampling is None:
            return self.records
        from dpcore.private.sampling import draw, scheme_of_query, select, select_persons

        # Asks count from 1: what a sampling draws once for all of them comes from number 0.
        once = self.secret.sampling(self.number, query.name, 0)
        sampling = scheme_of_query(query.sampling, number, once)
        stream = self.secret.sampling(self.number, query.name, number)
        if isinstance(self.records, EngineRecords):
            engine_records: EngineRecords = self.records
            # Where a person is the unit, the scheme draws persons, and all records of a person come
            # or go together: the amplification theorem counts neighbours by the unit.
            if engine_records.used is not None:
                persons = select_persons(sampling, stream.by_place, engine_records.used)
                return cast(Records, engine_records.sampled(persons))
            selection = select(
                sampling,
                stream.by_place,
                engine_records.places,
                len(engine_records),
                engine_records.split,
            )
            return cast(Records, engine_records.sampled(selection))
        # A scheme that draws single records would amplify less than its event says, because one
        # person has several records.
        need(
            self.records.persons is None or query.sampling.by_person,
            ContractError,
            f"{type(query.sampling).__name__} draws no persons",
        )
        return draw(sampling, self.records, stream)
