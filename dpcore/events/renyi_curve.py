r"""A Rényi claim as an event: any release whose divergences are at most given ones."""

import itertools
import math
from typing import ClassVar

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.errors import ParameterError
from dpcore.events.base import Direction, VectorEvent
from dpcore.rounding import up

_ALLOWED = 1e-13  # 450 ulps of the terms' sizes
_LEAST = -690.0  # of a logarithm: no delta > 0 is rounded to 0


def renyi_to_delta(
    orders: NDArray[np.float64], divergence: NDArray[np.float64], epsilons: NDArray[np.float64]
) -> NDArray[np.float64]:
    r"""Smallest delta that a Rényi curve implies at each epsilon, shape of `epsilons`.

    .. math:: \min_\alpha\; \frac{e^{(\alpha-1)(r(\alpha)-\epsilon)}}{\alpha-1}
              \Big(1-\frac1\alpha\Big)^{\alpha}

    Source: Canonne, Kamath & Steinke (2020), arXiv:2004.00010v4, Proposition 12.
    """
    less = orders - 1
    best = np.full(np.shape(epsilons), np.inf)
    for one, alpha, bound in zip(less, orders, divergence, strict=True):
        if math.isfinite(bound):
            own = math.log(one)
            # 1 / alpha loses what alpha is above 1; alpha - 1 is exact below 2
            share = own - math.log(alpha) if one < 1 else math.log1p(-1 / alpha)
            log = one * (bound - epsilons) - own + alpha * share
            size = max(1.0, abs(own) / 39) + one * (bound + epsilons)
            best = np.minimum(best, log + _ALLOWED * size)
    return np.asarray(np.exp(np.clip(best, _LEAST, 0.0)))


def _floats(values: object) -> tuple[float, ...]:
    return tuple(float(value) for value in values)  # type: ignore[attr-defined]


@attrs.frozen(kw_only=True)
class RenyiEvent(VectorEvent):
    """Any release with Rényi divergence at most `divergences[i]` at `orders[i]`, both directions.

    Args:
        orders: Increasing, each finite and > 1.
        divergences: Nats, each >= 0; infinity says nothing. As many as orders.
        adjacency: What the claim is about.
    """

    symmetric: ClassVar[bool] = True
    attained: ClassVar[bool] = False  # each epsilon belongs to a release of its own

    orders: tuple[float, ...] = attrs.field(converter=_floats)
    divergences: tuple[float, ...] = attrs.field(converter=_floats)
    adjacency: Adjacency

    def __attrs_post_init__(self) -> None:
        orders = self.orders
        rising = all(a < b for a, b in itertools.pairwise(orders))
        if not (orders and rising and orders[0] > 1 and math.isfinite(orders[-1])):
            raise ParameterError("RenyiEvent", "increasing finite orders > 1", "orders", orders)
        good = all(value >= 0 for value in self.divergences)
        if not good or len(self.divergences) != len(orders):
            raise ParameterError(
                "RenyiEvent", "a divergence >= 0 for each order", "divergences", self.divergences
            )

    def curve(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """The same, vectorised."""
        return renyi_to_delta(np.array(self.orders), np.array(self.divergences), epsilons)

    def renyi(self, orders: NDArray[np.float64]) -> NDArray[np.float64]:
        """Between given orders by convexity of (alpha - 1) times the divergence; none beyond."""
        known = np.concatenate([[1.0], self.orders])
        moments = np.concatenate([[0.0], (known[1:] - 1) * np.array(self.divergences)])
        after = np.searchsorted(known, orders)
        inside = after < len(known)
        right = np.minimum(after, len(known) - 1)
        left = right - 1
        share = (orders - known[left]) / (known[right] - known[left])
        with np.errstate(invalid="ignore"):
            value = np.where(share < 1, (1 - share) * moments[left], 0.0) + share * moments[right]
            value = up(value / (orders - 1), roundings=20)
        exact = inside & (known[right] == orders)
        value = np.where(exact, np.concatenate([[0.0], self.divergences])[right], value)
        return np.where(inside & ~np.isnan(value), value, np.inf)
