"""Truncated Laplace noise: bounded errors, for a share of delta. Exact on a grid."""

import math
from fractions import Fraction
from typing import Any, ClassVar

import attrs

from dpcore.checks import need_field, positive
from dpcore.events.truncated_laplace import TruncatedLaplaceEvent
from dpcore.mechanism import Arithmetic, Prepared
from dpcore.mechanisms.noise.discrete_laplace import floored_law
from dpcore.mechanisms.noise.grid import LARGEST
from dpcore.mechanisms.noise.release import LaplaceNoise, OnGrid, drawable
from dpcore.query import Query
from dpcore.rounding import up
from dpcore.sensitivity import Sensitivity


def _at_most_half(instance: Any, attribute: Any, value: Any) -> None:
    positive(instance, attribute, value)
    need_field(value <= 0.5, instance, attribute.name, f"a {attribute.name} in (0, 1/2]")


@attrs.frozen(kw_only=True)
class TruncatedLaplace(LaplaceNoise):
    r"""Laplace noise of scale b, conditioned on [-bv, bv], on every real coordinate.

    With :math:`t=\Delta/b` for the l1 sensitivity and :math:`v=\log(1+(e^t-1)/(2\delta_0))` the
    release is :math:`(t,\delta_0)`-DP in any number of coordinates: coordinates that move by
    t_j scales leave the common support with probability at most
    :math:`\sum_j(e^{t_j}-1)/(2(e^v-1))\le\delta_0`, and elsewhere the loss is at most t.

    Drawn on a public grid as `laplace` is: the statistic is rounded, and gets the floor of the
    noise and half a step, its bound rounded up to whole steps, which only lowers delta_0. Exact
    arithmetic.

    Args:
        noise_scale: b, in the units of the statistic; calibrated if left out.
        truncation: delta_0, in (0, 1/2].

    Source: Geng, Ding, Guo & Kumar (2020), arXiv:1810.00877, for one coordinate; as above for more.
    """

    arithmetic: ClassVar[Arithmetic] = "exact"
    source: ClassVar[str] = "Geng, Ding, Guo & Kumar (2020), arXiv:1810.00877"

    truncation: float = attrs.field(validator=_at_most_half)

    def steps(self, query: Query, sensitivity: Sensitivity) -> tuple[Fraction, int]:
        """The noise's scale and its bound, in steps of the grid; the bound is rounded up."""
        steps = self.grid(query, sensitivity).sensitivity(sensitivity.unit)
        scale = Fraction(self.noise_scale) / Fraction(sensitivity.unit) * steps
        t = self.event(query, sensitivity).shift
        # a wider bound leaves less mass outside of the common support, so v is rounded up
        if t < 700:
            v = math.log1p(math.expm1(t) / (2 * self.truncation))
        else:
            v = t - math.log(2 * self.truncation)  # + log(1 + (2 delta_0 - 1) e^-t) <= 0
        return scale, math.ceil(scale * Fraction(up(v, roundings=200)))

    def event(self, query: Query, sensitivity: Sensitivity) -> TruncatedLaplaceEvent:
        """A truncated Laplace shifted by l1_sensitivity / noise_scale, rounded up.

        Raises:
            ParameterError: the sensitivity is too far from 1 for a grid.
        """
        self.grid(query, sensitivity)
        return TruncatedLaplaceEvent(
            shift=up(sensitivity.unit / self.noise_scale, roundings=3),
            truncation=self.truncation,
            dimension=query.real_size,
            adjacency=sensitivity.adjacency,
        )

    def prepared(self, query: Query, sensitivity: Sensitivity) -> Prepared:
        """An odd multiple of half the grid's step, near the statistic for sure.

        Raises:
            ReleaseError: the noise is wider than 2^53 steps of the grid.
        """
        scale, bound = self.steps(query, sensitivity)
        # scale and bound are both drawn as integers, so both must be narrow enough
        drawable(scale if bound <= LARGEST else Fraction(bound))
        draw = floored_law(scale, query.real_size, steps=bound)
        return OnGrid(self.grid(query, sensitivity), draw, halves=1)
