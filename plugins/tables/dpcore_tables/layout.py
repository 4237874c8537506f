r"""Which functions a table's columns have: the public side of the dictionary.

With t the private rank of a number in its column (a released distribution function of it) and z its
released standardised value, the functions of a column are

* of a number: level 0 is :math:`2z`, level k is :math:`\sqrt2\cos(k\pi t)`;
* of two categories: one level, -1 and +1;
* of L > 2 categories: level l is :math:`\sqrt L(1[x=l]-1/L)`.

They have mean 0 and variance about 1, where ranks are spread evenly. A number whose released shares
have a tail beyond the cells of z has a ramp there, too: 0 at their end, 1 at that of the declared
range. A term is one function, or the
product of two of different columns.
"""

import math
from collections.abc import Container
from typing import NamedTuple

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore import Categories, Domain, Range
from dpcore.errors import UndeclaredError

HIGHEST = 16
"""The highest level of a number."""

NONE = -1

UNUSED = -1
"""In place of the number of categories of a column that has no functions: the weights."""

PARTS = 64
"""Ranks at which a step may stand: q/64; the step at q/64 is level HIGHEST + q."""

RAMP = HIGHEST + PARTS
"""The level of a ramp in the upper tail of a number; of the lower one it is the next."""


class Term(NamedTuple):
    """A function of one column, or a product: columns and levels; -1 for no second one."""

    column: int
    level: int
    second: int = NONE
    second_level: int = NONE


@attrs.frozen(eq=False)
class Layout:
    """Declared columns by the kind of their functions.

    Args:
        levels: L of every declared column of categories, 0 for a number, -1 for the weights.
        starts: The first encoded column of every declared one.
        products: Which pairs of columns, in order, may have products; all of them if None.
    """

    levels: tuple[int, ...]
    starts: tuple[int, ...]
    products: frozenset[tuple[int, int]] | None = None

    @classmethod
    def of(cls, domain: Domain, weight: str | None = None) -> "Layout":
        """In order of encoding; the column of weights has no functions.

        Raises:
            UndeclaredError: a column is of texts.
        """
        levels, starts, start = [], [], 0
        for name, column in domain.columns.items():
            # Texts have no public list of values: a function of them could not be planned.
            if not isinstance(column, Range | Categories):
                raise UndeclaredError("shape_functions fits numbers and categories, not texts")
            count = 0 if isinstance(column, Range) else len(column.values)
            levels.append(UNUSED if name == weight else count)
            starts.append(start)
            start += column.width
        return cls(tuple(levels), tuple(starts))

    @property
    def columns(self) -> int:
        """How many columns the domain declares, categories and numbers together."""
        return len(self.levels)

    @property
    def numeric(self) -> tuple[int, ...]:
        """Declared columns that are numbers."""
        return tuple(j for j, levels in enumerate(self.levels) if levels == 0)

    @property
    def categorical(self) -> tuple[int, ...]:
        """Declared columns that have categories, in order."""
        return tuple(j for j, levels in enumerate(self.levels) if levels > 0)

    @property
    def encoded(self) -> NDArray[np.intp]:
        """Where numbers stand among encoded columns."""
        return np.array([self.starts[j] for j in self.numeric], dtype=np.intp)

    def simplest(self, column: int) -> list[Term]:
        """Return one function of a number (level 0), all of categories."""
        levels = self.levels[column]
        if levels == UNUSED:
            return []
        return [Term(column, level) for level in range(levels if levels > 2 else 1)]

    def once(self) -> list[Term]:
        """Return the simplest functions of all columns."""
        return [term for column in range(self.columns) for term in self.simplest(column)]

    def curves(self) -> list[Term]:
        """Of every number the simplest functions that no straight line shows."""
        return [Term(column, level) for level in (2, 3) for column in self.numeric]

    @property
    def simple(self) -> int:
        """How many functions `once` has."""
        return len(self.once())

    def levelled(self, column: int, highest: int) -> list[tuple[int, float]]:
        """Levels of a column for pairs, each with what its weight is divided by."""
        levels = self.levels[column]
        if levels == 0:
            return [(level, float(level * level)) for level in range(1, highest + 1)]
        if levels == 2:
            return [(0, 1.0)]
        return [(level, math.sqrt(levels)) for level in range(max(levels, 0))]

    def has_pair(self, first: int, second: int) -> bool:
        """Return whether two columns, in order, may have products."""
        return self.products is None or (first, second) in self.products

    def pairs(self, highest: int, bent: Container[int] | None = None) -> list[tuple[Term, float]]:
        """Products of functions of different columns, with the product of their divisors.

        Args:
            highest: Level of numbers. bent: The columns of which it is above 1; all if None.
        """
        sides = [
            self.levelled(column, highest if bent is None or column in bent else 1)
            for column in range(self.columns)
        ]
        return [
            (Term(i, k, j, level), first * second)
            for i in range(self.columns)
            for j in range(i + 1, self.columns)
            if self.has_pair(i, j)
            for k, first in sides[i]
            for level, second in sides[j]
        ]
