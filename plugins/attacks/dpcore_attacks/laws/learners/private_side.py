"""What a private function leaves behind, looked for where the runtime's copies do not reach.

The runtime gives the private and the public side objects of their own. Globals, class attributes
and whatever else a module keeps belong to both: here a public part speaks before and after a
private function has seen records, on instances and randomness of its own, and must say the same.
"""

import copy
import itertools
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Learner, PublicRandomness, Published, Query, Records, SecretRandomness
from dpcore.encoding.tables import project_table
from dpcore.functions import FunctionLearner
from dpcore.learner import promises
from dpcore.models import Model, ProbabilityModel, ScoringModel, Transformer
from dpcore.models.description import describe
from dpcore.transcript.isolated_copies import collect_arrays, frozen, published, settled, transcript
from dpcore_attacks.attacks.constructions import starts
from dpcore_attacks.attacks.neighbours import Pair, pair_of
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.setting import Case, conversation, seen
from dpcore_attacks.attacks.statistic import Statistic, compute, same
from dpcore_attacks.laws.law import (
    BrokenLawError,
    Law,
    Verdict,
    fail_if,
    judge_all,
    run_if_planned,
    skip_if,
)

NOTHING_LEFT = Law(
    "learner.nothing-left-behind",
    "With equal answers, the public part asks and publishes the same before and after the private "
    "function has seen records, each with objects of its own: no global or class attribute "
    "carries anything from one to the other.",
)
RANDOMNESS_KEEPS_NOTHING = Law(
    "learner.coins-keep-nothing",
    "A statistic, and what is published, is the same with public randomness that a private "
    "function "
    "had before: what it keeps there is a function of the randomness only.",
)
NOT_KEPT = Law(
    "learner.statistic-not-kept",
    "Not every dataset gives the same statistic: one that was computed once and kept in a global "
    "would serve the next run the records of another.",
)

LAWS = (NOTHING_LEFT, RANDOMNESS_KEEPS_NOTHING, NOT_KEPT)

NO_MODEL = "it publishes no model: a run's answers are replayed by the core"

_PAIRS = 3
_ANSWERS: Mapping[str, type[Any]] = {
    "predict": Model,
    "probabilities": ProbabilityModel,
    "transform": Transformer,
}
"""What each kind of published object is asked about rows, by the method's name."""

_ROWS = 8  # corners, and as many others, that a published object is asked about
_STARTS = 12  # pairs of which not all may give one statistic


def private_side_verdicts(case: Case, subject: str, seed: int = 0) -> list[Verdict]:
    """Return all laws of one learner at one domain."""
    checks = {
        NOTHING_LEFT: _nothing_left,
        RANDOMNESS_KEEPS_NOTHING: _randomness_keeps_nothing,
        NOT_KEPT: _not_kept,
    }
    return judge_all(
        {law: partial(run_if_planned, check) for law, check in checks.items()}, subject, case, seed
    )


def _nothing_left(case: Case, seed: int) -> str:
    skip_if(isinstance(case.learner, FunctionLearner), NO_MODEL)
    forced = [
        answer.value for _, _, answer in conversation(_copy_case(case), None, generator(seed), 1.0)
    ]
    queries = [
        query for _, query, _ in conversation(_copy_case(case), iter(forced), generator(seed), 1.0)
    ]
    first, compared = _digest_conversation(case, forced, seed), 0
    for records in datasets(case, seed):
        for query in queries[:10]:
            _statistic(_copy_case(case), query, records, seed)
            compared += 1
        fail_if(
            _digest_conversation(case, forced, seed) != first,
            "with equal answers, the queries or the model changed after the private function had "
            "seen records, on instances of their own: a global or a class attribute is shared",
        )
    return f"{compared} statistics"


def _digest_conversation(
    case: Case,
    forced: list[NDArray[np.float64]],
    seed: int,
    randomness: PublicRandomness | None = None,
) -> tuple[str, str]:
    """Digests of the asks and the model of a conversation with forced answers."""
    # Instances and randomness of its own, as the public side of a run has.
    own_case = (
        _copy_case(case)
        if randomness is None
        else attrs.evolve(_copy_case(case), randomness=randomness)
    )
    learner = cast(Learner, own_case.learner)
    state, answers = learner.start(own_case.public), []
    for _, _, answer in conversation(_copy_case(case), iter(forced), generator(seed), 1.0):
        query = learner.ask(state)
        answers.append(answer if query is None else attrs.evolve(answer, query=query))
        state = learner.update(state, answer)
    return transcript(answers), digest_published(learner.model(state), case, seed)


