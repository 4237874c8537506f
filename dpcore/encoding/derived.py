"""Derived columns: a cell of each record, made of others of the same record.

A rule reads one record and public facts alone, so that one record's cells move no other record's.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.columns import Range
from dpcore.domain.derived import MONTHS, TRUTHS, WEEKDAYS, Derived
from dpcore.encoding.columns import read_numbers
from dpcore.errors import SourceError, need
from dpcore.records.cells import empty


def derive_column(derived: Derived, table: Mapping[str, Any], rules: Mapping[str, Any]) -> Any:
    """PRIVATE: a cell for each record of the table.

    Args:
        rules: What declared columns hold: an input that declares dates is read in its zone.
    """
    operation, columns = derived.operation, [table[name] for name in derived.inputs]
    if isinstance(cells := operation.cells, Range):
        ranges = [getattr(rules.get(name), "range", rules.get(name)) for name in derived.inputs]
        columns = [
            read_numbers(rule if type(rule) is type(cells) else cells, column)
            for rule, column in zip(ranges, columns, strict=True)
        ]
        need(len({*map(len, columns)}) == 1, SourceError, "the columns are not equally long")
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        return _COMPUTATIONS[operation.name](*columns)


def _days(moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Whole days since 1970-01-01; 0 for what is no date."""
    return np.floor(np.where(np.isfinite(moments), moments, 0.0))


def _months(moments: NDArray[np.float64]) -> NDArray[np.int64]:
    """Months since January 1970."""
    return _days(moments).astype("M8[D]").astype("M8[M]").astype(np.int64)


def _words(words: tuple[str, ...], places: NDArray[Any], is_there: Any = True) -> Any:
    """A word for each place, None where there is none."""
    texts = np.array([*words, None], dtype=object)
    return texts[np.where(is_there, places, len(words)).astype(np.intp)]


_COMPUTATIONS: Mapping[str, Callable[..., Any]] = {
    "copy": lambda column: column,
    "difference": np.subtract,
    # No number divides by 0, whatever its sign.
    "ratio": lambda dividends, divisors: np.where(divisors == 0, np.nan, dividends / divisors),
    "days between": lambda first, second: second - first,
    "year": lambda days: np.where(np.isfinite(days), 1970.0 + _months(days) // 12, np.nan),
    "month": lambda days: _words(MONTHS, _months(days) % 12, np.isfinite(days)),
    # 1970-01-01 was a Thursday.
    "weekday": lambda days: _words(WEEKDAYS, (_days(days) + 3) % 7, np.isfinite(days)),
    "missing": lambda column: _words(TRUTHS, empty(column)),
}
