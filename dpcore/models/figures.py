"""Figures: what a release publishes that predicts nothing: tables of numbers with confidence
intervals.

A bar is a function of answers and public facts. It says what it covers, and what not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ContractError, need
from dpcore.shown import Shown, align, digits_within, number_cell

NOISE_ONLY = (
    "noise only: where the same number without noise lies. It does not include sampling error, "
    "values clipped to their declared range, or what is missing in the records"
)
"""What a bar covers, where a release does not say more."""

NOT_STATED = "not stated"
UNSTATED_NOISE = f"intervals are {NOT_STATED}: the mechanism does not say how wide its noise is"
"""What is in place of a bar, and of all intervals of a table, where the noise is of unknown law."""
NOISE = "noise"
"""The kind of an interval: where a number lies without the noise that was added to it."""

BY_DISTRIBUTION = "the law of the noise"
"""How an interval of that kind is found, where a release does not say more."""

POPULATION = "population"
"""The kind of an interval: where the number of the population lies that records were drawn from."""

BY_INVERSION = "all values that a test with the law of the noise and of sampling does not reject"
"""How an interval of that kind is found."""

NOTHING = "says nothing"
"""What is in place of an interval about the population that would be of any width."""

ESTIMATE, LOW, HIGH, DISPLAY = "estimate", "low", "high", "display"
_ENDS = {LOW: -1, HIGH: 1, f"{POPULATION}_{LOW}": -1, f"{POPULATION}_{HIGH}": 1}  # rounded outwards


@attrs.frozen(kw_only=True, eq=False)
class PopulationIntervals:
    """Intervals of the same numbers in the population that the records were drawn from.

    Args:
        low, high: Ends of each number's interval; infinite where it says nothing.
        level: The probability with which an interval holds, or with which all hold together.
        joint: Whether all intervals of the table hold together at that level.
        covers: What an interval includes and assumes, in words.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    level: float
    joint: bool = False
    covers: str


UNBIASED = "unbiased"
CUT = "0*"
"""What is printed for a number that cannot be negative, where its estimate is.

In the same way the largest possible number has a * where its estimate is larger.
"""


def _in_floats(numbers: Any) -> NDArray[np.float64]:
    return np.asarray(numbers, dtype=np.float64)


