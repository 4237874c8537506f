"""Derived columns: made of the other cells of the same record, by one of a closed list of rules.

A rule reads one record and public facts alone, so that one record's cells move no other record's.
What it makes is then a cell like any other: it fits the declared column, or it is a misfit.
"""

from collections.abc import Callable, Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import describe_type
from dpcore.domain.columns import Dates, Range
from dpcore.domain.texts import LONGEST, Texts
from dpcore.errors import SourceError, need
from dpcore.records.cells import empty

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
TRUTHS = ("false", "true")

_NUMBERS, _ANY = Range(-1e150, 1e150), Texts(LONGEST)
_DATES = Dates(-719162.0, 2932896.0)  # of the years 1 to 9999


@attrs.frozen
class Operation:
    """How the cells of some columns make one cell.

    Args:
        compute: From the columns to as many cells; entry by entry.
        cells: What each input holds; None where it holds what is declared of the derived column.
        inputs: How many there are.
        text: In words, with a place for each input.
    """

    compute: Callable[..., Any] = attrs.field(repr=False)
    cells: Range | Texts | None = attrs.field(repr=False)
    inputs: int
    text: str


@attrs.frozen
class Derived:
    """A column that is made of others of the same record.

    Args:
        operation: One of this module's: `COPY`, `DIFFERENCE`, `RATIO`, `DAYS_BETWEEN`, `YEAR`,
            `MONTH`, `WEEKDAY` or `MISSING`.
        inputs: Names of the columns that it reads, as they stand in the file.
    """

    operation: Operation
    inputs: tuple[str, ...]

    def __attrs_post_init__(self) -> None:
        need(
            isinstance(self.operation, Operation)
            and len(self.inputs) == self.operation.inputs
            and all(isinstance(name, str) and name for name in self.inputs),
            "derived",
            "an operation of `dpcore.domain.derived` and names of as many columns as it reads",
            "inputs",
            describe_type(self.inputs),
        )

    def compute(self, table: Mapping[str, Any], rules: Mapping[str, Any]) -> Any:
        """PRIVATE: a cell for each record of the table.

        Args:
            rules: What declared columns hold: an input that declares dates is read in its zone.
        """
        cells, columns = self.operation.cells, [table[name] for name in self.inputs]
        if isinstance(cells, Range):
            ranges = [getattr(rules.get(name), "range", rules.get(name)) for name in self.inputs]
            columns = [
                (rule if type(rule) is type(cells) else cells).numbers(column)
                for rule, column in zip(ranges, columns, strict=True)
            ]
            need(len({*map(len, columns)}) == 1, SourceError, "the columns are not equally long")
        return self.operation.compute(*columns)

    def describe(self) -> str:
        """How it is made, in words."""
        return self.operation.text.format(*map(repr, self.inputs))


def _copy(column: Any) -> Any:
    return column


def _difference(first: NDArray[np.float64], second: NDArray[np.float64]) -> Any:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.subtract(first, second)


def _ratio(dividends: NDArray[np.float64], divisors: NDArray[np.float64]) -> Any:
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        # No number divides by 0, whatever its sign.
        return np.where(divisors == 0, np.nan, dividends / divisors)


def _days_between(first: NDArray[np.float64], second: NDArray[np.float64]) -> Any:
    return np.subtract(second, first)


def _years(moments: NDArray[np.float64]) -> NDArray[np.float64]:
    months, is_date = _months(moments)
    return np.where(is_date, 1970.0 + months // 12, np.nan)


def _month_names(moments: NDArray[np.float64]) -> Any:
    months, is_date = _months(moments)
    return _words(MONTHS, months % 12, is_date)


def _weekday_names(moments: NDArray[np.float64]) -> Any:
    is_date = np.isfinite(moments)
    # 1970-01-01 was a Thursday.
    return _words(WEEKDAYS, (np.floor(np.where(is_date, moments, 0.0)) + 3) % 7, is_date)


def _missing(column: Any) -> Any:
    is_empty = empty(column)
    return _words(TRUTHS, is_empty, np.ones_like(is_empty))


def _months(moments: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Months since January 1970, and which moments are a date."""
    is_date = np.isfinite(moments)
    dates = np.floor(np.where(is_date, moments, 0.0)).astype("datetime64[D]")
    return dates.astype("datetime64[M]").astype(np.int64), is_date


def _words(words: tuple[str, ...], places: NDArray[Any], is_there: NDArray[np.bool_]) -> Any:
    """A word for each place, None where there is none."""
    texts = np.array([*words, None], dtype=object)
    return texts[np.where(is_there, places, len(words)).astype(np.intp)]


COPY = Operation(_copy, None, 1, "column {0}")
DIFFERENCE = Operation(_difference, _NUMBERS, 2, "{0} less {1}")
RATIO = Operation(_ratio, _NUMBERS, 2, "{0} divided by {1}")
DAYS_BETWEEN = Operation(_days_between, _DATES, 2, "days from {0} to {1}")
YEAR = Operation(_years, _DATES, 1, "the year of {0}")
MONTH = Operation(_month_names, _DATES, 1, "the month of {0}")
WEEKDAY = Operation(_weekday_names, _DATES, 1, "the weekday of {0}")
MISSING = Operation(_missing, _ANY, 1, "whether {0} is empty")
