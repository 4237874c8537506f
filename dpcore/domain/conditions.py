"""Conditions: which rows of a table count, each by a cell of its own; the rest are left out.

Theorem: whether a row counts follows from its own cells and public facts. So of two tables

* that differ in the presence of one row, the rows that count differ in the presence of one, or in
  none: what is proved for add/remove holds as it is;
* that differ in one row, replaced by any other, the rows that count differ in one that is replaced,
  comes or goes: a claim must hold for each of these, and their number is private
  (`dpcore.adjacency.REPLACE_ROW`);
* that differ in the rows of one person, those that count differ in rows of that person only, who
  has no more of them than before.
"""

from collections.abc import Mapping
from typing import Any

import attrs

from dpcore.checks import describe_type, is_finite
from dpcore.domain.bins import Binned, describe_edge
from dpcore.domain.cell import index, key
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Categories, Category, Range, reading, summary
from dpcore.errors import below, need


@attrs.frozen
class Condition:
    """What a cell must be so that its row counts. Without ends and values: not empty.

    A cell is what its declared column reads in it; a declared default represents what is none.

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

    def describe(self, rule: Any) -> str:
        """Return the condition in words, as a guarantee says it."""
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


def range_of(rule: Any) -> Any:
    """Return the range of a column in bins; any other rule as it is."""
    return rule.range if isinstance(rule, Binned) else rule