@attrs.frozen(kw_only=True, eq=False)
class Figures(Mapping[str, tuple[Any, ...]], Shown):
    """One published table: a mapping of its columns, each a tuple with one entry a row.

    Args:
        about: Columns that say what each number is about, all equally long.
        estimate: The released numbers, shape (rows,).
        low, high: Ends of each number's interval; infinite where nothing is known.
        level: The probability with which an interval holds, or with which all hold together.
        joint: Whether all intervals of the table hold together at that level.
        covers: What an interval includes, in words.
        display: The same numbers made consistent (no negative count, the known total), for readers
            only: they are biased, so that further estimates start from the unbiased numbers.
        population: Intervals that include sampling error too, where they were asked for.
        kind: What `low` and `high` are about: `noise`, `population` where that by itself is
            reported, or `test`, whose numbers have no intervals.
        unbiased: The estimates before negative ones became 0 in `estimate`; None where no number
            is cut.
        dates: Rows whose numbers are days since 1970-01-01, which are printed as dates.
    """

    about: Mapping[str, tuple[Any, ...]]
    # A declared end may be an integer, and a number that is cut there would be one, too.
    estimate: NDArray[np.float64] = attrs.field(converter=_in_floats)
    low: NDArray[np.float64] = attrs.field(converter=_in_floats)
    high: NDArray[np.float64] = attrs.field(converter=_in_floats)
    level: float
    joint: bool = False
    covers: str = NOISE_ONLY
    display: NDArray[np.float64] | None = None
    population: PopulationIntervals | None = None
    kind: str = NOISE
    unbiased: NDArray[np.float64] | None = None
    dates: tuple[int, ...] = ()

    def __attrs_post_init__(self) -> None:
        rows = {len(column) for column in self._entries.values()}
        need(len(rows) == 1, ContractError, "the columns of a published table must be equally long")

    @property
    def _entries(self) -> dict[str, Any]:
        """All columns as they came, by name and in order."""
        entries = {**self.about, ESTIMATE: self.estimate, LOW: self.low, HIGH: self.high}
        if (population := self.population) is not None:
            low, high = list(_ENDS)[2:]
            entries |= {low: population.low, high: population.high}
        further = {DISPLAY: self.display, UNBIASED: self.unbiased}
        return entries | {name: item for name, item in further.items() if item is not None}

    @property
    def columns(self) -> dict[str, tuple[Any, ...]]:
        """All columns, by name and in order."""
        return {name: tuple(map(_plain, column)) for name, column in self._entries.items()}

    def __getitem__(self, name: str) -> tuple[Any, ...]:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __repr__(self) -> str:
        return f"Figures({self.estimate.size} rows: {', '.join(self.columns)})"

    def __str__(self) -> str:
        """Return the table as text, with what its intervals say."""
        lines = align([(*self.columns,), *self.printed_rows()])
        return "\n".join([*lines, f"({self.interval_sentence})"])

    def rows(self) -> list[tuple[Any, ...]]:
        """Return the table's rows, in order."""
        return list(zip(*self.columns.values(), strict=True))

    @property
    def stated(self) -> bool:
        """Whether the intervals are stated: not where the distribution of the noise is unknown."""
        return not self.covers.startswith(UNSTATED_NOISE)

    def unstated(self) -> Figures:
        """Return the same numbers without intervals, for noise whose law the mechanism does not
        state.
        """
        nothing = np.full(self.estimate.shape, math.inf)
        return attrs.evolve(
            self, low=-nothing, high=nothing, covers=UNSTATED_NOISE, population=None
        )

    def of_population(self) -> Figures:
        """Return the same numbers, with the intervals of the population only where there are
        some.
        """
        if (intervals := self.population) is None:
            return self
        fields = {
            name: getattr(intervals, name) for name in ("low", "high", "level", "joint", "covers")
        }
        return attrs.evolve(self, **fields, population=None, kind=POPULATION)

    def printed_rows(self, digits: int = 4) -> list[tuple[str, ...]]:
        """Return the rows as texts, numbers by so many digits or as many as their intervals allow,
        and whole ones in full.

        Ends of intervals are rounded outwards, so that an interval as it is printed covers no less.
        Where nothing is known of a number's interval, it says so.
        """
        columns = self.columns
        precise = [
            digits_within(*ends, digits) for ends in zip(columns[LOW], columns[HIGH], strict=True)
        ]
        # By both ends: one that is infinite by itself is an end, and none is given where both are.
        unknown = {
            f"{kind}{name}": [
                pair == (-math.inf, math.inf)
                for pair in zip(columns[f"{kind}{LOW}"], columns[f"{kind}{HIGH}"], strict=True)
            ]
            for kind in ("", f"{POPULATION}_")
            for name in (LOW, HIGH)
            if f"{kind}{name}" in columns
        }
        texts = {
            name: [
                str(value) if isinstance(value, str | bool)
                else nothing if name in unknown and unknown[name][row]
                else _date_cell(value, _ENDS.get(name, 0), float(self.high[row] - self.low[row]))
                if row in self.dates and name not in self.about and math.isfinite(value)
                else number_cell(value, _ENDS.get(name, 0), precise[row])
                for row, value in enumerate(column)
            ]
            for name, column in columns.items()
            for nothing in (
                NOT_STATED if name in (LOW, HIGH) and self.kind != POPULATION else NOTHING,
            )
        }  # fmt: skip
        # The first number of a row is one that can be: the other one is at its end.
        if self.unbiased is not None:
            rows = zip(texts[ESTIMATE], texts[HIGH], self.unbiased < 0, self.capped, strict=True)
            texts[ESTIMATE] = [
                CUT if is_cut else f"{high}*" if is_capped else text
                for text, high, is_cut, is_capped in rows
            ]
        return list(zip(*texts.values(), strict=True))

    @property
    def capped(self) -> NDArray[np.bool_]:
        """Which numbers are larger than possible: their intervals were cut below them. Shape
        (rows,).
        """
        # An interval about the population may end elsewhere, and says nothing of these records.
        is_cut = self.unbiased is not None and self.kind == NOISE
        return (self.estimate > self.high) & is_cut

    def to_pandas(self) -> Any:
        """Convert to a data frame; needs pandas."""
        import pandas  # type: ignore[import-untyped]  # an extra of the reader's

        return pandas.DataFrame(self.columns)

    def to_arrow(self) -> Any:
        """Convert to an Arrow table; needs pyarrow."""
        import pyarrow  # type: ignore[import-not-found,unused-ignore]  # an extra of the reader's

        return pyarrow.table({name: list(column) for name, column in self.columns.items()})

    def data(self) -> dict[str, Any]:
        """JSON-ready, by the keys of format 3; an interval without an end has null there."""
        # JSON has no infinity: an end that is not known is null.
        columns = {
            name: [None if isinstance(v, float) and not math.isfinite(v) else v for v in column]
            for name, column in self.columns.items()
        }
        # A list: a number may have intervals of several kinds, each between columns of its own.
        names = list(_ENDS)
        intervals = [
            {
                "kind": kind,
                "of": ESTIMATE,
                "between": ends,
                "level": population_intervals.level if self.stated else None,
                "together": population_intervals.joint,
                "method": BY_DISTRIBUTION if kind == NOISE else BY_INVERSION,
                "covers": population_intervals.covers,
            }
            for kind, ends, population_intervals in (
                (self.kind, names[:2], self),
                (POPULATION, names[2:], self.population),
            )
            if population_intervals is not None
        ]
        return {"columns": columns, "intervals": intervals}

    def settled(self) -> Figures:
        """Return a copy that shares nothing with this one, and is made of plain values only."""
        display, unbiased, intervals = self.display, self.unbiased, self.population
        return Figures(
            about={str(name): tuple(map(_simple, cells)) for name, cells in self.about.items()},
            estimate=np.array(self.estimate, dtype=np.float64),
            low=np.array(self.low, dtype=np.float64),
            high=np.array(self.high, dtype=np.float64),
            level=float(self.level),
            joint=bool(self.joint),
            # A plain str, whatever subclass of it a plugin may have published.
            covers="".join(self.covers),
            display=None if display is None else np.array(display, dtype=np.float64),
            population=None
            if intervals is None
            else PopulationIntervals(
                low=np.array(intervals.low, dtype=np.float64),
                high=np.array(intervals.high, dtype=np.float64),
                level=float(intervals.level),
                joint=bool(intervals.joint),
                covers="".join(intervals.covers),
            ),
            kind="".join(self.kind),
            unbiased=None if unbiased is None else np.array(unbiased, dtype=np.float64),
            dates=tuple(map(int, self.dates)),
        )

    @property
    def interval_sentence(self) -> str:
        """What the intervals say, in one clause."""
        if not self.stated:
            return self.covers
        # Where no number has an interval, no level holds.
        if self.estimate.size and np.isneginf(self.low).all() and np.isposinf(self.high).all():
            # Numbers without an interval say why.
            return f"intervals are {NOT_STATED}; {self.covers}"
        is_cut = self.unbiased is not None and bool((self.unbiased < 0).any())
        cut = f"; {CUT}: its unbiased estimate is below 0" if is_cut else ""
        if self.capped.any():
            cut += "; * after a number: its unbiased estimate is larger than can be"
        intervals = f"{_describe_intervals_of(self, self.estimate.size)}{cut}"
        if self.population is None:
            return intervals
        # Two kinds of intervals: each says which columns it is in.
        wider = _describe_intervals_of(self.population, self.estimate.size)
        low, high = list(_ENDS)[2:]
        return f"{LOW} to {HIGH}: {intervals}. {low} to {high}: {wider}"


