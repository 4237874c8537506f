"""Events as plain data: versioned, canonical and lossless, so that a ledger outlives its program.

A float is its hexadecimal text, an event the name of its kind with its own fields. What was written
rebuilds an equal event, to the last bit; another version, an unknown kind or a field too many or
too few is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NoReturn

import attrs

from dpcore.accounting.account import EVENTS, SAMPLED
from dpcore.adjacency import Adjacency
from dpcore.errors import ContractError, DpcoreError, ParameterError
from dpcore.events.base import Event
from dpcore.events.composition import ComposedEvent

VERSION = 1
KINDS: Mapping[str, Any] = {**EVENTS, **SAMPLED, "composed": ComposedEvent}
_NAMES = {made: name for name, made in KINDS.items()}


class EventTextError(DpcoreError):
    """Data that is no event of a known kind and version."""


def write_event(event: Event) -> dict[str, Any]:
    """The event as JSON-ready data.

    Raises:
        ContractError: it is of a kind that this version of dpcore cannot store.
    """
    return {"version": VERSION, **_event(event)}


def read_event(data: object) -> Event:
    """The event that `write_event` wrote.

    Raises:
        EventTextError: the data is of another version, an unknown kind, or damaged.
    """
    if not isinstance(data, dict) or data.get("version") != VERSION:
        got = data.get("version") if isinstance(data, dict) else data
        raise EventTextError(f"an event of version {VERSION} is needed, got version {got!r}")
    fields = {key: value for key, value in data.items() if key != "version"}
    event = _read(fields)
    if not isinstance(event, Event):
        raise EventTextError(f"an event is needed, got {data!r}")
    return event


def write_number(value: float) -> str:
    """Every bit of a float that is a number."""
    if math.isnan(value):
        raise ContractError("only numbers can be stored, got nan")
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
    if math.isnan(value) or value.hex() != text:
        raise EventTextError(f"a hexadecimal number is needed, got {text!r}")
    return value


def write_adjacency(adjacency: Adjacency) -> dict[str, Any]:
    """The relation as JSON-ready data; an unbounded radius is null."""
    free = math.isinf(adjacency.feature_radius)
    return {
        "membership": adjacency.membership,
        "radius": None if free else write_number(adjacency.feature_radius),
        "label": adjacency.label,
    }


def read_adjacency(data: object) -> Adjacency:
    """The relation that `write_adjacency` wrote.

    Raises:
        EventTextError: it is not one.
    """
    if not isinstance(data, dict) or data.keys() != {"membership", "radius", "label"}:
        _damaged("an adjacency", data)
    if not (isinstance(data["membership"], bool) and isinstance(data["label"], bool)):
        _damaged("an adjacency", data)
    radius = math.inf if data["radius"] is None else read_number(data["radius"])
    try:
        return Adjacency(data["membership"], radius, data["label"])
    except ParameterError:
        _damaged("an adjacency", data)


def _event(event: Event) -> dict[str, Any]:
    name = _NAMES.get(type(event))
    if name is None:
        raise ContractError(
            f"a ledger cannot store an event of class {type(event).__name__}: a mechanism that is "
            f"to be charged describes its cost by one of {', '.join(sorted(KINDS))}"
        )
    fields = [field for field in attrs.fields(type(event)) if field.init]  # type: ignore[arg-type]  # events are attrs classes
    return {"kind": name, **{f.alias: _value(getattr(event, f.name), f.type) for f in fields}}


def _value(value: object, declared: object = None) -> Any:
    if isinstance(value, Event):
        return _event(value)
    if isinstance(value, Adjacency):
        return write_adjacency(value)
    if isinstance(value, tuple):
        return [_value(one) for one in value]
    if isinstance(value, float) or (declared in (float, "float") and isinstance(value, int)):
        return write_number(value)  # mu=1 and mu=1.0 are one event, and one text
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ContractError(f"a ledger cannot store a field of type {type(value).__name__}")


def _read(data: Any) -> Any:
    if isinstance(data, str):
        return read_number(data)
    if isinstance(data, list):
        return tuple(_read(one) for one in data)
    if isinstance(data, int) and not isinstance(data, bool):
        return data
    if not isinstance(data, dict):
        _damaged("an event", data)
    if "kind" not in data:
        return read_adjacency(data)
    fields = dict(data)
    kind = fields.pop("kind")
    made = KINDS.get(kind) if isinstance(kind, str) else None
    if made is None:
        _damaged("an event of a known kind", kind)
    known = {field.alias for field in attrs.fields(made) if field.init}
    if fields.keys() != known:
        _damaged(f"the fields {', '.join(sorted(known))}", sorted(fields))
    try:
        return made(**{key: _read(value) for key, value in fields.items()})
    except (TypeError, ValueError, AttributeError) as error:
        raise EventTextError(f"an event that is impossible: {error}") from None


def _damaged(needed: str, got: object) -> NoReturn:
    raise EventTextError(f"{needed} is needed, got {got!r}")
