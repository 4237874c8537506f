"""Columns: one declared column of the records, read back from what the domain made of it.

Everything here is row by row, from public facts and that row alone: what a record contributes to a
statistic depends on no other record.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Categories, Classes, Domain, Range, Records
from dpcore.domain.columns import Category, summary
from dpcore.errors import ParameterError, near, need
from dpcore.learning.learners.tallies import Cut

Condition = Mapping[str, Any] | Sequence[Any] | str | int | float
"""What a record must meet in one column: values, or `{from: low, below: high}`."""

MOST_CELLS = 1 << 16


@attrs.frozen(kw_only=True)
class NumberColumn:
    """A range, as positions in [-1, 1]: -1 is its low end and 1 its high end.

    Args:
        start: Its first encoded column; None for the target.
    """

    name: str
    column: Range
    start: int | None

    @property
    def may_miss(self) -> bool:
        """Whether some records may have no number."""
        return self.start is not None and self.column.missing

    def present(self, records: Records) -> NDArray[np.bool_]:
        """Which records have a number. Shape (n,)."""
        if self.start is None or not self.column.missing:
            return np.ones(len(records), dtype=np.bool_)
        return records.columns(self.start + 1, self.start + 2)[:, 0] < 0.5

    def scaled(self, records: Records) -> NDArray[np.float64]:
        """Positions, shape (n,); 0 where there is no number."""
        # Labels are centred numbers, features are scaled already; both are clipped once more.
        if self.start is None:
            return np.clip(records.labels / self.column.half_width, -1.0, 1.0)
        return np.clip(records.columns(self.start, self.start + 1)[:, 0], -1.0, 1.0)

    def position(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """Where values of the file's units stand, by the records' own arithmetic: it never falls.

        Raises:
            ParameterError: one is no number of the column's range.
        """
        # The same arithmetic as for records: an edge that is a value falls exactly on it.
        numbers = self.column.numbers(list(values))
        for value, number in zip(values, numbers.tolist(), strict=True):
            if not self.column.low <= number <= self.column.high:
                raise ParameterError(self.name, self.column.describe(), "value", value)
        if self.start is None:
            return np.clip(self.column.centred(list(values)) / self.column.half_width, -1, 1)
        return self.column.encode(list(values))[:, 0]

    def value(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """The numbers at positions, in the file's units (dates: days since 1970-01-01)."""
        return self.column.centre + self.column.half_width * np.asarray(positions)

    def told(self, number: float) -> str:
        """A number as a reader knows it: dates as dates."""
        (cell_text,) = self.column.written(np.array([number]))
        if isinstance(cell_text, str):
            return cell_text.removesuffix(" 00:00:00")
        return f"{float(cell_text):g}"


@attrs.frozen(kw_only=True)
class CategoryColumn:
    """A public list of values, as codes.

    Args:
        start: Its first encoded column; None for the target.
    """

    name: str
    values: tuple[Category, ...]
    start: int | None
    complete: bool

    def codes(self, records: Records) -> NDArray[np.intp]:
        """Index of every record's value, -1 for an unknown one. Shape (n,)."""
        if self.start is None:
            if len(self.values) > 2:
                return records.labels.astype(np.intp)
            column = records.labels
        else:
            # One column a value; a row of zeros is an unknown value.
            if len(self.values) > 2:
                wide = records.columns(self.start, self.start + len(self.values))
                return np.where(wide.max(axis=1) > 0.5, wide.argmax(axis=1), -1)
            column = records.columns(self.start, self.start + 1)[:, 0]
        # 0 is unknown, -1 the first value and 1 the second.
        return np.where(column == 0, -1, column > 0).astype(np.intp)


DeclaredColumn = NumberColumn | CategoryColumn


def declared(domain: Domain, name: str) -> DeclaredColumn:
    """A column of the domain, or its target.

    Raises:
        ParameterError: there is none of that name, or rows are scaled to a norm.
    """
    # Scaling mixes a row's columns: no column could be read back alone.
    if domain.norm is not None:
        raise ParameterError(
            "statistics", "columns as they are (leave out data.domain.norm)", "norm", domain.norm
        )
    need(isinstance(name, str), "statistics", "one column's name", "column", name)
    if domain.labelled and name == domain.target:
        labels = domain.labels
        if isinstance(labels, Classes):
            complete = labels.default is not None
            return CategoryColumn(name=name, values=labels.values, start=None, complete=complete)
        return NumberColumn(name=name, column=labels, start=None)
    start = 0
    for column_name, column in domain.columns.items():
        if column_name == name and isinstance(column, Categories):
            complete = column.default is not None
            return CategoryColumn(name=name, values=column.values, start=start, complete=complete)
        if column_name == name and isinstance(column, Range):
            return NumberColumn(name=name, column=column, start=start)
        start += column.width
    usable = Categories | Range | Classes  # nobody listed the texts of a column of texts
    listed = ", ".join(name for name, rule in domain.rules.items() if isinstance(rule, usable))
    raise ParameterError(
        "statistics", f"a declared column ({listed})", "column", name,
        message=f"needs a declared column ({listed}), got {name!r}{near(name, listed.split(', '))}",
    )  # fmt: skip


