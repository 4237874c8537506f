r"""Tables: columns of cells to encoded records, by the rules of a domain.

`project_table` is row-wise, data-independent and total: every row of any table maps into the
domain, so that adjacency can be stated on what comes out.

A range becomes 2(x - low)/(high - low) - 1 clipped to [-1, 1]; two categories one column of -1 and
+1; more categories a one-hot. With `norm`, rows are scaled down to at most that l2 norm. Labels are
centred at the middle of their range, in [-M, M] with M = (high - low)/2; of two classes they are -1
and +1, of more a code. A domain without a target has no labels: they are zeros.

Lengths of rows are computed here, each a function of its own row to the last bit.
"""

import math
from collections.abc import Callable, Container, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.cell import index
from dpcore.domain.columns import Range, reading
from dpcore.domain.conditions import Condition, range_of
from dpcore.domain.derived import MONTHS, TRUTHS, WEEKDAYS, Derived
from dpcore.domain.domain import Domain, Table
from dpcore.encoding.cells import columns_by_name, empty
from dpcore.encoding.columns import (
    centre_labels,
    encode_column,
    project_numbers,
    read_codes,
    read_numbers,
)
from dpcore.encoding.pieces import KeptColumn
from dpcore.errors import SourceError, need
from dpcore.records import LaterFeatures, Records
from dpcore.rounding import down

_SHRINK = down(1.0, roundings=500)  # keeps a rescaled row inside `norm` in spite of rounding
_UNEQUAL = "the columns are not equally long"


def derive_columns(domain: Domain, table: Table, names: Iterable[str] | None = None) -> Table:
    """Return a table with its derived columns: those of `names`; of all that are used, if None.

    Raises:
        SourceError: a column that one is made of is missing.
    """
    derivations = [n for n in (domain.derived if names is None else names) if n in domain.rules]
    if not derivations:
        return table
    _require_columns(
        table, (source for name in derivations for source in domain.derived[name].inputs)
    )
    present = {name: table[name] for name in domain.read if name in table}
    return {
        **present,
        **{n: derive_column(domain.derived[n], table, domain.rules) for n in derivations},
    }


def _complete(domain: Domain, table: Table, names: Iterable[str]) -> Table:
    """Return a table that may hold derived columns already, with those that it lacks.

    Raises:
        SourceError: one of `names` is missing.
    """
    table = columns_by_name(table)
    table = derive_columns(domain, table, [name for name in domain.derived if name not in table])
    _require_columns(table, names)
    return table


def _require_columns(table: Table, names: Iterable[str]) -> None:
    for name in names:
        need(name in table, SourceError, f"column {name!r} is missing")


def parse_table(domain: Domain, table: Table) -> dict[str, Any]:
    """Return the declared columns, those of numbers as floats: a text is read once, NaN is none.

    A `KeptColumn` stays one: it knows what its rule has read.
    """
    # A date or a category keeps its cells: a float there would be none.
    return {
        name: read_numbers(rule, column)
        if not isinstance(column := table[name], KeptColumn) and type(rule) is Range
        else column
        for name, rule in domain.rules.items()
    }


def encode_table(domain: Domain, table: Table) -> NDArray[np.float64]:
    """Encoded features, shape (n, width), each row at most `feature_norm` long in l2."""
    table = _complete(domain, table, domain.columns)
    blocks = [encode_column(column, table[name]) for name, column in domain.columns.items()]
    need(len({len(block) for block in blocks}) == 1, SourceError, _UNEQUAL)
    encoded = np.hstack(blocks)
    if domain.norm is not None:
        # The scale of a row is a function of that row only, to the last bit.
        norms = row_lengths(encoded)
        too_long = norms > domain.norm
        scale = np.where(too_long, _SHRINK * domain.norm / np.where(too_long, norms, 1.0), 1.0)
        encoded = encoded * scale
    return encoded


def project_table(domain: Domain, table: Table, numbers: Container[str] | None = None) -> Records:
    """Return every row, mapped into the domain; never fails on a value.

    Args:
        numbers: Ranges whose numbers records have next to what is encoded; all, if None.

    Raises:
        SourceError: a column is missing or the columns are not equally long.
    """
    target = [domain.target] if domain.labelled else []
    table = _complete(domain, table, [*target, *domain.columns])
    # Whatever a cell holds, its row lands in the domain: adjacency is stated on the result.
    is_kept = all(isinstance(table[name], KeptColumn) for name in domain.columns)
    features: Any = _encode_later(domain, table) if is_kept else encode_table(domain, table)
    count = features.shape[0]
    labels = centre_labels(domain.labels, table[target[0]]) if target else np.zeros(count)
    need(labels.shape[0] == count, SourceError, _UNEQUAL)
    ranges = {
        name: rule
        for name, rule in domain.rules.items()
        if isinstance(rule, Range) and name in table and (numbers is None or name in numbers)
    }
    # Each is made when it is used.
    makers = {
        (place, place + 1): partial(project_numbers, rule, table[name])
        for place, (name, rule) in enumerate(ranges.items())
    }
    later = LaterFeatures((count, len(ranges)), makers)
    return Records(features=features, labels=labels, numbers=later, number_names=tuple(ranges))


