"""Remembering: a learner that computes the same statistic once, for many runs on equal records.

A statistic is remembered where nothing it may depend on changes from run to run: the ask carries no
arguments, the secret coins were not read, and the order of the records does not matter.
"""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ContractError
from dpcore.functions.kernels.base import Expansion
from dpcore.functions.learner import FunctionLearner, FunctionQuery
from dpcore.learner import Answer, Learner, Model, Public, State
from dpcore.query import Query
from dpcore.randomness import LearnerCoins, SecretCoins, Stream
from dpcore.records.records import Records

_SAME = 1e-9  # relative difference of two statistics that counts as rounding


class _Watched:
    """Learner coins that notice being read."""

    def __init__(self, coins: LearnerCoins) -> None:
        self._coins, self.read = coins, False

    def stream(self, name: str) -> Stream:
        """The stream."""
        self.read = True
        return self._coins.stream(name)


def fixed_statistics(learner: Learner, records: Records, public: Public) -> dict[str, NDArray[Any]]:
    """By query name, statistics that are the same in every run; failing ones are left out.

    Each is computed three times: twice on the records, once on them in another order.
    """
    found: dict[str, NDArray[Any]] = {}
    if isinstance(learner, FunctionLearner):
        return found
    shuffled = records.take(np.arange(len(records))[::-1])
    for query in learner.queries(public):
        if query.sampling is not None:
            continue  # the runtime draws anew for every ask
        watched = _Watched(SecretCoins.rehearsal(0).learner(0, query.name, 1))
        coins = cast(LearnerCoins, watched)
        try:
            values = [
                np.asarray(copy.deepcopy(learner).statistic(query, rows, public, coins))
                for rows in (records, records, shuffled)
            ]
        except Exception:  # it needs arguments, or fails: the runs will show it
            continue
        size = _SAME * max(1e-300, float(np.abs(values[0]).max(initial=0.0)))
        same = np.array_equal(values[0], values[1]) and np.allclose(
            values[0], values[2], rtol=0, atol=size
        )
        if same and not watched.read:
            found[query.name] = values[0]
    return found


class Remembering(Learner):
    """`learner`, with the statistics of `fixed` taken from there where an ask has no arguments."""

    bounds: ClassVar[tuple[str, ...]] = ()
    total: ClassVar[bool] = False

    def __init__(self, learner: Learner, fixed: dict[str, NDArray[Any]]) -> None:
        self._learner, self._fixed = learner, fixed

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(copy.deepcopy(self._learner, memo), self._fixed)

    def queries(self, public: Public) -> tuple[Query, ...]:
        """The learner's."""
        return self._learner.queries(public)

    def start(self, public: Public) -> State:
        """The learner's."""
        return self._learner.start(public)

    def ask(self, state: State) -> Query | None:
        """The learner's."""
        return self._learner.ask(state)

    def statistic(
        self, query: Query, records: Records, public: Public, secret: LearnerCoins
    ) -> NDArray[Any]:
        """The learner's, or what it was before."""
        if query.args is None and query.name in self._fixed:
            return self._fixed[query.name].copy()
        return self._learner.statistic(query, records, public, secret)

    def update(self, state: State, answer: Answer) -> State:
        """The learner's."""
        return self._learner.update(state, answer)

    def model(self, state: State) -> Model:
        """The learner's."""
        return self._learner.model(state)


class RememberingFunction(FunctionLearner):
    """A function learner whose function was fitted once, on the records of every run."""

    bounds: ClassVar[tuple[str, ...]] = ()
    total: ClassVar[bool] = False

    def __init__(self, query: FunctionQuery, fitted: Expansion) -> None:
        self._query, self._fitted = query, fitted

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return type(self)(self._query, self._fitted)

    def function_query(self, public: Public) -> FunctionQuery:
        """The learner's."""
        return self._query

    def function(
        self, query: FunctionQuery, records: Records, public: Public, secret: LearnerCoins
    ) -> Expansion:
        """What was fitted."""
        if query != self._query:
            raise ContractError(f"the query {query.name!r} is not the one that was fitted")
        return self._fitted
