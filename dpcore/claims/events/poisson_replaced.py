r"""Poisson sampling under a replacement relation: the record is used, or its replacement is.

Every record is in the batch with probability q, independently. Given the rest of the batch, the
release has law (1-q) M_0 + q M_1 on one dataset and (1-q) M_0 + q M_1' on the other: M_0 without
the record, M_1 with it, M_1' with its replacement. With :math:`\epsilon'=\log(1+q(e^\epsilon-1))`
and :math:`\beta=e^{\epsilon'-\epsilon}`,

.. math:: \delta(\epsilon') \le q\big((1-\beta)\,\delta_{absent}(\epsilon)
          + \beta\,\delta_{replaced}(\epsilon)\big) ,

`absent` the cost of taking the record out of the batch or putting it in, `replaced` that of
replacing it there. For a sum of vectors of norm at most C, `absent` moves it by C and `replaced` by
2 C. In general no pair attains the bound.

**Gaussians are exact.** With c = C over the noise width, the pair (1-q) N(0, 1) + q N(c, 1) and
(1-q) N(0, 1) + q N(-c, 1) attains the worst curve. Before the second step, the bound is q times the
divergence of N(x) from (1-beta) N(0) + beta N(x'), where x and x' have norm at most c. A set of
probability Phi(t) under N(x) has probability at least Phi(t - |s|) under N(x + s), by Neyman and
Pearson's lemma. So that divergence is at most the largest
:math:`\Phi(t)-e^\epsilon((1-\beta)\Phi(t-c)+\beta\Phi(t-2c))` over t, which x = c, x' = -c
attain on half-lines.

Source: Balle, Barthe & Gaboardi (2018), arXiv:1807.01647v2, Theorem 2 (advanced joint convexity, an
equality), then convexity of the divergence in its second argument; for Gaussians the proof above.
"""

import math
from typing import ClassVar

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.checks import need_field, probability
from dpcore.errors import need
from dpcore.event import Claims, CompoundEvent, Direction, Event, TwoEnds, larger, largest_loss
from dpcore.rounding import gamma, up

_TINY = 1e-298
_CUTOFF = 37.0  # noise widths: the tail beyond is 6e-300


@attrs.frozen(kw_only=True)
class PoissonReplacedEvent(CompoundEvent, TwoEnds):
    """`event`, applied to a Poisson sample, for a replacement relation.

    Args:
        event: What replacing the record costs once it is in the batch.
        absent: What taking it out of the batch, or putting it in, costs; declared for the same
            relation.
        sampling_probability: q, in (0, 1].
    """

    symmetric: ClassVar[bool] = True
    absent: Event
    sampling_probability: float = attrs.field(validator=probability)

    def __attrs_post_init__(self) -> None:
        need_field(
            self.sampling_probability > 0,
            self,
            "sampling_probability",
            "a sampling_probability in (0, 1]",
        )
        need(
            self.event.adjacency.replaces and self.absent.adjacency == self.event.adjacency,
            "PoissonReplacedEvent",
            "two events for one replacement relation",
            "adjacency",
            f"{self.event.adjacency}, {self.absent.adjacency}",
        )

    @property
    def _width(self) -> float | None:
        """c, where both are Gaussians and the replacement moves twice as far."""
        absent, replaced = self.absent.claims.mu, self.event.claims.mu
        return absent if absent is not None and replaced == 2 * absent else None

    @property
    def attained(self) -> bool:
        """Whether both events are Gaussians, of which one pair attains the curve."""
        return self._width is not None

    def ends(
        self, epsilons: NDArray[np.float64], direction: Direction, *, lower: bool
    ) -> NDArray[np.float64]:
        """Return the exact curve for Gaussians; otherwise the bound, and 0 from below."""
        if (width := self._width) is not None:
            return self._gaussian(epsilons, width, lower)
        return np.zeros_like(epsilons) if lower else self._bound(epsilons)

    def _gaussian(
        self, epsilons: NDArray[np.float64], c: float, lower: bool
    ) -> NDArray[np.float64]:
        """Evaluate q (tail(t - c) - a tail(t + c)) - (a - 1)(1 - q) tail(t).

        t is the best between two.
        """
        q = self.sampling_probability
        shape = np.shape(epsilons)
        low, high = np.zeros(shape), np.full(shape, _CUTOFF + c)
        base = math.log1p(-q) if q < 1 else -math.inf
        # the likelihood ratio increases in t: bisection for where it is e^epsilon
        for _ in range(60):
            t = 0.5 * (low + high)
            log_plus = math.log(q) - 0.5 * c * c + c * t
            log_minus = math.log(q) - 0.5 * c * c - c * t
            ratio = np.logaddexp(base, log_plus) - np.logaddexp(base, log_minus)
            above = ratio > epsilons
            low, high = np.where(above, low, t), np.where(above, t, high)
        # any t is an event; the best one lies between these two
        low, high = np.maximum(low - 1e-13 * (1 + low), 0.0), high + 1e-13 * (1 + high)
        growth = np.expm1(np.minimum(epsilons, 700.0))
        tail = scipy.special.ndtr
        first_cut, second_cut = (high, high) if lower else (low, high)
        first_term = q * tail(c - first_cut)
        second_term = q * (1 + growth) * tail(-second_cut - c) + growth * (1 - q) * tail(
            -second_cut
        )
        # an error of t by some ulps changes a tail by that times (1 + t^2), relative
        error = gamma(128) * (1 + (high + c) ** 2) * (first_term + second_term)
        # beyond the largest exponent no lower end is claimed
        if lower:
            return np.where(
                epsilons > 700.0, 0.0, np.clip(first_term - second_term - error, 0.0, 1.0)
            )
        return np.clip(first_term - second_term + error + _TINY, 0.0, 1.0)

    def _bound(self, epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the bound above, with the larger of the two directions for each event."""
        q = self.sampling_probability
        with np.errstate(over="ignore"):
            ratio = np.expm1(np.minimum(epsilons, 700.0)) / q
        inner = np.where(np.isfinite(ratio), np.log1p(ratio), epsilons - math.log(q))
        # a smaller loss only raises the two curves; beta is rounded towards the larger of them
        inner = inner * (1 - gamma(32))
        with np.errstate(over="ignore"):  # what overflows is above 1
            beta = np.minimum(np.exp(epsilons - inner) * (1 + gamma(64) * (1 + epsilons)), 1.0)
        replaced, absent = (
            np.max([event.curve.upper(inner, way) for way in Direction], axis=0)
            for event in (self.event, self.absent)
        )
        value = q * (absent + beta * np.maximum(replaced - absent, 0.0))
        return np.asarray(np.minimum(up(value, roundings=20), 1.0))

    def largest_loss(self, direction: Direction) -> float | None:
        """Return the replacement's largest loss, amplified as the losses are."""
        return self._amplify(largest_loss(self.event, direction))

    @property
    def claims(self) -> Claims:
        """log(1 + q (e^epsilon - 1)) of the larger pure epsilon; rho and renyi of the replacement.

        Mixtures with equal weights are no farther apart (quasi-convexity), and the part without the
        record is the same on both sides, so it adds nothing.
        """
        base = self.event.claims
        pure = self._amplify(larger(base.pure, self.absent.claims.pure))
        return Claims(pure=pure, rho=base.rho, renyi=base.renyi)

    def _amplify(self, loss: float | None) -> float | None:
        if loss is None or loss > 500:
            return None
        return up(math.log1p(self.sampling_probability * math.expm1(loss)), roundings=6)
