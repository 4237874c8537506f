"""Columns: declared public facts about one feature column, and its fixed encoding.

Nothing here is computed from records, and every value of a column encodes to something. What an
entry counts as is the rule of `dpcore.records.cells`, from its own content alone.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from numbers import Real
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import describe_type, is_finite, need_field, unboxed
from dpcore.errors import need
from dpcore.records.cells import MISSING, coded, day, days, index, key, numbers
from dpcore.records.pieces import read_once

Category = str | int | float


_FARTHEST = 1e150  # squares of such numbers, and many of them together, are finite
_DAYS = (-719162.0, 2932896.0)  # of the years 1 to 9999


@attrs.frozen
class Range:
    """A numeric column with public bounds.

    Args:
        low, high: Public ends between -1e150 and 1e150, low < high by at least 1e-150.
        default: Stands for what is not a number; the middle of the range if None.
        missing: Whether what is not a number stays missing: a second encoded column is then 1 for
            such an entry, and its first is 0.
    """

    low: float = attrs.field(converter=unboxed)
    high: float = attrs.field(converter=unboxed)
    default: float | None = attrs.field(default=None, converter=unboxed)
    missing: bool = False

    def __attrs_post_init__(self) -> None:
        for name in ("low", "high", "default"):
            value = getattr(self, name)
            need(
                is_finite(value) or (value is None and name == "default"),
                "range",
                "finite numbers",
                name,
                value if isinstance(value, Real | str | None) else describe_type(value),
            )
        need_field(
            self.low < self.high, self, "high", f"low < high, low={self.low!r}", owner="range"
        )
        # Encodings divide by the width, sensitivities grow with it, and squares of it are summed.
        need_field(
            max(-self.low, self.high) <= _FARTHEST and self.high - self.low >= 1 / _FARTHEST,
            self,
            "high",
            f"ends between -{_FARTHEST} and {_FARTHEST}, at least {1 / _FARTHEST} apart "
            f"(state the column in another unit), low={self.low!r}",
            owner="range",
        )
        need_field(
            not self.missing or self.default is None,
            self,
            "default",
            "a default or missing values, not both",
            owner="range",
        )
        need_field(
            self.default is None or self.low <= self.default <= self.high,
            self,
            "default",
            "a default inside the range",
            owner="range",
        )

    def __repr__(self) -> str:
        suffix = ", missing=True" if self.missing else ""
        name = type(self).__name__
        return f"{name}(low={self.low!r}, high={self.high!r}, default={self.default!r}{suffix})"

    @property
    def width(self) -> int:
        """Encoded columns: one, and one more that marks missing entries where they are kept."""
        return 2 if self.missing else 1

    @property
    def half_width(self) -> float:
        """(high - low)/2, the bound on centred labels."""
        return (self.high - self.low) / 2

    @property
    def centre(self) -> float:
        """(low + high)/2, which stands for a missing entry."""
        return self.low + self.half_width

    def clip(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Into [low, high]; NaN becomes the default."""
        default = self.centre if self.default is None else self.default
        return np.clip(np.where(np.isnan(values), default, values), self.low, self.high)

    def centred(self, values: Any) -> NDArray[np.float64]:
        """As labels: clipped, then in [-half_width, half_width] around the centre. Shape (n,)."""
        return self.offset(self.numbers(values))

    def offset(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where numbers stand as labels. Shape (n,)."""
        # Clipped once more, since the subtraction rounds: the label bound holds in floats.
        return np.clip(self.clip(numbers) - self.centre, -self.half_width, self.half_width)

    def uncentred(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Labels or predictions of them in the file's units, clipped to the range. Shape (n,)."""
        return np.clip(labels + self.centre, self.low, self.high)

    def typical(self, labels: NDArray[np.float64]) -> float:
        """The label that a constant predictor says: the mean."""
        return float(np.mean(labels))

    def encode(self, values: Any) -> NDArray[np.float64]:
        """Shape (n, width), every entry in [-1, 1], every row at most 1 long."""
        counts = self.numbers(values)
        position = self.position(counts)
        if not self.missing:
            return position[:, None]
        absent = np.isnan(counts)
        # A row is (position, 0) or (0, 1), so that it is at most 1 long.
        return np.column_stack([np.where(absent, 0.0, position), absent.astype(np.float64)])

    def position(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Where numbers stand in [-1, 1], from the low end to the high one. Shape (n,)."""
        # Clipped once more, since the quotient may round beyond [-1, 1].
        return np.clip(2 * (self.clip(numbers) - self.low) / (self.high - self.low) - 1, -1, 1)

    def inside(self, values: Any) -> NDArray[np.float64]:
        """Numbers of the range that entries count as; NaN where one stays missing. Shape (n, 1)."""
        counts = self.numbers(values)[:, None]
        return np.where(self.missing & np.isnan(counts), np.nan, self.clip(counts))

    def misfits(self, values: Any) -> NDArray[np.bool_]:
        """Which entries are not inside the range, and no default stands for them. Shape (n,)."""
        counts = self.numbers(values)
        inside = (counts >= self.low) & (counts <= self.high)
        # A default, or the column that marks missing entries, gives such a cell a meaning.
        stands = self.default is not None or self.missing
        return ~(inside | np.isnan(counts) if stands else inside)

    def describe(self) -> str:
        """The rule an entry must meet."""
        return f"a number in [{self.low:g}, {self.high:g}]{self._or_missing}"

    @property
    def _or_missing(self) -> str:
        return ", or missing" if self.missing else ""

    def numbers(self, values: Any) -> NDArray[np.float64]:
        """What entries count as; NaN for what is no number. Shape (n,)."""
        return read_once(self, values, numbers)

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
            need_field(
                _DAYS[0] <= getattr(self, name) <= _DAYS[1],
                self,
                name,
                "days of the years 1 to 9999",
                owner="dates",
            )

    # attrs would generate another one for the subclass.
    __repr__ = Range.__repr__

    @classmethod
    def between(
        cls, low: date, high: date, default: date | None = None, missing: bool = False
    ) -> "Dates":
        """From the first date to the last."""
        return cls(day(low), day(high), None if default is None else day(default), missing)

    def numbers(self, values: Any) -> NDArray[np.float64]:
        """Days since 1970-01-01; NaN for what is no date. Shape (n,)."""
        return read_once(self, values, days)

    def written(self, counted: NDArray[np.float64]) -> NDArray[Any]:
        """Days since 1970-01-01 as texts of dates with a time of day. Shape (n,)."""
        return np.array([str(_moment(day_count)) for day_count in counted.tolist()], dtype=object)

    def describe(self) -> str:
        """The rule an entry must meet."""
        return (
            f"a date in [{_moment(self.low).date()}, {_moment(self.high).date()}]{self._or_missing}"
        )


def summary(values: Sequence[Any], most: int = 8) -> str:
    """A list of values in words; of a long one the first and the last, and how many there are."""
    if len(words := [str(value) for value in values]) > most:
        words = [*words[: most - 2], "...", f"{words[-1]} ({len(words)} values)"]
    return ", ".join(words)


def _moment(days: float) -> datetime:
    return datetime(1970, 1, 1) + timedelta(days=days)


def _listed(values: Iterable[Category]) -> Any:
    """Values as a tuple; what is no list of any stays as it is, and a text is one value."""
    is_list = isinstance(values, Iterable) and not isinstance(values, str | bytes)
    return tuple(values) if is_list else values


def paired(spellings: Any) -> Any:
    """A mapping as pairs; anything else as it is."""
    return tuple(spellings.items()) if isinstance(spellings, Mapping) else spellings


@attrs.frozen
class Categories:
    """A column with a public list of values.

    Args:
        values: At least two different ones.
        default: Stands for anything else; if None, an unknown value encodes to zeros.
        spellings: Further cells, and the value that each of them counts as: a mapping or pairs.
    """

    values: tuple[Category, ...] = attrs.field(converter=_listed)
    default: Category | None = None
    spellings: tuple[tuple[Category, Category], ...] = attrs.field(
        default=(), converter=paired, repr=False
    )

    def __attrs_post_init__(self) -> None:
        keys = [key(value) for value in self.values] if isinstance(self.values, tuple) else []
        # Values are compared as cells are: 1 and "1" are one category.
        # A list that was taken from records by mistake is not shown.
        need(
            len(keys) >= 2 and len(set(keys)) == len(keys) and MISSING not in keys,
            "categories",
            "two or more different values in a list",
            "values",
            describe_type(self.values)
            if not keys
            else f"{len(keys)} listed, {len(set(keys))} different",
        )
        need_field(
            self.default is None or key(self.default) in keys,
            self,
            "default",
            "a default among the values",
            owner="categories",
        )
        cells = [*keys, *(key(cell) for cell, _ in self.spellings)]
        need(
            len(set(cells)) == len(cells)
            and MISSING not in cells
            and all(key(value) in keys for _, value in self.spellings),
            "categories",
            "other cells than the values, each once, mapped to values that are listed",
            "map",
            f"{len(self.spellings)} of them",
        )

    @property
    def width(self) -> int:
        """Encoded columns: one for two values, else one each."""
        return 1 if len(self.values) == 2 else len(self.values)

    def codes(self, values: Any) -> NDArray[np.intp]:
        """Index of each entry's category, the default's for an unknown one, else -1. Shape (n,)."""
        code = index(self.values)
        unknown = -1 if self.default is None else code[key(self.default)]
        if self.spellings:
            # Indexed together, so that a truth has one reading among values and spellings.
            targets = [*range(len(self.values)), *(code[key(value)] for _, value in self.spellings)]
            cells = index([*self.values, *(cell for cell, _ in self.spellings)])
            code = {cell: targets[place] for cell, place in cells.items()}
        return read_once(self, values, partial(coded, code=code, unknown=unknown))

    def encode(self, values: Any) -> NDArray[np.float64]:
        """Shape (n, width): -1/+1, or a one-hot; zeros where unknown and without default."""
        codes = self.codes(values)
        if len(self.values) == 2:
            return np.where(codes < 0, 0.0, 2.0 * codes - 1)[:, None]
        # Code -1 picks the last row of the identity, which is 0 in all columns but the last.
        one_hot: NDArray[np.float64] = np.eye(len(self.values) + 1)[codes, :-1]
        return one_hot

    def misfits(self, values: Any) -> NDArray[np.bool_]:
        """Which entries are none of the categories, and no default stands for them. Shape (n,)."""
        return self.codes(values) < 0

    def describe(self) -> str:
        """The rule an entry must meet."""
        listed = [f"{cell} as {value}" for cell, value in self.spellings]
        return f"one of {summary(self.values)}{f' ({summary(listed)})' if listed else ''}"
