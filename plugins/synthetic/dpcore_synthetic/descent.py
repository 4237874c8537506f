r"""Descent: rows whose tables come near to whole targets, one value of one row at a time.

Theorem: let r be target less count in every cell of every table of two or of three columns, and
:math:`F=\sum r^2`. Changing column i of a row from a to b, in k tables, changes F by
:math:`2(k-(S_b-S_a))`, where :math:`S_b=\sum_Jr_{iJ}[b,x_J]` over the other columns J of each. So a
move with :math:`S_b-S_a>k` lowers F by 2 or more.

Rows are moved in small batches, half of each by public randomness: many at once would all run for
the same cell. A sweep that does not lower F is taken back. Everything is a whole number.
"""

import math
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.randomness import Stream
from dpcore_synthetic.whole_numbers import Integers, count_rows

_FIRST = 512  # batches of the first sweep
_BLOCK = 512  # rows that are looked at together before any of them moves

Places = tuple[int, ...]


@attrs.frozen(eq=False, slots=False, kw_only=True)
class _Neighbours:
    """Of one column: what it is in tables with, and all residuals of these.

    Args:
        others: The other columns of every table, those of pairs first.
        columns: The first other column of every table.
        thirds: The second one of every table of three columns, shape (triples,).
        sides: How many cells each of these has, shape (triples, 1).
        starts: Where the residuals of each table begin.
        residuals: A row for all cells of the others, shape (cells, own cells); contiguous.
    """

    others: list[Places]
    columns: NDArray[np.intp]
    thirds: NDArray[np.intp]
    sides: NDArray[np.intp]
    starts: NDArray[np.intp]
    residuals: Integers

    @cached_property
    def place_of(self) -> dict[Places, int]:
        """Where the residuals of a table begin, by its other columns."""
        return dict(zip(self.others, self.starts.tolist(), strict=True))

    def places(self, values: Integers) -> NDArray[np.intp]:
        """Where the residuals of rows are, shape (tables, rows).

        Args:
            values: Of the rows, shape (columns, rows).
        """
        cells = values.take(self.columns, axis=0)
        if self.thirds.size:
            tail = cells[-self.thirds.size :]
            tail *= self.sides
            tail += values.take(self.thirds, axis=0)
        cells += self.starts[:, None]
        return cells


