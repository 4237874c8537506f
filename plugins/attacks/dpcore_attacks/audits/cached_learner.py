"""`cached_learner`: compute the same statistic once for many runs on equal records.

A statistic is remembered where nothing it may depend on changes from run to run: the query carries
no arguments, the secret randomness were not read, and the order of the records does not matter.
"""

import copy
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpcore import Public, Query, Records, SecretRandomness
from dpcore.functions import ProcessQuery
from dpcore.learner import AnyLearner
from dpcore.private.release_context import Private
from dpcore.randomness import LearnerRandomness, Stream

_SAME = 1e-9  # relative difference of two statistics that counts as rounding


class _ReadSpy:
    """Learner randomness that notice being read."""

    def __init__(self, randomness: LearnerRandomness) -> None:
        self._randomness, self.was_read = randomness, False

    def stream(self, name: str) -> Stream:
        """Return the learner's stream of that name, after noting that it was asked for."""
        self.was_read = True
        return self._randomness.stream(name)


def fixed_statistics(
    learner: AnyLearner, records: Records, public: Public
) -> dict[str, NDArray[Any]]:
    """By query name, statistics that are the same in every run; failing ones are left out.

    Each is computed three times: twice on the records, once on them in another order.
    """
    statistics: dict[str, NDArray[Any]] = {}
    # reversed: no order of the records is farther from their own
    shuffled = records.take(np.arange(len(records))[::-1])
    for query in learner.queries(public):
        # The runtime draws anew for every query, and a mechanism steps a process in every run.
        if query.sampling is not None or isinstance(query, ProcessQuery):
            continue
        spy = _ReadSpy(SecretRandomness.rehearsal(0).learner(0, query.name, 1))
        randomness = cast(LearnerRandomness, spy)
        try:
            values = [
                np.asarray(copy.deepcopy(learner).statistic(query, rows, public, randomness))
                for rows in (records, records, shuffled)
            ]
        except Exception:  # it needs arguments, or fails: the runs will show it
            continue
        size = _SAME * max(1e-300, float(np.abs(values[0]).max(initial=0.0)))
        # every bit on equal records, which shows hidden randomness; up to rounding if reordered
        same = np.array_equal(values[0], values[1]) and np.allclose(
            values[0], values[2], rtol=0, atol=size
        )
        if same and not spy.was_read:
            statistics[query.name] = values[0]
    return statistics


def remembering(learner: AnyLearner, fixed: Mapping[str, Any]) -> Private:
    """Return the learner's private function, with what is `fixed` taken from there."""

    def compute(query: Query, records: Records, public: Public, secret: LearnerRandomness) -> Any:
        # a query with arguments is another statistic than the one remembered
        if query.args is None and query.name in fixed:
            return fixed[query.name]
        return copy.deepcopy(learner).statistic(query, records, public, secret)

    return compute
