"""The falsifier: search for neighbours between which a statistic moves farther than claimed.

Of an exact sum, all pairs of some candidates are compared first (see `all_pairs`). Then four phases
per claim, until its number of pairs is used up: constructions (see `constructions`), paths towards
jumps (see `paths`), local ascent from the worst pairs, then random restarts with ascent. What it
finds is a proof that a bound is wrong; finding nothing proves nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Literal

import attrs
import numpy as np

from dpcore import Query, Records, Refused, SecretRandomness
from dpcore.functions import FunctionLearner
from dpcore.sensitivity import (
    AnySensitivity,
    Conditional,
    Refuted,
    SensitivityDistribution,
    WorstCase,
)
from dpcore_attacks.attacks.all_pairs import Candidates, attackable
from dpcore_attacks.attacks.ascent import SearchOverError, climb
from dpcore_attacks.attacks.branches import Taken, followed
from dpcore_attacks.attacks.claim import Shot, Target
from dpcore_attacks.attacks.constructions import FAMILIES, starts, take_turns
from dpcore_attacks.attacks.counterexample import Counterexample, minimised
from dpcore_attacks.attacks.function_constructions import FUNCTION_FAMILIES
from dpcore_attacks.attacks.movement import ALLOWANCE, measurable
from dpcore_attacks.attacks.neighbours import (
    Configuration,
    Pair,
    configuration_of,
    pair_of,
)
from dpcore_attacks.attacks.paths import Maker, Path, branching_step, largest_step, paths
from dpcore_attacks.attacks.result import Finding
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.setting import Case, Pathwise, queries_of
from dpcore_attacks.attacks.source_constants import written, written_path, written_starts
from dpcore_attacks.attacks.statistic import Statistic
from dpcore_attacks.effort import Effort

_CONSTRUCTIONS = 0.4  # proportion of a claim's pairs that goes into constructions
_PLACES = 0.1  # share that goes into other places of the changed record
_PATHS = 0.3  # share that goes into paths
_FEWEST_PATHS = 6
_SIMPLIFYING = (0.25, 100)  # of a claim's pairs, on top of them, or so many if that is more
_CLIMBS = 8  # starts that are climbed from before random restarts begin
_EVALUATIONS = 250  # of the score, per ascent
_DRAWS = 6  # samples or orders of the records, where the runtime draws them
_TURN = 5  # of so many constructions of a person's records
_SEVERAL: dict[int, Literal["opposed", "spread"]] = {_TURN - 2: "spread", _TURN - 1: "opposed"}
_LIGHT = 150  # records of a function up to which a pair counts as one
_ALL_PAIRS = 0.1  # candidates of an exact sum for each pair of the budget
_CANDIDATES = (20, 400)  # at least and at most
_ALL_PAIRS_QUERIES = 4
_EACH = 4  # constructions of a family between two restarts


Attempt = tuple[float, Configuration, Target]
"""A score, and what it is of."""


def falsify(
    case: Case,
    effort: Effort | None = None,
    seed: int = 0,
    *,
    refuted: bool = False,
    known: Sequence[Counterexample] = (),
    searched: Callable[[], None] = lambda: None,
) -> tuple[Finding, ...]:
    """Attack every query's claim of one case; one finding a query.

    Args:
        effort: Its pairs are shared equally by the queries; the default effort if None.
        seed: Of the search. The same seed and the same effort give the same result.
        refuted: Attack claims as printed too that say themselves that they are refuted.
        known: Counterexamples of other claims, tried before anything else where they fit.
        searched: Called after each query.
    """
    effort = effort or Effort()
    claims = case.claims()
    if refuted and not isinstance(claims, Refused):
        claims = tuple((query, _as_printed(claim)) for query, claim in claims)
    if isinstance(claims, Refused):
        return (Finding(case=case, query="", claim=None, reason=f"refused: {claims.reason}"),)
    # a share and a generator for each query: its result does not depend on the other queries
    part = effort.share(len(claims)).pairs
    findings = []
    for index, (query, claim) in enumerate(claims):
        rng = np.random.default_rng([seed, index])
        findings.append(_attack(case, query, claim, part, rng, known))
        searched()
    return tuple(findings)


def _as_printed(claim: AnySensitivity) -> AnySensitivity:
    """Return the claim as if it had been proved."""
    if isinstance(claim.validity, Refuted):
        return attrs.evolve(claim, validity=WorstCase())
    return claim


def _attack(
    case: Case,
    query: Query,
    claim: AnySensitivity,
    pairs: int,
    rng: np.random.Generator,
    counterexamples: Sequence[Counterexample],
) -> Finding:
    # a claim that cannot be attacked says why: silence would read as an attack it survived
    unfit = ""
    if not measurable(query):
        unfit = f"a movement in {query.distance} cannot be measured from arrays"
    elif isinstance(claim.validity, Refuted):
        unfit = f"it says itself that it is refuted: {claim.validity.reason}"
    elif isinstance(claim, SensitivityDistribution) and not isinstance(case.bound, Pathwise):
        unfit = (
            "it states a distribution over orders and makes no claim for one order (method `along`)"
        )
    else:
        try:
            queries = queries_of(case, query.name, rng)
            unfit = "" if queries else "the learner never asks it"
        except Exception as error:
            unfit = f"the learner's public part raised {type(error).__name__}"
    if unfit:
        return Finding(case=case, query=query.name, claim=claim, reason=unfit)
    search = _Search(case, queries, claim, max(1, pairs // _weight(case)), rng)
    return search.run(counterexample.pair for counterexample in counterexamples)


def _weight(case: Case) -> int:
    """Return how many pairs one counts for: functions of many records take the cube of their
    number.
    """
    if not isinstance(case.learner, FunctionLearner):
        return 1
    return -(-(case.domain.exact or min(case.domain.limit or 200, 200)) // _LIGHT)


class _Search:
    """One attack, and the worst it has seen."""

    def __init__(
        self,
        case: Case,
        queries: Sequence[Query],
        claim: AnySensitivity,
        pairs: int,
        rng: np.random.Generator,
    ) -> None:
        self._case, self._claim, self._rng = case, claim, rng
        self._rows = Rows(case.domain)
        function = isinstance(case.learner, FunctionLearner)
        self._families = FUNCTION_FAMILIES if function else FAMILIES
        self._written = written(case.learner, self._rows.label_bound)
        self._makers: tuple[Maker, ...] = ()
        if len(self._written.numbers) or self._written.counts:
            self._families = (*self._families, partial(written_starts, self._written))
            self._makers = (partial(written_path, self._written),)
        self._round = _EACH * len(self._families)  # constructions between two restarts
        # a claim holds for every query, every value of the secret randomness and every draw
        secrets = [SecretRandomness.rehearsal(k).learner(0, queries[0].name, 1) for k in range(2)]
        draws = range(1 if queries[0].sampling is None else _DRAWS)
        self._targets = [
            Target(case=case, query=query, claim=claim, secret=secret, draw=draw)
            for query in queries
            for secret in secrets
            for draw in draws
        ]
        # even the smallest budget tries each family a few times
        self._limit = max(pairs, self._round)
        self._pairs, self._failures, self._failure = 0, 0, ""
        self._worst: tuple[float, Configuration, Target] | None = None
        self._outside: float | None = None
        self._length = 0.0
        self._stream = self._starts()
        self._attempts: list[Attempt] = []

    def run(self, pairs: Iterable[Pair] = ()) -> Finding:
        """Known pairs, then all phases, as far as the pairs go."""
        with suppress(SearchOverError):
            # what broke another claim may break this one, for a single pair each
            for pair in pairs:
                start = configuration_of(pair, self._rows)
                if start is not None and not self._is_broken():
                    self._limit += 1  # on top of the others
                    self._score(start, self._targets[0])
            for phase in (
                self._all_pairs,
                self._constructions,
                self._positions,
                self._paths,
                self._ascents,
                self._restarts,
            ):
                if not self._is_broken():
                    phase()
        return self._finding()

    def _all_pairs(self) -> None:
        """Of an exact sum, all pairs of some candidates at once; on top of the others."""
        by_query = {id(target.query): target for target in self._targets}
        targets = [*by_query.values()][:_ALL_PAIRS_QUERIES]
        if not attackable(self._case, targets[0].query):
            return
        count = int(np.clip(_ALL_PAIRS * self._limit, *_CANDIDATES))
        for number, target in enumerate(targets):
            rng = np.random.default_rng([number, count])  # the other phases keep their numbers
            candidates = Candidates.drawn(self._rows, count, rng)
            for start in candidates.distant_configurations(
                self._case, target.query, self._claim.distance
            ):
                if self._is_broken():
                    return
                self._limit += 1
                self._score(start, target)

    def _constructions(self) -> None:
        """As many as their proportion of the pairs allows."""
        while self._pairs < max(_CONSTRUCTIONS * self._limit, self._round):
            self._try(self._attempts)

    def _ascents(self) -> None:
        """From the worst starts of all phases before."""
        for start, target in _best(self._attempts, _CLIMBS):
            self._climb(start, target)

    def _restarts(self) -> None:
        """Constructions with ascent from the worst of them, for as long as pairs are left."""
        while not self._is_broken():
            attempts: list[Attempt] = []
            for _ in range(self._round):
                self._try(attempts)
            for start, target in _best(attempts, 1):
                self._climb(start, target)

    def _positions(self) -> None:
        """The best starts with the changed record elsewhere: at every place, as far as it goes."""
        place_limit = round(_PLACES * self._limit / 2)
        for start, target in _best(self._attempts, 2) if place_limit else ():
            # places next to numbers of the code come first: an index may be compared with them
            places = np.arange(start.base_size + 1)
            counts = np.array([c + d for c in self._written.counts for d in (-1, 0, 1)], dtype=int)
            sensitive_places = np.intersect1d(counts, places)
            random_places = self._rng.permutation(np.setdiff1d(places, sensitive_places))
            for place in np.concatenate([sensitive_places, random_places])[:place_limit]:
                position = min(1.0, (float(place) + 0.01) / max(1, start.base_size))
                if self._is_broken() or self._pairs >= self._limit:
                    return  # what follows has pairs of its own
                self._score(attrs.evolve(start, position=position), target)

    def _paths(self) -> None:
        """Steps with a jump; two statistics count as a pair."""
        fraction, spent = _PATHS * self._limit, 0
        for number, path in enumerate(self._ways()):
            if self._is_broken() or (number >= _FEWEST_PATHS and spent >= fraction):
                return
            target = self._targets[int(self._rng.integers(len(self._targets)))]
            step, evaluations = self._step(path, target, branches=bool(number % 2))
            cost = (evaluations + 1) // 2
            spent += 1 + cost
            self._pairs += cost
            # six paths, however few pairs there are
            self._limit = max(self._limit, self._pairs + 1)
            self._attempts.append((self._score(step, target), step, target))

    def _step(self, path: Path, target: Target, *, branches: bool) -> tuple[Configuration, int]:
        """Return one step of a path, with a change of branch or a jump; and the evaluations it
        took.
        """
        evaluations, files = 0, self._written.files

        def evaluate(records: Records) -> Statistic | None:
            nonlocal evaluations
            evaluations += 1
            return target.value(target.drawn(records))[0]

        def follow(records: Records) -> Taken:
            return followed(lambda: evaluate(records), files)[1]

        adjacency, step = self._case.adjacency, None
        # every second path follows branches: a small jump may hide next to a larger slope
        if branches and files:
            step = branching_step(path, self._rows, adjacency, follow)
        if step is None:
            step = largest_step(path, self._rows, adjacency, evaluate, self._rng)
        return step, evaluations

    def _ways(self) -> Iterator[Path]:
        """Paths between data sets of the exact size; where it is private, of sizes up to 200."""
        adjacency, limit = self._case.adjacency, self._case.domain.at_most
        if self._case.domain.exact is not None:
            exact = self._case.domain.exact
            yield from paths(self._rows, exact, adjacency, self._rng, self._makers)
            return
        sizes = sorted({2, 5, 20, min(60, limit or 60), min(200, limit or 200)})
        streams = [
            paths(self._rows, min(n, limit or n), adjacency, self._rng, self._makers) for n in sizes
        ]
        yield from take_turns(streams, 2)

    def _starts(self) -> Iterator[Configuration]:
        """Constructions of the exact size; where it is private, of sizes from 0 to its limit."""
        limit = self._case.domain.at_most
        if self._case.domain.exact is not None:
            yield from self._of_size(self._case.domain.exact - 1)
            return
        largest = 200 if limit is None else limit - 1
        sizes = sorted({0, 1, 2, 5, 20, 100, largest} & {*range(largest + 1)})
        yield from take_turns([self._of_size(size) for size in sizes], len(self._families))

    def _of_size(self, base: int) -> Iterator[Configuration]:
        return starts(self._rows, base, self._rng, self._families)

    def _try(self, attempts: list[Attempt]) -> None:
        start = next(self._stream)
        # a unit's records by turns alike, spread or opposed: sums and clipping fail differently
        if self._case.adjacency.varies:
            start = attrs.evolve(start, several=_SEVERAL.get(len(attempts) % _TURN, "same"))
        target = self._targets[int(self._rng.integers(len(self._targets)))]
        attempts.append((self._score(start, target), start, target))

    def _climb(self, start: Configuration, target: Target) -> None:
        climb(start, lambda configuration: self._score(configuration, target), _EVALUATIONS)

    def _score(self, configuration: Configuration, target: Target) -> float:
        if self._pairs >= self._limit:
            raise SearchOverError
        self._pairs += 1
        shot = target.fire(pair_of(configuration, self._rows, self._case.adjacency))
        return self._note(shot, configuration, target)

    def _note(self, shot: Shot, configuration: Configuration, target: Target) -> float:
        if shot.failure:
            self._failures += 1
            self._failure = self._failure or f"{shot.failure} ({configuration.origin})"
        if shot.ratio is None:
            return -np.inf
        self._length = max(self._length, shot.length)
        # outside its assumptions a claim cannot be broken: the ratio is reported and not climbed
        if shot.inside is False:
            self._outside = max(self._outside or 0.0, shot.ratio)
            return -np.inf
        if self._worst is None or shot.ratio > self._worst[0]:
            self._worst = (shot.ratio, configuration, target)
        return shot.ratio

    def _is_broken(self) -> bool:
        return self._worst is not None and self._worst[0] > 1 + ALLOWANCE

    def _finding(self) -> Finding:
        finding = Finding(
            case=self._case,
            query=self._targets[0].query.name,
            claim=self._claim,
            pairs=self._pairs,
            outside=self._outside,
            length=self._length,
            failures=self._failures,
            failure=self._failure,
        )
        if self._worst is None:
            reason = "no pair satisfied its assumptions" if self._outside is not None else ""
            return attrs.evolve(finding, reason=reason or "every statistic failed")
        ratio, configuration, target = self._worst
        if ratio > 1 + ALLOWANCE:
            # a simpler pair may break the claim by a tenth less, but it must break it
            threshold = max(1 + ALLOWANCE, 0.9 * ratio)
            fraction, fewest = _SIMPLIFYING
            tries = max(fewest, round(fraction * self._limit))
            configuration = minimised(configuration, target, self._rows, threshold, tries)
        return self._with_counterexample(finding, configuration, target)

    def _with_counterexample(
        self, finding: Finding, configuration: Configuration, target: Target
    ) -> Finding:
        pair = pair_of(configuration, self._rows, self._case.adjacency)
        # fired anew: the ratio that is reported is that of the pair in the file
        shot = target.fire(pair)
        ratio = 0.0 if shot.ratio is None else shot.ratio
        args = target.query.args
        example = Counterexample(
            query=target.query.name,
            arguments=None if args is None else dict(args),
            pair=pair,
            records=self._case.domain.at_most,
            randomness=self._case.randomness.key,
            draw=target.draw,
            norm="" if self._claim.distance is target.query.distance else str(self._claim.distance),
            claimed=shot.claimed,
            moved=ratio * shot.claimed,
            origin=configuration.origin,
        )
        # no one can say whether the assumption holds: the ratio is no violation
        if shot.inside is None and isinstance(self._claim.validity, Conditional):
            return attrs.evolve(
                finding,
                outside=ratio,
                reason="its assumption cannot be checked, so that no pair is known to be inside",
                counterexample=example,
            )
        return attrs.evolve(finding, worst=ratio, counterexample=example)


def _best(attempts: Sequence[Attempt], count: int) -> list[tuple[Configuration, Target]]:
    """Return the highest scores, at most two of a construction."""
    selection: list[tuple[Configuration, Target]] = []
    # at most two of one origin, so that one family does not take all ascents
    counts: dict[str, int] = {}
    for score, configuration, target in sorted(attempts, key=lambda entry: -entry[0]):
        if len(selection) == count or not np.isfinite(score):
            break
        counts[configuration.origin] = counts.get(configuration.origin, 0) + 1
        if counts[configuration.origin] <= 2:
            selection.append((configuration, target))
    return selection