class Descent:
    """Rows of cells, and the residuals of all tables.

    Args:
        rows: Shape (count, columns); changed in place.
        targets: Whole counts of two or three columns, by their places, the lowest one first.
    """

    def __init__(
        self, rows: Integers, sizes: list[int], targets: Mapping[Places, Integers]
    ) -> None:
        self.rows, self._sizes = rows, sizes
        columns = np.ascontiguousarray(rows.T)
        residuals = {
            places: target - count_rows([columns[i] for i in places], target.shape)
            for places, target in sorted(targets.items(), key=lambda item: len(item[0]))
        }
        self._all = [self._neighbours(column, residuals) for column in range(len(sizes))]

    def _neighbours(self, column: int, residuals: Mapping[Places, Integers]) -> _Neighbours:
        tables = [places for places in residuals if column in places]
        other_columns = [tuple(i for i in places if i != column) for places in tables]
        triples = [places for places in other_columns if len(places) == 2]
        # Differences of sums over all tables then fit 31 bits, and half of the room is faster.
        kind = np.int32 if len(tables) * len(self.rows) < 1 << 30 else np.int64
        width = self._sizes[column]
        blocks = [
            np.moveaxis(residuals[places], places.index(column), -1).reshape(-1, width)
            for places in tables
        ]
        starts = np.cumsum([0, *map(len, blocks)]).astype(np.intp)[: len(blocks)]
        start = np.zeros((0, width), dtype=np.int64)
        stacked: Any = np.concatenate([start, *blocks]).astype(kind, order="C")
        return _Neighbours(
            others=other_columns,
            columns=np.array([places[0] for places in other_columns], dtype=np.intp),
            thirds=np.array([i for _, i in triples], dtype=np.intp),
            sides=np.array([[self._sizes[i]] for _, i in triples], dtype=np.intp),
            starts=starts,
            residuals=stacked,
        )

    @property
    def objective(self) -> int:
        """F, each table counted once."""
        total = 0
        for side in self._all:
            # Of every column of a table: halves of a pair, thirds of a triple.
            squares = (side.residuals.astype(np.int64) ** 2).sum(axis=1)
            pairs = len(side.residuals)
            if side.thirds.size:
                pairs = int(side.starts[-side.thirds.size])
            total += 3 * int(squares[:pairs].sum()) + 2 * int(squares[pairs:].sum())
        return total // 6

    def sweep(self, batch: int, most: int, stream: Stream) -> None:
        """Every column once, in order.

        Args:
            batch: Rows that are moved at once.
            most: Rows that are looked at in every column.
        """
        for column, side in enumerate(self._all):
            if side.columns.size:
                order = stream.subset(len(self.rows), min(len(self.rows), most))
                self._sweep_column(column, order, batch, stream)

    def _sweep_column(
        self, column: int, order: NDArray[np.intp], size: int, stream: Stream
    ) -> None:
        side = self._all[column]
        randomness = stream.words(order.size) >> np.uint64(63) == 0
        # LastStep at together first, and again when it is their turn: most rows would not move.
        for block in np.split(order[randomness], range(_BLOCK, order.size, _BLOCK)):
            values = self.rows.take(block, axis=0).T
            cells, sources = side.places(values), values[column]
            movable = np.flatnonzero(_best(side, cells, sources)[0] > side.columns.size)
            for start in range(0, movable.size, size):
                batch = movable[start : start + size]
                moves, targets = _move(side, cells.take(batch, axis=1), sources.take(batch))
                self.rows[block[batch[moves]], column] = targets
        self._update_others(column)

    def _update_others(self, column: int) -> None:
        """Copy the residuals of a column to the columns that it is in tables with."""
        side, width = self._all[column], self._sizes[column]
        for others, start in zip(side.others, side.starts.tolist(), strict=True):
            sizes = [self._sizes[i] for i in others]
            block = side.residuals[start : start + math.prod(sizes)].reshape(*sizes, width)
            # In the order of the columns, then for each of the others with its own cells last.
            places = sorted((*others, column))
            table = np.moveaxis(block, -1, places.index(column))
            for other in others:
                there = self._all[other]
                place = there.place_of[tuple(i for i in places if i != other)]
                rows = np.moveaxis(table, places.index(other), -1).reshape(-1, self._sizes[other])
                there.residuals[place : place + len(rows)] = rows


def _best(
    side: _Neighbours, cells: NDArray[np.intp], sources: Integers
) -> tuple[Integers, NDArray[np.intp]]:
    """S_b - S_a of the best b, and b, for rows in cell a of their column.

    Args:
        cells: Where the residuals of the rows are, shape (tables, rows).
        sources: The rows' own cells.
    """
    # Summed in the residuals' own type, which has room for it.
    sums = side.residuals.take(cells, axis=0).sum(axis=0, dtype=side.residuals.dtype)
    targets = sums.argmax(axis=1)
    places = np.arange(sources.size)
    return sums[places, targets] - sums[places, sources], targets


def _move(
    side: _Neighbours, cells: NDArray[np.intp], sources: Integers
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Which rows of a batch move, as long as the others stay, and to which cells."""
    gains, targets = _best(side, cells, sources)
    moves = np.flatnonzero(gains > side.columns.size)
    targets = targets[moves]
    if moves.size:
        # Several rows may share a cell. `at` is fast on one axis and with a number of its type.
        residuals, one = side.residuals.reshape(-1), side.residuals.dtype.type(1)
        first = cells[:, moves] * side.residuals.shape[1]
        np.add.at(residuals, (first + sources[moves]).ravel(), one)
        np.subtract.at(residuals, (first + targets).ravel(), one)
    return moves, targets


def descend(
    rows: Integers,
    sizes: list[int],
    targets: Mapping[Places, Integers],
    sweeps: int,
    stream: Stream,
    most: int = 1 << 24,
) -> tuple[Integers, list[int]]:
    """Return the rows after so many sweeps, fewer if one does not lower F; and F before and after
    each.

    Args:
        most: Rows that a sweep looks at in every column. Where it sees all, batches are large at
            first, then a quarter as large in every sweep; at last rows move one by one.
    """
    state = Descent(rows.copy(), sizes, targets)
    objectives, batch = [state.objective], max(1, min(len(rows), most) // _FIRST)
    for _ in range(sweeps):
        state.sweep(batch, most, stream)
        batch = max(1, batch // 4)
        if state.objective >= objectives[-1]:
            break
        rows = state.rows.copy()
        objectives.append(state.objective)
    return rows, objectives
