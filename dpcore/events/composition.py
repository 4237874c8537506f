r"""Several events as one, for whoever needs a single event; an accountant composes the parts.

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
from dpcore.errors import ParameterError, need
from dpcore.events.base import Direction, Event, VectorEvent
from dpcore.events.gaussian import gaussian_curve
from dpcore.events.renyi_curve import renyi_to_delta
from dpcore.rounding import down, up

_ORDERS = 1 + np.geomspace(1e-2, 1e4, 121)


@attrs.frozen
class ComposedEvent(VectorEvent):
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
        """The events' own parts, with multiplied counts."""
        return tuple(
            (part, times * count) for event, count in self.events for part, times in event.parts()
        )

    def curve(self, epsilons: NDArray[np.float64], direction: Direction) -> NDArray[np.float64]:
        """The least of the bounds above at an array of epsilons >= 0, shape (k,)."""
        # Gaussians compose exactly, so that no other bound is lower
        if (mu := self.gaussian_mu()) is not None:
            return gaussian_curve(epsilons, mu)
        parts = self.parts()
        copies = sum(count for _, count in parts)
        # every copy gets the same part of epsilon; a smaller part has a larger delta
        share = down(epsilons / copies, roundings=3)
        best = np.zeros_like(epsilons)
        for event, count in parts:
            best = best + count * event.curve(share, direction)
        best = up(best, roundings=200)
        if (divergence := self.renyi(_ORDERS)) is not None:
            best = np.minimum(best, renyi_to_delta(_ORDERS, divergence, epsilons))
        # no loss exceeds the sum of the pure epsilons
        if (pure := self.pure_epsilon()) is not None:
            best = np.where(epsilons >= pure, 0.0, best)
        return np.minimum(best, 1.0)

    @property
    def symmetric(self) -> bool:
        """Whether every event has the same curve in both directions."""
        return all(event.symmetric for event, _ in self.events)

    @property
    def attained(self) -> bool:
        """Only for Gaussians, whose curve is exact."""
        return self.gaussian_mu() is not None

    def pure_epsilon(self) -> float | None:
        """The sum of the events' pure epsilons, rounded up; None where one event has none."""
        costs = [(event.pure_epsilon(), count) for event, count in self.events]
        if any(epsilon is None for epsilon, _ in costs):
            return None
        return up(math.fsum((e or 0.0) * n for e, n in costs), roundings=3)

    def anchor(self, direction: Direction) -> float | None:
        """None: the largest loss is unlikely."""
        return None

    def gaussian_mu(self) -> float | None:
        """The root of the sum of squares, rounded up, where all are Gaussian."""
        costs = [(event.gaussian_mu(), count) for event, count in self.events]
        if any(mu is None for mu, _ in costs):
            return None
        return up(math.sqrt(math.fsum((mu or 0.0) ** 2 * n for mu, n in costs)), roundings=4)

    def zcdp_rho(self) -> float | None:
        """The sum of the events' rhos, rounded up; None where one event has none."""
        costs = [(event.zcdp_rho(), count) for event, count in self.events]
        if any(rho is None for rho, _ in costs):
            return None
        return up(math.fsum((rho or 0.0) * n for rho, n in costs), roundings=3)

    def renyi(self, orders: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The sum of the events' divergences, rounded up; None where one event has none."""
        total = np.zeros_like(orders)
        for event, count in self.events:
            if (divergence := event.renyi(orders)) is None:
                return None
            total = total + count * divergence
        return up(total, roundings=200)


def repeated(event: Event, count: int) -> ComposedEvent:
    """`count` applications of `event` as one event."""
    return ComposedEvent(((event, count),))
