r"""Tables: columns of cells to encoded records, by the rules of a domain.

`project_table` is row-wise, data-independent and total: every row of any table maps into the
domain, so that adjacency can be stated on what comes out.

A range becomes 2(x - low)/(high - low) - 1 clipped to [-1, 1]; two categories one column of -1 and
+1; more categories a one-hot. With `norm`, rows are scaled down to at most that l2 norm. Labels are
centred at the middle of their range, in [-M, M] with M = (high - low)/2; of two classes they are -1
and +1, of more a code. A domain without a target has no labels: they are zeros.
"""

from collections.abc import Container, Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.columns import Range
from dpcore.domain.domain import Domain, Table
from dpcore.encoding.columns import (
    centre_labels,
    encode_column,
    project_numbers,
    read_numbers,
)
from dpcore.encoding.derived import derive_column
from dpcore.errors import SourceError, need
from dpcore.records.cells import named
from dpcore.records.lengths import row_lengths
from dpcore.records.pieces import KeptColumn
from dpcore.records.records import LaterFeatures, Records
from dpcore.rounding import down

_SHRINK = down(1.0, roundings=500)  # keeps a rescaled row inside `norm` in spite of rounding
_UNEQUAL = "the columns are not equally long"


def derive_columns(domain: Domain, table: Table, names: Iterable[str] | None = None) -> Table:
    """A table with its derived columns: those of `names`; of all that are used, if None.

    Raises:
        SourceError: a column that one is made of is missing.
    """
    used = [n for n in (domain.derived if names is None else names) if n in domain.rules]
    if not used:
        return table
    _require_columns(table, (source for name in used for source in domain.derived[name].inputs))
    present = {name: table[name] for name in domain.read if name in table}
    return {**present, **{n: derive_column(domain.derived[n], table, domain.rules) for n in used}}


def _complete(domain: Domain, table: Table, names: Iterable[str]) -> Table:
    """A table that may hold derived columns already, with those that it lacks.

    Raises:
        SourceError: one of `names` is missing.
    """
    table = named(table)
    table = derive_columns(domain, table, [name for name in domain.derived if name not in table])
    _require_columns(table, names)
    return table


def _require_columns(table: Table, names: Iterable[str]) -> None:
    for name in names:
        need(name in table, SourceError, f"column {name!r} is missing")


def parse_table(domain: Domain, table: Table) -> dict[str, Any]:
    """The declared columns, those of numbers as floats: a text is read once, NaN is none.

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
        # The scale of a row is a function of that row alone, to the last bit.
        norms = row_lengths(encoded)
        too_long = norms > domain.norm
        scale = np.where(too_long, _SHRINK * domain.norm / np.where(too_long, norms, 1.0), 1.0)
        encoded = encoded * scale
    return encoded


def project_table(domain: Domain, table: Table, numbers: Container[str] | None = None) -> Records:
    """Every row, mapped into the domain; never fails on a value.

    Args:
        numbers: Ranges whose numbers records have beside what is encoded; all, if None.

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
    pairs = enumerate(ranges.items())
    makers = {(i, i + 1): partial(project_numbers, rule, table[n]) for i, (n, rule) in pairs}
    later = LaterFeatures((count, len(ranges)), makers)
    return Records(features=features, labels=labels, numbers=later, number_names=tuple(ranges))


def _encode_later(domain: Domain, table: Table) -> LaterFeatures:
    """What `encode_table` makes of columns that are equally long, each when it is used."""
    makers, start = {}, 0
    for name, column in domain.columns.items() if domain.norm is None else ():
        makers[start, start + column.width] = partial(encode_column, column, table[name])
        start += column.width
    # A norm scales whole rows.
    makers[0, domain.width] = partial(encode_table, domain, table)
    return LaterFeatures((len(table[next(iter(domain.columns))]), domain.width), makers)
