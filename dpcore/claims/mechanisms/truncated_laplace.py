r"""`truncated_laplace`: noise of bounded size, for a proportion of delta. Exact on a grid.

In d coordinates, with an l1 shift: noise of scale b on [-bv, bv] per coordinate; with t =
l1_sensitivity / b and a truncation delta_0 <= 1/2, :math:`v=\log(1+(e^t-1)/(2\delta_0))`.

* *(t, delta_0)-DP.* A coordinate that moves by t_j scales leaves the common support with
  probability :math:`(e^{t_j}-1)/(2(e^v-1))`; these add up to at most delta_0, since
  :math:`\sum(e^{t_j}-1)\le e^{\sum t_j}-1`; elsewhere the loss is at most t.
* *The curve.* On the common support the two densities are Laplace densities over
  :math:`Z=(1-e^{-v})^d`, so that, with the Laplace event's curve,

  .. math:: \delta(\epsilon) \le \delta_0 + (1-e^{(\epsilon-t)/2})_+ / Z .

The lesser of this and the curve of any (t, delta_0)-DP release is taken; no pair attains it.

Source: Geng, Ding, Guo & Kumar (2020), arXiv:1810.00877 (one coordinate); the rest as above.
"""

import math
from fractions import Fraction
from typing import Any, ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import need_field, positive, positive_integer
from dpcore.claims.events.randomized_response import response_curve
from dpcore.claims.mechanisms.noise.discrete_laplace import floored_distribution
from dpcore.claims.mechanisms.noise.grid import LARGEST
from dpcore.claims.mechanisms.noise.release import LaplaceNoise, OnGrid, drawable
from dpcore.event import Claims, Direction, Event, VectorCurve
from dpcore.mechanism import Arithmetic, Prepared
from dpcore.query import Query
from dpcore.rounding import up
from dpcore.sensitivity import Sensitivity


@attrs.frozen(kw_only=True)
class TruncatedLaplaceEvent(Event, VectorCurve):
    """`dimension` coordinates, together moved by at most `shift` noise scales in l1.

    Args:
        shift: t = l1_sensitivity / noise_scale, > 0.
        truncation: delta_0, in (0, 1/2].
        dimension: Number of coordinates, >= 1.
        adjacency: The relation under which the shift is bounded.
    """

    symmetric: ClassVar[bool] = True
    attained: ClassVar[bool] = False  # the bound need not be attained

    shift: float = attrs.field(validator=positive)
    truncation: float = attrs.field(validator=positive)
    dimension: int = attrs.field(validator=positive_integer)
    adjacency: Adjacency

    def __attrs_post_init__(self) -> None:
        need_field(self.truncation <= 0.5, self, "truncation", "a truncation in (0, 1/2]")

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the smaller of the two bounds above at an array of epsilons >= 0, shape (k,)."""
        t, delta_0 = self.shift, self.truncation
        # the curve of any (t, delta_0)-DP release, in any dimension
        generic = delta_0 + (1 - delta_0) * response_curve(epsilons, t, 2)
        # e^{-v} = 2 delta_0 / (2 delta_0 + e^t - 1)
        cut = 2 * delta_0 / (2 * delta_0 + math.expm1(min(t, 700.0)))
        log_inverse = -self.dimension * math.log1p(-cut) if cut < 1 else math.inf
        value = generic
        # the second bound, tried where 1/Z is below e
        if log_inverse < 1:
            laplace = -np.expm1(np.minimum(0.5 * (epsilons - t), 0.0))
            value = np.minimum(generic, delta_0 + laplace * math.exp(log_inverse))
        return np.minimum(up(value, roundings=100), 1.0)

    @property
    def claims(self) -> Claims:
        """The pair (t, delta_0), for which the release is differentially private."""
        return Claims(approximate=(self.shift, self.truncation))


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
    rule: ClassVar[tuple[str, ...]] = ("truncated_laplace", "noise_scale", "truncation")

    truncation: float = attrs.field(validator=_at_most_half)

    def steps(self, query: Query, sensitivity: Sensitivity) -> tuple[Fraction, int]:
        """Return the noise's scale and its bound, in steps of the grid; the bound is rounded up."""
        steps = self.grid(query, sensitivity).sensitivity(sensitivity.unit)
        scale = Fraction(self.noise_scale) / Fraction(sensitivity.unit) * steps
        t = self.event(query, sensitivity).shift
        # a wider bound leaves less mass outside of the common support, so v is rounded up
        if t < 700:
            v = math.log1p(math.expm1(t) / (2 * self.truncation))
        else:
            v = t - math.log(2 * self.truncation)  # + log(1 + (2 delta_0 - 1) e^-t) <= 0
        return scale, math.ceil(scale * Fraction(up(v, roundings=200)))

    def event(
        self, query: Query, sensitivity: Sensitivity, moved: float | None = None
    ) -> TruncatedLaplaceEvent:
        """Return a truncated Laplace shifted by l1_sensitivity / noise_scale, rounded up.

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
        """Return an odd multiple of half the grid's step, near the statistic for sure.

        Raises:
            ReleaseError: the noise is wider than 2^53 steps of the grid.
        """
        scale, bound = self.steps(query, sensitivity)
        # scale and bound are both drawn as integers, so both must be narrow enough
        drawable(scale if bound <= LARGEST else Fraction(bound))
        draw = floored_distribution(scale, query.real_size, steps=bound)
        return OnGrid(self.grid(query, sensitivity), draw, halves=1)
