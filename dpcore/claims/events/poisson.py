r"""Poisson sampling: every record is used with probability q, independently. Add/remove only.

If (P, Q) dominates the base release for "remove", the sampled release is dominated by
((1-q)Q + qP, Q); for "add", with (Q, P) there, by (Q, (1-q)Q + qP). For epsilon >= 0, a =
e^epsilon:

.. math:: \delta_{remove}(a) = q\,\delta^{base}_{remove}\big(1+\tfrac{a-1}{q}\big), \qquad
          \delta_{add}(a) = (1-a(1-q))\,\delta^{base}_{add}\Big(\frac{aq}{1-a(1-q)}\Big)

and delta_add = 0 once a(1-q) >= 1.

Source: Zhu, Dong & Wang (2022), arXiv:2106.08567v4, Theorem 11. Under a replacement relation the
sampled pair has no such form: the constructor refuses it.
"""

import math
from functools import partial

import attrs
import numpy as np
import scipy
from numpy.typing import NDArray

from dpcore.checks import need_field, probability
from dpcore.claims.events.randomized_response import response_renyi
from dpcore.event import Claims, CompoundEvent, Direction, Divergences, TwoEnds, largest_loss
from dpcore.rounding import down, gamma, half_square, up

_LARGEST_ORDER = 256


