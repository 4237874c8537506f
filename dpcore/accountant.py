"""Accountant: adds up events of one adjacency, and answers with two certified ends."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Self

from dpcore.adjacency import Adjacency
from dpcore.errors import NoClaimError, need
from dpcore.event import Event, label_of
from dpcore.interval import Interval


class UnsupportedEventError(NoClaimError):
    """An event lacks the representation that this accountant composes."""


class Accountant(ABC):
    """Composition of events, fixed before any of them happens. Immutable.

    `adjacency` is what the result is about: an event is accepted when its own claim covers it.
    """

    adjacency: Adjacency

    @abstractmethod
    def compose(self, event: Event, count: int = 1) -> Self:
        """Return a new accountant that has also spent `count` applications of `event`.

        Raises:
            AdjacencyError: the event's claim does not cover the accountant's adjacency.
            UnsupportedEventError: the event lacks what this accountant needs.
            ValueError: `count` is not an integer >= 0.
        """

    def compose_all(self, events: Iterable[tuple[Event, int]]) -> Self:
        """Return a new accountant that has also spent events with counts, one after the other.

        Raises:
            AdjacencyError, UnsupportedEventError, ValueError: as `compose`.
        """
        return functools.reduce(lambda spent, counted: spent.compose(*counted), events, self)

    @abstractmethod
    def epsilon(self, delta: float) -> Interval:
        """Bound the least epsilon (nats) that holds at `delta` on both sides; quote the upper end.

        Raises:
            NoClaimError: nothing finite can be said at this `delta`.
        """

    def explain(self, delta: float) -> str:
        """Explain in a clause how the number was reached."""
        return type(self).__name__

    def accept(self, event: Event, count: int) -> None:
        """Check what every accountant checks before it composes."""
        need(
            not isinstance(count, bool) and count == int(count) and count >= 0,
            ValueError,
            f"count must be an integer >= 0, got count={count!r}",
        )
        # A claim for a smaller relation says nothing about a larger one: it is never converted.
        self.adjacency.require_covered_by(event.adjacency, label_of(event))
