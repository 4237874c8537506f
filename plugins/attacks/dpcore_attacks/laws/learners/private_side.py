"""What a private function leaves behind, looked for where the runtime's copies do not reach.

The runtime gives the private and the public side objects of their own. Globals, class attributes
and whatever else a module keeps belong to both: here a public part speaks before and after a
private function has seen records, on instances and coins of its own, and must say the same.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import UndeclaredError
from dpcore.functions.learner import FunctionLearner
from dpcore.isolate.isolated_copies import frozen, published, settled, told_once, transcript
from dpcore.learner import Learner
from dpcore.query import Query
from dpcore.randomness import PublicCoins, SecretCoins
from dpcore.records.records import Records
from dpcore_attacks.attacks.constructions import starts
from dpcore_attacks.attacks.neighbours import pair_of
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.setting import Case, conversation, seen
from dpcore_attacks.attacks.statistic import Statistic, compute, same
from dpcore_attacks.laws.law import BrokenLawError, Law, NotApplicableError, Verdict, fail_if, judge

NOTHING_LEFT = Law(
    "learner.nothing-left-behind",
    "With equal answers, the public part asks and publishes the same before and after the private "
    "function has seen records, each with objects of its own: no global or class attribute "
    "carries anything from one to the other.",
)
COINS_KEEP_NOTHING = Law(
    "learner.coins-keep-nothing",
    "A statistic, and what is published, is the same with public coins that a private function "
    "had before: what it keeps there is a function of the coins alone.",
)
NOT_KEPT = Law(
    "learner.statistic-not-kept",
    "Not every dataset gives the same statistic: one that was computed once and kept in a global "
    "would serve the next run the records of another.",
)

LAWS = (NOTHING_LEFT, COINS_KEEP_NOTHING, NOT_KEPT)

_PAIRS = 3
_STARTS = 12  # pairs of which not all may give one statistic


def private_side_verdicts(case: Case, subject: str, seed: int = 0) -> list[Verdict]:
    """All laws of one learner at one domain."""
    checks: dict[Law, Callable[[], str]] = {
        NOTHING_LEFT: lambda: _nothing_left(case, seed),
        COINS_KEEP_NOTHING: lambda: _coins_keep_nothing(case, seed),
        NOT_KEPT: lambda: _not_kept(case, seed),
    }
    return [judge(law, subject, _unless_refused(check)) for law, check in checks.items()]


def _unless_refused(check: Callable[[], str]) -> Callable[[], str]:
    def run() -> str:
        try:
            return check()
        except UndeclaredError as error:
            raise NotApplicableError(f"it is refused by the plan: {error}") from None

    return run


def _nothing_left(case: Case, seed: int) -> str:
    if isinstance(case.learner, FunctionLearner):
        raise NotApplicableError("it publishes no model: a run's answers are replayed by the core")
    forced = [
        answer.value for _, _, answer in conversation(_copy_case(case), None, _rng(seed), 1.0)
    ]
    queries = [
        query for _, query, _ in conversation(_copy_case(case), iter(forced), _rng(seed), 1.0)
    ]
    first, compared = _digest_conversation(case, forced, seed), 0
    for records in _datasets(case, seed):
        for query in queries[:10]:
            _statistic(_copy_case(case), query, records, seed)
            compared += 1
        fail_if(
            _digest_conversation(case, forced, seed) != first,
            "with equal answers, the asks or the model changed after the private function had "
            "seen records, on instances of their own: a global or a class attribute is shared",
        )
    return f"{compared} statistics"


def _digest_conversation(
    case: Case, forced: list[NDArray[np.float64]], seed: int, coins: PublicCoins | None = None
) -> tuple[str, str]:
    """Digests of the asks and the model of a conversation with forced answers."""
    # Instances and coins of its own, as the public side of a run has.
    own_case = _copy_case(case) if coins is None else attrs.evolve(_copy_case(case), coins=coins)
    learner = cast(Learner, own_case.learner)
    state, answers = learner.start(own_case.public), []
    for _, _, answer in conversation(_copy_case(case), iter(forced), _rng(seed), 1.0):
        query = learner.ask(state)
        answers.append(answer if query is None else attrs.evolve(answer, query=query))
        state = learner.update(state, answer)
    model = settled(learner.model(state))
    return transcript(answers), published(model, told_once(model))


def _coins_keep_nothing(case: Case, seed: int) -> str:
    shared_case, compared = _copy_case(case), 0
    forced: list[NDArray[np.float64]] | None = None
    if isinstance(case.learner, FunctionLearner):
        queries = list(case.learner.queries(case.public))
    else:
        exchanges = [*conversation(_copy_case(case), None, _rng(seed), 1.0)]
        queries, forced = (
            [query for _, query, _ in exchanges][:10],
            [entry.value for *_, entry in exchanges],
        )
    # One instance with its coins serves every dataset, beside a fresh one for each of them.
    for records, query in itertools.product(_datasets(case, seed), queries):
        fresh_case = _copy_case(case)
        fail_if(
            not same(
                *(_statistic(entry, query, records, seed) for entry in (shared_case, fresh_case))
            ),
            f"{query.name!r}: coins that other records were seen with gave another statistic "
            f"than fresh ones: something of the records is kept there",
        )
        compared += 1
    if forced is not None and _digest_conversation(
        case, forced, seed, shared_case.coins
    ) != _digest_conversation(case, forced, seed):
        raise BrokenLawError("the public part found something of the records in its coins")
    return f"{compared} statistics"


def _not_kept(case: Case, seed: int) -> str:
    if isinstance(case.learner, FunctionLearner):
        queries = list(case.learner.queries(case.public))
    else:
        queries = [query for _, query, _ in conversation(_copy_case(case), None, _rng(seed), 1.0)][
            :10
        ]
    for query in queries:
        first: Statistic | None = None
        for records in _datasets(case, seed, _STARTS):
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


def _copy_case(case: Case) -> Case:
    """The case with an instance and coins of its own."""
    coins = PublicCoins(case.coins.key)
    return attrs.evolve(case, learner=copy.deepcopy(case.learner), coins=coins)


def _rng(seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, 1])


def _datasets(case: Case, seed: int, pairs: int = _PAIRS) -> Iterator[Records]:
    rows, domain = Rows(case.domain), case.domain
    size = domain.exact or min(domain.limit or 20, 20)
    for entry in itertools.islice(starts(rows, size - 1, _rng(seed)), pairs):
        pair = pair_of(entry, rows, case.adjacency)
        yield from (pair.before, pair.after)


def _statistic(case: Case, query: Query, records: Records, seed: int) -> Statistic:
    coins = SecretCoins.rehearsal(seed).learner(0, query.name, 1)
    return compute(case.learner, frozen(query), seen(query, records, seed), case.public, coins)
