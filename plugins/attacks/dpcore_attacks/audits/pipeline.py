"""Pipeline: a whole run, sampled on two synthetic neighbours through the runtime's own private
path.

Every sample is a rehearsal with randomness of its own: shuffle, private function, mechanism, public
part and all. What it yields are features of the public answers; nothing that the public does not
see goes into them.
"""

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Answer, OneShot, PublicRandomness, Query, Records, SecretRandomness
from dpcore.claims.plan.schedule import FunctionRelease, Schedule, Scheduled
from dpcore.errors import ReleaseError
from dpcore.mechanism import to_real
from dpcore.private.release_context import Private
from dpcore.private.runtime import release
from dpcore.private.sampling import draw_with
from dpcore.transcript.rebuild import isolate
from dpcore_attacks.audits.cached_learner import fixed_statistics, remembering
from dpcore_attacks.audits.features import NAMES, Comparison

RAW = 16
"""Real coordinates of all answers together that are features themselves, if there are no more."""

_REFERENCE = SecretRandomness.rehearsal(0)  # known randomness, at which features compare statistics
_EARLY = 100  # samples a side, after which a run that always fails is given up
_FAILED = len(NAMES)  # the column that says whether a run failed


@attrs.frozen(kw_only=True, eq=False)
class Samples:
    """Features of both neighbours' runs, shape (n, k) each, and the columns' names."""

    before: NDArray[np.float64]
    after: NDArray[np.float64]
    names: tuple[str, ...]


class Pipeline:
    """All releases of a schedule on two neighbours.

    Args:
        before, after: Records of the learners' part, made up.
        changed: Row of the record that changed or came: where the runtime draws records or their
            order, features compare the neighbours at a draw in which it takes part.
        points: By the name of each function release, encoded points that are asked about.
        seed: Of the randomness of all samples.
    """

    def __init__(
        self,
        schedule: Schedule,
        before: Records,
        after: Records,
        *,
        changed: int = 0,
        randomness: PublicRandomness,
        points: Mapping[str, NDArray[np.float64]] | None = None,
        seed: int = 0,
    ) -> None:
        # What is reported of a hold-out has no records here, nor has what starts from it.
        absent: set[str] = set()
        for entry in schedule.releases:
            if entry.release.of is not None or absent & {*entry.release.inputs}:
                absent.add(entry.name)
        releases = tuple(entry for entry in schedule.releases if entry.name not in absent)
        self._randomness, self._seed, self._points = randomness, seed, dict(points or {})
        self._pair = before, after
        self._tellers = [
            (_FunctionTeller if isinstance(scheduled, FunctionRelease) else _Teller)(
                scheduled, (before, after), changed, randomness, self._points.get(scheduled.name)
            )
            for scheduled in releases
        ]
        # raw coordinates become features where they are few
        size = sum(teller.size for teller in self._tellers)
        self._raw = size if size <= RAW else 0
        self._names = (
            *NAMES,
            "whether the run failed",
            *(f"coordinate {k}" for k in range(self._raw)),
        )
        # a paid evaluation is not sampled, though it is claimed: that errs towards no alarm
        self._releases, self._domain = isolate(releases), schedule.request.domain
        self._stand_ins = tuple(
            {
                entry.name: teller.remembering(side)
                for entry, teller in zip(releases, self._tellers, strict=True)
            }
            for side in (0, 1)
        )

    def draw(self, side: int, number: int) -> NDArray[np.float64]:
        """Return the features of one run: 0 is `before`, 1 `after`. Equal numbers give equal
        runs.
        """
        # randomness of its own for each run of each neighbour: samples must be independent
        secret = SecretRandomness.rehearsal((self._seed << 40) + 2 * number + side + 1)
        records = self._pair[side]
        # a run shuffles its records; where every statistic is remembered that changes nothing
        if not all(teller.remembers_all for teller in self._tellers):
            records = records.take(secret.runtime("shuffle").permutation(len(records)))
        try:
            answers, _ = release(
                self._releases,
                self._domain,
                records,
                self._randomness,
                secret,
                points=self._points,
                stand_ins=self._stand_ins[side],
            )
        except ReleaseError:  # a broken contract is somebody's mistake, and no outcome of a run
            return self._row([], failed=True)
        return self._row(
            [t.features(answer) for t, answer in zip(self._tellers, answers, strict=True)],
            failed=False,
        )

    def sample(self, samples: int, progress: Callable[[int], None] = lambda count: None) -> Samples:
        """Draw both neighbours in turn until there are `samples` a side.

        Args:
            progress: Called with the number of samples a side so far.

        Raises:
            ReleaseError: every run failed.
        """
        rows: tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]] = ([], [])
        # by turns, so that a run that always fails is noticed early
        while len(rows[0]) < samples:
            for side in (0, 1):
                rows[side].append(self.draw(side, len(rows[side])))
            count = len(rows[0])
            progress(count)
            if count == min(samples, _EARLY) and all(row[_FAILED] for side in rows for row in side):
                raise ReleaseError("every run on the synthetic records failed: nothing to audit")
        return Samples(before=np.array(rows[0]), after=np.array(rows[1]), names=self._names)

    def _row(
        self, by_release: list[tuple[NDArray[np.float64], NDArray[np.float64]]], *, failed: bool
    ) -> NDArray[np.float64]:
        # logarithms of likelihoods add up over releases; a failed run leaves zeros
        likelihoods = np.sum(
            [np.zeros(len(NAMES)), *(numbers for numbers, _ in by_release)], axis=0
        )
        raw = np.zeros(self._raw)
        if self._raw and not failed:
            values = np.concatenate([values for _, values in by_release])
            raw[: len(values)] = values  # fewer asks than planned leave zeros
        return np.concatenate([likelihoods, [float(failed)], raw])


