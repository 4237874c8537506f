"""Events as plain data: versioned, canonical and lossless, so that a ledger outlives its program.

A float is its hexadecimal text, an event the name of its kind with its own fields: floats,
integers, tuples, relations and other events. What was written rebuilds an equal event, to the last
bit; another version, an unknown kind or a field too many or too few is refused.
"""

import functools
import typing
from typing import Any, Protocol

import attrs

from dpcore.adjacency import Adjacency
from dpcore.claims.events.relation_text import (
    EventTextError,
    read_adjacency,
    read_number,
    refuse,
    write_adjacency,
    write_number,
)
from dpcore.errors import (
    ContractError,
    RegistryError,
)
from dpcore.event import Event

VERSION = 1


class Catalogue(Protocol):
    """Names of events, and their classes (`dpcore.registry.events`)."""

    def named(self, name: str) -> type[Event]:
        """Return the class that goes by a name."""

    def name_of(self, event_class: type[Event]) -> str:
        """Return the name that a class goes by."""


@attrs.frozen(kw_only=True)
class EventField:
    """What the constructor of an event takes.

    Args:
        name: The attribute. alias: The argument. hint: Its type.
        required: Whether it must be given.
    """

    name: str
    alias: str
    hint: Any
    required: bool

    @property
    def key(self) -> str:
        """How a file spells it."""
        return "of" if self.alias == "event" else self.alias


@functools.cache
def fields_of(event_class: type[Event]) -> tuple[EventField, ...]:
    """Return the arguments of an event's constructor, in order.

    Raises:
        ContractError: it is no attrs class.
    """
    if not attrs.has(event_class):
        raise ContractError(
            f"the event {event_class.__name__} has no fields: attrs.frozen gives it some"
        )
    hints = typing.get_type_hints(event_class)
    return tuple(
        EventField(
            name=field.name,
            alias=field.alias or field.name,
            hint=hints.get(field.name, field.type),
            required=field.default is attrs.NOTHING,
        )
        for field in attrs.fields(event_class)
        if field.init
    )


class UnknownEventError(EventTextError):
    """A stored event of a kind that no one here provides: its plugin is missing or not admitted."""


def write_event(event: Event, catalogue: Catalogue) -> dict[str, Any]:
    """Return the event as JSON-ready data.

    Raises:
        ContractError: no one who is admitted provides its class, or a field cannot be stored.
    """
    return {"version": VERSION, **_event(event, catalogue)}


def read_event(data: object, catalogue: Catalogue) -> Event:
    """Read the event that `write_event` wrote.

    Raises:
        UnknownEventError: no one who is admitted provides its kind.
        EventTextError: the data is of another version, or damaged.
    """
    if not isinstance(data, dict) or data.get("version") != VERSION:
        got = data.get("version") if isinstance(data, dict) else data
        raise EventTextError(f"an event of version {VERSION} is needed, got version {got!r}")
    event = _rebuild({key: data[key] for key in data if key != "version"}, catalogue)
    if not isinstance(event, Event):
        refuse("an event", data)
    return event


def _event(event: Event, catalogue: Catalogue) -> dict[str, Any]:
    name = catalogue.name_of(type(event))
    fields = fields_of(type(event))
    return {
        "kind": name,
        **{f.alias: _value(getattr(event, f.name), catalogue, f.hint) for f in fields},
    }


def _value(value: object, catalogue: Catalogue, declared: object = None) -> Any:
    if isinstance(value, Event):
        return _event(value, catalogue)
    if isinstance(value, Adjacency):
        return write_adjacency(value)
    if isinstance(value, tuple):
        return [_value(item, catalogue) for item in value]
    if isinstance(value, float) or (declared is float and isinstance(value, int)):
        return write_number(value)  # mu=1 and mu=1.0 are one event, and one text
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ContractError(f"a ledger cannot store a field of type {type(value).__name__}")


def _rebuild(data: Any, catalogue: Catalogue) -> Any:
    if isinstance(data, str):
        return read_number(data)
    if isinstance(data, list):
        return tuple(_rebuild(item, catalogue) for item in data)
    if isinstance(data, int) and not isinstance(data, bool):
        return data
    if not isinstance(data, dict):
        refuse("an event", data)
    if "kind" not in data:
        return read_adjacency(data)
    fields = dict(data)
    if not isinstance(kind := fields.pop("kind"), str):
        refuse("an event of a known kind", kind)
    try:
        event_class = catalogue.named(kind)
    except RegistryError as error:
        raise UnknownEventError(error.message) from None
    # all fields and no others: no default may decide the price of a stored event
    if fields.keys() != (aliases := _aliases(event_class)):
        refuse(f"the fields {', '.join(sorted(aliases))}", sorted(fields))
    # the constructor checks the values again, so that damaged data makes no event
    try:
        return event_class(**{key: _rebuild(value, catalogue) for key, value in fields.items()})
    except (TypeError, ValueError, AttributeError) as error:
        raise EventTextError(f"an event that is impossible: {error}") from None


@functools.cache
def _aliases(event_class: type[Event]) -> frozenset[str]:
    return frozenset(field.alias for field in fields_of(event_class))
