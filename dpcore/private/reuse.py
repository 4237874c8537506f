"""Reuse: releases of one run that ask the same thing of the same records compute it once.

A private function is pure: what it returns is determined by the learner's fields, the query, the
public facts and the records, unless it reads its secret coins, which are never the same twice. Only
noise differs between such releases, and every one draws its own.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from dpcore.checks import fingerprint
from dpcore.learner import AnyLearner, Public
from dpcore.query import Query
from dpcore.randomness import LearnerCoins

Value = TypeVar("Value")


class Reuse:
    """PRIVATE: what private functions returned on one part of the records, for one run.

    Two computations count as the same where the learner, the query and the public facts are the
    same down to the last byte of their serialised fields; whatever cannot be serialised is computed
    anew. Queries with `args` follow earlier answers, and those with `sampling` see records drawn
    for one ask alone: neither are kept.
    """

    def __init__(self) -> None:
        self._values: dict[tuple[bytes, ...], Any] = {}

    def once(
        self,
        learner: AnyLearner,
        query: Query,
        public: Public,
        secret: LearnerCoins,
        compute: Callable[[], Value],
    ) -> Value:
        """What `statistic` returns for these, now or before; the caller leaves it as it is.

        Args:
            learner: Before any copy of it has seen records.
            secret: What `statistic` has; if it reads them, its result is not kept.
        """
        # The secret coins are no part of the key: a result that depended on them is never stored.
        facts = (public.domain, public.coins.key, public.mu)
        once = query.args is not None or query.sampling is not None
        key = () if once else fingerprint(learner, query, *facts)
        if key in self._values:
            return cast(Value, self._values[key])
        result = compute()
        # A computation that read its secret coins must be done again, with the coins of its own
        # ask: two releases with common randomness would no longer compose as independent
        # mechanisms.
        if key and not secret.read:
            self._values[key] = result
        return result
