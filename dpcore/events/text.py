"""Events as plain data: versioned, canonical and lossless, so that a ledger outlives its program.

A float is its hexadecimal text, an event the name of its kind with its own fields: floats,
integers, tuples, relations and other events. What was written rebuilds an equal event, to the last
bit; another version, an unknown kind or a field too many or too few is refused.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NoReturn

from dpcore.adjacency import Adjacency
from dpcore.errors import ContractError, DpcoreError, ParameterError, RegistryError, need
from dpcore.events.base import Event
from dpcore.events.catalogue import Catalogue, fields_of

VERSION = 1


class EventTextError(DpcoreError):
    """Data that is no event of a known kind and version."""


class UnknownEventError(EventTextError):
    """A stored event of a kind that nobody here provides: its plugin is missing or not admitted."""


# the two sets of keys that a stored relation may have; they are a format on disk
_PLAIN = frozenset({"membership", "radius", "label"})
_OF_PERSONS = _PLAIN | {"unit", "records"}


def write_event(event: Event, catalogue: Catalogue) -> dict[str, Any]:
    """The event as JSON-ready data.

    Raises:
        ContractError: nobody who is admitted provides its class, or a field cannot be stored.
    """
    return {"version": VERSION, **_event(event, catalogue)}


def read_event(data: object, catalogue: Catalogue) -> Event:
    """The event that `write_event` wrote.

    Raises:
        UnknownEventError: nobody who is admitted provides its kind.
        EventTextError: the data is of another version, or damaged.
    """
    if not isinstance(data, dict) or data.get("version") != VERSION:
        got = data.get("version") if isinstance(data, dict) else data
        raise EventTextError(f"an event of version {VERSION} is needed, got version {got!r}")
    event = _rebuild({key: data[key] for key in data if key != "version"}, catalogue)
    if not isinstance(event, Event):
        _refuse("an event", data)
    return event


def write_number(value: float) -> str:
    """Every bit of a float that is a number."""
    need(not math.isnan(value), ContractError, "only numbers can be stored, got nan")
    return float(value).hex()


def read_number(text: object) -> float:
    """The float that `write_number` wrote.

    Raises:
        EventTextError: it is not one.
    """
    try:
        value = float.fromhex(text) if isinstance(text, str) else math.nan
    except (ValueError, OverflowError):
        value = math.nan
    # only the text that `write_number` writes: equal events then have equal texts
    if math.isnan(value) or value.hex() != text:
        _refuse("a hexadecimal number", text)
    return value


def write_adjacency(adjacency: Adjacency) -> dict[str, Any]:
    """The relation as JSON-ready data; an unbounded radius is null.

    Only a relation of persons has a unit.

    Raises:
        ContractError: it is about places: no ledger has such records.
    """
    need(
        adjacency.unit != "place", ContractError, f"a ledger cannot store a claim about {adjacency}"
    )
    unbounded = math.isinf(adjacency.feature_radius)
    unit = {"unit": adjacency.unit, "records": adjacency.records} if adjacency.of_person else {}
    return {
        "membership": adjacency.membership,
        "radius": None if unbounded else write_number(adjacency.feature_radius),
        "label": adjacency.label,
        **unit,
    }


def read_adjacency(data: object) -> Adjacency:
    """The relation that `write_adjacency` wrote.

    Raises:
        EventTextError: it is not one.
    """
    # no other set of keys: an unknown key could limit what the claim is about
    if not isinstance(data, dict) or not (data.keys() == _PLAIN or data.keys() == _OF_PERSONS):
        _refuse("an adjacency", data)
    if "unit" in data and data["unit"] != "person":
        _refuse("a person as the unit", data["unit"])
    if not (isinstance(data["membership"], bool) and isinstance(data["label"], bool)):
        _refuse("an adjacency", data)
    radius = math.inf if data["radius"] is None else read_number(data["radius"])
    try:
        relation = _of_records(data["membership"], radius, data["label"])
        return relation.of_persons(data["records"]) if "unit" in data else relation
    except ParameterError:
        _refuse("an adjacency", data)


@functools.lru_cache(maxsize=64)  # a ledger's rows tell the same few
def _of_records(membership: bool, radius: float, label: bool) -> Adjacency:
    return Adjacency(membership, radius, label)


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
        _refuse("an event", data)
    if "kind" not in data:
        return read_adjacency(data)
    fields = dict(data)
    if not isinstance(kind := fields.pop("kind"), str):
        _refuse("an event of a known kind", kind)
    try:
        event_class = catalogue.named(kind)
    except RegistryError as error:
        raise UnknownEventError(error.message) from None
    # all fields and no others: no default may decide the price of a stored event
    if fields.keys() != (aliases := _aliases(event_class)):
        _refuse(f"the fields {', '.join(sorted(aliases))}", sorted(fields))
    # the constructor checks the values again, so that damaged data makes no event
    try:
        return event_class(**{key: _rebuild(value, catalogue) for key, value in fields.items()})
    except (TypeError, ValueError, AttributeError) as error:
        raise EventTextError(f"an event that is impossible: {error}") from None


@functools.cache
def _aliases(event_class: type[Event]) -> frozenset[str]:
    return frozenset(field.alias for field in fields_of(event_class))


def _refuse(requirement: str, got: object) -> NoReturn:
    raise EventTextError(f"{requirement} is needed, got {got!r}")
