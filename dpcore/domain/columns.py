"""Columns: declared public facts about one feature column, and its fixed encoding.

Nothing here is computed from records, and every value of a column encodes to something.
"""

import math

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcore.errors import ParameterError

Category = str | int | float


def as_numbers(values: ArrayLike) -> NDArray[np.float64]:
    """Floats, with NaN for every entry that is not a number. Shape (n,)."""
    array = np.asarray(values)
    if array.dtype.kind in "fiub":
        return array.astype(np.float64)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        return np.array([_as_number(entry) for entry in array.tolist()], dtype=np.float64)


def _as_number(entry: object) -> float:
    try:
        return float(entry)  # type: ignore[arg-type]  # whatever is not a number raises
    except (TypeError, ValueError, OverflowError):
        return math.nan


@attrs.frozen
class Range:
    """A numeric column with public bounds.

    Args:
        low, high: Public ends, finite, low < high.
        default: Stands for what is not a number; the middle of the range if None.
    """

    low: float
    high: float
    default: float | None = None

    def __attrs_post_init__(self) -> None:
        for name in ("low", "high", "default"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not math.isfinite(value)):
                raise ParameterError("range", "finite numbers", name, value)
        if not self.low < self.high or not math.isfinite(self.high - self.low):
            raise ParameterError("range", f"low < high, low={self.low!r}", "high", self.high)
        if self.default is not None and not self.low <= self.default <= self.high:
            raise ParameterError("range", "a default inside the range", "default", self.default)

    @property
    def width(self) -> int:
        """Encoded columns: one."""
        return 1

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

    def centred(self, values: ArrayLike) -> NDArray[np.float64]:
        """As labels: clipped, then in [-half_width, half_width] around the centre. Shape (n,)."""
        labels = self.clip(as_numbers(values)) - self.centre
        return np.clip(labels, -self.half_width, self.half_width)

    def uncentred(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Labels or predictions of them in the file's units, clipped to the range. Shape (n,)."""
        return np.clip(labels + self.centre, self.low, self.high)

    def typical(self, labels: NDArray[np.float64]) -> float:
        """The label that a constant predictor says: the mean."""
        return float(np.mean(labels))

    def encode(self, values: ArrayLike) -> NDArray[np.float64]:
        """Shape (n, 1), every entry in [-1, 1]."""
        inside = self.clip(as_numbers(values))
        return np.clip(2 * (inside - self.low) / (self.high - self.low) - 1, -1, 1)[:, None]

    def misfits(self, values: ArrayLike) -> NDArray[np.bool_]:
        """Which entries are not finite numbers inside the range. Shape (n,)."""
        numbers = as_numbers(values)
        return ~((numbers >= self.low) & (numbers <= self.high))

    def describe(self) -> str:
        """The rule an entry must meet."""
        return f"a number in [{self.low:g}, {self.high:g}]"


def _category_key(value: object) -> object:
    """Categories are equal as numbers where both are numbers, else as text."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return value
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    number = _as_number(value)
    return str(value) if math.isnan(number) else number


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
        keys = [_category_key(value) for value in self.values]
        if len(keys) < 2 or len(set(keys)) < len(keys):
            raise ParameterError(
                "categories", "two or more different values", "values", self.values
            )
        if self.default is not None and _category_key(self.default) not in keys:
            raise ParameterError(
                "categories", "a default among the values", "default", self.default
            )

    @property
    def width(self) -> int:
        """Encoded columns: one for two values, else one each."""
        return 1 if len(self.values) == 2 else len(self.values)

    def codes(self, values: ArrayLike) -> NDArray[np.intp]:
        """Index of each entry's category, the default's for an unknown one, else -1. Shape (n,)."""
        codes = self._codes(values)
        if self.default is None:
            return codes
        keys = [_category_key(value) for value in self.values]
        return np.where(codes < 0, keys.index(_category_key(self.default)), codes)

    def _codes(self, values: ArrayLike) -> NDArray[np.intp]:
        index = {_category_key(value): code for code, value in enumerate(self.values)}
        entries = np.asarray(values).tolist()
        return np.array([index.get(_category_key(entry), -1) for entry in entries], dtype=np.intp)

    def encode(self, values: ArrayLike) -> NDArray[np.float64]:
        """Shape (n, width): -1/+1, or a one-hot; zeros where unknown and without default."""
        codes = self.codes(values)
        if len(self.values) == 2:
            return np.where(codes < 0, 0.0, 2.0 * codes - 1)[:, None]
        one_hot: NDArray[np.float64] = np.eye(len(self.values) + 1)[codes, :-1]
        return one_hot

    def misfits(self, values: ArrayLike) -> NDArray[np.bool_]:
        """Which entries are none of the categories. Shape (n,)."""
        return self._codes(values) < 0

    def describe(self) -> str:
        """The rule an entry must meet."""
        return "one of " + ", ".join(str(value) for value in self.values)


Column = Range | Categories
