"""What the released mean label fixes: the constant, and the noise of a vector of length 1."""

import math
from typing import Any

import attrs
import numpy as np

from dpcore import Answer, SumQuery
from dpcore.learning.bounds.sum import moved_by_sum
from dpcore_tables import classes


def released_label(state: Any, answer: Answer, stage: str) -> Any:
    """A conversation's state with the mean label, or the shares of classes."""
    query = answer.query
    assert isinstance(query, SumQuery), "labels are summed"
    # `unit` is for vectors of either sign: take back what a non-negative label saves.
    of_one = moved_by_sum(attrs.evolve(query, sum=attrs.evolve(query.sum, sign="any")))
    of_own = moved_by_sum(query)
    wider = of_one.replace_one / of_own.replace_one if state.plan.known else 1.0
    unit = state.noise(answer) * wider / query.sum.clip * math.sqrt(query.share)
    # Shares of classes are positive and add up to 1; the mean of other labels is in [0, 1].
    if state.plan.kind == "several":
        mean_label = np.maximum(answer.value / state.records, classes.RAREST)
        mean_label = mean_label / mean_label.sum()
    else:
        mean_label = np.clip(0.5 + answer.value / state.records, 0.0, 1.0)
    return attrs.evolve(state, unit=unit, label=mean_label)