@attrs.frozen(kw_only=True, eq=False)
class Statistics(Shown):
    """What a release of statistics publishes: one table, or several by name.

    Args:
        tables: By name; the name is empty where there is one.
    """

    tables: Mapping[str, Figures]
    __str__ = Shown.text

    def __attrs_post_init__(self) -> None:
        need(
            self.tables and all(re.fullmatch("[A-Za-z0-9_-]*", name) for name in self.tables),
            ContractError,
            "published tables need names of letters, digits, _ and -",
        )

    @classmethod
    def of(cls, figures: Figures) -> Statistics:
        """Statistics of a single table, which needs no name."""
        return cls(tables={"": figures})

    def settled(self) -> Statistics:
        """Return a copy that shares nothing with this one, and is made of plain values only."""
        return Statistics(
            tables={str(name): Figures.settled(table) for name, table in self.tables.items()}
        )

    def unstated(self) -> Statistics:
        """Return the same numbers without intervals, as `Figures.unstated` has it."""
        return Statistics(
            tables={name: figures.unstated() for name, figures in self.tables.items()}
        )

    def of_population(self) -> Statistics:
        """Return the same numbers, with intervals as `Figures.of_population` has them."""
        return Statistics(
            tables={name: figures.of_population() for name, figures in self.tables.items()}
        )

    def covering(self, clause: str) -> Statistics:
        """Return the same numbers, with one more clause about what every interval covers."""
        tables = {
            name: attrs.evolve(
                figures,
                covers=f"{figures.covers}; {clause}",
                population=figures.population
                and attrs.evolve(
                    figures.population, covers=f"{figures.population.covers}; {clause}"
                ),
            )
            for name, figures in self.tables.items()
        }
        return Statistics(tables=tables)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return all numbers, by table and column, and the keys as texts."""
        named_arrays: dict[str, NDArray[Any]] = {}
        for name, figures in self.tables.items():
            for column, values in figures.columns.items():
                # Keys may be texts: such a column is saved as texts, never as pickled objects.
                numeric = all(isinstance(value, int | float) for value in values)
                kind = np.float64 if numeric else np.str_
                named_arrays[f"{name}.{column}".lstrip(".")] = np.array(values, dtype=kind)
        return named_arrays


def _describe_intervals_of(intervals: Figures | PopulationIntervals, rows: int) -> str:
    """Return the level of intervals, and what they cover."""
    together = ", all together" if intervals.joint and rows > 1 else ""
    return f"{100 * intervals.level:g} % intervals{together}; {intervals.covers}"


def _date_cell(value: float, direction: int, width: float) -> str:
    """Days since 1970-01-01 as a date, with its time where an interval is less than 3 days wide.

    Args:
        direction: 1 for a high end, which is rounded up; all others are rounded down.
    """
    minutes, length = (1, len("2020-01-31 12:00")) if width < 3 else (1440, len("2020-01-31"))
    steps = (math.ceil if direction > 0 else math.floor)(value * 1440 / minutes)
    return str(datetime(1970, 1, 1) + timedelta(minutes=steps * minutes))[:length]


def _simple(value: Any) -> bool | int | float | str:
    """Return a truth value, a number or a text of Python's own types, whatever a class derived from
    it.
    """
    for kind in (bool, int, float):
        if isinstance(value, kind):
            return kind(value)
    return "".join(value) if isinstance(value, str) else _simple(value.item())


def _plain(value: Any) -> Any:
    """Return a number or a text of Python's own; no negative zero."""
    if isinstance(value, np.generic):
        value = value.item()
    # -0.0 + 0.0 is 0.0.
    return value + 0.0 if isinstance(value, float) else value
