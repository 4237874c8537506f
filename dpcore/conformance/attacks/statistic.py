"""Statistic: what the private part of any learner computes, an array or a function."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.functions.kernels.base import Expansion
from dpcore.functions.learner import FunctionLearner, FunctionQuery
from dpcore.learner import Learner, Public
from dpcore.query import Query
from dpcore.randomness import LearnerCoins
from dpcore.records.records import Records

Statistic = NDArray[Any] | Expansion


def compute(
    learner: Learner, ask: Query, records: Records, public: Public, secret: LearnerCoins
) -> Statistic:
    """The value of `ask` on made-up records."""
    if isinstance(learner, FunctionLearner) and isinstance(ask, FunctionQuery):
        return learner.function(ask, records, public, secret)
    return np.array(learner.statistic(ask, records, public, secret))


def unfit(value: Statistic, ask: Query) -> str:
    """Why a value is not what the ask plans, or empty."""
    if not isinstance(ask, FunctionQuery):
        return _unfit_array(np.asarray(value), ask)
    if not isinstance(value, Expansion):
        return f"{type(value).__name__} instead of a function"
    if value.kernel != ask.kernel:
        return "another kernel than planned"
    if value.points.shape[1] != ask.width:
        return f"points of {value.points.shape[1]} columns instead of {ask.width}"
    finite = np.isfinite(value.points).all() and np.isfinite(value.coefficients).all()
    return "" if finite else "not finite"


def _unfit_array(value: NDArray[Any], ask: Query) -> str:
    if value.shape != ask.shape:
        return f"shape {value.shape} instead of {ask.shape}"
    if np.iscomplexobj(value) and ask.field == "real":
        return "complex instead of real"
    return "" if np.isfinite(value).all() else "not finite"


def nothing(ask: Query) -> Statistic:
    """What stands for a failure where a bound covers that: zeros, or the function 0."""
    if isinstance(ask, FunctionQuery):
        none = np.zeros((0, ask.width))
        return Expansion(kernel=ask.kernel, points=none, coefficients=np.zeros(0))
    return np.zeros(ask.shape, dtype=ask.dtype)


def same(first: Statistic, second: Statistic) -> bool:
    """Whether two values agree in every bit; NaN agrees with NaN."""
    if isinstance(first, Expansion) or isinstance(second, Expansion):
        return (
            isinstance(first, Expansion)
            and isinstance(second, Expansion)
            and first.kernel == second.kernel
            and same(first.points, second.points)
            and same(first.coefficients, second.coefficients)
        )
    numbers = is_numeric(first) and is_numeric(second)
    return first.shape == second.shape and bool(np.array_equal(first, second, equal_nan=numbers))


def is_numeric(array: NDArray[Any]) -> bool:
    """Whether it can hold a NaN or a size at all: classes may be text."""
    return array.dtype.kind in "fcbiu"
