r"""Shapes: what a model says of each column and pair, from released answers alone.

.. math:: f_j(x)=\sum_kw_{jk}v_{jk}\psi_{jk}(x),\qquad
          f_{ij}(x,x')=\sum w\,v\,\psi_{i}(x)\psi_{j}(x')

on public grids, in the units of the label (of classes: of the score). Functions of numbers are
centred by the released shares of bins, and the constant has what that takes off. Bands are two
standard deviations of what the noise of the gradients moved. They say nothing of bias: it is no
confidence interval. Rows longer than 1 are shortened, so that a prediction is a sum of shapes only
up to that factor; shapes are drawn with its median over rows simulated from the released shares,
columns independent and categories equally frequent.
"""

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore import Domain
from dpcore.domain.columns import Categories, Range
from dpcore.domain.domain import Table
from dpcore.learning.models.shapes import Shape
from dpcore_tables.dictionary import INTERCEPT, Dictionary
from dpcore_tables.layout import NONE
from dpcore_tables.ranks import BINS, FARTHEST
from dpcore_tables.synthetic_records import simulated_rows

_POINTS, _PAIR_POINTS = 100, 20
_RARE = 0.01
_GAP = 5  # places from one bin to the next: four bins between them are a standard deviation


def shapes_of(
    domain: Domain,
    dictionary: Dictionary,
    weights: NDArray[np.float64],
    spread: NDArray[np.float64],
    unit: float,
) -> tuple[Shape, ...]:
    """Every column's and pair's shape, the most important first.

    Args:
        weights: Shape (d, m). spread: Covariance of their noise, shape (d, d).
        unit: Of the label for each unit of a score.
    """
    names = list(domain.columns)
    # Rows are shortened to length 1: the intercept's entry shows by how much.
    factor = unit * float(np.median(simulated_rows(dictionary)[0])) / INTERCEPT
    shapes = []
    # One shape for each column or pair that has terms.
    for owner in sorted({(int(c), int(s)) for c, _, s, _ in dictionary.terms}):
        indices = np.flatnonzero((dictionary.terms[:, [0, 2]] == owner).all(axis=1))
        columns = tuple(names[column] for column in owner if column != NONE)
        grid = tuple(
            _grid(domain, name, _POINTS if len(columns) == 1 else _PAIR_POINTS) for name in columns
        )
        shape = tuple(len(points) for points in grid)
        functions = (
            _evaluate_terms(domain, dictionary, columns, grid)[indices]
            * dictionary.sizes[indices, None]
        )
        # Centred by released shares, so that a shape says how far from the average one is.
        functions -= _means(domain, dictionary, columns)[indices, None]
        # Covariance of these terms' weights alone: a band is pointwise, and of noise alone.
        block = spread[np.ix_(indices + 1, indices + 1)]
        values = factor * (functions.T @ weights[indices + 1])
        noise = np.sqrt(np.maximum(np.einsum("in,ij,jn->n", functions, block, functions), 0.0))
        frequencies = _frequencies(domain, dictionary, columns, grid)
        squared = float(frequencies @ (values**2).sum(axis=1))
        # What noise alone would make of the importance: a shape below it shows nothing.
        floor = weights.shape[1] * float(frequencies @ noise**2)
        single_output = weights.shape[1] == 1
        shapes.append(
            Shape(
                columns=columns,
                at=grid,
                values=values[:, 0].reshape(shape) if single_output else values.reshape(*shape, -1),
                band=2 * factor * noise.reshape(shape),
                rare=_rare(domain, dictionary, columns[0], grid[0]),
                importance=squared**0.5,
                floor=factor * floor**0.5,
            )
        )
    return tuple(sorted(shapes, key=lambda shape: -shape.importance))


def _grid(domain: Domain, name: str, points: int) -> NDArray[Any]:
    column = domain.columns[name]
    if isinstance(column, Range):
        return np.linspace(column.low, column.high, points)
    assert isinstance(column, Categories), "other columns are refused"
    return np.array(column.values)


