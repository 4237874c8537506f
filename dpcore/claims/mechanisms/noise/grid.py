r"""Grid: a public lattice of step 2^exponent on which a release is exact.

A statistic is rounded to the grid, clamped to a range that fits 64 bits, and gets integer noise;
what is published is a multiple of the step (or of half of it), whose low bits say nothing about
the statistic (Mironov 2012). The grid depends on the plan only. Rounding moves each of d
coordinates by at most half a step, on either neighbour, so that a sensitivity of Delta becomes

.. math:: \Delta/g + \sqrt d \quad (l_2), \qquad \Delta/g + d \quad (l_1), \qquad
          \Delta/g + 1 \quad (l_\infty)

steps; clamping moves no two values apart. Source: theorem T13, "Rounding".
"""

import math
from fractions import Fraction
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ParameterError, need
from dpcore.exact import Exact
from dpcore.rounding import up
from dpcore.sensitivity import Distance

_FINENESS = 1000  # rounding adds at most 1/1000 of the sensitivity
_LOWEST, _HIGHEST = -960, 900  # exponents: every multiple up to 2^63 is a normal float
LARGEST = 1 << 62
"""Rounded statistics are clamped to plus and minus this many steps."""
_HALF = 1 << 61


@attrs.frozen(kw_only=True)
class Grid:
    """Multiples of 2^exponent in `dimension` coordinates.

    Args:
        exponent: log2 of the step, in the units of the statistic.
        dimension: Number of real coordinates.
        distance: The norm of the sensitivities it is for: l1, l2 or linf.
        wraps: Whether exact sums are taken modulo 2^62 steps instead of clamped: then a release,
            modulo the same, is a function of the one without limits.
    """

    exponent: int
    dimension: int
    distance: Distance
    wraps: bool = False

    @classmethod
    def for_release(
        cls, unit: float, dimension: int, distance: Distance, fineness: int = _FINENESS
    ) -> "Grid":
        """Return the coarsest grid whose rounding adds at most 1/`fineness` of the sensitivity.

        Raises:
            ParameterError: `unit` is so small or so large that the grid would leave the floats.
        """
        coarsest = Fraction(unit) / (fineness * _rounding(dimension, distance))
        # the largest power of two that is not above the bound, in integers
        exponent = coarsest.numerator.bit_length() - coarsest.denominator.bit_length()
        if Fraction(2) ** exponent > coarsest:
            exponent -= 1
        need(
            _LOWEST <= exponent <= _HIGHEST,
            "a grid release",
            "a sensitivity near 1",
            "sensitivity",
            unit,
        )
        return cls(exponent=exponent, dimension=dimension, distance=distance)

    @property
    def step(self) -> float:
        """2^exponent, in the units of the statistic."""
        return math.ldexp(1.0, self.exponent)

    def sensitivity(self, unit: float) -> Fraction:
        """Return the rounded statistic's sensitivity in steps, from the statistic's; rounded up."""
        return Fraction(unit) / Fraction(2) ** self.exponent + _rounding(
            self.dimension, self.distance
        )

    def round(self, coordinates: NDArray[np.float64] | Exact) -> NDArray[np.int64]:
        """Return the nearest numbers of steps, flat where they are `Exact`, clamped to +-2^62.

        Exact integers are rounded once, ties to even, so that no float lies between a sum and its
        steps. Infinities are clamped; NaN is not accepted here: mechanisms check for it before.
        """
        if isinstance(coordinates, Exact):
            multiples = coordinates.in_units(self.exponent)
            limited = wrapped(multiples) if self.wraps else multiples.clip(-LARGEST, LARGEST)
            return np.asarray(limited, dtype=np.int64)
        with np.errstate(over="ignore", under="ignore"):
            steps = np.ldexp(coordinates, -self.exponent)
        clamped: NDArray[np.float64] = np.clip(steps, -float(LARGEST), float(LARGEST))
        return np.rint(clamped).astype(np.int64)

    def values(self, steps: NDArray[np.int64], *, halves: int = 0) -> NDArray[np.float64]:
        """Return `steps + halves/2` steps in the units of the statistic.

        Exact up to 2^52 steps; beyond, the nearest float of a number that is itself released.
        """
        return np.ldexp(steps.astype(np.float64) + 0.5 * halves, self.exponent)


def wrapped(steps: Any) -> Any:
    """Reduce integers, an array or one, modulo 2^62 to the representative nearest to 0."""
    return ((steps + _HALF) & (2 * _HALF - 1)) - _HALF


def _rounding(dimension: int, distance: Distance) -> Fraction:
    """Return the number of steps that rounding may add between two neighbours; rounded up."""
    # each coordinate of either neighbour moves by half a step, so they part by up to one step
    if distance is Distance.L1:
        return Fraction(dimension)
    if distance is Distance.L2:
        root = math.isqrt(dimension)
        if root * root == dimension:
            return Fraction(root)
        return Fraction(up(math.sqrt(dimension), roundings=3))
    if distance is Distance.LINF:
        return Fraction(1)
    raise ParameterError("a grid release", "l1, l2 or linf", "distance", str(distance))
