"""Rows: synthetic records that a domain can really hold.

A row is searched for as one raw number per encoded column, and goes through `project_table` like
any user's row would. So no attack uses a record that a run could not see, whatever the encoding.
"""

from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Categories, Domain, Range, Records
from dpcore.domain import Classes, Texts
from dpcore.domain.domain import Column
from dpcore.encoding.columns import write_cells
from dpcore.encoding.tables import project_table

_UNKNOWN = "\x00unknown"


@attrs.frozen(eq=False)
class Rows:
    """Raw rows of one domain: shape (k, `width`), entries in [-1, 1] before projection.

    A range reads its entry as a position between its ends, and a second one above 1/2 as missing;
    two categories read its sign; a list of categories the largest of its entries. Small entries
    represent an unknown category.
    """

    domain: Domain

    @property
    def width(self) -> int:
        """Entries of a raw row."""
        return self.domain.width

    @property
    def label_bound(self) -> float:
        """Largest raw label: M, or 1 where labels are classes, or where there are none."""
        plain = self.domain.classes or not self.domain.labelled
        return 1.0 if plain else self.domain.label_bound

    def project(self, raw: NDArray[np.float64], labels: NDArray[np.float64]) -> Records:
        """Return the records that raw rows with centred labels become. Shapes (k, width), (k,)."""
        return project_table(self.domain, self.table(raw, labels))

    def table(self, raw: NDArray[np.float64], labels: NDArray[np.float64]) -> dict[str, Any]:
        """Return the same rows as a user's file would hold them."""
        table: dict[str, Any] = {}
        start = 0
        for name, column in self.domain.columns.items():
            table[name] = _values(column, raw[:, start : start + column.width])
            start += column.width
        for name, column in self.domain.groups.items():  # no learner sees them: all the same
            table[name] = _values(column, np.ones((len(raw), column.width)))
        if self.domain.labelled:
            table[self.domain.target] = _target(self.domain.labels, np.asarray(labels))
        return table

    def corners(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Random corners of the raw box, shape (count, width)."""
        return np.asarray(rng.choice([-1.0, 1.0], (count, self.width)))

    def anywhere(self, rng: np.random.Generator, count: int) -> NDArray[np.float64]:
        """Random rows, some of them short, shape (count, width)."""
        lengths = rng.choice([1.0, 1.0, 0.3], (count, 1))
        return np.asarray(rng.uniform(-1, 1, (count, self.width)) * lengths)

    def structured(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Axes, lines along them and across, corners and their opposites, zero, and random rows of
        every length: where norms and definiteness break.
        """
        width = self.width
        axes = np.eye(width)[rng.permutation(width)[:6]]
        line = np.linspace(-1, 1, 41)[:, None]
        across = rng.uniform(-1, 1, (2, width))
        corners = self.corners(rng, 30)
        lengths = rng.choice([1.0, 0.7, 0.3, 0.05], (200, 1))
        return np.vstack(
            [
                axes,
                -axes,
                *(line * axis for axis in axes[:3]),
                line * across[0],
                np.clip(across[1] + 0.3 * line * across[0], -1, 1),
                corners,
                -corners[:10],
                np.zeros((1, width)),
                lengths * rng.uniform(-1, 1, (200, width)),
            ]
        )

    def directions(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """Two rows at a right angle (one row and zeros if there is one column), shape (2, width).

        Of the first three kinds (axes, a corner and a corner, random), one is drawn.
        """
        if self.width == 1:
            return np.array([[1.0], [0.0]])
        kind = rng.integers(3)
        if kind == 0:
            return np.asarray(np.eye(self.width)[rng.choice(self.width, 2, replace=False)])
        first = self.corners(rng, 1)[0] if kind == 1 else rng.normal(size=self.width)
        second = first.copy()
        flipped = rng.permutation(self.width)[: self.width // 2]
        second[flipped] *= -1
        second -= first * (second @ first) / (first @ first)
        if not second.any():
            second = np.roll(np.eye(1, self.width)[0], 1)
        # the largest entry of either becomes 1: rows reach the side of the raw box
        scale = np.array([np.abs(first).max(), np.abs(second).max()])
        return np.asarray(np.array([first, second]) / scale[:, None])


def cells_of(rule: Column | Classes) -> list[Any]:
    """Return a few cells that a column may hold: ends, points between, categories, and what is
    none.
    """
    if isinstance(rule, Texts):
        return ["a", "b" * rule.longest, "c", None]
    if not isinstance(rule, Range):
        return [*rule.values[:4], _UNKNOWN]
    points = rule.centre + rule.half_width * np.array([-1.0, -0.31, 0.0, 0.62, 1.0])
    return [*write_cells(rule, points), None]


def _target(target: Range | Classes, labels: NDArray[np.float64]) -> NDArray[Any]:
    """Labels in the file's units. Of classes, [-1, 1] is cut into equal parts; near 0: unknown."""
    if not isinstance(target, Classes):
        return write_cells(target, labels + target.centre)
    # equal parts of [-1, 1], so that a search over numbers reaches every class
    codes = np.clip((labels + 1) / 2 * target.count, 0, target.count - 1).astype(np.intp)
    values = np.array([*target.values, _UNKNOWN], dtype=object)
    return np.asarray(values[np.where(np.abs(labels) < 0.05, target.count, codes)])


def _values(column: Column, raw: NDArray[np.float64]) -> NDArray[Any]:
    """Return a table column in the file's units, shape (k,)."""
    if isinstance(column, Categories):
        # small entries keep the last code, which is the unknown category
        codes = np.full(raw.shape[0], len(column.values), dtype=np.intp)
        if raw.shape[1] == 1:
            is_known = np.abs(raw[:, 0]) > 0.25
            codes[is_known] = (raw[is_known, 0] > 0).astype(np.intp)
        else:
            is_known = raw.max(axis=1) > 0.25
            codes[is_known] = np.argmax(raw[is_known], axis=1)
        values = np.array([*column.values, _UNKNOWN], dtype=object)
        return np.asarray(values[codes])
    if isinstance(column, Texts):
        return np.array([None if x < -0.9 else f"{abs(x):.1f}" for x in raw[:, 0]], dtype=object)
    values = column.centre + column.half_width * np.clip(raw[:, 0], -1, 1)
    if not column.missing:
        return write_cells(column, values)
    cells = write_cells(column, values).astype(object)
    cells[raw[:, 1] > 0.5] = None
    return np.asarray(cells)
