"""Statistic: what the private part of any learner computes: an array, a function, a process."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore import Public, Query, Records
from dpcore.functions import Expansion, Process
from dpcore.learner import AnyLearner
from dpcore.randomness import LearnerRandomness

Statistic = NDArray[Any] | Expansion | Process

_SIZES = (0.0, 0.01, 0.3, 1.0, 10.0, 100.0)  # of the states that a process is tried at


def steps_of(process: Process) -> NDArray[np.float64]:
    """Return what the first and the last step of a process lead to from fixed states, shape (k,
    size).
    """
    directions = np.random.default_rng(0).normal(size=(len(_SIZES), *process.shape))
    return np.array(
        [
            process.step(number, size * direction).ravel()
            for number in sorted({0, process.steps - 1})
            for size, direction in zip(_SIZES, directions, strict=True)
        ]
    )


def compute(
    learner: AnyLearner, query: Query, records: Records, public: Public, secret: LearnerRandomness
) -> Statistic:
    """Return the value of `query` on synthetic records."""
    value = learner.statistic(query, records, public, secret)
    # a copy: a learner may reuse its own array at the next query
    return value if isinstance(value, Expansion | Process) else np.array(value)


def same(first: Statistic, second: Statistic) -> bool:
    """Return whether two values agree in every bit; NaN agrees with NaN."""
    if isinstance(first, Expansion) or isinstance(second, Expansion):
        return (
            isinstance(first, Expansion)
            and isinstance(second, Expansion)
            and first.kernel == second.kernel
            and same(first.points, second.points)
            and same(first.coefficients, second.coefficients)
        )
    # two processes are the same where equal states lead to equal ones
    if isinstance(first, Process) and isinstance(second, Process):
        return first.shape == second.shape and same(steps_of(first), steps_of(second))
    first, second = np.asarray(first), np.asarray(second)
    # numpy looks for NaN in numbers only, and raises on text
    numbers = is_numeric(first) and is_numeric(second)
    return first.shape == second.shape and bool(np.array_equal(first, second, equal_nan=numbers))


def is_numeric(array: NDArray[Any]) -> bool:
    """Return whether it can hold a NaN or a size at all: classes may be text."""
    return array.dtype.kind in "fcbiu"
