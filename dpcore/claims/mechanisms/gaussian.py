"""The Gaussian mechanism: exact on a grid by default, and accounted as the Gaussian it is."""

import math
from typing import ClassVar, Literal

import attrs
import numpy as np

from dpcore.checks import one_of, positive
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.hit_mixture import HitMixtureEvent
from dpcore.claims.mechanisms.noise.grid import Grid
from dpcore.claims.mechanisms.noise.magnitudes import gaussian_distribution
from dpcore.claims.mechanisms.noise.release import Executed, InFloats, OnGrid, drawable
from dpcore.event import Event
from dpcore.interval import NormalDistribution
from dpcore.mechanism import Arithmetic, Needs, Prepared, free
from dpcore.query import Query
from dpcore.rounding import up
from dpcore.sensitivity import AnySensitivity, Distance, Sensitivity, SensitivityDistribution

_SMOOTHING = 3.0  # s2 of T13, in steps: e_{s2} < 1e-76


@attrs.frozen(kw_only=True)
class Gaussian(Executed):
    r"""Noise of standard deviation `noise_multiplier * l2_sensitivity` on every real coordinate.

    A complex entry is two real coordinates and gets independent noise on both (T2).

    * `noise: grid` (default). The statistic is rounded to a public grid of step g, and gets
      discrete Gaussian noise, drawn exactly, of width

      .. math:: s=\sqrt{(\text{noise\_multiplier}\cdot\Delta_{grid})^2+3^2},\qquad
                \Delta_{grid}=\Delta/g+\sqrt d

      in steps. By T13 that is no less private than a Gaussian of
      :math:`\mu=\Delta_{grid}/\sqrt{s^2-3^2}=1/\text{noise\_multiplier}`, up to a factor
      1 + d 1e-76 in delta, which is absorbed in rounding mu up. As g is at most
      :math:`\Delta/(1000\sqrt d)`, the noise is at most 0.1 % wider than the float one for
      multipliers above 0.1. Exact arithmetic.
    * `noise: float`. Floating-point Gaussian draws: the claim holds in real arithmetic only, as
      low bits can distinguish neighbours  (Mironov 2012).

    Where the sensitivity is a `HitDistribution`, the unit of the noise and of the grid is its
    smallest atom, and atom a is a shift of
    :math:`\mu_a=(a/g+\sqrt d)/(\text{noise\_multiplier}\,\Delta_{grid})`: the rounding is added to
    every atom.

    Args:
        noise_multiplier: Noise standard deviation over l2 sensitivity; calibrated if left out.
        noise: `grid` or `float`.

    Source: Balle & Wang (2018), arXiv:1805.06530v2, Theorem 8; on the grid, T13.
    """

    needs: ClassVar[Needs] = Needs(
        distance=Distance.L2,
        sensitivities=(Sensitivity, SensitivityDistribution),
        integers=True,
        additive=True,
        persons=True,
        bands=True,
    )
    source: ClassVar[str] = (
        "Balle & Wang (2018), arXiv:1805.06530v2, Theorem 8; on a grid, the smoothing lemma T13"
    )

    noise_multiplier: float = free(validator=positive)
    noise: Literal["grid", "float"] = attrs.field(default="grid", validator=one_of("grid", "float"))

    @property
    def arithmetic(self) -> Arithmetic:
        """`exact` on the grid, `real` where noise is drawn as floats."""
        return "exact" if self.noise == "grid" else "real"

    @property
    def rule(self) -> tuple[str, ...]:  # type: ignore[override]
        """On the grid the rule takes the grid's exponent as well."""
        return ("gaussian_on_grid" if self.noise == "grid" else "gaussian", "noise_multiplier")

    def at(self, scale: float, query: Query, sensitivity: AnySensitivity) -> "Gaussian":
        """Set noise_multiplier so that mu = 1/scale exactly; for a law, mu of its top."""
        return attrs.evolve(
            self, noise_multiplier=scale * (sensitivity.largest / sensitivity.smallest)
        )

    def noise_std(self, sensitivity: AnySensitivity) -> float:
        """Return noise_multiplier * l2_sensitivity, in the statistic's units, before the grid."""
        return self.noise_multiplier * sensitivity.smallest

    def width(self, query: Query, sensitivity: AnySensitivity) -> float:
        """Return s above, in steps of the grid, rounded up."""
        steps = _steps(self.grid(query, sensitivity), sensitivity.smallest)
        return up(math.hypot(self.noise_multiplier * steps, _SMOOTHING), roundings=3)

    def noise_distribution(self, query: Query, sensitivity: AnySensitivity) -> NormalDistribution:
        """Return a discrete Gaussian on the grid, whose rounding adds half a step."""
        if self.noise == "float":
            return NormalDistribution(width=self.noise_std(sensitivity))
        step = self.grid(query, sensitivity).step
        width = self.width(query, sensitivity) * step
        return NormalDistribution(width=width, step=step, rounding=step / 2)

    def event(self, query: Query, sensitivity: AnySensitivity, moved: float | None = None) -> Event:
        """Return a Gaussian of mu = 1/noise_multiplier, rounded up; for a law, a mixture of atoms.

        Where less is moved, mu is in proportion; on the grid, to the movement of rounded values.

        Raises:
            ParameterError: the sensitivity is too far from 1 for a grid.
        """
        grid = self.grid(query, sensitivity) if self.noise == "grid" else None
        if isinstance(sensitivity, SensitivityDistribution):
            return self._mixture(sensitivity, grid)
        # rounding up also covers the factor 1 + d 1e-76 of the smoothing lemma
        mu, fraction = up(1.0, roundings=3) / self.noise_multiplier, 1.0
        if moved is not None:
            fraction = moved / sensitivity.smallest
            # on the grid a movement is one of rounded values, which rounding may lengthen
            if grid is not None:
                fraction = _steps(grid, moved) / _steps(grid, sensitivity.smallest)
        if fraction < 1:
            mu = up(fraction / self.noise_multiplier, roundings=5)
        return GaussianEvent(mu=mu, adjacency=sensitivity.adjacency)

    def _mixture(self, sensitivity: SensitivityDistribution, grid: Grid | None) -> HitMixtureEvent:
        """Return the mixture over the law: a Gaussian shifted by each atom, rounded up.

        Shifts are in noise widths.
        """
        distribution = sensitivity.moved
        atoms = np.array(distribution.atoms)
        # every atom may grow by the rounding, the smallest one too, which is the unit
        if grid is not None:
            atoms = np.ldexp(atoms, -grid.exponent) + _steps(grid, 0.0)
        relative = up(atoms / atoms[0], roundings=10)
        return HitMixtureEvent(
            mus=up(
                # floats one by one: what is too large is infinite, and refused, without a warning
                np.array([r / self.noise_multiplier for r in relative.tolist()]),
                roundings=3,
            ),
            weights=distribution.weights,
            uncovered=distribution.uncovered,
            adjacency=sensitivity.adjacency,
        )

    def prepared(self, query: Query, sensitivity: AnySensitivity) -> Prepared:
        """Prepare the grid and the sampler's tables, which depend on the width only."""
        if self.noise == "float":
            std = self.noise_std(sensitivity)
            return InFloats(lambda count, noise: std * noise.normal(count))
        distribution = gaussian_distribution(
            drawable(self.width(query, sensitivity)), query.real_size
        )
        return OnGrid(self.grid(query, sensitivity), distribution.symmetric)


def _steps(grid: Grid, distance: float) -> float:
    """Return a movement in steps of the grid, of the rounded statistic; rounded up."""
    return up(float(grid.sensitivity(distance)), roundings=3)
