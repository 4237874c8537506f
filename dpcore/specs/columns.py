"""`columns`: one column of a spec, from located YAML to the rule of its cells and how it is made.

`categories_from: FILE` becomes `categories: [...]` before a spec is read on. So a
lock holds the list itself, and replaying a run needs no file next to it.
"""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import attrs

from dpcore.domain.bins import Binned
from dpcore.domain.cell import day
from dpcore.domain.columns import Categories, Dates, Range, Texts
from dpcore.domain.conditions import Condition, range_of
from dpcore.domain.derived import (
    COPY,
    DAYS_BETWEEN,
    DIFFERENCE,
    MISSING,
    MONTH,
    MONTHS,
    RATIO,
    TRUTHS,
    WEEKDAY,
    WEEKDAYS,
    YEAR,
    Derived,
    Operation,
)
from dpcore.domain.domain import Column
from dpcore.domain.moments import zone_named
from dpcore.errors import SpecError, below, map_below, need, shown
from dpcore.specs.column_grammar import (
    Between,
    CategoriesColumn,
    DatesColumn,
    ListedColumn,
    RangeColumn,
    TextsColumn,
)
from dpcore.yaml.conversion import convert
from dpcore.yaml.located import LARGEST_FILE, MOST_LISTED, MOST_NODES, Node, open_regular

_OPERATIONS: Mapping[str, Operation] = {
    "of": COPY,
    "difference": DIFFERENCE,
    "ratio": RATIO,
    "days_between": DAYS_BETWEEN,
    "year_of": YEAR,
    "month_of": MONTH,
    "weekday_of": WEEKDAY,
    "missing_in": MISSING,
}
_CALENDAR: Mapping[str, Callable[[Dates], Binned]] = {
    "week": Binned.by_week,
    "month": Binned.by_month,
    "year": Binned.by_year,
}
_LISTED: Mapping[str, tuple[str, ...]] = {
    "weekday_of": WEEKDAYS,
    "month_of": MONTHS,
    "missing_in": TRUTHS,
}


def declared_column(node: Node) -> Column:
    """Return what the cells of one column must hold, once they are made.

    Raises:
        SpecError: it has none of the forms, or ends, edges or values that are impossible.
    """
    value = node.value
    # The key decides the form, so an error names that form's keys and not all forms at once.
    if isinstance(value, dict) and "categories" in value:
        return _categories(convert(node, CategoriesColumn))
    if isinstance(value, dict) and "texts" in value:
        return Texts(convert(node, TextsColumn).texts)
    if isinstance(value, dict) and "dates" in value:
        dates_text = convert(node, DatesColumn)
        return _binned(_dates(dates_text), dates_text.bins)
    if isinstance(value, dict):
        if listed := [values for name, values in _LISTED.items() if name in value]:
            convert(node, ListedColumn)
            return Categories(listed[0])
        range_text = convert(node, RangeColumn)
        numbers = Range(*range_text.range, range_text.default, range_text.missing)
        return _binned(numbers, range_text.bins)
    if isinstance(value, list):
        texts = [_text(entry.value) for entry in value if isinstance(entry.value, str | bool)]
        ends = [
            entry.value
            for entry in value
            if isinstance(entry.value, int | float) and not isinstance(entry.value, bool)
        ]
        # A list is short for categories if it holds texts and truths only, and for a range if it
        # holds two numbers; a bool is no number here although Python says so.
        if value and len(texts) == len(value):
            return Categories(tuple(texts))
        if len(ends) == len(value) == 2:
            return Range(ends[0], ends[1])
    raise SpecError(
        "this declares no column; write numbers as [low, high], words as a list of texts, truths "
        "as [false, true], dates as {dates: [first, last]}; or write {range: [low, high]}, "
        "{categories: [...]}, {categories_from: FILE} or {texts: BYTES}"
    )


def derivation(node: Node) -> Derived | None:
    """Return how a column is made of others; None where it is in the file under its own name.

    Raises:
        SpecError: it says so in two ways.
    """
    keys = [key for key in _OPERATIONS if isinstance(node.value, dict) and key in node.value]
    if not keys:
        return None
    need(len(keys) == 1, SpecError, f"needs one of {', '.join(keys)}, not two", key=keys[-1])
    inputs = node.mapping[keys[0]].plain()
    return Derived(_OPERATIONS[keys[0]], tuple([inputs] if isinstance(inputs, str) else inputs))


def condition(node: Node, rule: Any) -> Condition:
    """Return what a cell of a declared column must be so that its row counts.

    Args:
        rule: Of the column.

    Raises:
        SpecError: it has none of the forms.
    """
    need(
        node.value not in ([], {}),
        SpecError,
        "the condition is empty; write present, a list of categories, or {from: LOW, below: HIGH}",
    )
    if node.value == "present":
        return Condition()
    if isinstance(node.value, list):
        return Condition(values=tuple(_text(entry.value) for entry in node.value))
    text = convert(node, Between)
    dates, ends = range_of(rule), [text.low, text.below]
    if isinstance(dates, Dates):
        ends = [None if end is None else float(dates.declared([end])[0]) for end in ends]
    low, high = ends
    return Condition(cast(Any, low), cast(Any, high))


def _text(value: Any) -> Any:
    """Return a truth as its text; any other value as it is."""
    return TRUTHS[value] if isinstance(value, bool) else value