def number_column(domain: Domain, name: str) -> NumberColumn:
    """A column of numbers or dates.

    Raises:
        ParameterError: it is none.
    """
    column = declared(domain, name)
    if not isinstance(column, NumberColumn):
        ranges = [n for n, rule in domain.rules.items() if isinstance(rule, Range)]
        needed = f"a column with a range ({', '.join(ranges) or 'none is declared'})"
        raise ParameterError("statistics", needed, "column", name)
    return column


def require_conditions(domain: Domain, where: Mapping[str, Condition]) -> None:
    """Raise `ParameterError` where a condition is none that the domain knows."""
    # Selecting from no records runs every check, and reads nothing.
    no_features = np.zeros((0, domain.width))
    selected(domain, where, Records(features=no_features, labels=np.zeros(0)))


def selected(domain: Domain, where: Mapping[str, Condition], records: Records) -> NDArray[np.bool_]:
    """Which records meet every condition. Shape (n,).

    Raises:
        ParameterError: a condition is about no declared column, or about values it cannot hold.
    """
    mask = np.ones(len(records), dtype=np.bool_)
    if not isinstance(where, Mapping):
        raise ParameterError("a condition", "columns with what they must meet", "where", where)
    for name, condition in where.items():
        mask &= _meets(declared(domain, name), condition, records)
    return mask


def conditions(
    domain: Domain, where: Mapping[str, Condition]
) -> tuple[tuple[Cut, tuple[int, ...]], ...]:
    """The same conditions as cells that a record must be in, by declared column."""
    cells: list[tuple[Cut, tuple[int, ...]]] = []
    for name, condition in where.items():
        column = declared(domain, name)
        if isinstance(column, CategoryColumn):
            values = [condition] if isinstance(condition, str | int | float) else condition
            codes = tuple(column.values.index(value) for value in values)
            cells.append((Cut(column=name, size=len(column.values)), codes))
            continue
        assert isinstance(condition, Mapping), "`_meets` has looked at it"
        # A cell ends below its upper edge: what lies above is in a cell of its own.
        ends = {key: float(column.position([end])[0]) for key, end in condition.items()}
        below = (ends["below"],) if "below" in ends else ()
        edges = (ends.get("from", -math.inf), *below, math.inf)
        cells.append((Cut(column=name, size=len(edges) - 1, edges=edges), (0,)))
    return tuple(cells)


def _meets(column: DeclaredColumn, condition: Condition, records: Records) -> NDArray[np.bool_]:
    if isinstance(column, CategoryColumn):
        # A value that is not declared would select nothing in silence.
        listed = [condition] if isinstance(condition, str | int | float) else list(condition)
        unknown = [value for value in listed if value not in column.values]
        if unknown or not listed or len({*listed}) < len(listed):
            raise ParameterError(
                column.name,
                f"different declared categories ({summary(column.values)})",
                "where",
                unknown or listed,
            )
        codes = np.array([column.values.index(value) for value in listed])
        return np.isin(column.codes(records), codes)
    if not isinstance(condition, Mapping) or not condition or {*condition} - {"from", "below"}:
        raise ParameterError(
            column.name, "{from: NUMBER, below: NUMBER}, one of both or both", "where", condition
        )
    positions, mask = column.scaled(records), column.present(records)
    if "from" in condition:
        mask = mask & (positions >= column.position([condition["from"]])[0])
    if "below" in condition:
        mask = mask & (positions < column.position([condition["below"]])[0])
    if "from" in condition and "below" in condition:
        # Compared as positions: two numbers may differ and yet be encoded alike.
        low, high = column.position([condition["from"], condition["below"]])
        if not low < high:
            raise ParameterError(column.name, "from < below", "where", dict(condition))
    return mask