def _encode_later(domain: Domain, table: Table) -> LaterFeatures:
    """Return what `encode_table` makes of columns that are equally long, each when it is used."""
    makers, start = {}, 0
    for name, column in domain.columns.items() if domain.norm is None else ():
        makers[start, start + column.width] = partial(encode_column, column, table[name])
        start += column.width
    # A norm scales whole rows.
    makers[0, domain.width] = partial(encode_table, domain, table)
    return LaterFeatures((len(table[next(iter(domain.columns))]), domain.width), makers)


def rows_that_meet(condition: Condition, rule: Any, cells: Any) -> NDArray[np.bool_]:
    """PRIVATE: return the rows whose cell in a column of this rule meets a condition. Shape
    (n,).
    """
    if condition.values:
        places, key_of = index(rule.values, reading(rule)), reading(rule)
        listed = [places[key_of(value)] for value in condition.values]
        return np.isin(read_codes(rule, cells), listed)
    if condition.low is None and condition.high is None:
        return ~empty(cells)
    declared, default = range_of(rule), range_of(rule).default
    numbers = read_numbers(declared, cells)
    numbers = np.where(np.isnan(numbers), math.nan if default is None else default, numbers)
    low, high = condition.low, condition.high
    # What is no number fails every comparison.
    is_above: NDArray[np.bool_] = numbers >= (-math.inf if low is None else low)
    return is_above if high is None else is_above & (numbers < high)


def rows_that_count(
    only: Mapping[str, Condition], rules: Mapping[str, Any], table: Mapping[str, Any]
) -> NDArray[np.bool_] | None:
    """PRIVATE: return the rows that meet every condition, shape (n,); None where there is none to
    meet.

    Raises:
        SourceError: the columns are not equally long.
    """
    masks = [rows_that_meet(meets, rules[name], table[name]) for name, meets in only.items()]
    need(len({m.size for m in masks}) < 2, SourceError, _UNEQUAL)
    return np.all(masks, axis=0) if masks else None


def derive_column(derived: Derived, table: Mapping[str, Any], rules: Mapping[str, Any]) -> Any:
    """PRIVATE: return a cell for each record of the table.

    Args:
        rules: What declared columns hold: an input that declares dates is read in its zone.
    """
    operation, columns = derived.operation, [table[name] for name in derived.inputs]
    if isinstance(cells := operation.cells, Range):
        ranges = [getattr(rules.get(name), "range", rules.get(name)) for name in derived.inputs]
        columns = [
            read_numbers(rule if type(rule) is type(cells) else cells, column)
            for rule, column in zip(ranges, columns, strict=True)
        ]
        need(len({*map(len, columns)}) == 1, SourceError, _UNEQUAL)
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        return _COMPUTATIONS[operation.name](*columns)


def _days(moments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Whole days since 1970-01-01; 0 for what is no date."""
    return np.floor(np.where(np.isfinite(moments), moments, 0.0))


def _months(moments: NDArray[np.float64]) -> NDArray[np.int64]:
    """Months since January 1970."""
    return _days(moments).astype("M8[D]").astype("M8[M]").astype(np.int64)


def _words(words: tuple[str, ...], places: NDArray[Any], is_there: Any = True) -> Any:
    """Return a word for each place, None where there is none."""
    texts = np.array([*words, None], dtype=object)
    return texts[np.where(is_there, places, len(words)).astype(np.intp)]


_COMPUTATIONS: Mapping[str, Callable[..., Any]] = {
    "copy": lambda column: column,
    "difference": np.subtract,
    # No number divides by 0, whatever its sign.
    "ratio": lambda dividends, divisors: np.where(divisors == 0, np.nan, dividends / divisors),
    "days between": lambda first, second: second - first,
    "year": lambda days: np.where(np.isfinite(days), 1970.0 + _months(days) // 12, np.nan),
    "month": lambda days: _words(MONTHS, _months(days) % 12, np.isfinite(days)),
    # 1970-01-01 was a Thursday.
    "weekday": lambda days: _words(WEEKDAYS, (_days(days) + 3) % 7, np.isfinite(days)),
    "missing": lambda column: _words(TRUTHS, empty(column)),
}


_ENTRIES = 1 << 15  # at a time: what they need stays in a core's own cache


def row_lengths(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """l2 norms, shape (n, 1): squares are added in halves, in one order for any number of rows.

    numpy's own sums, and a matrix product's, take another order for another layout or number of
    rows. Relative error at most (3 + log2 of the width) u.
    """
    count, width = rows.shape
    if width == 0:
        return np.zeros((count, 1))
    lengths = np.empty((count, 1))
    step = max(1, _ENTRIES // width)
    for start in range(0, count, step):
        part = rows[start : start + step]
        squares = part * part
        columns_left = width
        while columns_left > 1:
            half = columns_left // 2
            # The last half is added to the first: the width by itself decides the order.
            squares[:, :half] += squares[:, columns_left - half : columns_left]
            columns_left -= half
        np.sqrt(squares[:, :1], out=lengths[start : start + step])
    return lengths
