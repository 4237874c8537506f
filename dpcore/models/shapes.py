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
        joint_band: About 0 it holds, everywhere at once with 95 %, the shape of a column that says
            nothing; noise and chance in the choice of records count.
        rare: At which points of the first column less than 1 % of records are released to be.
        importance: Root mean square of the values, over points as frequent as the released shares
            say; floor: what noise by itself makes of it.
        p_value: Of an importance so large, of a column that says nothing.
        found: Whether it is out of noise and chance, by the rule of the model's learner.
    """

    columns: tuple[str, ...]
    at: tuple[NDArray[Any], ...]
    values: NDArray[np.float64]
    band: NDArray[np.float64]
    joint_band: NDArray[np.float64]
    rare: NDArray[np.bool_]
    importance: float
    floor: float
    p_value: float
    found: bool


@runtime_checkable
class Shaped(Protocol):
    """A model whose score is a sum of shapes."""

    def shapes(self) -> tuple[Shape, ...]:
        """Return every column's and pair's shape, the most important first."""
