"""Shapes: what an additive model says of single columns and pairs of them, for people to look at.

A shape is a function of released answers and public facts, like everything that a model publishes.
"""

from typing import Any, Protocol, runtime_checkable

import attrs
import numpy as np
from numpy.typing import NDArray


@attrs.frozen(kw_only=True, eq=False)
class Shape:
    """One column's function, or a pair's.

    Args:
        columns: One name, or two.
        at: Where it is drawn, by column: points of its grid, or its categories.
        values: Shape (points,) or (points, points'), for several classes with a last axis.
        band: Two standard deviations by noise, of the same shape without the last axis.
        rare: At which points of a number the released histogram holds less than 1 % of records.
        importance: Root mean square of the values, over points as frequent as the released shares
            say; floor: what noise alone makes of it.
    """

    columns: tuple[str, ...]
    at: tuple[NDArray[Any], ...]
    values: NDArray[np.float64]
    band: NDArray[np.float64]
    rare: NDArray[np.bool_]
    importance: float
    floor: float

    @property
    def found(self) -> bool:
        """Whether it stands out of the noise."""
        return self.importance > self.floor


@runtime_checkable
class Shaped(Protocol):
    """A model whose score is a sum of shapes."""

    def shapes(self) -> tuple[Shape, ...]:
        """Every column's and pair's shape, the most important first."""
