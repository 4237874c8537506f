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
    factor = unit * float(np.median(simulated_rows(dictionary)[0])) / INTERCEPT
    found = []
    for owner in sorted({(int(c), int(s)) for c, _, s, _ in dictionary.terms}):
        chosen = np.flatnonzero((dictionary.terms[:, [0, 2]] == owner).all(axis=1))
        columns = tuple(names[column] for column in owner if column != NONE)
        grid = tuple(
            _grid(domain, name, _POINTS if len(columns) == 1 else _PAIR_POINTS) for name in columns
        )
        shape = tuple(len(points) for points in grid)
        functions = _at(domain, dictionary, columns, grid)[chosen] * dictionary.sizes[chosen, None]
        functions -= _means(domain, dictionary, columns)[chosen, None]
        block = spread[np.ix_(chosen + 1, chosen + 1)]
        values = factor * (functions.T @ weights[chosen + 1])
        noise = np.sqrt(np.maximum(np.einsum("in,ij,jn->n", functions, block, functions), 0.0))
        often = _frequencies(domain, dictionary, columns, grid)
        squared = float(often @ (values**2).sum(axis=1))
        floor = weights.shape[1] * float(often @ noise**2)
        one = weights.shape[1] == 1
        found.append(
            Shape(
                columns=columns,
                at=grid,
                values=values[:, 0].reshape(shape) if one else values.reshape(*shape, -1),
                band=2 * factor * noise.reshape(shape),
                rare=_rare(domain, dictionary, columns[0], grid[0]),
                importance=squared**0.5,
                floor=factor * floor**0.5,
            )
        )
    return tuple(sorted(found, key=lambda shape: -shape.importance))


def _grid(domain: Domain, name: str, points: int) -> NDArray[Any]:
    column = domain.columns[name]
    if isinstance(column, Range):
        return np.linspace(column.low, column.high, points)
    assert isinstance(column, Categories), "other columns are refused"
    return np.array(column.values)


def _table(domain: Domain, given: Table, count: int) -> dict[str, Any]:
    """Rows with some columns given, and any legal value in the others."""
    found: dict[str, Any] = {}
    for name, column in domain.columns.items():
        usual = np.array([column.centre if isinstance(column, Range) else None] * count)
        found[name] = given.get(name, usual)
    return found


def _at(
    domain: Domain,
    dictionary: Dictionary,
    columns: tuple[str, ...],
    grid: tuple[NDArray[Any], ...],
) -> NDArray[np.float64]:
    """psi of every term at every point of the grid; shape (d - 1, points)."""
    spots = np.meshgrid(*[np.arange(len(points)) for points in grid], indexing="ij")
    given = {
        name: points[spot.reshape(-1)]
        for name, points, spot in zip(columns, grid, spots, strict=True)
    }
    count = spots[0].size
    return dictionary.values(domain.encode(_table(domain, given, count)))


def _means(domain: Domain, dictionary: Dictionary, columns: tuple[str, ...]) -> NDArray[np.float64]:
    """v psi's mean of a number's terms by the released shares; 0 of pairs and categories."""
    found = np.zeros(len(dictionary.terms))
    place = list(domain.columns).index(columns[0])
    if len(columns) > 1 or place not in dictionary.layout.numeric:
        return found
    number = dictionary.layout.numeric.index(place)
    values = dictionary.values(_middles(dictionary, number, place, domain.width))
    return np.asarray(values @ dictionary.ranks.shares[number] * dictionary.sizes)


def _middles(dictionary: Dictionary, number: int, place: int, width: int) -> NDArray[np.float64]:
    """Encoded rows whose number stands in the middle of every bin; shape (24, p)."""
    z = (np.arange(BINS) + 0.5) * (2 * FARTHEST / BINS) - FARTHEST
    rows = np.zeros((BINS, width))
    ranks = dictionary.ranks
    rows[:, dictionary.layout.starts[place]] = ranks.means[number] + z * ranks.widths[number]
    return rows


def _frequencies(
    domain: Domain,
    dictionary: Dictionary,
    columns: tuple[str, ...],
    grid: tuple[NDArray[Any], ...],
) -> NDArray[np.float64]:
    """How often records lie at each point: released shares of numbers, categories alike."""
    found, ranks = np.ones(1), dictionary.ranks
    for name, points in zip(columns, grid, strict=True):
        own, column = np.ones(len(points)), domain.columns[name]
        if isinstance(column, Range):
            number = dictionary.layout.numeric.index(list(domain.columns).index(name))
            z = (column.encode(points)[:, 0] - ranks.means[number]) / ranks.widths[number]
            bins = np.clip(((z + FARTHEST) * (BINS / (2 * FARTHEST))).astype(int), 0, BINS - 1)
            own = np.where(np.abs(z) > FARTHEST, 0.0, ranks.shares[number][bins])
            own = own if own.sum() > 0 else np.ones(len(points))
        found = np.outer(found, own / own.sum()).reshape(-1)
    return found


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
    often = _closed(ranks.shares[number] >= _RARE)
    return np.asarray(~often[bins] | (np.abs(z) > FARTHEST))


def _closed(often: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which bins hold many records, or lie in a gap of a standard deviation between two that do:
    whole numbers leave bins empty."""
    found, places = often.copy(), np.flatnonzero(often)
    for one, other in itertools.pairwise(places.tolist()):
        if other - one <= _GAP:
            found[one:other] = True
    return found
