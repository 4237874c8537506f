"""Columns: the cells of one column to numbers, by what is declared of it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpcore.domain.columns import Range
from dpcore.domain.edges import cells_between
from dpcore.records.records import Records


def cells_of(
    records: Records, name: str, column: Range, start: int | None, edges: Sequence[float]
) -> NDArray[np.intp]:
    """PRIVATE: the cell of every record's number, -1 where it is in none. Shape (n,).

    Of records that hold encoded columns alone, by where edges are encoded: a number on an edge is
    in the cell that begins there, and so is what encodes as the edge does.

    Args:
        start: The first encoded column; None for the target.
        edges: Increasing, in the file's units; infinite ones too.
    """
    if (numbers := records.numbers_of(name)) is not None:
        return cells_between(edges, numbers)
    ends = np.asarray(edges, dtype=np.float64)
    places = column.offset(ends) if start is None else column.position(ends)
    # Every record stands below an edge beyond the range, such as the end of a last day.
    places = np.where(ends > column.high, np.inf, places)
    if start is None:
        return cells_between(places, records.labels)
    cells = cells_between(places, records.columns(start, start + 1)[:, 0])
    if column.missing:
        cells = np.where(records.columns(start + 1, start + 2)[:, 0] < 0.5, cells, -1)
    return cells
