"""Conditions: which rows of a table count, each by a cell of its own; the rest are left out.

Theorem: whether a row counts follows from its own cells and public facts. So of two tables

* that differ in the presence of one row, the rows that count differ in the presence of one, or in
  none: what is proved for add/remove holds as it stands;
* that differ in one row, replaced by any other, the rows that count differ in one that is replaced,
  comes or goes: a claim must hold for each of these, and their number is private
  (`dpcore.adjacency.REPLACE_ROW`);
* that differ in the rows of one person, those that count differ in rows of that person alone, who
  has no more of them than before.
"""

import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import describe_type, is_finite
from dpcore.domain.bins import Binned, describe_edge
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Categories, Category, Range, reading, summary
from dpcore.errors import SourceError, below, need
from dpcore.records.cells import empty, index, key


@attrs.frozen
class Condition:
    """What a cell must be so that its row counts. Without ends and values: not empty.

    A cell is what its declared column reads in it; a declared default stands for what is none.

    Args:
        low: The number or day (since 1970-01-01) that it must be at least.
        high: The number or day that it must be below.
        values: Categories or classes, one of which it must be.
    """

    low: float | None = None
    high: float | None = None
    values: tuple[Category, ...] = ()

    def require_fit(self, rule: Any) -> None:
        """Raise `ParameterError` unless a column of this rule can meet it, and fail it."""
        ends = [end for end in (self.low, self.high) if end is not None]
        has_order = isinstance(range_of(rule), Range)
        need(
            not ends or (has_order and all(map(is_finite, ends)) and ends == sorted({*ends})),
            "only",
            "{from: LOW, below: HIGH}, one of both or both, LOW < HIGH: numbers, or of dates days "
            "since 1970-01-01",
            "ends",
            ends if has_order else describe_type(rule),
        )
        is_listed = isinstance(rule, Categories | Classes)
        declared = index(rule.values, reading(rule)) if is_listed else {}
        listed = [(reading(rule) if is_listed else key)(value) for value in self.values]
        need(
            len({*listed}) == len(listed)
            and {*listed} <= declared.keys()
            and not (listed and ends),
            "only",
            f"different declared categories ({summary([*declared])})",
            "values",
            list(self.values)[:8],
        )

    def met(self, rule: Any, cells: Any) -> NDArray[np.bool_]:
        """PRIVATE: by which cells of a column; entry by entry, shape (n,)."""
        if self.values:
            categories = rule.categories() if isinstance(rule, Classes) else rule
            places, read = index(rule.values, reading(rule)), reading(rule)
            return np.isin(categories.codes(cells), [places[read(value)] for value in self.values])
        if self.low is None and self.high is None:
            return ~empty(cells)
        declared, default = range_of(rule), range_of(rule).default
        numbers = declared.numbers(cells)
        numbers = np.where(np.isnan(numbers), math.nan if default is None else default, numbers)
        # What is no number fails every comparison.
        is_above: NDArray[np.bool_] = numbers >= (-math.inf if self.low is None else self.low)
        return is_above if self.high is None else is_above & (numbers < self.high)

    def describe(self, rule: Any) -> str:
        """The condition in words, as a guarantee says it."""
        if self.values:
            return f"one of {summary(self.values)}"
        ends = [
            f"{word} {describe_edge(range_of(rule), end)}"
            for word, end in (("from", self.low), ("below", self.high))
            if end is not None
        ]
        return " and ".join(ends) or "not empty"


def require_conditions(only: Mapping[str, Condition], rules: Mapping[str, Any]) -> None:
    """Raise `ParameterError` at a condition on no declared column, or that a column cannot meet."""
    for name, condition in only.items():
        is_declared = isinstance(condition, Condition) and name in rules
        need(is_declared, "domain", "Conditions on declared columns", "only", name)
        with below("only", name):
            condition.require_fit(rules[name])


def rows_that_count(
    only: Mapping[str, Condition], rules: Mapping[str, Any], table: Mapping[str, Any]
) -> NDArray[np.bool_] | None:
    """PRIVATE: the rows that meet every condition, shape (n,); None where there is none to meet.

    Raises:
        SourceError: the columns are not equally long.
    """
    masks = [condition.met(rules[name], table[name]) for name, condition in only.items()]
    need(len({m.size for m in masks}) < 2, SourceError, "the columns are not equally long")
    return np.all(masks, axis=0) if masks else None


def range_of(rule: Any) -> Any:
    """The range of a column in bins; any other rule as it is."""
    return rule.range if isinstance(rule, Binned) else rule
