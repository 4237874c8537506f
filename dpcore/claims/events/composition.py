r"""Several events as one, for anyone who needs a single event; an accountant composes the parts.

The curve of the whole, taken by itself (to sample from it, say), is the least of what these imply:

* Gaussian parts only: the Gaussian whose mu^2 is their sum (Dong, Roth & Su 2022, Corollary 3.3);
* Rényi divergences add up (Mironov 2017, Proposition 1), and imply a delta;
* epsilons and deltas add up: :math:`\delta(\epsilon)\le\sum_i n_i\,\delta_i(\epsilon/\sum_j n_j)`
  (Dwork & Roth 2014, Theorem 3.16).
"""

import math

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.adjacency import Adjacency
from dpcore.checks import is_integer, need_field
from dpcore.claims.events.gaussian import gaussian_curve
from dpcore.claims.events.renyi_curve import renyi_to_delta
from dpcore.errors import ParameterError, need
from dpcore.event import Claims, Direction, Event, VectorCurve
from dpcore.rounding import down, up

_ORDERS = 1 + np.geomspace(1e-2, 1e4, 121)


@attrs.frozen
class ComposedEvent(Event, VectorCurve):
    """Events with counts, all for one adjacency.

    Args:
        events: Pairs (event, count), each count an integer >= 1; not empty.
    """

    events: tuple[tuple[Event, int], ...]

    def __attrs_post_init__(self) -> None:
        need_field(self.events, self, "events", "at least one event")
        for _, count in self.events:
            need(is_integer(count), "ComposedEvent", "integer counts >= 1", "count", count)
        if len(relations := {event.adjacency for event, _ in self.events}) > 1:
            raise ParameterError(
                "ComposedEvent",
                "events for one adjacency",
                "adjacency",
                sorted(map(str, relations)),
            )

    @property
    def adjacency(self) -> Adjacency:  # type: ignore[override]
        """The one relation that all events are for."""
        return self.events[0][0].adjacency

    def parts(self) -> tuple[tuple[Event, int], ...]:
        """Return the events' own parts, with multiplied counts."""
        return tuple(
            (part, times * count) for event, count in self.events for part, times in event.parts()
        )

    def upper(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """Return the least of the bounds above at an array of epsilons >= 0, shape (k,)."""
        # Gaussians compose exactly, so that no other bound is lower
        claims = self.claims
        if claims.mu is not None:
            return gaussian_curve(epsilons, claims.mu)
        parts = self.parts()
        copies = sum(count for _, count in parts)
        # every copy gets the same part of epsilon; a smaller part has a larger delta
        fraction = down(epsilons / copies, roundings=3)
        best = np.zeros_like(epsilons)
        for event, count in parts:
            best = best + count * event.curve.upper(fraction, direction)
        best = up(best, roundings=200)
        if claims.renyi is not None:
            best = np.minimum(best, renyi_to_delta(_ORDERS, claims.renyi(_ORDERS), epsilons))
        # no loss exceeds the sum of the pure epsilons
        if claims.pure is not None:
            best = np.where(epsilons >= claims.pure, 0.0, best)
        return np.minimum(best, 1.0)

    @property
    def symmetric(self) -> bool:
        """Whether every event has the same curve in both directions."""
        return all(event.curve.symmetric for event, _ in self.events)

    @property
    def attained(self) -> bool:
        """Only for Gaussians, whose curve is exact."""
        return self.claims.mu is not None

    @property
    def claims(self) -> Claims:
        """The sums of the events' claims, rounded up; None of what one event does not claim.

        mu is the root of a sum of squares.
        """
        counts = [count for _, count in self.events]
        claims = [event.claims for event, _ in self.events]
        divergences = [claim.renyi for claim in claims if claim.renyi is not None]

        def renyi(orders: NDArray[np.float64]) -> NDArray[np.float64]:
            total = np.zeros_like(orders)
            for divergence, count in zip(divergences, counts, strict=True):
                total = total + count * divergence(orders)
            return up(total, roundings=200)

        return Claims(
            pure=_total([claim.pure for claim in claims], counts),
            mu=_total([claim.mu for claim in claims], counts, power=2),
            rho=_total([claim.rho for claim in claims], counts),
            renyi=renyi if len(divergences) == len(counts) else None,
        )

    def largest_loss(self, direction: Direction) -> float | None:
        """Return None: the largest loss is unlikely."""
        return None


def _total(costs: list[float | None], counts: list[int], power: int = 1) -> float | None:
    """Return the root of the sum of count * cost^power, rounded up; None if a cost is missing."""
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(counts):
        return None
    total = math.fsum(cost**power * count for cost, count in zip(known, counts, strict=True))
    return up(total if power == 1 else math.sqrt(total), roundings=2 + power)


def repeated(event: Event, count: int) -> ComposedEvent:
    """Combine `count` applications of `event` into one event."""
    return ComposedEvent(((event, count),))
