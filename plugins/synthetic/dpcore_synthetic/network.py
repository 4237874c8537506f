r"""Network: first rows, column after column, each from the two columns that it hangs on most.

Nothing is chosen in private: how much a pair hangs together, :math:`\sum(T-E)^2/E`, is read from
the display, and so is everything else. A column is drawn given two earlier ones from the display of
the three, or else from the three pairs among them, fitted together; rows with the same two values
share out the next column evenly.
"""

import math
from collections.abc import Mapping

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.randomness import Stream
from dpcore_statistics.marginals.display import Display
from dpcore_synthetic.whole_numbers import PLACES, Integers, draw_below, in_units

_SWEEPS = 30
_MOST_CELLS = 1 << 20  # of three columns that are fitted together

Table = NDArray[np.float64]
Pair = tuple[int, ...]


@attrs.frozen(eq=False)
class Step:
    """A column that is drawn next, given at most two earlier ones."""

    column: int
    parents: tuple[int, ...]


def association(display: Display) -> dict[Pair, float]:
    """Return how far every pair lies from independence, by the display."""
    scores: dict[Pair, float] = {}
    for (a, b), table in display.pairs.items():
        expected = np.outer(display.one_way[a], display.one_way[b]) / display.n
        is_possible = expected > 0
        excess = table[is_possible] - expected[is_possible]
        scores[a, b] = math.fsum((excess * excess / expected[is_possible]).tolist())
    return scores


def plan_steps(display: Display) -> list[Step]:
    """Return all columns in the order of drawing: next is always the one that hangs together
    most.
    """
    scores = association(display)
    near: dict[int, dict[int, float]] = {column: {} for column in sorted(display.one_way)}
    for (a, b), score in scores.items():
        near[a][b] = near[b][a] = score
    # The first is a column of the strongest pair; ties go to the first one.
    first = min(near, key=lambda column: (-max(near[column].values(), default=0.0), column))
    steps, columns = [Step(first, ())], {first}
    while len(columns) < len(near):
        options = []
        for column in near:
            if column not in columns:
                parents = _parents(column, near, columns, display)
                gain = math.fsum(near[column][parent] for parent in parents)
                options.append((-gain, column, parents))
        _, column, parents = min(options)
        steps.append(Step(column, parents))
        columns.add(column)
    return steps


def _parents(
    column: int, near: Mapping[int, Mapping[int, float]], columns: set[int], display: Display
) -> tuple[int, ...]:
    """At most two earlier columns, in a measured pair with this one and with one another."""
    earlier = [name for name in near[column] if name in columns]
    ranked = sorted(earlier, key=lambda name: (-near[column][name], name))
    if not ranked:
        return ()
    sizes = {name: display.one_way[name].size for name in (column, *ranked)}
    for second in ranked[1:]:
        cells = sizes[column] * sizes[ranked[0]] * sizes[second]
        if second in near[ranked[0]] and cells <= _MOST_CELLS:
            return ranked[0], second
    return (ranked[0],)


def pair_of(display: Display, a: int, b: int) -> Table:
    """Return the display of two columns, rows of the first and columns of the second."""
    return display.pairs[a, b] if (a, b) in display.pairs else display.pairs[b, a].T


def conditional(display: Display, step: Step) -> Table:
    """Return what a column is like at every value of its parents; shape (values, cells)."""
    one_way = display.one_way[step.column]
    if not step.parents:
        return one_way[None]
    table = pair_of(display, step.parents[0], step.column)
    if len(step.parents) == 2:
        table = _fitted(display, step).reshape(-1, one_way.size)
    # Where the display has no one, rows that are there all the same take the column as it is.
    return np.where(table.sum(axis=1, keepdims=True) > 0, table, one_way)


def _fitted(display: Display, step: Step) -> Table:
    """Three columns, the drawn one last: as they are displayed, else from their three pairs."""
    columns = (*step.parents, step.column)
    ordered = tuple(sorted(columns))
    if ordered in display.triples:
        return display.triples[ordered].transpose([ordered.index(name) for name in columns])
    (a, b), c = step.parents, step.column
    return fit_pairs(
        {2: pair_of(display, a, b), 1: pair_of(display, a, c), 0: pair_of(display, b, c)}
    )


def fit_pairs(pairs: Mapping[int, Table]) -> Table:
    """Three columns with three pairs as margins, by proportional fitting.

    Args:
        pairs: By the axis that the table is summed over.
    """
    table = np.ones((*pairs[2].shape, pairs[1].shape[1]))
    for _ in range(_SWEEPS):
        for axis, pair in pairs.items():
            sums = table.sum(axis=axis)
            ratio = np.divide(pair, sums, out=np.zeros_like(sums), where=sums > 0)
            table = table * np.expand_dims(ratio, axis)
    return table


def first_rows(display: Display, count: int, stream: Stream) -> Integers:
    """Rows of cells, shape (count, columns), the columns in the order of their numbers."""
    place = {column: number for number, column in enumerate(sorted(display.one_way))}
    rows = np.zeros((count, len(place)), dtype=np.int64)
    for step in plan_steps(display):
        group = np.zeros(count, dtype=np.int64)
        for parent in step.parents:
            group = group * display.one_way[parent].size + rows[:, place[parent]]
        rows[:, place[step.column]] = _shared_out(group, conditional(display, step), stream)
    return rows


def _shared_out(group: Integers, tables: Table, stream: Stream) -> Integers:
    """Return a cell for every row: within a group at even distances, from a public offset on.

    Args:
        group: The row of `tables` that holds the proportions of a row's group.
    """
    # Within a group rows come in a public order, so that nothing else decides who gets which cell.
    order = np.lexsort((stream.words(group.size), group))
    values, sizes = np.unique(group, return_counts=True)
    proportions = np.array([in_units(tables[value]) for value in values.tolist()]).reshape(
        len(values), tables.shape[1]
    )
    totals = proportions.sum(axis=1)
    number = np.repeat(np.arange(len(values)), sizes)
    within = np.arange(group.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    offsets = draw_below(stream, totals)[number]
    # Below 2^24 rows times 2^38 units; every group has a range of its own in the search.
    positions = (within * totals[number] + offsets) // np.repeat(sizes, sizes)
    ends = np.cumsum(proportions, axis=1) + (np.arange(len(values)) << (PLACES + 1))[:, None]
    places = np.searchsorted(ends.ravel(), positions + (number << (PLACES + 1)), side="right")
    cells = np.empty(group.size, dtype=np.int64)
    cells[order] = places - number * tables.shape[1]
    return cells
