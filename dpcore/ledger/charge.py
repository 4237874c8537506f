"""Charge: everything one run may cost, fixed before its records are opened."""

from collections.abc import Mapping
from typing import Any

import attrs

from dpcore.adjacency import UNFRAMED
from dpcore.checks import probability
from dpcore.claims.events.event_text import read_event, write_event
from dpcore.claims.events.relation_text import read_number, write_number
from dpcore.errors import need
from dpcore.event import Event
from dpcore.registry.events import Catalogue


@attrs.frozen(kw_only=True)
class Charge:
    """A run's whole event list.

    Args:
        events: Pairs (event, count), each count an integer >= 1; at least one pair.
        failures: What bounds that are a probability over public randomness take of delta, in [0,
            1].
        frame: What is declared of the records, where a relation is stated in its terms (a radius in
            encoded units, the label's column, the column of persons); empty where it is not.
        assumptions: Names of what the events rest on, where they are conditional.
        tilted: A tilted leak (`dpcore.ledger.tilted_leak`), in [0, 1]; of covered charges
            only.
    """

    events: tuple[tuple[Event, int], ...]
    failures: float = attrs.field(default=0.0, validator=probability)
    frame: str = ""
    assumptions: tuple[str, ...] = ()
    tilted: float = attrs.field(default=0.0, validator=probability)

    def __attrs_post_init__(self) -> None:
        need(self.events, "Charge", "at least one event", "events", self.events)
        for event, count in self.events:
            is_event = isinstance(event, Event)
            need(is_event, "Charge", "pairs (event, count)", "events", event)
            # True would count as 1, and a fraction would be rounded in some sum: both are refused.
            is_count = not isinstance(count, bool) and isinstance(count, int) and count >= 1
            need(is_count, "Charge", "integer counts >= 1", "count", count)
            # A radius or a label has no meaning without the domain that declares its unit.
            need(
                self.frame or event.adjacency in UNFRAMED,
                "Charge",
                f"a frame for events under {event.adjacency}",
                "frame",
                self.frame,
            )

    @classmethod
    def of(cls, event: Event, count: int = 1) -> "Charge":
        """`count` applications of one event."""
        return cls(events=((event, count),))

    @property
    def framed(self) -> bool:
        """Whether some event's relation depends on the frame."""
        return any(event.adjacency not in UNFRAMED for event, _ in self.events)

    def written(self, catalogue: Catalogue) -> dict[str, Any]:
        """Return the charge as JSON-ready data.

        Raises:
            ContractError: an event is of a class that no one who is admitted provides.
        """
        return {
            "events": [
                {"count": count, **write_event(event, catalogue)} for event, count in self.events
            ],
            "failures": write_number(self.failures),
            "frame": self.frame,
            "assumptions": list(self.assumptions),
            # Left out where it is 0, as in rows from before there were tilted leaks.
            **({"tilted": write_number(self.tilted)} if self.tilted else {}),
        }

    @classmethod
    def read(cls, body: Mapping[str, Any], catalogue: Catalogue) -> "Charge":
        """Read the charge that `written` wrote.

        Raises:
            UnknownEventError: the plugin of an event is missing or not admitted.
            EventTextError: an event is damaged. KeyError, TypeError, ValueError: something else is.
        """
        rows = [dict(data) for data in body["events"]]
        counts = [fields.pop("count") for fields in rows]
        events = [read_event(fields, catalogue) for fields in rows]
        return cls(
            events=tuple(zip(events, counts, strict=True)),
            failures=read_number(body["failures"]),
            frame=body["frame"],
            assumptions=tuple(body["assumptions"]),
            tilted=read_number(body["tilted"]) if "tilted" in body else 0.0,
        )
