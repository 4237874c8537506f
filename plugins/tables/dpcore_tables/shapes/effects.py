r"""Effects: what a model says of each column and pair, from released answers only.

A term of two columns is :math:`\psi_a(x)\psi_b(x')`. With m the means under the released shares,
columns independent, it is the sum of :math:`(\psi_a-m_a)(\psi_b-m_b)`, which says nothing of one
column only, of :math:`m_b(\psi_a-m_a)` and :math:`m_a(\psi_b-m_b)`, which belong to the columns,
and of a constant. So effects are purified: hierarchical, with mean 0 over every column, and they
add up to the same score.

Rows longer than 1 are shortened, so that a prediction is a sum of effects only up to that factor;
they are drawn with its median over rows simulated from the released shares, columns independent
and categories equally frequent.
"""

import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Categories, Domain, Range
from dpcore.encoding.tables import encode_table
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import NONE, Term
from dpcore_tables.pairs.cells import PIECES, Pair, column_cells, sides as cell_sides
from dpcore_tables.ranks import BINS, LIMIT
from dpcore_tables.synthetic_records import usual_shortening

_POINTS, _PAIR_POINTS = 100, 20
_RARE = 0.01
_GAP = 5  # places from one bin to the next: four bins between them are a standard deviation


@attrs.frozen(kw_only=True, eq=False)
class Effect:
    """A purified effect of one column or of two, as a linear function of the model's weights.

    Args:
        owner: The declared column or columns, by their places.
        at: The grid of every column.
        active: Which terms it has, by their places, and then which cells of tables, counted on
            through all tables; shape (rows,).
        tables: Which tables have these cells, all of each.
        functions: What one unit of each coefficient adds at the points, shape (rows, k).
        frequencies: Released proportions of the points, shape (k,).
    """

    owner: tuple[int, ...]
    at: tuple[NDArray[Any], ...]
    active: NDArray[np.intp]
    tables: tuple[int, ...]
    functions: NDArray[np.float64]
    frequencies: NDArray[np.float64]

    def values(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """At the points, shape (k, m).

        Args:
            coefficients: Of all terms, and then of all cells; shape (d - 1 + cells, m).
        """
        return np.asarray(self.functions.T @ coefficients[self.active])


def effects_of(
    domain: Domain,
    dictionary: Dictionary,
    levels: Sequence[NDArray[np.float64]],
    tables: Sequence[Pair] = (),
) -> list[Effect]:
    """Return the effect of every column with a term, and of every pair with one or with a table.

    Args:
        levels: The released proportions of every declared column's categories; empty for numbers.
        tables: Pairs that have one.
    """
    sizes = usual_shortening(dictionary) * dictionary.sizes[:, None]
    # Every function that is in a term, once, as a term of its own.
    terms = dictionary.terms.tolist()
    keys = {(c, k) for c, k, _, _ in terms} | {(c, k) for _, _, c, k in terms if c != NONE}
    sides = [Term(*key) for key in sorted(keys)]
    places = {(side.column, side.level): place for place, side in enumerate(sides)}
    single = Dictionary.sized(dictionary.layout, dictionary.ranks, sides, np.ones(len(sides)))
    means = np.zeros(len(sides))
    for column in {side.column for side in sides}:
        rows, proportions = _representatives(domain, dictionary, column, levels[column])
        means += _of_column(single, column, rows) @ proportions

    first = np.array([places[c, k] for c, k, _, _ in terms], dtype=np.intp)
    second = np.array([places.get((c, k), 0) for _, _, c, k in terms], dtype=np.intp)
    is_pair = (dictionary.terms[:, 2] != NONE)[:, None]

    @functools.cache  # a column is in many pairs
    def centred(column: int, count: int) -> NDArray[np.float64]:
        """Return every side less its mean, 0 where it is another column's; shape (sides,
        points).
        """
        points = _grid(domain, column, count)
        values = _of_column(single, column, encode_points(domain, column, points))
        return np.asarray(values - means[:, None] * (single.terms[:, [0]] == column))

    sizes_of_tables = [math.prod(cell_sides(dictionary.layout, pair)) for pair in tables]
    starts = len(terms) + np.cumsum([0, *sizes_of_tables])
    effects = []
    for owner in sorted(_owners(terms) | _owners([(i, 0, j, 0) for i, j in tables])):
        count = _POINTS if len(owner) == 1 else _PAIR_POINTS
        grid = tuple(_grid(domain, column, count) for column in owner)
        curves = [centred(column, count) for column in owner]
        if len(owner) == 1:
            # A column has its own terms, and of its pairs the mean over the other column.
            own, partners = curves[0], means[:, None]
            functions = np.where(is_pair, partners[second], 1.0) * own[first]
            functions += np.where(is_pair, partners[first] * own[second], 0.0)
        else:
            products = curves[0][first][:, :, None] * curves[1][second][:, None, :]
            functions = np.where(is_pair, products.reshape(len(terms), -1), 0.0)
        # What a pair says belongs to it and to its columns, and to no other effect.
        of_tables = tuple(place for place, pair in enumerate(tables) if {*owner} <= {*pair})
        of_terms = np.flatnonzero((sizes * functions).any(axis=1))
        parts, active = [(sizes * functions)[of_terms]], [of_terms]
        for place in of_tables:
            parts.append(_of_table(domain, dictionary, levels, tables[place], owner, grid))
            active.append(np.arange(starts[place], starts[place + 1]))
        frequencies = np.ones(1)
        for column, points in zip(owner, grid, strict=True):
            of_points = frequencies_at(domain, dictionary, column, points, levels[column])
            frequencies = np.outer(frequencies, of_points).reshape(-1)
        effects.append(
            Effect(
                owner=owner,
                at=grid,
                active=np.concatenate(active),
                tables=of_tables,
                functions=np.concatenate(parts),
                frequencies=frequencies,
            )
        )
    return effects


def _of_table(
    domain: Domain,
    dictionary: Dictionary,
    levels: Sequence[NDArray[np.float64]],
    pair: Pair,
    owner: tuple[int, ...],
    grid: tuple[NDArray[Any], ...],
) -> NDArray[np.float64]:
    """Return what one unit of every cell of a table adds to an effect, shape (cells, k)."""
    layout, ranks = dictionary.layout, dictionary.ranks
    # Cells of a number are of equal rank.
    proportions = [levels[c] if layout.levels[c] else np.full(PIECES, 1 / PIECES) for c in pair]
    sides = []
    for column, proportion in zip(pair, proportions, strict=True):
        if column not in owner:
            sides.append(proportion[:, None])
            continue
        points = encode_points(domain, column, grid[owner.index(column)])
        indices = column_cells(layout, column, points, ranks)
        sides.append((np.arange(len(proportion))[:, None] == indices) - proportion[:, None])
    return np.kron(sides[0], sides[1])


def _owners(terms: Sequence[Sequence[int]]) -> set[tuple[int, ...]]:
    """Return all columns and pairs that have terms, and the columns of those pairs."""
    pairs = {(first, second) for first, _, second, _ in terms if second != NONE}
    return {*pairs, *((column,) for c, _, s, _ in terms for column in (c, s) if column != NONE)}


def _grid(domain: Domain, place: int, points: int) -> NDArray[Any]:
    column = [*domain.columns.values()][place]
    if isinstance(column, Range):
        return np.linspace(column.low, column.high, points)
    assert isinstance(column, Categories), "other columns are refused"
    return np.array(column.values)


def encode_points(domain: Domain, place: int, points: NDArray[Any]) -> NDArray[np.float64]:
    """Encoded rows with these values of one column, and any legal value in the others."""
    table: dict[str, Any] = {}
    for number, (name, column) in enumerate(domain.columns.items()):
        usual = np.array([column.centre if isinstance(column, Range) else None] * len(points))
        table[name] = points if number == place else usual
    return encode_table(domain, table)


def _of_column(single: Dictionary, column: int, rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Functions at encoded rows, 0 where they are another column's; shape (sides, rows)."""
    return np.asarray(single.values(rows) * (single.terms[:, [0]] == column))


def _representatives(
    domain: Domain, dictionary: Dictionary, column: int, levels: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Encoded rows that represent all values of a column, and the proportion of each."""
    layout, ranks = dictionary.layout, dictionary.ranks
    if len(levels):
        return encode_points(domain, column, _grid(domain, column, 0)), levels
    number = layout.numeric.index(column)
    # Encoded rows whose number is in the middle of every bin.
    middles = (np.arange(BINS) + 0.5) * (2 * LIMIT / BINS) - LIMIT
    rows = np.zeros((BINS, domain.width))
    rows[:, layout.starts[column]] = ranks.means[number] + middles * ranks.widths[number]
    return rows, ranks.shares[number]


def _bins(
    domain: Domain, dictionary: Dictionary, column: int, points: NDArray[Any]
) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.float64]]:
    """Of points of a number: their bins, which lie beyond all bins, and the proportions of bins."""
    ranks, number = dictionary.ranks, dictionary.layout.numeric.index(column)
    encoded = encode_points(domain, column, points)[:, dictionary.layout.starts[column]]
    z = (encoded - ranks.means[number]) / ranks.widths[number]
    bins = np.clip(((z + LIMIT) * (BINS / (2 * LIMIT))).astype(int), 0, BINS - 1)
    return bins, np.abs(z) > LIMIT, ranks.shares[number]


def frequencies_at(
    domain: Domain,
    dictionary: Dictionary,
    column: int,
    points: NDArray[Any],
    levels: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return how often records lie at each point, by released shares; they add up to 1."""
    if len(levels):
        return levels
    bins, is_beyond, proportions = _bins(domain, dictionary, column, points)
    weights = np.where(is_beyond, 0.0, proportions[bins])
    weights = weights if weights.sum() > 0 else np.ones(len(points))
    return np.asarray(weights / weights.sum())


def rare_points(
    domain: Domain,
    dictionary: Dictionary,
    column: int,
    points: NDArray[Any],
    levels: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Which points of a column hold less than 1 % of the records, by released shares."""
    if len(levels):
        return levels < _RARE
    bins, is_beyond, proportions = _bins(domain, dictionary, column, points)
    return np.asarray(~_close_gaps(proportions >= _RARE)[bins] | is_beyond)


def _close_gaps(is_frequent: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which bins hold many records, or lie in a gap of a standard deviation between two that do:
    whole numbers leave bins empty."""
    closed_bins, places = is_frequent.copy(), np.flatnonzero(is_frequent)
    for first, second in itertools.pairwise(places.tolist()):
        if second - first <= _GAP:
            closed_bins[first:second] = True
    return closed_bins
