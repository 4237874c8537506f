r"""Claims as events: any release whose Rényi divergences, or whose curve, are at most given ones.

A curve is convex in :math:`e^\epsilon`, as a supremum of functions that are linear in it, so that
the chords between points above a curve lie above it too.
"""

import itertools
import math
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import floats, need_field
from dpcore.event import Claims, Direction, Event, VectorCurve
from dpcore.rounding import gamma, half_square, up

_ALLOWED = 1e-13  # 450 ulps of the terms' sizes
_LEAST = -690.0  # of a logarithm: no delta > 0 is rounded to 0


def renyi_to_delta(
    orders: NDArray[np.float64], divergence: NDArray[np.float64], epsilons: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""Return the smallest delta that a Rényi curve implies at each epsilon, shape of `epsilons`.

    .. math:: \min_\alpha\; \frac{e^{(\alpha-1)(r(\alpha)-\epsilon)}}{\alpha-1}
              \Big(1-\frac1\alpha\Big)^{\alpha}

    Source: Canonne, Kamath & Steinke (2020), arXiv:2004.00010v4, Proposition 12.
    """
    excesses = orders - 1
    best = np.full(np.shape(epsilons), np.inf)
    for excess, alpha, bound in zip(excesses, orders, divergence, strict=True):
        # every order gives a valid delta, and the least counts; an infinite bound says nothing
        if math.isfinite(bound):
            log_excess = math.log(excess)
            # 1 / alpha loses what alpha is above 1; alpha - 1 is exact below 2
            fraction = log_excess - math.log(alpha) if excess < 1 else math.log1p(-1 / alpha)
            log = excess * (bound - epsilons) - log_excess + alpha * fraction
            # the size of the terms, of which a share covers their rounding errors
            size = max(1.0, abs(log_excess) / 39) + excess * (bound + epsilons)
            best = np.minimum(best, log + _ALLOWED * size)
    return np.asarray(np.exp(np.clip(best, _LEAST, 0.0)))


@attrs.frozen(kw_only=True)
class RenyiEvent(Event, VectorCurve):
    """Any release with Rényi divergence at most `divergences[i]` at `orders[i]`, both directions.

    Args:
        orders: Increasing, each finite and > 1.
        divergences: Nats, each >= 0; infinity says nothing. As many as orders.
        adjacency: What the claim is about.
    """

    symmetric: ClassVar[bool] = True
    attained: ClassVar[bool] = False  # each epsilon belongs to a release of its own

    orders: tuple[float, ...] = attrs.field(converter=floats)
    divergences: tuple[float, ...] = attrs.field(converter=floats)
    adjacency: Adjacency

    def __attrs_post_init__(self) -> None:
        orders = self.orders
        rising = all(a < b for a, b in itertools.pairwise(orders))
        need_field(
            orders and rising and orders[0] > 1 and math.isfinite(orders[-1]),
            self,
            "orders",
            "increasing finite orders > 1",
        )
        good = all(value >= 0 for value in self.divergences)
        need_field(
            good and len(self.divergences) == len(orders),
            self,
            "divergences",
            "a divergence >= 0 for each order",
        )

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the delta that the divergences imply at an array of epsilons >= 0, shape (k,)."""
        return renyi_to_delta(np.array(self.orders), np.array(self.divergences), epsilons)

    @property
    def claims(self) -> Claims:
        """The divergences, as given and between them."""
        return Claims(renyi=self._renyi)

    def _renyi(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Interpolate between given orders by convexity of (alpha - 1) times the divergence.

        Beyond them nothing is known.
        """
        # (alpha - 1) times the divergence is convex in alpha and 0 at order 1, so that chords
        # between the given orders lie above it
        knots = np.concatenate([[1.0], self.orders])
        moments = np.concatenate([[0.0], (knots[1:] - 1) * np.array(self.divergences)])
        after = np.searchsorted(knots, orders)
        inside = after < len(knots)
        right_knot = np.minimum(after, len(knots) - 1)
        left_knot = right_knot - 1
        fraction = (orders - knots[left_knot]) / (knots[right_knot] - knots[left_knot])
        with np.errstate(invalid="ignore"):
            value = (
                np.where(fraction < 1, (1 - fraction) * moments[left_knot], 0.0)
                + fraction * moments[right_knot]
            )
            value = up(value / (orders - 1), roundings=20)
        # at a given order the claim itself, without the error of an interpolation
        exact = inside & (knots[right_knot] == orders)
        value = np.where(exact, np.concatenate([[0.0], self.divergences])[right_knot], value)
        return np.where(inside & ~np.isnan(value), value, np.inf)


@attrs.frozen(kw_only=True)
class CurveEvent(Event, VectorCurve):
    """Any release whose curve lies at or below the given points, in both directions.

    Between two points their chord over exp(epsilon) is claimed, beyond the last one its delta.

    Args:
        epsilons: Increasing and finite, from 0 on; at least two.
        deltas: In [0, 1], none above the one before; as many.
        adjacency: What the claim is about.
    """

    symmetric: ClassVar[bool] = True
    attained: ClassVar[bool] = False  # each epsilon may belong to a pair of its own

    epsilons: tuple[float, ...] = attrs.field(converter=floats)
    deltas: tuple[float, ...] = attrs.field(converter=floats)
    adjacency: Adjacency

    def __attrs_post_init__(self) -> None:
        epsilons, deltas = self.epsilons, self.deltas
        rising = len(epsilons) > 1 and all(a < b for a, b in itertools.pairwise(epsilons))
        need_field(
            rising and epsilons[0] == 0 and math.isfinite(epsilons[-1]),
            self,
            "epsilons",
            "increasing finite epsilons from 0 on",
        )
        falling = len(deltas) == len(epsilons) and all(
            a >= b for a, b in itertools.pairwise(deltas)
        )
        need_field(
            falling and deltas[0] <= 1 and deltas[-1] >= 0,
            self,
            "deltas",
            "a delta in [0, 1] for each epsilon, none above the one before",
        )

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return chords between the points at an array of epsilons >= 0, rounded up, shape (k,)."""
        knots, deltas = np.array(self.epsilons), np.array(self.deltas)
        right = np.clip(np.searchsorted(knots, epsilons, side="right"), 1, len(knots) - 1)
        low, high = knots[right - 1], knots[right]
        # (e^x - 1)/(e^y - 1) for 0 <= x <= y, without an overflow
        x, y = np.clip(epsilons, low, high) - low, high - low
        fraction = np.exp(x - y) * np.expm1(-x) / np.expm1(-y)
        value = deltas[right - 1] * (1 - fraction) + deltas[right] * fraction
        # a share that is rounded up would take the value below the chord: its exponent errs by 3 u
        # of epsilon, and the rest by a few roundings
        error = gamma(16) * (1 + high) * fraction
        value = up(value + error * deltas[right - 1], roundings=20)
        value = np.clip(value, deltas[right], deltas[right - 1])
        return np.asarray(np.where(epsilons >= knots[-1], deltas[-1], value))

    def largest_loss(self, direction: Direction) -> float:
        """Return the last epsilon, beyond which no finite loss is claimed."""
        return self.epsilons[-1]

    def infinite_mass(self, direction: Direction) -> float:
        """Return the last delta, which the curve keeps."""
        return self.deltas[-1]

    @property
    def claims(self) -> Claims:
        """Pure where the last delta is 0; epsilon^2/2: Bun & Steinke (2016), Proposition 1.4."""
        pure = self.epsilons[-1] if self.deltas[-1] == 0 else None
        return Claims(pure=pure, rho=None if pure is None else half_square(pure))