@attrs.frozen(kw_only=True)
class PoissonSampledEvent(CompoundEvent, TwoEnds):
    """`event`, applied to a Poisson sample.

    Args:
        event: What the release costs without sampling, for an add/remove adjacency.
        sampling_probability: q, in (0, 1].
    """

    sampling_probability: float = attrs.field(validator=probability)

    def __attrs_post_init__(self) -> None:
        need_field(
            self.sampling_probability > 0,
            self,
            "sampling_probability",
            "a sampling_probability in (0, 1]",
        )
        self.event.adjacency.require_presence(
            "PoissonSampledEvent",
            "an event for add_remove (sampling without replacement is for replacement)",
        )

    def ends(
        self, epsilons: NDArray[np.float64], direction: Direction, *, lower: bool
    ) -> NDArray[np.float64]:
        """Return the curve above, computed from the base's upper or lower ends."""
        if lower:
            return down(self._amplified(epsilons, direction, -1), roundings=20)
        value = np.minimum(up(self._amplified(epsilons, direction, +1), roundings=20), 1.0)
        largest = self._largest(direction)
        return value if largest is None else np.where(epsilons >= largest, 0.0, value)

    def _largest(self, direction: Direction) -> float | None:
        """Return the largest loss, rounded up, if the base has one: from there the curve is 0."""
        base, q = self.event.claims.pure, self.sampling_probability
        # e^base would overflow; without a largest loss the curve is still valid
        if base is None or base > 500:
            return None
        if direction is Direction.REMOVE:
            return up(math.log1p(q * math.expm1(base)), roundings=8)
        shrunk = q * math.expm1(-base)
        if shrunk < -0.99:  # 1 + shrunk has lost digits: the base's own loss is no smaller
            return base
        return min(base, up(-math.log1p(shrunk), roundings=5000))

    def _amplified(
        self, epsilons: NDArray[np.float64], direction: Direction, sign: int
    ) -> NDArray[np.float64]:
        q = self.sampling_probability
        base = self.event.curve.upper if sign > 0 else self.event.curve.lower
        # the record is in the first law: epsilon becomes log(1 + (e^epsilon - 1)/q) at the base
        if direction is Direction.REMOVE:
            with np.errstate(over="ignore"):
                ratio = np.expm1(np.minimum(epsilons, 700.0)) / q
            base_epsilons = np.where(
                (epsilons < 700.0) & np.isfinite(ratio), np.log1p(ratio), epsilons - math.log(q)
            )
            return q * base(self._toward(base_epsilons, sign), direction)
        # 1 - a(1-q) = q - (a-1)(1-q); the inner loss is log(a q / that)
        remainder = q - np.expm1(np.minimum(epsilons, 700.0)) * (1 - q)
        # its rounding error is granted towards the end that is computed
        remainder = remainder + sign * gamma(8) * q
        # where nothing remains, a(1-q) >= 1 and the curve is 0
        alive = remainder > 0
        inner = np.where(alive, remainder, q)
        base_epsilons = np.where(alive, epsilons + math.log(q) - np.log(inner), 0.0)
        # log(1 + offset) where a q over the remainder is near 1
        offset = (q - inner) / inner
        base_epsilons = np.where(
            alive & (offset < 0.5), epsilons + np.log1p(np.maximum(offset, -0.5)), base_epsilons
        )
        order = np.argsort(base_epsilons)
        values = np.empty_like(base_epsilons)
        values[order] = base(self._toward(np.maximum(base_epsilons[order], 0.0), sign), direction)
        return np.where(alive, remainder * values, 0.0)

    @staticmethod
    def _toward(epsilons: NDArray[np.float64], sign: int) -> NDArray[np.float64]:
        """Shift losses by their rounding error, towards a larger (smaller) curve."""
        return np.maximum(epsilons * (1 - sign * gamma(32)), 0.0)

    @property
    def attained(self) -> bool:
        """Whether one pair attains the base's curve; that pair, sampled, attains this one."""
        return self.event.curve.attained

    def infinite_mass(self, direction: Direction) -> float:
        """Return q times the base's when the record is there, else 0."""
        if direction is Direction.ADD and self.sampling_probability < 1:
            return 0.0
        return self.sampling_probability * self.event.curve.infinite_mass(direction)

    def largest_loss(self, direction: Direction) -> float | None:
        """Return the largest loss, or the base's anchor, moved as the losses are."""
        if (largest := self._largest(direction)) is not None:
            return largest
        if (base := largest_loss(self.event, direction)) is None or base > 500:
            return None
        q = self.sampling_probability
        if direction is Direction.REMOVE:
            return math.log1p(q * math.expm1(base))
        return -math.log1p(q * math.expm1(-base)) if q < 1 else base

    @property
    def claims(self) -> Claims:
        """The base's or less: the pair's mixture is no farther apart (joint convexity).

        The pure epsilon is log(1 + q (e^epsilon - 1)); where there is one, rho and divergences are
        at most those of randomized response, which dominates all releases with that epsilon. mu is
        the base's where q is 1.
        """
        base, q = self.event.claims, self.sampling_probability
        pure, rho, renyi = base.pure, base.rho, base.renyi
        # e^pure would overflow; sampling loses no more than the base does
        if pure is not None and pure <= 500:
            pure = up(math.log1p(q * math.expm1(pure)), roundings=5)
        if pure is not None and 0 < pure < 500:
            response = partial(response_renyi, epsilon=pure, classes=2)
            rho = None if rho is None else min(rho, half_square(pure))
            renyi = response if renyi is None else partial(_least, renyi, response)
        elif renyi is not None and base.mu is not None and q < 1:
            renyi = partial(self._sampled, renyi, base.mu)
        return Claims(pure=pure, mu=base.mu if q == 1 else None, rho=rho, renyi=renyi)

    def _sampled(
        self, renyi: Divergences, mu: float, orders: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        r"""Return the sum below for a Gaussian base at integer orders.

        Mironov, Talwar & Zhang (2019), section 3.3:

        .. math:: \tfrac1{\alpha-1}\log\sum_k\tbinom{\alpha}{k}(1-q)^{\alpha-k}q^k
                  e^{k(k-1)\mu^2/2}

        Between integers by convexity of (alpha - 1) times the divergence, which is 0 at order 1; at
        orders above 256 the base's own value.
        """
        base, q = renyi(orders), self.sampling_probability
        small = orders <= _LARGEST_ORDER
        if not np.any(small):
            return base
        small_orders = orders[small]
        # exact moments at the integers next to each order; in between, chords of a convex function
        integers = np.unique(
            np.concatenate([np.floor(small_orders), np.ceil(small_orders)])
        ).astype(int)
        moments = np.zeros(len(integers))
        above = integers > 1
        moments[above] = (integers[above] - 1) * _sampled_gaussian(q, mu, integers[above])
        with np.errstate(invalid="ignore"):
            between = up(
                np.interp(small_orders, integers, moments) / (small_orders - 1), roundings=200
            )
        # sampling never costs more than the base, so the lesser of the two holds
        values = base.copy()
        values[small] = np.fmin(values[small], between)
        return values


def _least(
    first: Divergences, second: Divergences, orders: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the lesser of two bounds at each order."""
    return np.fmin(first(orders), second(orders))


def _sampled_gaussian(q: float, mu: float, orders: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the sum above, from logarithms; add an ulp of the largest of them per term.

    Args:
        orders: Integers >= 2, increasing, shape (m,).
    """
    n = orders[:, None].astype(float)
    # the terms k = 0 and 1 have exponent 0: what exceeds the binomial's total of 1 is the rest
    k = np.arange(2.0, orders[-1] + 1)
    inside = k <= n
    misses = np.maximum(n - k, 0.0)
    choose = (
        scipy.special.gammaln(n + 1)
        - scipy.special.gammaln(k + 1)
        - scipy.special.gammaln(misses + 1)
    )
    with np.errstate(over="ignore", invalid="ignore"):
        exponent = k * (k - 1) * (mu * mu / 2)
        # log(e^x - 1): neither cancels at small x nor overflows at large
        grown = np.where(
            exponent < 1e-3,
            np.log(np.expm1(np.minimum(exponent, 1e-3))),
            exponent + np.log1p(-np.exp(-np.maximum(exponent, 1e-3))),
        )
        logs = choose + misses * math.log1p(-q) + k * math.log(q)
        size = np.abs(choose) + n * (abs(math.log(q)) + abs(math.log1p(-q))) + exponent
        terms = np.where(inside, logs + grown + gamma(128) * (size + n * 8), -np.inf)
        peak = np.max(terms, axis=1)
        excess = peak + np.log(np.sum(np.exp(terms - peak[:, None]), axis=1))
    # the sum is 1 + e^excess; log1p keeps the digits where it is close to 1
    small = np.minimum(excess, 700.0)
    total = np.where(excess < 700, np.log1p(np.exp(small)), excess + 1e-12)
    total = np.where(np.isfinite(peak), total, np.inf)
    return np.asarray(up(total / (orders - 1), roundings=200))
