r"""What is done to shapes after the fit: projections on monotone curves, and edits by people.

Both are functions of released answers and public wishes, so nothing is spent on them.

The isotonic regression P of a curve, by the released shares p of its cells, is a mean over
stretches of neighbouring cells. Two facts bound what noise does to it, whatever the curves f and g:

* :math:`\sum p(Pf-Pg)^2\le\sum p(f-g)^2`: P is a projection on a convex cone;
* a mean over a stretch is moved by at most what moves the curve most within it.
"""

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Domain, Range
from dpcore.errors import UndeclaredError, need
from dpcore.models.shapes import Shape
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.ranks import BINS, CELLS, LIMIT, cells
from dpcore_tables.shapes.effects import encode_points, frequencies_at
from dpcore_tables.synthetic_records import usual_shortening


@attrs.frozen(kw_only=True, eq=False)
class Curve:
    """A monotone function of one number, constant on every cell of z.

    Args:
        column: Its place among the declared ones. values: In units of the score, shape (768,).
        stretches: Which stretch of equal values every cell is in, counted from 0, shape (768,).
        mean: Of the values, by released shares.
    """

    column: int
    values: NDArray[np.float64]
    stretches: NDArray[np.intp]
    mean: float

    @classmethod
    def of(
        cls, dictionary: Dictionary, weights: NDArray[np.float64], column: int, *, rises: bool
    ) -> "Curve":
        """Of a column whose terms are all its own.

        Args:
            weights: Of the terms, shape (d - 1,).
        """
        ranks, layout = dictionary.ranks, dictionary.layout
        number, is_of_column = layout.numeric.index(column), dictionary.terms[:, 0] == column
        single = dictionary.only(is_of_column)
        # Rows whose number is in the middle of every cell; no other column is looked at.
        middles = (np.arange(CELLS) + 0.5) * (2 * LIMIT / CELLS) - LIMIT
        rows = np.zeros((CELLS, layout.starts[-1] + max(layout.levels[-1], 1)))
        rows[:, layout.starts[column]] = ranks.means[number] + middles * ranks.widths[number]
        # Rows are shortened; as in shapes, the median factor represents all of them.
        factor = usual_shortening(dictionary)
        curve = factor * (weights[is_of_column] * single.sizes) @ single.values(rows)
        proportions = np.repeat(ranks.shares[number], CELLS // BINS) / (CELLS // BINS)
        sign = 1.0 if rises else -1.0
        values, stretches = isotonic(sign * curve, proportions)
        return cls(
            column=column,
            values=sign * values,
            stretches=stretches,
            mean=float(proportions @ values) * sign,
        )

    def cells(self, dictionary: Dictionary, encoded: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the cell of every encoded row, shape (n,)."""
        number = dictionary.layout.numeric.index(self.column)
        numbers = encoded[:, [dictionary.layout.starts[self.column]]]
        return cells(dictionary.ranks.only(number).standard(numbers)[0])


def isotonic(
    curve: NDArray[np.float64], proportions: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the nearest curve that never falls, and the stretch of every cell.

    Args:
        curve: Shape (k,). shares: What cells weigh, > 0, shape (k,).
    """
    means: list[float] = []
    weights: list[float] = []
    counts: list[int] = []
    # Neighbours that fall are pooled, until no mean is below the one before it.
    for value, proportion in zip(curve.tolist(), proportions.tolist(), strict=True):
        mean, weight, count = value, proportion, 1
        while means and means[-1] >= mean:
            total = weights[-1] + weight
            mean = (means.pop() * weights.pop() + mean * weight) / total
            weight, count = total, count + counts.pop()
        means.append(mean)
        weights.append(weight)
        counts.append(count)
    return np.repeat(means, counts), np.repeat(np.arange(len(counts)), counts)


@attrs.frozen(kw_only=True)
class Edit:
    """What a person added to a published shape.

    Args:
        column: Its name. where: Both ends of a stretch of numbers, or categories.
        add: In units of the shape. reason: Why, in the person's words.
    """

    column: str
    where: tuple[Any, ...]
    add: float
    reason: str

    def parts(self, domain: Domain) -> list[tuple[int, float, float]]:
        """Where encoded rows are edited: the encoded column, and the least and largest number.

        Raises:
            UndeclaredError: there is no such column, category, or stretch of numbers.
        """
        names = [*domain.columns]
        refusal = f"an edit is of one of the columns {', '.join(names)}, not of {self.column!r}"
        need(self.column in names, UndeclaredError, refusal)
        column, place = domain.columns[self.column], names.index(self.column)
        start = sum(other.width for other in [*domain.columns.values()][:place])
        if isinstance(column, Range):
            is_stretch = len(self.where) == 2 and self.where[0] <= self.where[1]
            refusal = f"an edit of the numbers {self.column} is of (low, high), not {self.where}"
            need(is_stretch, UndeclaredError, refusal)
            ends = encode_points(domain, place, np.clip(self.where, column.low, column.high))
            return [(start, float(ends[0, start]), float(ends[1, start]))]
        categories = [*getattr(column, "values", ())]
        unknown = [category for category in self.where if category not in categories]
        refusal = f"an edit of {self.column} is of its categories {categories}, not {self.where}"
        need(self.where and not unknown, UndeclaredError, refusal)
        # Two categories are -1 and 1; of several each has a column of its own.
        levels = [categories.index(category) for category in self.where]
        if column.width == 1:
            return [(start, 2.0 * level - 1, 2.0 * level - 1) for level in levels]
        return [(start + level, 1.0, 1.0) for level in levels]


def edits_at(
    edits: Sequence[Edit], domain: Domain, encoded: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what edits add to every encoded row, in units of shapes; shape (n,)."""
    total = np.zeros(len(encoded))
    for edit in edits:
        for index, low, high in edit.parts(domain):
            total += edit.add * ((low <= encoded[:, index]) & (encoded[:, index] <= high))
    return total


def changed_shape(
    shape: Shape,
    domain: Domain,
    dictionary: Dictionary,
    levels: Sequence[NDArray[np.float64]],
    unit: float,
    curves: Sequence[Curve],
    edits: Sequence[Edit],
) -> Shape:
    """Return a shape as it is after projection and edits; of a pair, as it was.

    On a stretch of equal values bands are as wide as the widest before: its mean moves by no more.

    Args:
        levels: The released proportions of every declared column's categories; empty for numbers.
        unit: Of the label for each unit of a score.
    """
    names = [*domain.columns]
    column, points = names.index(shape.columns[0]), shape.at[0]
    column_edits = [edit for edit in edits if (edit.column,) == shape.columns]
    column_curves = [curve for curve in curves if curve.column == column]
    if len(shape.columns) > 1 or not (column_edits or column_curves):
        return shape
    # A projection first, then what people added to it: an edit may turn a monotone column.
    encoded, values = encode_points(domain, column, points), shape.values
    band, joint_band = shape.band, shape.joint_band
    for curve in column_curves:
        indices = curve.cells(dictionary, encoded)
        values = unit * (curve.values[indices] - curve.mean)
        _, stretches = np.unique(curve.stretches[indices], return_inverse=True)
        band, joint_band = (_widest(stretches, widths) for widths in (band, joint_band))
    values = values + edits_at(column_edits, domain, encoded)
    frequencies = frequencies_at(domain, dictionary, column, points, levels[column])
    importance = float(np.sqrt(frequencies @ values**2))
    return attrs.evolve(
        shape, values=values, importance=importance, band=band, joint_band=joint_band
    )


def _widest(stretches: NDArray[np.intp], band: NDArray[np.float64]) -> NDArray[np.float64]:
    """At every point the widest of its stretch; both of shape (points,)."""
    widths = np.zeros(len(band))
    np.maximum.at(widths, stretches, band)
    return np.asarray(widths[stretches])