@attrs.frozen(kw_only=True, eq=False)
class Cells:
    """A column cut into cells that do not overlap, by public edges or categories.

    Args:
        edges: Positions of a range's edges; None for categories.
        labels: One a cell.
    """

    column: NumberColumn | CategoryColumn
    edges: NDArray[np.float64] | None
    labels: tuple[Any, ...]

    @classmethod
    def of(
        cls, domain: Domain, name: str, edges: tuple[Any, ...] | None, bins: int | None
    ) -> Cells:
        """The cells of a column: between edges, in equal parts, or one for each category.

        Raises:
            ParameterError: edges do not increase strictly or leave the range, or categories have
                edges.
        """
        column = declared(domain, name)
        if isinstance(column, CategoryColumn):
            # Categories are cells as they are; edges would be dropped in silence.
            if edges is not None or bins is not None:
                raise ParameterError(
                    name, "neither edges nor bins: it has categories", "edges", edges
                )
            return cls(column=column, edges=None, labels=column.values)
        if (edges is None) == (bins is None):
            raise ParameterError(name, "either edges or a number of bins", "edges", edges)
        if bins is not None:
            if isinstance(bins, bool) or not isinstance(bins, int) or not 1 <= bins <= MOST_CELLS:
                raise ParameterError(name, f"1 to {MOST_CELLS} bins", "bins", bins)
            ends = np.linspace(column.column.low, column.column.high, bins + 1)
            texts = tuple(column.told(float(end)) for end in ends)
            places = np.linspace(-1.0, 1.0, bins + 1)
        else:
            assert edges is not None, "one of both is given"
            # By the records' own arithmetic, so that a value on an edge falls where its edge does.
            places = column.position(edges)
            texts = tuple(column.told(float(end)) for end in column.column.numbers(list(edges)))
        if len(places) < 2 or not bool((np.diff(places) > 0).all()):
            raise ParameterError(
                name, "two or more edges, each above the one before", "edges", edges
            )
        labels = [f"[{low}, {high})" for low, high in itertools.pairwise(texts)]
        # The last cell is closed, so that the end of the range is in one.
        labels[-1] = f"{labels[-1][:-1]}]"
        return cls(column=column, edges=places, labels=tuple(labels))

    @property
    def partition(self) -> bool:
        """Whether every record of the domain is in one of the cells."""
        if isinstance(self.column, CategoryColumn):
            return self.column.complete
        assert self.edges is not None, "a range has edges"
        # Exactly the ends of the range, and no missing values: nothing else falls outside.
        return not self.column.may_miss and [*self.edges[[0, -1]]] == [-1.0, 1.0]

    @property
    def cut(self) -> Cut:
        """The same cells, as a server cuts them."""
        edges = None if self.edges is None else tuple(self.edges.tolist())
        return Cut(column=self.column.name, size=len(self.labels), edges=edges)

    def index(self, records: Records) -> NDArray[np.intp]:
        """The cell of every record, -1 where it is in none. Shape (n,)."""
        if isinstance(self.column, CategoryColumn):
            return self.column.codes(records)
        assert self.edges is not None, "a range has edges"
        positions = self.column.scaled(records)
        # "right" less 1: a value on an edge belongs to the cell above it.
        cells = np.searchsorted(self.edges, positions, side="right") - 1
        cells = np.where(positions == self.edges[-1], len(self.labels) - 1, cells)
        inside = self.column.present(records) & (cells >= 0) & (cells < len(self.labels))
        return np.where(inside, cells, -1)


def one_hot(cells: NDArray[np.intp], count: int) -> NDArray[np.float64]:
    """Indicators, shape (n, count); zeros for -1."""
    indicators = np.zeros((cells.size, count))
    rows = np.flatnonzero(cells >= 0)
    indicators[rows, cells[rows]] = 1.0
    return indicators


@attrs.frozen(kw_only=True, eq=False)
class Marginal:
    """One table: the product of the cells of its columns.

    Args:
        weight: Of its counts among all that are released together.
    """

    name: str
    columns: tuple[Cells, ...]
    weight: float = 1.0

    @property
    def size(self) -> int:
        """How many cells the table has: the product over its columns."""
        return math.prod(len(cells.labels) for cells in self.columns)

    @property
    def cuts(self) -> tuple[Cut, ...]:
        """The cells of its columns, as a server cuts them."""
        return tuple(cells.cut for cells in self.columns)

    @property
    def about(self) -> dict[str, tuple[Any, ...]]:
        """Labels of its cells, by column."""
        rows = list(itertools.product(*(cells.labels for cells in self.columns)))
        names = [cells.column.name for cells in self.columns]
        return dict(zip(names, zip(*rows, strict=True), strict=True))

    def index(self, records: Records) -> NDArray[np.intp]:
        """The cell of every record, -1 where it is in none. Shape (n,)."""
        # Mixed radix, the last column fastest: the order of `itertools.product` in `about`.
        places = np.zeros(len(records), dtype=np.intp)
        mask = np.ones(len(records), dtype=np.bool_)
        for cells in self.columns:
            cell = cells.index(records)
            mask &= cell >= 0
            places = places * len(cells.labels) + cell
        return np.where(mask, places, -1)
