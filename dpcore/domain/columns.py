"""Columns: declared public facts about one feature column.

Nothing here is computed from records. What an entry counts as is the rule of `dpcore.domain.cell`,
from its own content only; `dpcore.encoding.columns` reads and encodes entries.
"""

import enum
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from numbers import Real
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import describe_type, is_finite, is_integer, need_field, unboxed
from dpcore.domain.cell import MISSING, day, key, letters, number
from dpcore.domain.moments import zone_named, zone_rules
from dpcore.errors import ParameterError, need

Category = str | int | float


BYTES = 6
"""Of a text, in one encoded column."""
LONGEST = 384
"""Bytes of a text: 64 columns, each below 1/8."""
_LIMIT = 1e150  # squares of such numbers, and many of them together, are finite
_DAYS = (-719162.0, 2932896.0)  # of the years 1 to 9999


class Holds(enum.Enum):
    """What a declared column holds."""

    NUMBERS = enum.auto()
    DATES = enum.auto()
    CATEGORIES = enum.auto()
    IDENTIFIERS = enum.auto()


@attrs.frozen
class Range:
    """A numeric column with public bounds.

    Args:
        low, high: Public ends between -1e150 and 1e150, low < high by at least 1e-150.
        default: Represents what is not a number; the middle of the range if None.
        missing: Whether what is not a number stays missing: a second encoded column is then 1 for
            such an entry, and its first is 0.
    """

    low: float = attrs.field(converter=unboxed)
    high: float = attrs.field(converter=unboxed)
    default: float | None = attrs.field(default=None, converter=unboxed)
    missing: bool = False

    _ends: ClassVar[str] = "finite numbers"

    def __attrs_post_init__(self) -> None:
        for name in ("low", "high", "default"):
            value = getattr(self, name)
            need(
                is_finite(value) or (value is None and name == "default"),
                "range",
                self._ends,
                name,
                value if isinstance(value, Real | str | None) else describe_type(value),
            )
        if not self.low < self.high:
            low, high = map(
                "{:.15g}".format if type(self) is Range else date_text, (self.low, self.high)
            )
            fault = (
                f"reversed; write [{high}, {low}]"
                if self.low > self.high
                else "empty; its ends must differ"
            )
            raise ParameterError(
                *("range", "low < high", "high", self.high),
                message=f"the range [{low}, {high}] is {fault}",
            )
        for condition, name, requirement in (
            # Encodings divide by the width, sensitivities grow with it, and squares of it are
            # summed.
            (
                max(-self.low, self.high) <= _LIMIT and self.high - self.low >= 1 / _LIMIT,
                "high",
                f"ends between -{_LIMIT} and {_LIMIT}, at least {1 / _LIMIT} apart "
                f"(state the column in another unit), low={self.low!r}",
            ),
            (
                not self.missing or self.default is None,
                "default",
                "a default or missing values, not both",
            ),
            (
                self.default is None or self.low <= self.default <= self.high,
                "default",
                "a default inside the range",
            ),
        ):
            need_field(condition, self, name, requirement, owner="range")

    def __repr__(self) -> str:
        further = {name: getattr(self, name, None) for name in ("missing", "zone", "offsets")}
        suffix = "".join(f", {name}={value!r}" for name, value in further.items() if value)
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
        """(low + high)/2, which represents a missing entry."""
        return self.low + self.half_width

    def clip(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Into [low, high]; NaN becomes the default."""
        default = self.centre if self.default is None else self.default
        return np.clip(np.where(np.isnan(values), default, values), self.low, self.high)

    def offset(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return numbers minus the centre of the labels. Shape (n,)."""
        # Clipped once more, since the subtraction rounds: the label bound holds in floats.
        return np.clip(self.clip(numbers) - self.centre, -self.half_width, self.half_width)

    def uncentred(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Labels or predictions of them in the file's units, clipped to the range. Shape (n,)."""
        return np.clip(labels + self.centre, self.low, self.high)

    def typical(self, labels: NDArray[np.float64]) -> float:
        """Return the label that a constant predictor says: the mean."""
        return float(np.mean(labels))

    def position(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map numbers to [-1, 1], from the low end to the high one. Shape (n,)."""
        # Clipped once more, since the quotient may round beyond [-1, 1].
        return np.clip(2 * (self.clip(numbers) - self.low) / (self.high - self.low) - 1, -1, 1)

    @property
    def end(self) -> float:
        """Where the range ends: `high`; of dates whose last one is a day, where that day ends."""
        return self.high

    def holds(self, counts: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return which numbers lie in the range. Shape (n,)."""
        return (counts >= self.low) & ((counts <= self.high) | (counts < self.end))

    def declared(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """Return what public values count as, such as edges and the ends of conditions. Shape
        (n,).
        """
        return np.array([number(value) for value in values], dtype=np.float64)

    def describe(self) -> str:
        """Describe the rule that an entry must meet."""
        return f"a number in [{self.low:g}, {self.high:g}]{self._or_missing}"

    @property
    def _or_missing(self) -> str:
        return ", or missing" if self.missing else ""


@attrs.frozen
class Dates(Range):
    """A column of dates between two public ones, encoded like a range of days.

    A last day holds all its moments. Each is encoded as that day's beginning, so that it counts as
    midnight in a mean, a quantile or a model; bins, periods and conditions have it in its day.

    Each moment counts by itself: one without an offset as it is, one with an offset in UTC or
    in a declared zone.

    Args:
        low, high: Days since 1970-01-01; `between` takes dates.
        default: Represents what is no date; the middle if None.
        zone: Where moments with an offset count, such as `Europe/Berlin`; UTC if None.
        offsets: Whether a moment must have an offset, or none; what is of the other kind is no
            date, and neither is a day without a time where an offset is required.
    """

    zone: str | None = None
    offsets: Literal["required", "none"] | None = None

    _ends: ClassVar[str] = "days since 1970-01-01 as numbers (Dates.between takes dates)"

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
        zone_named(self.zone)  # refuses one that is unknown
        need_field(
            self.offsets in (None, "required", "none")
            and not (self.zone is not None and self.offsets == "none"),
            self,
            "offsets",
            "'required' or 'none', and no zone where there are no offsets",
            owner="dates",
        )

    # attrs would generate another one for the subclass.
    __repr__ = Range.__repr__

    @classmethod
    def between(
        cls,
        low: date,
        high: date,
        default: date | None = None,
        missing: bool = False,
        zone: str | None = None,
        offsets: Literal["required", "none"] | None = None,
    ) -> "Dates":
        """Make the column of dates from the first to the last."""
        return cls(
            day(low), day(high), None if default is None else day(default), missing, zone, offsets
        )

    @property
    def end(self) -> float:
        """Where the last date ends: a day holds all its moments, and a moment is one."""
        return self.high + 1 if self.high % 1 == 0 else self.high

    def declared(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """Days that public dates are, whatever their offsets, or numbers of days. Shape (n,)."""
        zone = zone_named(self.zone)
        counts = [number(v) if isinstance(v, Real) else day(v, zone) for v in values]
        return np.array([c if _DAYS[0] <= c < _DAYS[1] + 1 else math.nan for c in counts])

    def premise(self, name: str) -> str:
        """Return how moments of a column of that name count on this machine, in words of a
        guarantee.
        """
        zone = self.zone and f"{self.zone} by the rules of {zone_rules(self.zone)}"
        place = zone or "UTC (00:30 at +02:00 on the first of a month is in the month before)"
        offset = "" if self.offsets == "none" else f"with an offset counts in {place}, and one "
        return (
            f"in column {name!r} a moment {offset}without an offset as it is; moments of the "
            f"last day count as its beginning in means, quantiles and models"
        )

    def describe(self) -> str:
        """Describe the rule that an entry must meet."""
        terms = f", offset: {self.offsets}" if self.offsets else ""
        return (
            f"a date in [{date_text(self.low)}, {date_text(self.high)}]{terms}"
            f"{f', zone: {self.zone}' if self.zone else ''}{self._or_missing}"
        )


def summary(values: Sequence[Any], limit: int = 8) -> str:
    """Return a list of values in words; of a long one the first and the last, and how many there
    are.
    """
    if len(words := [str(value) for value in values]) > limit:
        words = [*words[: limit - 2], "...", f"{words[-1]} ({len(words)} values)"]
    return ", ".join(words)


def date_text(days: float) -> str:
    """Days since 1970-01-01 as a reader knows them: a date, with its time of day if it has one."""
    return str(moment_of(days)).removesuffix(" 00:00:00")


def moment_of(days: float) -> datetime:
    """Return the moment that days since 1970-01-01 are."""
    return datetime(1970, 1, 1) + timedelta(days=days)


def _listed(values: Iterable[Category]) -> Any:
    """Values as a tuple; what is no list of any stays as it is, and a text is one value."""
    is_list = isinstance(values, Iterable) and not isinstance(values, str | bytes)
    return tuple(values) if is_list else values


def paired(spellings: Any) -> Any:
    """Return a mapping as pairs; anything else as it is."""
    return tuple(spellings.items()) if isinstance(spellings, Mapping) else spellings


def reading(rule: Any) -> Callable[[object], Hashable]:
    """Return what cells and values of categories or classes are compared by: `letters`, letter by
    letter, where they say so."""
    return letters if rule.as_text else key


@attrs.frozen
class Categories:
    """A column with a public list of values.

    Args:
        values: At least two different ones.
        default: Represents anything else; if None, an unknown value encodes to zeros.
        spellings: Further cells, and the value that each of them counts as: a mapping or pairs.
        as_text: Whether cells are compared letter by letter, so that `01234` is not `1234`; a whole
            number is its digits, and what is no text is no category. If not, numbers, truths
            and dates are equal however they are written.
    """

    values: tuple[Category, ...] = attrs.field(converter=_listed)
    default: Category | None = None
    spellings: tuple[tuple[Category, Category], ...] = attrs.field(
        default=(), converter=paired, repr=False
    )
    as_text: bool = attrs.field(default=False, repr=False)

    def __attrs_post_init__(self) -> None:
        key = reading(self)
        keys = [key(value) for value in self.values] if isinstance(self.values, tuple) else []
        # Values are compared as cells are: 1 and "1" are one category.
        is_listed = len(keys) >= 2 and MISSING not in keys
        differ_as_texts = is_listed and len({*map(letters, self.values)}) == len(keys)
        # A list that was taken from records by mistake is not shown.
        need(
            is_listed and len(set(keys)) == len(keys),
            "categories",
            "values that differ as numbers, dates or truths (01234 and 1234 are one number), or "
            "{categories: [...], as: text}, which compares them letter by letter"
            if differ_as_texts
            else "two or more different values in a list",
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

    def describe(self) -> str:
        """Describe the rule that an entry must meet."""
        listed = [f"{cell} as {value}" for cell, value in self.spellings]
        return f"one of {summary(self.values)}{f' ({summary(listed)})' if listed else ''}"


@attrs.frozen
class Texts:
    """A column of texts whose values are not public, such as diagnoses as they were typed.

    What is public is only how long a value may be. A text is its characters without blanks and tabs
    at the ends, a whole number its decimal digits whatever type it came in, a truth `true` or
    `false`, a fraction or decimal what Python writes of it (`dpcore.domain.cell.letters`). Nothing
    else is a text: no date, and no float beyond its type's exact whole numbers. It is encoded
    without loss, six bytes of UTF-8 a column.

    Args:
        longest: Bytes of a text in UTF-8 that are kept, 1 to 384; the rest is cut off.
    """

    longest: int

    def __attrs_post_init__(self) -> None:
        need(
            is_integer(self.longest) and self.longest <= LONGEST,
            "texts",
            f"1 to {LONGEST} bytes",
            "texts",
            self.longest,
        )

    @property
    def width(self) -> int:
        """The number of encoded columns: six bytes each, the last maybe fewer."""
        return -(-self.longest // BYTES)

    def describe(self) -> str:
        """Describe the rule that an entry must meet."""
        return f"a text of at most {self.longest} bytes, or missing"
