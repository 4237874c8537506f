"""Relations as plain data, in three formats, which differ on disk and mean the same.

In a ledger next to its events (`write_adjacency`), in a lock (`lock_adjacency`), and as people
write it (`parse_adjacency`). A float is its hexadecimal text, so that what was written rebuilds an
equal relation, to the last bit.
"""

import functools
import math
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from dpcore.adjacency import RELATIONS, REPLACE_ROW, Adjacency, replace_features
from dpcore.checks import describe_type, require_keys
from dpcore.errors import (
    ContractError,
    DpcoreError,
    ParameterError,
    SpecError,
    below,
    near,
    need,
    shown,
)


class EventTextError(DpcoreError):
    """Data that is no event of a known kind and version."""


# the two sets of keys that a stored relation may have; they are a format on disk
_PLAIN = frozenset({"membership", "radius", "label"})
_OF_PERSONS = _PLAIN | {"unit", "records"}


def write_number(value: float) -> str:
    """Write every bit of a float other than nan."""
    need(not math.isnan(value), ContractError, "only numbers can be stored, got nan")
    return float(value).hex()


def read_number(text: object) -> float:
    """Return the float that `write_number` wrote.

    Raises:
        EventTextError: it is not one.
    """
    try:
        value = float.fromhex(text) if isinstance(text, str) else math.nan
    except (ValueError, OverflowError):
        value = math.nan
    # only the text that `write_number` writes: equal events then have equal texts
    if math.isnan(value) or value.hex() != text:
        refuse("a hexadecimal number", text)
    return value


def write_adjacency(adjacency: Adjacency) -> dict[str, Any]:
    """Return the relation as JSON-ready data; an unbounded radius is null.

    Only a relation of persons or rows has a unit.

    Raises:
        ContractError: it is about places: no ledger has such records.
    """
    need(
        adjacency.unit != "place", ContractError, f"a ledger cannot store a claim about {adjacency}"
    )
    unbounded = math.isinf(adjacency.feature_radius)
    unit = {"unit": adjacency.unit, "records": adjacency.records} if adjacency.varies else {}
    return {
        "membership": adjacency.membership,
        "radius": None if unbounded else write_number(adjacency.feature_radius),
        "label": adjacency.label,
        **unit,
    }


def read_adjacency(data: object) -> Adjacency:
    """Return the relation that `write_adjacency` wrote.

    Raises:
        EventTextError: it is not one.
    """
    # no other set of keys: an unknown key could limit what the claim is about
    if not isinstance(data, dict) or not (data.keys() == _PLAIN or data.keys() == _OF_PERSONS):
        refuse("an adjacency", data)
    if data == write_adjacency(REPLACE_ROW):
        return REPLACE_ROW
    if "unit" in data and data["unit"] != "person":
        refuse("a person as the unit", data["unit"])
    if not (isinstance(data["membership"], bool) and isinstance(data["label"], bool)):
        refuse("an adjacency", data)
    radius = math.inf if data["radius"] is None else read_number(data["radius"])
    try:
        return _relation(data, radius, "records")
    except ParameterError:
        refuse("an adjacency", data)


def lock_adjacency(adjacency: Adjacency) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the relation's own fields in a lock, and those that count the records of its unit.

    The latter come later in the lock. Null represents an unbounded radius.
    """
    radius = adjacency.feature_radius
    fields = {
        "membership": adjacency.membership,
        "feature_radius": None if math.isinf(radius) else radius,
        "label": adjacency.label,
    }
    key = "persons" if adjacency.of_person else "rows"
    return fields, {key: adjacency.records} if adjacency.varies else {}


def unlock_adjacency(data: Mapping[str, Any]) -> Adjacency:
    """Return the relation that `lock_adjacency` wrote among other fields.

    Raises:
        LookupError: a field is missing.
        ValueError: a field holds what no relation has.
    """
    radius = data["feature_radius"]
    relation = _relation(data, math.inf if radius is None else float(radius), "persons")
    return relation.of_rows() if "rows" in data else relation


def _relation(data: Mapping[str, Any], radius: float, persons: str) -> Adjacency:
    """Return the relation of stored fields; about persons if `persons` is a key among them."""
    of_records = _of_records(bool(data["membership"]), radius, bool(data["label"]))
    return of_records.of_persons(data[persons]) if persons in data else of_records


@functools.lru_cache(maxsize=64)  # a ledger's rows say the same few
def _of_records(membership: bool, radius: float, label: bool) -> Adjacency:
    return Adjacency(membership, radius, label)


def parse_adjacency(data: object) -> Adjacency:
    """Parse a relation as a spec writes it.

    add_remove, replace_one, replace_label, {replace_features: {radius, label}}, or of persons.

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
            f"needs one of {names}, {{replace_features: {{radius: NUM, label: fixed}}}} or "
            f"{{person: {{adjacency: add_remove, records: INT}}}}, got {shown(data)}{hint}"
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


def relation_of(value: object) -> Adjacency:
    """Return a relation as it is, or parse a text or a mapping as in a spec.

    Raises:
        SpecError: it is none.
    """
    if isinstance(value, Adjacency):
        return value
    is_text = isinstance(value, str | Mapping)
    names = "ADD_REMOVE, REPLACE_ONE or another relation of dpcore, or its name"
    need(is_text, "adjacency", names, "adjacency", describe_type(value))
    with below("adjacency"):
        return parse_adjacency(value)


def _parse_features(radius: object, label: object) -> Adjacency:
    # True is an int in Python: `radius: true` would pass as 1.
    is_number = isinstance(radius, int | float) and not isinstance(radius, bool)
    _need_form(is_number, "a number", radius, "radius")
    _need_form(label in ("fixed", "free"), "fixed or free", label, "label")
    return replace_features(float(cast(float, radius)), label=label == "free")


def _need_form(condition: bool, requirement: str, got: object, *path: str) -> None:
    need(condition, SpecError, f"needs {requirement}, got {shown(got)}", *path)


def refuse(requirement: str, got: object) -> NoReturn:
    raise EventTextError(f"{requirement} is needed, got {got!r}")
