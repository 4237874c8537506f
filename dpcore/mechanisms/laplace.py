"""The Laplace mechanism: exact on a grid by default, and accounted as the Laplace it is."""

from fractions import Fraction
from typing import Any, ClassVar, Literal

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.checks import one_of, positive
from dpcore.distance import Distance
from dpcore.errors import ReleaseError
from dpcore.events.laplace import LaplaceEvent
from dpcore.mechanism import (
    Arithmetic,
    Mechanism,
    Prepared,
    coordinates,
    finite,
    free,
    from_real,
)
from dpcore.mechanisms.noise.discrete_laplace import laplace_law
from dpcore.mechanisms.noise.grid import Grid
from dpcore.mechanisms.noise.magnitudes import Magnitudes
from dpcore.query import Query
from dpcore.randomness import Stream
from dpcore.rounding import up
from dpcore.sensitivity import Sensitivity

_WIDEST = 2**53  # steps


@attrs.frozen(kw_only=True)
class Laplace(Mechanism):
    r"""Laplace noise of scale `noise_scale` on every real coordinate: pure differential privacy.

    * `noise: grid` (default). The statistic is rounded to a public grid of step g, at most
      :math:`\Delta/(1000 d)`, so that its l1 sensitivity is :math:`\Delta_{grid}=\Delta/g+d` steps.
      The release is :math:`\lfloor v + X\rfloor + 1/2` for Laplace X of scale
      :math:`t=(\text{noise\_scale}/\Delta)\,\Delta_{grid}` steps. As v is an integer, floor(X) is
      all that is drawn, exactly: the continuous mechanism on the rounded statistic, post-processed.
      The noise is at most 0.2 % wider than the float one. Exact arithmetic.
    * `noise: float`. Floating-point Laplace draws: the claim holds in real arithmetic only, as low
      bits can tell neighbours apart (Mironov 2012).

    Args:
        noise_scale: Scale b of the noise, in the units of the statistic; calibrated if left out.
        noise: `grid` or `float`.

    Source: Dwork, McSherry, Nissim & Smith (2006), Proposition 1; on the grid, post-processing.
    """

    distance: ClassVar[Distance] = Distance.L1
    source: ClassVar[str] = (
        "Dwork, McSherry, Nissim & Smith (2006), Proposition 1; on a grid, post-processed"
    )

    noise_scale: float | None = free(validator=positive)
    noise: Literal["grid", "float"] = attrs.field(default="grid", validator=one_of("grid", "float"))

    @property
    def arithmetic(self) -> Arithmetic:
        """`exact` on the grid."""
        return "exact" if self.noise == "grid" else "real"

    def at(self, scale: float, query: Query, sensitivity: Sensitivity) -> "Laplace":
        """noise_scale = scale * l1_sensitivity, so that one ask costs epsilon = 1/scale."""
        return attrs.evolve(self, noise_scale=scale * sensitivity.unit)

    def grid(self, query: Query, sensitivity: Sensitivity) -> Grid:
        """The grid of one ask; the plan fixes it."""
        return Grid.for_release(sensitivity.unit, query.real_size, sensitivity.distance)

    def scale(self, query: Query, sensitivity: Sensitivity) -> Fraction:
        """t above, in steps of the grid, exactly."""
        assert self.noise_scale is not None, "calibrate the mechanism first"
        steps = self.grid(query, sensitivity).sensitivity(sensitivity.unit)
        return Fraction(self.noise_scale) / Fraction(sensitivity.unit) * steps

    def event(self, query: Query, sensitivity: Sensitivity) -> LaplaceEvent:
        """A Laplace shifted by l1_sensitivity / noise_scale, rounded up.

        Raises:
            ParameterError: the sensitivity is too far from 1 for a grid.
        """
        assert self.noise_scale is not None, "calibrate the mechanism first"
        if self.noise == "grid":
            self.grid(query, sensitivity)
        shift = up(sensitivity.unit / self.noise_scale, roundings=3)
        return LaplaceEvent(shift=shift, adjacency=sensitivity.adjacency)

    def release(
        self, value: NDArray[Any], query: Query, sensitivity: Sensitivity, noise: Stream
    ) -> NDArray[Any]:
        """The noisy value; on the grid an odd multiple of half its step.

        Raises:
            ContractError: `value` is not a finite statistic of the query's shape.
            ReleaseError: the noise is wider than 2^53 steps of the grid, or a float sum overflows.
        """
        return self.prepared(query, sensitivity)(value, query, noise)

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """With the grid and the sampler's tables, which depend on the scale alone, made once.

        Raises:
            ReleaseError: the noise is wider than 2^53 steps of the grid.
        """
        assert self.noise_scale is not None, "calibrate the mechanism first"
        if self.noise == "float":
            return _InFloats(self.noise_scale)
        scale = self.scale(query, sensitivity)
        if not scale <= _WIDEST:
            raise ReleaseError(f"noise of {float(scale):.3g} grid steps is too wide to be exact")
        return _OnGrid(self.grid(query, sensitivity), laplace_law(scale, query.real_size))


@attrs.frozen(eq=False)
class _InFloats:
    noise_scale: float

    def __call__(self, value: NDArray[Any], query: Query, noise: Stream) -> NDArray[Any]:
        exact = coordinates(value, query)
        words = noise.uniform((2, exact.size))
        draws = np.log(words[0]) * np.where(words[1] < 0.5, 1.0, -1.0)
        with np.errstate(over="ignore"):
            noisy = exact + self.noise_scale * draws
        return from_real(finite(noisy, query), query)


@attrs.frozen(eq=False)
class _OnGrid:
    grid: Grid
    law: Magnitudes

    def __call__(self, value: NDArray[Any], query: Query, noise: Stream) -> NDArray[Any]:
        steps = self.grid.round(coordinates(value, query))
        steps += self.law.floored(steps.size, noise)
        return from_real(self.grid.values(steps, halves=1), query)
