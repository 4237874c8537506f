r"""Domain: declared public facts about the records, and the total projection into them.

Nothing here is computed from records. `Domain.project` is row-wise, data-independent and total:
every row of any table maps into the domain, so that adjacency can be stated on what comes out.

Encoding: a range becomes 2(x - low)/(high - low) - 1 clipped to [-1, 1]; two categories one column
of -1 and +1; more categories a one-hot. With `norm`, rows are scaled down to at most that l2 norm.
Labels are centred at the middle of their range, in [-M, M] with M = (high - low)/2.
"""

import math
from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcore.errors import ParameterError, SourceError, UnknownCountError
from dpcore.records import Records

Table = Mapping[str, ArrayLike]
"""Columns by name, all of one length, in the file's own units. A data frame serves."""

Category = str | int | float

_SHRINK = 1 - 2.0**-44  # keeps a rescaled row inside `norm` in spite of rounding


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

    def _codes(self, values: ArrayLike) -> NDArray[np.intp]:
        """Index of each entry's category, -1 for unknown. Shape (n,)."""
        index = {_category_key(value): code for code, value in enumerate(self.values)}
        entries = np.asarray(values).tolist()
        return np.array([index.get(_category_key(entry), -1) for entry in entries], dtype=np.intp)

    def encode(self, values: ArrayLike) -> NDArray[np.float64]:
        """Shape (n, width): -1/+1, or a one-hot; zeros where unknown and without default."""
        codes = self._codes(values)
        if self.default is not None:
            keys = [_category_key(value) for value in self.values]
            codes = np.where(codes < 0, keys.index(_category_key(self.default)), codes)
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


@attrs.frozen(kw_only=True)
class Domain:
    """What is publicly known about the records, before any of them is read.

    Args:
        columns: Feature columns by name, in encoding order.
        target: Name of the label column.
        labels: Public range of the label.
        exact: The public number of records, where the adjacency makes it public.
        limit: A public upper bound on a private number of records, if there is one.
        norm: Rows are scaled down to at most this l2 norm after encoding, if given.
    """

    columns: Mapping[str, Column]
    target: str
    labels: Range
    exact: int | None = None
    limit: int | None = None
    norm: float | None = None

    def __attrs_post_init__(self) -> None:
        if not self.columns:
            raise ParameterError("domain", "at least one feature column", "columns", {})
        if self.target in self.columns:
            raise ParameterError("domain", "a target that is no feature", "target", self.target)
        for name in ("exact", "limit"):
            count = getattr(self, name)
            if count is not None and (isinstance(count, bool) or count < 1):
                raise ParameterError("domain", "at least one record", name, count)
        if self.exact is not None and self.limit is not None:
            raise ParameterError(
                "domain", "an exact count or a limit, not both", "limit", self.limit
            )
        if self.norm is not None and not (math.isfinite(self.norm) and self.norm > 0):
            raise ParameterError("domain", "a finite norm > 0", "norm", self.norm)

    @property
    def records(self) -> int:
        """The exact public number of records.

        Raises:
            UnknownCountError: it is not public; whatever needs it is refused by the plan.
        """
        if self.exact is None:
            raise UnknownCountError("the exact number of records is needed, and it is not public")
        return self.exact

    @property
    def at_most(self) -> int | None:
        """A public upper bound on the number of records, or None."""
        return self.exact if self.exact is not None else self.limit

    @property
    def width(self) -> int:
        """Number of encoded feature columns."""
        return sum(column.width for column in self.columns.values())

    @property
    def feature_norm(self) -> float:
        """l2 bound on every encoded row: `norm`, or sqrt(number of columns) if that is less."""
        box = math.sqrt(len(self.columns)) * (1 + 2.0**-50)
        return box if self.norm is None else min(self.norm, box)

    @property
    def label_bound(self) -> float:
        """M: centred labels lie in [-M, M]."""
        return self.labels.half_width

    def encode(self, table: Table) -> NDArray[np.float64]:
        """Encoded features, shape (n, width), each row at most `feature_norm` long in l2."""
        missing = [name for name in self.columns if name not in table]
        if missing:
            raise SourceError(f"column {missing[0]!r} is missing")
        blocks = [column.encode(table[name]) for name, column in self.columns.items()]
        lengths = {block.shape[0] for block in blocks}
        if len(lengths) > 1:
            raise SourceError("the columns are not equally long")
        encoded = np.hstack(blocks)
        if self.norm is not None:
            norms = np.linalg.norm(encoded, axis=1, keepdims=True)
            too_long = norms > self.norm
            scale = np.where(too_long, _SHRINK * self.norm / np.where(too_long, norms, 1.0), 1.0)
            encoded = encoded * scale
        return encoded

    def centre(self, labels: ArrayLike) -> NDArray[np.float64]:
        """Labels clipped to their range and centred, in [-M, M]; shape (n,)."""
        centred: NDArray[np.float64] = self.labels.clip(as_numbers(labels)) - self.labels.centre
        return np.clip(centred, -self.label_bound, self.label_bound)

    def uncentre(self, centred: NDArray[np.float64]) -> NDArray[np.float64]:
        """Predictions in the file's units, clipped to the label range."""
        return np.clip(centred + self.labels.centre, self.labels.low, self.labels.high)

    def project(self, table: Table) -> Records:
        """Every row, mapped into the domain; never fails on a value.

        Raises:
            SourceError: a column is missing or the columns are not equally long.
        """
        if self.target not in table:
            raise SourceError(f"column {self.target!r} is missing")
        features = self.encode(table)
        labels = self.centre(table[self.target])
        if labels.shape[0] != features.shape[0]:
            raise SourceError("the columns are not equally long")
        return Records(features=features, labels=labels)

    def misfits(self, table: Table) -> list[tuple[str, int, str]]:
        """Columns that do not fit: (column, first such row, the rule). For the operator only."""
        rules: dict[str, Any] = {**self.columns, self.target: self.labels}
        found = []
        for name, rule in rules.items():
            wrong = np.flatnonzero(rule.misfits(table[name]))
            if wrong.size:
                found.append((name, int(wrong[0]), rule.describe()))
        return found

    def of_part(self, records: int) -> "Domain":
        """The domain of a part with a public number of records."""
        return attrs.evolve(self, exact=records, limit=None)