def _categories(text: CategoriesColumn) -> Categories:
    spellings = {cell: _text(value) for cell, value in text.map.items()}
    values, default = tuple(map(_text, text.categories)), _text(text.default)
    # YAML has read 01234 as 1234 where it is without quotes.
    need(
        text.as_ is None or all(isinstance(v, str) for v in (*values, *text.map.values())),
        SpecError,
        'as: text needs texts in quotes, such as "01234": without them YAML reads a number',
        "categories",
    )
    return Categories(values, default, spellings, text.as_ == "text")


def _binned(numbers: Range, bins: Any) -> Range | Binned:
    """Return a range as it is, or in bins."""
    if bins is None:
        return numbers
    with below("bins"):
        by_calendar = _CALENDAR.get(bins) if isinstance(bins, str) else None
        if by_calendar is not None and isinstance(numbers, Dates):
            return by_calendar(numbers)
        return Binned.between(numbers, bins)


def _dates(text: DatesColumn) -> Dates:
    """Raises SpecError at an end that is no date."""
    zone = zone_named(text.zone)
    ends = [day(end, zone) for end in text.dates]
    for number, end in enumerate(ends):
        need(
            not math.isnan(end),
            SpecError,
            f"{shown(text.dates[number])} is not a date; dates look like 2020-01-31",
            ("dates", str(number)),
        )
    # Dates are days as numbers, so they compare and scale like the ends of a range.
    listed = f"[{', '.join(text.dates)}]"
    way = f"are reversed; write [{', '.join(text.dates[::-1])}]"
    way = "are the same day; they must differ" if ends[0] == ends[1] else way
    need(ends[0] < ends[1], SpecError, f"the dates {listed} {way}", "dates")
    default = None if text.default is None else day(text.default, zone)
    need(
        default is None or ends[0] <= default <= ends[1],
        SpecError,
        "needs a date between the two",
        "default",
    )
    return Dates(ends[0], ends[1], default, text.missing, text.zone, text.offset)


_KEY = "categories_from"


def with_lists(node: Node, folder: Path | None) -> Node:
    """Return the spec at `node` with the lists of its category files, which stand relative to
    `folder`.

    A file holds one category a line, in UTF-8; empty lines are left out.

    Raises:
        SpecError: a file is missing, too large or no text, or they list too many in all.
    """
    return _Reader(folder).with_columns_read(node, ("data", "domain"))


@attrs.define
class _Reader:
    """Where the files stand, and how many categories may still come."""

    folder: Path | None
    remaining: int = MOST_LISTED - MOST_NODES

    def with_columns_read(self, node: Node, path: tuple[str, ...]) -> Node:
        """`node` with the columns and the target below `path` read; what is no mapping stays."""
        if not isinstance(node.value, dict):
            return node
        value = dict(node.value)
        for key in path[:1]:
            if key in value:
                with below(key):
                    value[key] = self.with_columns_read(value[key], path[1:])
        # An empty path is the domain itself: the target first, then columns and groups.
        if not path and "target" in value:
            with below("target"):
                value["target"] = self.with_categories(value["target"])
        for part in () if path else ("columns", "groups"):
            if (columns := value.get(part)) is None or not isinstance(columns.value, dict):
                continue
            columns_read = map_below(self.with_categories, columns.value.items(), part)
            value[part] = attrs.evolve(columns, value=columns_read)
        return attrs.evolve(node, value=value)

    def with_categories(self, column: Node) -> Node:
        """`column` with its list, if it names a file."""
        if not isinstance(column.value, dict) or _KEY not in column.value:
            return column
        node = column.value[_KEY]
        name = node.value
        if not isinstance(name, str) or "categories" in column.value:
            raise SpecError("needs the path of a file, and no 'categories' next to it", _KEY)
        texts = _lines(Path(name) if self.folder is None else self.folder / name, name)
        # The limit is on all files together: a lock holds their lists, and must itself be readable.
        self.remaining -= len(texts)
        if self.remaining < 0:
            raise SpecError(f"more than {MOST_LISTED - MOST_NODES} categories in all", _KEY)
        entries: list[Node] = [attrs.evolve(node, value=text) for text in texts]
        fields = {key: value for key, value in column.value.items() if key != _KEY}
        keys = {**column.keys, "categories": (node.line, node.column)}
        return attrs.evolve(
            column, value={**fields, "categories": attrs.evolve(node, value=entries)}, keys=keys
        )


def _lines(path: Path, name: str) -> list[str]:
    """Return the lines of a file that are not empty.

    Raises:
        SpecError: it is no regular file of UTF-8 text, or too large.
    """
    try:
        with open_regular(path) as file:
            # One byte more than allowed says a file that is too large without reading all of it.
            raw = file.read(LARGEST_FILE + 1)
        texts = [line.strip(" \t") for line in raw.decode("utf-8-sig").splitlines()]
    except OSError as error:
        raise SpecError(f"{shown(name)}: {error.strerror}", _KEY) from None
    except ValueError:
        raise SpecError(f"{shown(name)}: not a file of UTF-8 text", _KEY) from None
    need(
        len(raw) <= LARGEST_FILE, SpecError, f"{shown(name)}: more than {LARGEST_FILE} bytes", _KEY
    )
    return [text for text in texts if text]
