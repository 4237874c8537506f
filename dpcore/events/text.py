"""Events as plain data: versioned, canonical and lossless, so that a ledger outlives its program.

A float is its hexadecimal text, an event the name of its kind with its own fields: floats,
integers, tuples, relations and other events. What was written rebuilds an equal event, to the last
bit; another version, an unknown kind or a field too many or too few is refused.

A relation stands in three formats, which differ on disk and mean the same: in a ledger beside its
events (`write_adjacency`), in a lock (`lock_adjacency`) and as people write it
(`parse_adjacency`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from dpcore.adjacency import RELATIONS, Adjacency, replace_features
from dpcore.checks import require_keys
from dpcore.errors import (
    ContractError,
    DpcoreError,
    ParameterError,
    RegistryError,
    SpecError,
    below,
    near,
    need,
    shown,
)
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
        return _relation(data, radius, "records")
    except ParameterError:
        _refuse("an adjacency", data)


def lock_adjacency(adjacency: Adjacency) -> tuple[dict[str, Any], dict[str, Any]]:
    """The relation in a lock: its own fields, and of persons how many records, which stand later.

    Null stands for an unbounded radius.
    """
    radius = adjacency.feature_radius
    fields = {
        "membership": adjacency.membership,
        "feature_radius": None if math.isinf(radius) else radius,
        "label": adjacency.label,
    }
    return fields, {"persons": adjacency.records} if adjacency.of_person else {}


def unlock_adjacency(data: Mapping[str, Any]) -> Adjacency:
    """The relation that `lock_adjacency` wrote among other fields.

    Raises:
        LookupError: a field is missing.
        ValueError: a field holds what no relation has.
    """
    radius = data["feature_radius"]
    return _relation(data, math.inf if radius is None else float(radius), "persons")


def _relation(data: Mapping[str, Any], radius: float, persons: str) -> Adjacency:
    """The relation of stored fields; about persons where `persons` says how many records."""
    of_records = _of_records(bool(data["membership"]), radius, bool(data["label"]))
    return of_records.of_persons(data[persons]) if persons in data else of_records


@functools.lru_cache(maxsize=64)  # a ledger's rows tell the same few
def _of_records(membership: bool, radius: float, label: bool) -> Adjacency:
    return Adjacency(membership, radius, label)


def parse_adjacency(data: object) -> Adjacency:
    """add_remove, replace_one, replace_label, {replace_features: {radius, label}}, or of persons.

    Of persons: {person: {adjacency: add_remove, records: 5}}, or replace_one.

    Raises:
        SpecError: it is none of these.
    """
    if isinstance(data, str) and data in RELATIONS:
        return RELATIONS[data]
    if not isinstance(data, Mapping):
        names = ", ".join(RELATIONS)
        hint = near(data, RELATIONS) if isinstance(data, str) else ""
        raise SpecError(
            f"needs one of {names}, or {{replace_features: {{radius: NUM, label: fixed}}}}, "
            f"got {shown(data)}{hint}"
        )
    # No key has a default: without one of them the relation, and so the claim, is unknown.
    key, form, keys = (
        ("person", "{adjacency: add_remove, records: INT}", ["adjacency", "records"])
        if "person" in data
        else ("replace_features", "{radius: NUM, label: fixed or free}", ["radius", "label"])
    )
    require_keys(data, [key])
    with below(key):
        fields = data[key]
        _need_form(isinstance(fields, Mapping), form, fields)
        require_keys(fields, keys)
        if key == "replace_features":
            return _parse_features(fields["radius"], fields["label"])
        with below("adjacency"):
            relation = parse_adjacency(fields["adjacency"])
        return relation.of_persons(fields["records"])


def _parse_features(radius: object, label: object) -> Adjacency:
    # True is an int in Python: `radius: true` would pass as 1.
    is_number = isinstance(radius, int | float) and not isinstance(radius, bool)
    _need_form(is_number, "a number", radius, "radius")
    _need_form(label in ("fixed", "free"), "fixed or free", label, "label")
    return replace_features(float(cast(float, radius)), label=label == "free")


def _need_form(condition: bool, requirement: str, got: object, *path: str) -> None:
    need(condition, SpecError, f"needs {requirement}, got {shown(got)}", *path)


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