def digest_published(result: Published, case: Case, seed: int) -> str:
    """Return a digest of every byte that a user can get of it: arrays, tables, texts, and what it
    answers
    about rows: zeros, corners and others.
    """
    model, rows, rng = settled(result), Rows(case.domain), generator(seed)
    raw = np.vstack(
        [np.zeros((1, rows.width)), rows.corners(rng, _ROWS), rows.anywhere(rng, _ROWS)]
    )
    table = rows.table(raw, np.zeros(len(raw)))
    # What the learner promises only; a target that is a number has no classes to be likely.
    answers = {
        name: np.asarray(getattr(model, name)(table))
        for name, kind in _ANSWERS.items()
        if promises(case.learner, kind)
        and isinstance(model, kind)
        and (kind is not ProbabilityModel or case.domain.classes)
    }
    if promises(case.learner, ScoringModel) and isinstance(model, ScoringModel):
        answers["score"] = np.asarray(model.score(project_table(case.domain, table).features))
    # Bytes, not numbers: the sign of a zero is published as well.
    arrays = {**answers, **{f"array {name}": a for name, a in collect_arrays(model).items()}}
    return published(model, arrays, describe(model))


def _randomness_keeps_nothing(case: Case, seed: int) -> str:
    shared_case, compared = _copy_case(case), 0
    queries, forced = _made_up_run(case, seed)
    # One instance with its randomness serves every dataset, next to a fresh one for each of them.
    for records, query in itertools.product(datasets(case, seed), queries):
        fresh_case = _copy_case(case)
        fail_if(
            not same(
                *(_statistic(entry, query, records, seed) for entry in (shared_case, fresh_case))
            ),
            f"{query.name!r}: randomness that other records were seen with gave another statistic "
            f"than fresh ones: something of the records is kept there",
        )
        compared += 1
    fail_if(
        forced is not None
        and _digest_conversation(case, forced, seed, shared_case.randomness)
        != _digest_conversation(case, forced, seed),
        "the public part found something of the records in its randomness",
    )
    return f"{compared} statistics"


def _not_kept(case: Case, seed: int) -> str:
    queries, _ = _made_up_run(case, seed)
    for query in queries:
        first: Statistic | None = None
        for records in datasets(case, seed, _STARTS):
            statistic = _statistic(_copy_case(case), query, records, seed)
            # Two different statistics are enough: this one was not kept.
            if first is not None and not same(first, statistic):
                break
            first = statistic
        else:
            raise BrokenLawError(
                f"{query.name!r} is the same for {2 * _STARTS} different datasets: it was computed "
                f"once and kept, or it says nothing of the records and needs no query"
            )
    return f"{len(queries)} statistics"


def _made_up_run(case: Case, seed: int) -> tuple[list[Query], list[NDArray[np.float64]] | None]:
    """Up to ten asks of a synthetic run, and all of its answers; of a function, its plan only."""
    if isinstance(case.learner, FunctionLearner):
        return list(case.learner.queries(case.public)), None
    exchanges = [*conversation(_copy_case(case), None, generator(seed), 1.0)]
    return [query for _, query, _ in exchanges][:10], [answer.value for *_, answer in exchanges]


def _copy_case(case: Case) -> Case:
    """Return the case with an instance and randomness of its own."""
    randomness = PublicRandomness(case.randomness.key)
    return attrs.evolve(case, learner=copy.deepcopy(case.learner), randomness=randomness)


def generator(seed: int) -> np.random.Generator:
    """Of synthetic records and runs, equal for every law of a learner."""
    return np.random.default_rng([seed, 1])


def datasets(case: Case, seed: int, pairs: int = _PAIRS) -> Iterator[Records]:
    """Yield both datasets of each of so many pairs of neighbours."""
    for pair in neighbours(case, seed, pairs):
        yield from (pair.before, pair.after)


def neighbours(case: Case, seed: int, count: int) -> Iterator[Pair]:
    """Synthetic neighbours of the case's size (20 records at most where it is private)."""
    rows, domain = Rows(case.domain), case.domain
    size = domain.exact or min(domain.limit or 20, 20)
    for entry in itertools.islice(starts(rows, size - 1, generator(seed)), count):
        yield pair_of(entry, rows, case.adjacency)


def _statistic(case: Case, query: Query, records: Records, seed: int) -> Statistic:
    randomness = SecretRandomness.rehearsal(seed).learner(0, query.name, 1)
    return compute(case.learner, frozen(query), seen(query, records, seed), case.public, randomness)
