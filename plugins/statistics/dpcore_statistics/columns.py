"""Columns: one declared column of the records, read back from what the domain made of it.

Everything here is row by row, from public facts and that row only: what a record contributes to a
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

from dpcore import Categories, Domain, Range, Records
from dpcore.checks import is_integer
from dpcore.domain import Classes
from dpcore.domain.bins import equal_edges
from dpcore.domain.columns import Category, Dates, date_text, summary
from dpcore.encoding.columns import cells_of
from dpcore.errors import ParameterError, near, need, shown
from dpcore.learner import AnyLearner
from dpcore.summing import Cut

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
        """Mark the records that have a number. Shape (n,)."""
        if self.start is None or not self.column.missing:
            return np.ones(len(records), dtype=np.bool_)
        return records.columns(self.start + 1, self.start + 2)[:, 0] < 0.5

    def scaled(self, records: Records) -> NDArray[np.float64]:
        """Return the positions in [-1, 1], shape (n,); 0 for a record without a number."""
        # Labels are centred numbers, features are scaled already; both are clipped once more.
        if self.start is None:
            return np.clip(records.labels / self.column.half_width, -1.0, 1.0)
        return np.clip(records.columns(self.start, self.start + 1)[:, 0], -1.0, 1.0)

    def numbers(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """Convert values in the file's units to numbers.

        Raises:
            ParameterError: one is no number of the column's range.
        """
        numbers, column = self.column.declared(values), self.column
        for value, number in zip(values, numbers.tolist(), strict=True):
            # Moments of a last day count as its beginning: nothing inside it distinguishes them .
            if not (column.low <= number <= column.high or number == column.end):
                end = ", or the end of its last day" if column.end > column.high else ""
                raise ParameterError(self.name, f"{column.describe()}{end}", "value", value)
        return numbers

    def position(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert numbers in the file's units to positions, by the arithmetic of the records."""
        if self.start is not None:
            return self.column.position(numbers)
        return np.clip(self.column.offset(numbers) / self.column.half_width, -1, 1)

    def value(self, positions: NDArray[np.float64]) -> NDArray[np.float64]:
        """Convert positions to numbers in the file's units (dates: days since 1970-01-01)."""
        return self.column.centre + self.column.half_width * np.asarray(positions)

    def date_rows(self, count: int) -> tuple[int, ...]:
        """Return the indices of the first rows if the column holds dates; else none."""
        return tuple(range(count)) if isinstance(self.column, Dates) else ()

    def format_end(self, number: float) -> str:
        """Format a number for the reader: a date as a date."""
        return date_text(number) if isinstance(self.column, Dates) else f"{number:g}"


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
        """Return the index of every record's value, -1 for an unknown one. Shape (n,)."""
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
    """Return a column of the domain, or its target, by name.

    Raises:
        ParameterError: there is none of that name, or rows are scaled to a norm.
    """
    # Scaling mixes a row's columns: no column could be read back only.
    need(
        domain.norm is None,
        "statistics",
        "columns as they are (leave out data.domain.norm)",
        "norm",
        domain.norm,
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
    usable = Categories | Range | Classes  # no one listed the texts of a column of texts
    listed = ", ".join(name for name, rule in domain.rules.items() if isinstance(rule, usable))
    raise ParameterError(
        "statistics", f"a declared column ({listed})", "column", name,
        message=f"needs a declared column ({listed}), got {name!r}{near(name, listed.split(', '))}",
    )  # fmt: skip


def number_column(domain: Domain, name: str) -> NumberColumn:
    """Return a column of numbers or dates by name.

    Raises:
        ParameterError: it is none.
    """
    column = declared(domain, name)
    if not isinstance(column, NumberColumn):
        ranges = [n for n, rule in domain.rules.items() if isinstance(rule, Range)]
        listed = ", ".join(ranges) or "none is declared"
        raise ParameterError(
            "statistics", f"a column with a range ({listed})", "column", name,
            message=f"column {name!r} holds categories, and this statistic is of numbers or dates; "
            f"columns with a range: {listed}",
        )  # fmt: skip
    return column


def require_conditions(domain: Domain, where: Mapping[str, Condition]) -> None:
    """Raise `ParameterError` where a condition is none that the domain knows."""
    # Selecting from no records runs every check, and reads nothing.
    no_features = np.zeros((0, domain.width))
    selected(domain, where, Records(features=no_features, labels=np.zeros(0)))


def selected(domain: Domain, where: Mapping[str, Condition], records: Records) -> NDArray[np.bool_]:
    """Mark the records that meet every condition. Shape (n,).

    Raises:
        ParameterError: a condition is about no declared column, or about values it cannot hold.
    """
    mask = np.ones(len(records), dtype=np.bool_)
    need(
        isinstance(where, Mapping),
        "a condition",
        "columns with what they must meet",
        "where",
        where,
        message=f"{shown(where)} is no condition: `where` maps columns to conditions, for example "
        f'{{"age": {{"from": 30}}}}',
    )
    for name, condition in where.items():
        mask &= _meets(declared(domain, name), condition, records)
    return mask


class Cutting(AnyLearner):
    """A learner whose fields say what it cuts: conditions, edges and numbers of bins."""

    def cut_columns(self, domain: Domain) -> tuple[str, ...]:
        """Return the columns that the fields name, or `column` for a field about it only."""
        fields = ("where", "meets", "edges", "bins", "every")
        cuts = [cut for name in fields if (cut := getattr(self, name, None)) is not None]
        column = getattr(self, "column", "")
        names = [[*cut] if isinstance(cut, Mapping) else [column] for cut in cuts]
        return tuple(itertools.chain(*names))


def conditions(
    domain: Domain, where: Mapping[str, Condition]
) -> tuple[tuple[Cut, tuple[int, ...]], ...]:
    """Convert conditions to the cells that a record must be in, by declared column."""
    cells: list[tuple[Cut, tuple[int, ...]]] = []
    for name, condition in where.items():
        column = declared(domain, name)
        if isinstance(column, CategoryColumn):
            values = [condition] if isinstance(condition, str | int | float) else condition
            codes = tuple(column.values.index(value) for value in values)
            cells.append((Cut(column=name, size=len(column.values)), codes))
            continue
        edges = _ends(column, condition)
        cells.append((Cut(column=name, size=len(edges) - 1, edges=edges), (0,)))
    return tuple(cells)


def _ends(column: NumberColumn, condition: Condition) -> tuple[float, ...]:
    """Return edges whose first cell is the set that meets the condition.

    Raises:
        ParameterError: it is none, or no number meets it.
    """
    if not isinstance(condition, Mapping) or not condition or {*condition} - {"from", "below"}:
        dates = isinstance(column.column, Dates)
        end = "2010-01-31" if dates else "18"
        raise ParameterError(
            column.name, "{from: NUMBER, below: NUMBER}, one of both or both", "where", condition,
            message=f"{shown(condition)} is no condition on the column {column.name!r} of "
            f"{'dates' if dates else 'numbers'}; write {{from: {end}}}, {{below: {end}}} or both",
        )  # fmt: skip
    ends = {key: float(column.numbers([end])[0]) for key, end in condition.items()}
    # A cell ends below its upper edge: what lies above is in a cell of its own.
    below = (ends["below"],) if "below" in ends else ()
    edges = (ends.get("from", -math.inf), *below, math.inf)
    message = f"no value of {column.name!r} meets {shown(dict(condition))}; `from` must be lower"
    need(edges[0] < edges[1], column.name, "from < below", "where", condition, message=message)
    return edges


def _meets(column: DeclaredColumn, condition: Condition, records: Records) -> NDArray[np.bool_]:
    if isinstance(column, CategoryColumn):
        # A value that is not declared would select nothing in silence.
        listed = [condition] if isinstance(condition, str | int | float) else list(condition)
        unknown = [value for value in listed if value not in column.values]
        need(
            not unknown and listed and len({*listed}) == len(listed),
            column.name,
            f"different declared categories ({summary(column.values)})",
            "where",
            unknown or listed,
            message=f"{shown(unknown or listed)} in `where` are not different categories of "
            f"{column.name!r}; it has {summary(column.values)}",
        )
        codes = np.array([column.values.index(value) for value in listed])
        return np.isin(column.codes(records), codes)
    cells = cells_of(records, column.name, column.column, column.start, _ends(column, condition))
    return np.asarray(cells == 0)


@attrs.frozen(kw_only=True, eq=False)
class Cells:
    """A column cut into cells that do not overlap, by public edges or categories.

    Args:
        edges: Of a range, in the file's units; none of categories.
        labels: One a cell.
        places: Where the edges stand in [-1, 1] by the rule `positions`; None by any other.
    """

    column: NumberColumn | CategoryColumn
    edges: tuple[float, ...]
    labels: tuple[Any, ...]
    places: NDArray[np.float64] | None = None

    @classmethod
    def of(
        cls, domain: Domain, name: str, edges: tuple[Any, ...] | None, bins: int | None
    ) -> Cells:
        """Return the cells of a column: between edges, in equal parts, or one for each category.

        Raises:
            ParameterError: edges do not increase strictly or leave the range, or categories have
                edges.
        """
        column = declared(domain, name)
        if isinstance(column, CategoryColumn):
            # Categories are cells as they are; edges would be dropped in silence.
            message = f"column {name!r} has categories already; leave out its edges and bins"
            is_whole = edges is None and bins is None
            need(is_whole, name, "neither edges nor bins", "edges", edges, message=message)
            return cls(column=column, edges=(), labels=column.values)
        need(
            (edges is None) != (bins is None),
            name, "either edges or a number of bins", "edges", edges,
            message=f"column {name!r} has both edges and bins; leave out one of them"
            if edges is not None
            else f"column {name!r} holds dates: group it with `bins: month` on the declared column"
            if isinstance(column.column, Dates)
            else f"column {name!r} holds numbers: group it with `bins: [0, 18, 65]` on the "
            f"declared column, or give edges or a number of bins here",
        )  # fmt: skip
        if bins is not None:
            need(
                is_integer(bins) and 1 <= bins <= MOST_CELLS,
                name,
                f"1 to {MOST_CELLS} bins",
                "bins",
                bins,
            )
            ends = equal_edges(column.column.low, column.column.high, bins)
        else:
            assert edges is not None, "one of both is given"
            ends = tuple(column.numbers(edges).tolist())
        places = None
        if domain.cells == "positions":
            # As it was published: equal cells were equal parts of [-1, 1].
            places = column.position(np.array(ends))
            if bins is not None:
                places = np.linspace(-1.0, 1.0, len(ends))
                ends = tuple(np.linspace(column.column.low, column.column.high, len(ends)).tolist())
        need(
            len(ends) >= 2 and (np.diff(ends if places is None else places) > 0).all(),
            name,
            "two or more edges, each above the one before",
            "edges",
            edges,
        )
        texts = map(column.format_end, ends)
        labels = [f"[{low}, {high})" for low, high in itertools.pairwise(texts)]
        # The last cell is closed, so that the end of the range is in one.
        labels[-1] = f"{labels[-1][:-1]}]"
        return cls(column=column, edges=ends, labels=tuple(labels), places=places)

    @property
    def partition(self) -> bool:
        """Whether every record of the domain is in one of the cells."""
        if isinstance(self.column, CategoryColumn):
            return self.column.complete
        # Nothing falls outside but missing values.
        return not self.column.may_miss and self.spans_range

    @property
    def spans_range(self) -> bool:
        """Whether every number of the range is in one of the cells."""
        assert isinstance(self.column, NumberColumn), "categories have no ends"
        if self.places is not None:
            return [*self.places[[0, -1]]] == [-1.0, 1.0]
        numbers = self.column.column
        return self.edges[0] == numbers.low and self.edges[-1] in (numbers.high, numbers.end)

    @property
    def cut(self) -> Cut:
        """The same cells, as a server cuts them."""
        return Cut(column=self.column.name, size=len(self.labels), edges=self.edges or None)

    def index(self, records: Records) -> NDArray[np.intp]:
        """Return the cell of every record, -1 if it is in none. Shape (n,)."""
        column = self.column
        if isinstance(column, CategoryColumn):
            return column.codes(records)
        return cells_of(records, column.name, column.column, column.start, self.edges)


def one_hot(cells: NDArray[np.intp], count: int) -> NDArray[np.float64]:
    """Return indicators of shape (n, count); a row of zeros for -1."""
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
        """The number of cells of the table: the product over its columns."""
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
        """Return the cell of every record, -1 if it is in none. Shape (n,)."""
        # Mixed radix, the last column fastest: the order of `itertools.product` in `about`.
        places = np.zeros(len(records), dtype=np.intp)
        mask = np.ones(len(records), dtype=np.bool_)
        for cells in self.columns:
            cell = cells.index(records)
            mask &= cell >= 0
            places = places * len(cells.labels) + cell
        return np.where(mask, places, -1)
