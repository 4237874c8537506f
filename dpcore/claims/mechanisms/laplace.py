"""The Laplace mechanism: exact on a grid by default, and accounted as the Laplace it is."""

from fractions import Fraction
from typing import ClassVar, Literal

import attrs

from dpcore.checks import one_of
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.mechanisms.noise.discrete_laplace import laplace_distribution
from dpcore.claims.mechanisms.noise.release import InFloats, LaplaceNoise, OnGrid, drawable
from dpcore.interval import LaplaceDistribution
from dpcore.mechanism import Arithmetic, Prepared
from dpcore.query import Query
from dpcore.rounding import up
from dpcore.sensitivity import Sensitivity


@attrs.frozen(kw_only=True)
class Laplace(LaplaceNoise):
    r"""Laplace noise of scale `noise_scale` on every real coordinate: pure differential privacy.

    * `noise: grid` (default). The statistic is rounded to a public grid of step g, at most
      :math:`\Delta/(1000 d)`, so that its l1 sensitivity is :math:`\Delta_{grid}=\Delta/g+d` steps.
      The release is :math:`\lfloor v + X\rfloor + 1/2` for Laplace X of scale
      :math:`t=(\text{noise\_scale}/\Delta)\,\Delta_{grid}` steps. As v is an integer, floor(X) is
      all that is drawn, exactly: the continuous mechanism on the rounded statistic, post-processed.
      The noise is at most 0.2 % wider than the float one. Exact arithmetic.
    * `noise: float`. Floating-point Laplace draws: the claim holds in real arithmetic only, as low
      bits can distinguish neighbours  (Mironov 2012).

    Args:
        noise_scale: Scale b of the noise, in the units of the statistic; calibrated if left out.
        noise: `grid` or `float`.

    Source: Dwork, McSherry, Nissim & Smith (2006), Proposition 1; on the grid, post-processing.
    """

    source: ClassVar[str] = (
        "Dwork, McSherry, Nissim & Smith (2006), Proposition 1; on a grid, post-processed"
    )
    rule: ClassVar[tuple[str, ...]] = ("laplace", "noise_scale")

    noise: Literal["grid", "float"] = attrs.field(default="grid", validator=one_of("grid", "float"))

    @property
    def arithmetic(self) -> Arithmetic:
        """`exact` on the grid, `real` where noise is drawn as floats."""
        return "exact" if self.noise == "grid" else "real"

    def scale(self, query: Query, sensitivity: Sensitivity) -> Fraction:
        """Return t above, in steps of the grid, exactly."""
        steps = self.grid(query, sensitivity).sensitivity(sensitivity.unit)
        return Fraction(self.noise_scale) / Fraction(sensitivity.unit) * steps

    def noise_distribution(self, query: Query, sensitivity: Sensitivity) -> LaplaceDistribution:
        """Return a Laplace law; on the grid two roundings of half a step each are added."""
        if self.noise == "float":
            return LaplaceDistribution(scale=self.noise_scale)
        step = self.grid(query, sensitivity).step
        scale = up(float(self.scale(query, sensitivity)), roundings=1) * step
        return LaplaceDistribution(scale=scale, rounding=step)

    def event(
        self, query: Query, sensitivity: Sensitivity, moved: float | None = None
    ) -> LaplaceEvent:
        """Return a Laplace shifted by l1_sensitivity / noise_scale, rounded up.

        Raises:
            ParameterError: the sensitivity is too far from 1 for a grid.
        """
        # a plan fails here where no grid fits, before any record is read
        if self.noise == "grid":
            self.grid(query, sensitivity)
        shift = up(sensitivity.unit / self.noise_scale, roundings=3)
        return LaplaceEvent(shift=shift, adjacency=sensitivity.adjacency)

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """Prepare the grid and the sampler's tables, which depend on the scale only."""
        if self.noise == "float":
            from dpcore.claims.mechanisms.noise.continuous import laplace

            return InFloats(lambda count, noise: self.noise_scale * laplace(count, noise))
        # floor(X) lies half a step low on average, which `halves` adds back
        distribution = laplace_distribution(
            drawable(self.scale(query, sensitivity)), query.real_size
        )
        return OnGrid(self.grid(query, sensitivity), distribution.floored, halves=1)
