"""`release`: execute a release whose grid and noise the plan has fixed.

Each checks the statistic, adds the noise that `draw` makes, and shapes the result. It holds nothing
that depends on a value or on noise.
"""

from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, ClassVar, Self, TypeVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import positive
from dpcore.claims.mechanisms.noise.grid import Grid, wrapped
from dpcore.errors import ReleaseError
from dpcore.mechanism import (
    Mechanism,
    Needs,
    Prepared,
    coordinates,
    finite,
    free,
    from_real,
    integers,
    summed,
)
from dpcore.query import Query, SumQuery
from dpcore.randomness import Stream
from dpcore.sensitivity import AnySensitivity, Distance, Sensitivity

Integers = Callable[[int, Stream], NDArray[np.int64]]
Floats = Callable[[int, Stream], NDArray[np.float64]]
Width = TypeVar("Width", float, Fraction)

_WIDEST = 1 << 53


class Executed(Mechanism):
    """A mechanism that releases through an executor, which is made once for a planned query."""

    def release(
        self, value: NDArray[Any], query: Query, sensitivity: Sensitivity, noise: Stream
    ) -> NDArray[Any]:
        """Return the noisy value, by `prepared`.

        Raises:
            ContractError: `value` is not a finite statistic of the query's shape, or of its kind.
            ReleaseError: the noise is wider than 2^53 steps, or a float sum overflows.
        """
        return self.prepared(query, sensitivity)(value, query, noise)

    def grid(self, query: Query, sensitivity: AnySensitivity) -> Grid:
        """Return the grid of one query, for laws that round to one; the plan fixes it."""
        grid = Grid.for_release(sensitivity.smallest, query.real_size, sensitivity.distance)
        if not isinstance(query, SumQuery) or query.bands is None:
            return grid
        # Rounding or clamping would make what a record moves depend on earlier answers: sums of
        # whole units are on this grid, and wrapping around is done to what is released.
        return attrs.evolve(grid, exponent=min(grid.exponent, query.sum.unit), wraps=True)

    @abstractmethod
    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """Return the executor; raises `ReleaseError` where the noise is wider than 2^53 steps."""


@attrs.frozen(kw_only=True)
class LaplaceNoise(Executed):
    """Noise of scale `noise_scale` on every real coordinate, for l1: Laplace's, or by its law."""

    needs: ClassVar[Needs] = Needs(distance=Distance.L1, integers=True, additive=True, persons=True)

    noise_scale: float = free(validator=positive)

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> Self:
        """Set noise_scale = scale * l1_sensitivity, so that one query costs epsilon = 1/scale."""
        return attrs.evolve(self, noise_scale=scale * sensitivity.unit)


def drawable(width: Width) -> Width:
    """Return the width, in steps, if integer draws with it are exact.

    Raises:
        ReleaseError: it is above 2^53.
    """
    if not width <= _WIDEST:
        raise ReleaseError(f"noise of {float(width):.3g} steps is too wide to be exact")
    return width


@attrs.frozen(eq=False)
class OnGrid:
    """The statistic rounded to a grid, plus integer noise and so many halves of a step. Exact."""

    grid: Grid
    draw: Integers
    halves: int = 0

    def __call__(self, value: NDArray[Any], query: Query, noise: Stream) -> NDArray[Any]:
        """Return a multiple of the grid's step, or an odd one of half of it."""
        # after the rounding all is in integers: no low bit depends on the unrounded value
        steps = self.grid.round(summed(value, query))
        steps += self.draw(steps.size, noise)
        steps = wrapped(steps) if self.grid.wraps else steps
        return from_real(self.grid.values(steps, halves=self.halves), query)


def whole_numbers_only(query: Query) -> str:
    """Explain why an integer mechanism could not release a query's values; empty if it could."""
    if query.values == "integers":
        return ""
    return (
        "it releases whole numbers, and the query states reals (take gaussian or laplace, which "
        'round them; counts say values="integers")'
    )


@attrs.frozen(eq=False)
class OnIntegers:
    """A statistic of integers, plus integer noise. Exact."""

    draw: Integers

    def __call__(self, value: NDArray[Any], query: Query, noise: Stream) -> NDArray[Any]:
        """Release integers, as floats."""
        noisy = integers(value, query)
        noisy += self.draw(noisy.size, noise)
        return from_real(noisy.astype(np.float64), query)


@attrs.frozen(eq=False)
class InFloats:
    """The statistic plus floats: a claim about real arithmetic, whose low bits are not covered."""

    draw: Floats

    def __call__(self, value: NDArray[Any], query: Query, noise: Stream) -> NDArray[Any]:
        """Release floats, none of which overflowed."""
        exact = coordinates(value, query)
        # an overflow is refused by `finite` below
        with np.errstate(over="ignore"):
            noisy = exact + self.draw(exact.size, noise)
        return from_real(finite(noisy, query), query)