def _table(domain: Domain, grid_columns: Table, count: int) -> dict[str, Any]:
    """Rows with some columns given, and any legal value in the others."""
    table: dict[str, Any] = {}
    for name, column in domain.columns.items():
        usual = np.array([column.centre if isinstance(column, Range) else None] * count)
        table[name] = grid_columns.get(name, usual)
    return table


def _evaluate_terms(
    domain: Domain,
    dictionary: Dictionary,
    columns: tuple[str, ...],
    grid: tuple[NDArray[Any], ...],
) -> NDArray[np.float64]:
    """psi of every term at every point of the grid; shape (d - 1, points)."""
    # All points of the grid as rows of a table, encoded as records are.
    spots = np.meshgrid(*[np.arange(len(points)) for points in grid], indexing="ij")
    grid_columns = {
        name: points[spot.reshape(-1)]
        for name, points, spot in zip(columns, grid, spots, strict=True)
    }
    count = spots[0].size
    return dictionary.values(domain.encode(_table(domain, grid_columns, count)))


def _means(domain: Domain, dictionary: Dictionary, columns: tuple[str, ...]) -> NDArray[np.float64]:
    """v psi's mean of a number's terms by the released shares; 0 of pairs and categories."""
    place, layout = list(domain.columns).index(columns[0]), dictionary.layout
    if len(columns) > 1 or place not in layout.numeric:
        return np.zeros(len(dictionary.terms))
    number, ranks = layout.numeric.index(place), dictionary.ranks
    # Encoded rows whose number stands in the middle of every bin.
    middles = (np.arange(BINS) + 0.5) * (2 * FARTHEST / BINS) - FARTHEST
    rows = np.zeros((BINS, domain.width))
    rows[:, layout.starts[place]] = ranks.means[number] + middles * ranks.widths[number]
    return np.asarray(dictionary.values(rows) @ ranks.shares[number] * dictionary.sizes)


def _frequencies(
    domain: Domain,
    dictionary: Dictionary,
    columns: tuple[str, ...],
    grid: tuple[NDArray[Any], ...],
) -> NDArray[np.float64]:
    """How often records lie at each point: released shares of numbers, categories alike."""
    frequencies, ranks = np.ones(1), dictionary.ranks
    for name, points in zip(columns, grid, strict=True):
        # Categories count alike: how often each occurs was not released.
        weights, column = np.ones(len(points)), domain.columns[name]
        if isinstance(column, Range):
            number = dictionary.layout.numeric.index(list(domain.columns).index(name))
            z = (column.encode(points)[:, 0] - ranks.means[number]) / ranks.widths[number]
            bins = np.clip(((z + FARTHEST) * (BINS / (2 * FARTHEST))).astype(int), 0, BINS - 1)
            weights = np.where(np.abs(z) > FARTHEST, 0.0, ranks.shares[number][bins])
            weights = weights if weights.sum() > 0 else np.ones(len(points))
        frequencies = np.outer(frequencies, weights / weights.sum()).reshape(-1)
    return frequencies


def _rare(
    domain: Domain, dictionary: Dictionary, name: str, points: NDArray[Any]
) -> NDArray[np.bool_]:
    column, place = domain.columns[name], list(domain.columns).index(name)
    if not isinstance(column, Range):
        return np.zeros(len(points), dtype=bool)
    number = dictionary.layout.numeric.index(place)
    ranks = dictionary.ranks
    z = (column.encode(points)[:, 0] - ranks.means[number]) / ranks.widths[number]
    bins = np.clip(((z + FARTHEST) * (BINS / (2 * FARTHEST))).astype(int), 0, BINS - 1)
    is_frequent = _close_gaps(ranks.shares[number] >= _RARE)
    return np.asarray(~is_frequent[bins] | (np.abs(z) > FARTHEST))


def _close_gaps(is_frequent: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which bins hold many records, or lie in a gap of a standard deviation between two that do:
    whole numbers leave bins empty."""
    closed_bins, places = is_frequent.copy(), np.flatnonzero(is_frequent)
    for first, second in itertools.pairwise(places.tolist()):
        if second - first <= _GAP:
            closed_bins[first:second] = True
    return closed_bins
