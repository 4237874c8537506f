"""Columns: declared public facts about one feature column, and its fixed encoding.

Nothing here is computed from records, and every value of a column encodes to something. What an
entry counts as is the rule of `dpcore.records.cells`, from its own content alone.
"""

import math
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ParameterError
from dpcore.records.cells import MISSING, coded, day, days, index, key, numbers

Category = str | int | float


_DAYS = (-719162.0, 2932896.0)  # of the years 1 to 9999


@attrs.frozen
class Range:
    """A numeric column with public bounds.

    Args:
        low, high: Public ends, finite, low < high.
        default: Stands for what is not a number; the middle of the range if None.
        missing: Whether what is not a number stays missing: a second encoded column is then 1 for
            such an entry, and its first is 0.
    """

    low: float
    high: float
    default: float | None = None
    missing: bool = False

    def __attrs_post_init__(self) -> None:
        for name in ("low", "high", "default"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not math.isfinite(value)):
                raise ParameterError("range", "finite numbers", name, value)
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise ParameterError("range", f"low < high, low={self.low!r}", "high", self.high)
        if self.missing and self.default is not None:
            raise ParameterError(
                "range", "a default or missing values, not both", "default", self.default
            )
        if self.default is not None and not self.low <= self.default <= self.high:
            raise ParameterError("range", "a default inside the range", "default", self.default)

    def __repr__(self) -> str:
        more = ", missing=True" if self.missing else ""
        name = type(self).__name__
        return f"{name}(low={self.low!r}, high={self.high!r}, default={self.default!r}{more})"

    @property
    def width(self) -> int:
        """Encoded columns: one, and one more that marks missing entries where they are kept."""
        return 2 if self.missing else 1

    @property
    def half_width(self) -> float:
        """(high - low)/2."""
        return (self.high - self.low) / 2

    @property
    def centre(self) -> float:
        """(low + high)/2."""
        return self.low + self.half_width

    def clip(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Into [low, high]; NaN becomes the default."""
        default = self.centre if self.default is None else self.default
        return np.clip(np.where(np.isnan(values), default, values), self.low, self.high)

    def centred(self, values: Any) -> NDArray[np.float64]:
        """As labels: clipped, then in [-half_width, half_width] around the centre. Shape (n,)."""
        labels = self.clip(self.numbers(values)) - self.centre
        return np.clip(labels, -self.half_width, self.half_width)

    def uncentred(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Labels or predictions of them in the file's units, clipped to the range. Shape (n,)."""
        return np.clip(labels + self.centre, self.low, self.high)

    def typical(self, labels: NDArray[np.float64]) -> float:
        """The label that a constant predictor says: the mean."""
        return float(np.mean(labels))

    def encode(self, values: Any) -> NDArray[np.float64]:
        """Shape (n, width), every entry in [-1, 1], every row at most 1 long."""
        found = self.numbers(values)
        inside = self.clip(found)
        place = np.clip(2 * (inside - self.low) / (self.high - self.low) - 1, -1, 1)
        if not self.missing:
            return place[:, None]
        absent = np.isnan(found)
        return np.column_stack([np.where(absent, 0.0, place), absent.astype(np.float64)])

    def misfits(self, values: Any) -> NDArray[np.bool_]:
        """Which entries are not inside the range, and no default stands for them. Shape (n,)."""
        found = self.numbers(values)
        inside = (found >= self.low) & (found <= self.high)
        stands = self.default is not None or self.missing
        return ~(inside | np.isnan(found) if stands else inside)

    def describe(self) -> str:
        """The rule an entry must meet."""
        return f"a number in [{self.low:g}, {self.high:g}]{self._or_missing}"

    @property
    def _or_missing(self) -> str:
        return ", or missing" if self.missing else ""

    def numbers(self, values: Any) -> NDArray[np.float64]:
        """What entries count as; NaN for what is no number. Shape (n,)."""
        return numbers(values)

    def written(self, counted: NDArray[np.float64]) -> NDArray[Any]:
        """Entries that count as these, as a file would hold them. Shape (n,)."""
        return counted


@attrs.frozen
class Dates(Range):
    """A column of dates between two public ones, encoded like a range of days.

    Args:
        low, high: Days since 1970-01-01; `between` takes dates.
        default: Stands for what is no date; the middle if None.
    """

    def __attrs_post_init__(self) -> None:
        super().__attrs_post_init__()
        for name in ("low", "high"):
            if not _DAYS[0] <= getattr(self, name) <= _DAYS[1]:
                raise ParameterError(
                    "dates", "days of the years 1 to 9999", name, getattr(self, name)
                )

    __repr__ = Range.__repr__

    @classmethod
    def between(
        cls, low: date, high: date, default: date | None = None, missing: bool = False
    ) -> "Dates":
        """From the first date to the last."""
        return cls(day(low), day(high), None if default is None else day(default), missing)

    def numbers(self, values: Any) -> NDArray[np.float64]:
        """Days since 1970-01-01; NaN for what is no date. Shape (n,)."""
        return days(values)

    def written(self, counted: NDArray[np.float64]) -> NDArray[Any]:
        """As texts. Shape (n,)."""
        return np.array([str(_moment(one)) for one in counted.tolist()], dtype=object)

    def describe(self) -> str:
        """The rule an entry must meet."""
        return (
            f"a date in [{_moment(self.low).date()}, {_moment(self.high).date()}]{self._or_missing}"
        )


def summary(values: Sequence[Any], most: int = 8) -> str:
    """A list of values in words; of a long one the first and the last, and how many there are."""
    told = [str(value) for value in values]
    if len(told) > most:
        told = [*told[: most - 2], "...", f"{told[-1]} ({len(told)} values)"]
    return ", ".join(told)


def _moment(days: float) -> datetime:
    return datetime(1970, 1, 1) + timedelta(days=days)


@attrs.frozen
class Categories:
    """A column with a public list of values.

    Args:
        values: At least two different ones.
        default: Stands for anything else; if None, an unknown value encodes to zeros.
    """

    values: tuple[Category, ...]
    default: Category | None = None

    def __attrs_post_init__(self) -> None:
        keys = [key(value) for value in self.values]
        if len(keys) < 2 or len(set(keys)) < len(keys) or MISSING in keys:
            raise ParameterError(
                "categories", "two or more different values", "values", self.values
            )
        if self.default is not None and key(self.default) not in keys:
            raise ParameterError(
                "categories", "a default among the values", "default", self.default
            )

    @property
    def width(self) -> int:
        """Encoded columns: one for two values, else one each."""
        return 1 if len(self.values) == 2 else len(self.values)

    def codes(self, values: Any) -> NDArray[np.intp]:
        """Index of each entry's category, the default's for an unknown one, else -1. Shape (n,)."""
        code = index(self.values)
        return coded(values, code, -1 if self.default is None else code[key(self.default)])

    def encode(self, values: Any) -> NDArray[np.float64]:
        """Shape (n, width): -1/+1, or a one-hot; zeros where unknown and without default."""
        codes = self.codes(values)
        if len(self.values) == 2:
            return np.where(codes < 0, 0.0, 2.0 * codes - 1)[:, None]
        one_hot: NDArray[np.float64] = np.eye(len(self.values) + 1)[codes, :-1]
        return one_hot

    def misfits(self, values: Any) -> NDArray[np.bool_]:
        """Which entries are none of the categories, and no default stands for them. Shape (n,)."""
        return self.codes(values) < 0

    def describe(self) -> str:
        """The rule an entry must meet."""
        return "one of " + summary(self.values)
