r"""Leaks that weigh less where answers have cost little so far: they fall with epsilon.

A ledger's promise is about one epsilon, E. With s squares of mu spent, a tilted leak of size r
raises the curve of what follows by at most :math:`r\,W_s(\epsilon)`,

.. math:: W_s(\epsilon) = \exp\Big(\theta(E-\epsilon) - \tfrac{\theta(\theta+1)}2\,s\Big) .

*Why r of delta pays for it.* W starts as 1 at E, where nothing is spent. A list with privacy loss
L of a direction leaves W_{s+c} at epsilon - L, whose mean under the first law is

.. math:: \mathbb E\,W_{s+c}(\epsilon-L) = W_s(\epsilon)\,
          e^{\theta D_{1+\theta}-\theta(\theta+1)c/2} \le W_s(\epsilon)

as long as :math:`D_{1+\theta}\le(1+\theta)c/2`: the list's divergence of order 1 + theta is at most
that of the Gaussian it is charged as. That holds for whatever a Gaussian of squares c dominates;
others are charged at least `least_squares`. A list that `gaussian_cover` covers with a leak lambda
is made, by anyone who knows neither side, of an experiment that says all with probability lambda
and else is that Gaussian (Blackwell). What follows the first branch is paid by lambda; on the
second, the Gaussian's divergence is the one that counts.

At a negative epsilon a curve is :math:`F(\epsilon)=1-e^\epsilon+e^\epsilon F'(-\epsilon)`, F' that
of the other direction, and :math:`e^\epsilon W_s(-\epsilon)\le W_s(\epsilon)`: bounds for
epsilon >= 0 in both directions say of all.
"""

import math
from collections.abc import Sequence

import attrs
import numpy as np

from dpcore.claims.events.gaussian import gaussian_epsilon, gaussian_mu
from dpcore.event import Event
from dpcore.rounding import gamma, up

_STEEPEST = 4  # divergences of higher orders are large where tails are heavy


@attrs.frozen(kw_only=True)
class Tilt:
    """What a ledger's tilted leaks have in common.

    Args:
        slope: theta, an integer >= 1.
        epsilon: E.
        most: Squares of mu that are never exceeded in all.
    """

    slope: int
    epsilon: float
    most: float

    @classmethod
    def of(cls, slope: int, epsilon: float, delta: float) -> "Tilt":
        """Return the tilt of the ledger that promises (epsilon, delta) by a Gaussian budget."""
        largest, slack = gaussian_mu(epsilon, delta) ** 2, 1e-9
        # Raised until even the lower end of its epsilon exceeds E: no ledger within E spends it.
        while gaussian_epsilon(delta, math.sqrt(largest * (1 + slack)), lower=True) <= epsilon:
            slack *= 2
        return cls(slope=slope, epsilon=epsilon, most=largest * (1 + slack))

    def leak(self, size: float, remainder: float) -> "TiltedLeak":
        """Return the curve of a leak with `remainder` squares after it, but for what it costs
        itself.
        """
        theta = float(self.slope)
        # h = log r + theta E - theta (theta + 1)/2 s, s the squares spent where `remainder` stays.
        terms = (
            math.log(size),
            theta * self.epsilon,
            theta * (theta + 1) / 2 * (self.most - remainder),
        )
        height = terms[0] + terms[1] - terms[2]
        return TiltedLeak(slope=self.slope, height=height - gamma(16) * sum(map(abs, terms)))


@attrs.frozen(kw_only=True)
class TiltedLeak:
    r""":math:`\exp(h+\theta(\theta+1)c/2-\theta\epsilon)` for a list that costs c.

    Args:
        slope: theta.
        height: h, rounded down.
    """

    slope: int
    height: float


def slope_for(epsilon: float, delta: float) -> int:
    """Return how steep the curve of a Gaussian budget falls at its end, about; at most 4.

    Leaks of any slope are sound: this one makes lists cheap.
    """
    steep = epsilon / gaussian_mu(epsilon, delta) ** 2 - 0.5
    return min(max(1, round(steep)), _STEEPEST)


def least_squares(events: Sequence[tuple[Event, int]], slope: int) -> float:
    """Return the squares of the Gaussian whose divergence of order 1 + theta a list has, rounded
    up.

    Infinite where the list has none.
    """
    order = np.array([1.0 + slope])
    squares = []
    for event, count in events:
        renyi = event.claims.renyi
        divergence = math.inf if renyi is None else float(renyi(order)[0])
        if not math.isfinite(divergence):
            return math.inf
        squares.append(2 * count * divergence / (1 + slope))
    return up(math.fsum(squares), roundings=8)
