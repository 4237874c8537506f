r"""Descent: rows whose pairs come near to whole targets, one value of one row at a time.

Theorem: let r be target less count in every cell of every pair, and :math:`F=\sum r^2`. Changing
column i of a row from a to b, in k pairs, changes F by :math:`2(k-(S_b-S_a))`, where
:math:`S_b=\sum_jr_{ij}[b,x_j]`. So a move with :math:`S_b-S_a>k` lowers F by 2 or more.

Rows are moved in small batches, half of each by public coins: many at once would all run for the
same cell. A sweep that does not lower F is taken back. Everything is a whole number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.randomness import Stream
from dpcore_synthetic.whole_numbers import Integers, count_pair

_FIRST = 512  # batches of the first sweep
_BLOCK = 512  # rows that are looked at together before any of them moves

Pair = tuple[int, int]


@attrs.frozen(eq=False)
class _Neighbours:
    """Of one column: what it is in pairs with, and all residuals of these pairs.

    Args:
        columns: The others.
        starts: Where the residuals of each begin.
        residuals: A row for every cell of every other column, shape (cells, own cells); contiguous.
    """

    columns: NDArray[np.intp]
    starts: NDArray[np.intp]
    residuals: Integers


class Descent:
    """Rows of cells, and the residuals of all pairs.

    Args:
        rows: Shape (count, columns); changed in place.
        targets: Whole counts of pairs, by the columns' places, the lower one first.
    """

    def __init__(self, rows: Integers, sizes: list[int], targets: Mapping[Pair, Integers]) -> None:
        self.rows, self._sizes = rows, sizes
        columns = np.ascontiguousarray(rows.T)
        residuals = {
            (a, b): target - count_pair(columns[a], columns[b], target.shape)
            for (a, b), target in targets.items()
        }
        self._all = [self._neighbours(column, residuals) for column in range(len(sizes))]

    def _neighbours(self, column: int, residuals: Mapping[Pair, Integers]) -> _Neighbours:
        pairs = [pair for pair in residuals if column in pair]
        columns = np.array([a if b == column else b for a, b in pairs], dtype=np.intp)
        sizes = [self._sizes[i] for i in columns]
        # Differences of sums over all pairs then fit 31 bits, and half of the room is faster.
        kind = np.int32 if len(pairs) * len(self.rows) < 1 << 30 else np.int64
        blocks = [residuals[a, b] if b == column else residuals[a, b].T for a, b in pairs]
        start = np.zeros((0, self._sizes[column]), dtype=np.int64)
        starts = np.cumsum([0, *sizes[:-1]]).astype(np.intp)[: len(sizes)]
        stacked: Any = np.concatenate([start, *blocks]).astype(kind, order="C")
        return _Neighbours(columns, starts, stacked)

    @property
    def objective(self) -> int:
        """F, each pair counted once."""
        return sum(int((side.residuals.astype(np.int64) ** 2).sum()) for side in self._all) // 2

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
        coins = stream.words(order.size) >> np.uint64(63) == 0
        # Looked at together first, and again when it is their turn: most rows would not move.
        for block in np.split(order[coins], range(_BLOCK, order.size, _BLOCK)):
            values = self.rows.take(block, axis=0).T
            cells, sources = values.take(side.columns, axis=0), values[column]
            cells += side.starts[:, None]
            movable = np.flatnonzero(_best(side, cells, sources)[0] > side.columns.size)
            for start in range(0, movable.size, size):
                batch = movable[start : start + size]
                moves, targets = _move(side, cells.take(batch, axis=1), sources.take(batch))
                self.rows[block[batch[moves]], column] = targets
        self._tell_others(column)

    def _tell_others(self, column: int) -> None:
        """Copy the residuals of a column to the columns that it is in pairs with."""
        side = self._all[column]
        for other, start in zip(side.columns.tolist(), side.starts.tolist(), strict=True):
            block = side.residuals[start : start + self._sizes[other]]
            there = self._all[other]
            place = int(there.starts[np.flatnonzero(there.columns == column)[0]])
            there.residuals[place : place + self._sizes[column]] = block.T


def _best(
    side: _Neighbours, cells: NDArray[np.intp], sources: Integers
) -> tuple[Integers, NDArray[np.intp]]:
    """S_b - S_a of the best b, and b, for rows in cell a of their column.

    Args:
        cells: Where the residuals of the rows are, shape (pairs, rows).
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
    targets: Mapping[Pair, Integers],
    sweeps: int,
    stream: Stream,
    most: int = 1 << 24,
) -> tuple[Integers, list[int]]:
    """The rows after so many sweeps, fewer if one does not lower F; and F before and after each.

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