class _Teller:
    """One release: what its statistics are, and what its answers say about them."""

    def __init__(
        self,
        scheduled: Scheduled,
        pair: tuple[Records, Records],
        changed: int,
        randomness: PublicRandomness,
        points: NDArray[np.float64] | None,
    ) -> None:
        self._scheduled, self._pair, self._points = scheduled, pair, points
        self._changed = changed
        self._public = scheduled.public(randomness)
        self._comparisons = {
            name: Comparison(planned_query) for name, planned_query in scheduled.queries.items()
        }
        self._fixed = tuple(self._fixed_statistics(side) for side in pair)
        # where both neighbours have a fixed statistic, it is compared with every answer
        self._known_statistics = {
            name: (self._flat(self._fixed[0][name]), self._flat(self._fixed[1][name]))
            for name in self._fixed[0].keys() & self._fixed[1].keys()
        }

    def _fixed_statistics(self, records: Records) -> dict[str, Any]:
        """By query name, what is the same in every run on one neighbour."""
        return dict(fixed_statistics(self._scheduled.learner, records, self._public))

    def _flat(self, value: Any) -> NDArray[np.float64]:
        """Return a value of the private function as the public's coordinates."""
        return to_real(np.asarray(value))

    def _coordinates(self, answer: Answer) -> NDArray[np.float64]:
        """Return an answer's coordinates."""
        return to_real(answer.value)

    @property
    def size(self) -> int:
        """Real coordinates of all its answers."""
        queries = [planned_query.query for planned_query in self._scheduled.queries.values()]
        return sum(query.real_size * query.at_most for query in queries)

    @property
    def remembers_all(self) -> bool:
        """Whether no statistic is computed anew, so that the order of the records is idle."""
        unargued = isinstance(self._scheduled.learner, OneShot)
        return unargued and {*self._scheduled.queries} <= {*self._known_statistics}

    def remembering(self, side: int) -> Private:
        """Return the private function, with what can be remembered of one neighbour."""
        return remembering(self._scheduled.learner, self._fixed[side])

    def features(
        self, answers: tuple[Answer, ...]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Likelihoods summed over the answers, and the answers themselves."""
        total, values = np.zeros(len(NAMES)), []
        for answer in answers:
            query, value = answer.query, self._coordinates(answer)
            values.append(value)
            statistics = self._known_statistics.get(query.name)
            # arguments come from earlier answers: the neighbours are compared at those of this run
            if statistics is None or query.args is not None:
                statistics = self._statistics(answer)
            if query.args is None and statistics is not None:
                self._known_statistics[query.name] = statistics
            # keys may have come or gone
            if statistics is not None and statistics[0].shape == value.shape:
                total += self._comparisons[query.name].features(value, *statistics)
        return total, np.concatenate(values) if values else np.empty(0)

    def _neighbours(self, query: Query) -> Iterator[Records]:
        """Yield both neighbours as the private function sees them, at known randomness."""
        for records in self._pair:
            if query.sampling is None:
                yield records
            else:
                # known randomness: a feature is a function of public answers and synthetic records
                # only
                randomness = _REFERENCE.sampling(0, query.name, 1)
                yield draw_with(query.sampling, records, self._changed, randomness)

    def _statistics(self, answer: Answer) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """Of both neighbours at the answer's own arguments; None where one fails."""
        learner, query = copy.deepcopy(self._scheduled.learner), answer.query
        randomness = _REFERENCE.learner(0, query.name, answer.number)
        try:
            first, second = (
                self._flat(learner.statistic(query, records, self._public, randomness))
                for records in self._neighbours(query)
            )
        except Exception:  # the runs show it: here nothing can be compared
            return None
        return (first, second) if first.shape == second.shape else None


class _FunctionTeller(_Teller):
    """A function, fitted once on either neighbour, and what its oracle answers at the points."""

    def _fixed_statistics(self, records: Records) -> dict[str, Any]:
        (planned_query,) = self._scheduled.queries.values()
        randomness = _REFERENCE.learner(0, planned_query.query.name, 1)
        learner = self._scheduled.learner
        return {
            planned_query.query.name: learner.statistic(
                planned_query.query, records, self._public, randomness
            )
        }

    def _flat(self, value: Any) -> NDArray[np.float64]:
        assert self._points is not None, "a function is asked about points"
        return np.asarray(value(self._points + 0.0))

    def _coordinates(self, answer: Answer) -> NDArray[np.float64]:
        return np.asarray(answer.value[:, -1])

    @property
    def size(self) -> int:
        """One coordinate for each point that is asked about."""
        return 0 if self._points is None else len(self._points)

    @property
    def remembers_all(self) -> bool:
        """True: the function was fitted once on either neighbour."""
        return True
