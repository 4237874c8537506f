"""Conditions: which rows of a table count, each by a cell of its own."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.columns import reading
from dpcore.domain.conditions import Condition, range_of
from dpcore.encoding.columns import read_codes, read_numbers
from dpcore.errors import SourceError, need
from dpcore.records.cells import empty, index


def rows_that_meet(condition: Condition, rule: Any, cells: Any) -> NDArray[np.bool_]:
    """PRIVATE: the rows whose cell in a column of this rule meets a condition. Shape (n,)."""
    if condition.values:
        places, read = index(rule.values, reading(rule)), reading(rule)
        listed = [places[read(value)] for value in condition.values]
        return np.isin(read_codes(rule, cells), listed)
    if condition.low is None and condition.high is None:
        return ~empty(cells)
    declared, default = range_of(rule), range_of(rule).default
    numbers = read_numbers(declared, cells)
    numbers = np.where(np.isnan(numbers), math.nan if default is None else default, numbers)
    low, high = condition.low, condition.high
    # What is no number fails every comparison.
    is_above: NDArray[np.bool_] = numbers >= (-math.inf if low is None else low)
    return is_above if high is None else is_above & (numbers < high)


def rows_that_count(
    only: Mapping[str, Condition], rules: Mapping[str, Any], table: Mapping[str, Any]
) -> NDArray[np.bool_] | None:
    """PRIVATE: the rows that meet every condition, shape (n,); None where there is none to meet.

    Raises:
        SourceError: the columns are not equally long.
    """
    masks = [rows_that_meet(meets, rules[name], table[name]) for name, meets in only.items()]
    need(len({m.size for m in masks}) < 2, SourceError, "the columns are not equally long")
    return np.all(masks, axis=0) if masks else None
