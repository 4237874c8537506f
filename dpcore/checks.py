"""`checks`: what many check: ranges, by attrs validators (positive, ...), and a mapping's keys.

A validator refuses NaN and infinities, and raises `ParameterError` with the component's class name.
"""

import hashlib
import math
import operator
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Real
from typing import Any

import attrs

from dpcore.errors import ParameterError, SpecError, below, nearest, need, shown

Validator = Callable[[Any, Any, Any], None]


def component_name(owner: object) -> str:
    """Return the name a component goes by in messages: its class."""
    return (owner if isinstance(owner, type) else type(owner)).__name__


def _number(test: Callable[[float], bool], requirement: str) -> Validator:
    def check(instance: Any, attribute: Any, value: Any) -> None:
        is_valid = is_finite(value) and test(value)
        need_field(is_valid, instance, attribute.name, requirement.format(attribute.name))

    return check


def is_finite(value: Any) -> bool:
    """Return whether a value is a finite number (a bool is none here, nor is a text)."""
    try:
        return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    except OverflowError:
        # An integer beyond the largest float: no arithmetic of ours could use it.
        return False


def unboxed(value: Any) -> Any:
    """Convert a number of numpy to Python's; return any other value unchanged."""
    return value.item() if isinstance(value, Real) and hasattr(value, "item") else value


def tupled(value: Any) -> Any:
    """Convert sequences to tuples and numpy's numbers to Python's, in mappings and components too.

    A list cannot be hashed and an array not be compared: a learner that finds out while it reads
    records fails when it is paid for. A field that is declared to hold an array or a list keeps
    it; what needs no change is returned itself.

    Raises:
        SpecError: a set, which has no order, or an iterator, which is empty the second time.
    """
    if attrs.has(type(value)):
        keeps = re.compile(r"rray|<class 'list'>|list\[")
        fields = [f for f in attrs.fields(type(value)) if f.init and not keeps.search(str(f.type))]
        values = {f.alias or f.name: getattr(value, f.name) for f in fields}
        changed = tupled(values)
        return value if changed is values else attrs.evolve(value, **changed)
    # Of numpy and pandas, polars, and pyarrow: none of them need be installed.
    for name in ("tolist", "to_list", "to_pylist"):
        if hasattr(value, name):
            value = getattr(value, name)()
    is_list = not isinstance(value, set | frozenset | Iterator)
    need(is_list, SpecError, f"needs values in a list, got {describe_type(value)}")
    if isinstance(value, Mapping):
        entries = {}
        for key, entry in value.items():
            with below(str(key)):
                entries[key] = tupled(entry)
        return entries if any(entries[key] is not value[key] for key in entries) else value
    if not isinstance(value, list | tuple):
        return value
    items = tuple(map(tupled, value))
    is_same = type(value) is tuple and all(map(operator.is_, items, value))
    return value if is_same else items


positive = _number(lambda v: v > 0, "a finite {} > 0")
non_negative = _number(lambda v: v >= 0, "a finite {} >= 0")
finite = _number(lambda v: True, "a finite {}")
probability = _number(lambda v: 0 <= v <= 1, "a {} in [0, 1]")
weight = _number(lambda v: 0 < v <= 1e150, "a {} in (0, 1e150]")  # sums of such are finite
fraction = _number(lambda v: 0 < v < 1, "a {} in (0, 1)")
confidence = _number(lambda v: 1e-6 <= v < 1, "a {} in [1e-6, 1)")


def is_integer(value: object, lowest: int = 1) -> bool:
    """Return whether a value is an int from `lowest` (a bool is not an int here)."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= lowest


def need_field(
    condition: object, instance: object, field: str, requirement: str, *, owner: str | None = None
) -> None:
    """Refuse an object unless a condition on its `field` holds.

    Args:
        owner: The name its user knows, if that is not its class.

    Raises:
        ParameterError: the condition does not hold; the message shows the field's value.
    """
    if not condition:
        raise ParameterError(
            owner or component_name(instance), requirement, field, getattr(instance, field)
        )


def instance_of(*kinds: type) -> Validator:
    """Return a validator that accepts instances of these classes only, and names the classes."""
    names = " or ".join(kind.__name__ for kind in kinds)

    def check(instance: Any, attribute: Any, value: Any) -> None:
        if not isinstance(value, kinds):
            raise ParameterError(
                component_name(instance),
                f"an instance of {names}",
                attribute.name,
                describe_type(value),
            )

    return check


class _Phrase(str):
    """Words about a value, which messages show without quotes."""

    __repr__ = str.__str__


def describe_type(value: object) -> str:
    """Describe a value by its type: None, a class or `a value of type ...`.

    The value itself is never shown: it may be a record.
    """
    if isinstance(value, type):
        return _Phrase(f"the class {value.__name__}")
    return _Phrase("None" if value is None else f"a value of type {type(value).__name__}")


def integer_from(lowest: int) -> Validator:
    """Return a validator that accepts an int >= `lowest` only (a bool is not an int here)."""

    def check(instance: Any, attribute: Any, value: Any) -> None:
        requirement = f"an integer {attribute.name} >= {lowest}"
        need_field(is_integer(value, lowest), instance, attribute.name, requirement)

    return check


positive_integer = integer_from(1)


def floats(values: Iterable[Any]) -> tuple[float, ...]:
    """Return a converter: numbers of any kind, as a tuple of floats."""
    return tuple(map(float, values))


def one_of(*choices: str) -> Validator:
    """Return a validator that accepts the texts in `choices` only."""

    names = " or ".join(map(repr, choices))

    def check(instance: Any, attribute: Any, value: Any) -> None:
        need_field(value in choices, instance, attribute.name, f"{attribute.name} {names}")

    return check


def require_keys(
    data: Mapping[Any, Any], required: Iterable[str], optional: Iterable[str] = ()
) -> None:
    """Refuse a mapping with an unknown key, or without one that is needed.

    Raises:
        SpecError: about the key, with the nearest valid one.
    """
    required = list(required)
    valid = {*required, *optional}
    # Unknown keys come first: a misspelt key is named as such, and not as a missing one.
    for key in map(str, data):
        if key not in valid:
            raise SpecError(f"unknown key {shown(key)}{nearest(key, valid)}", field=key, key=key)
    for key in required:
        need(key in data, SpecError, f"the key {key!r} is missing", field=key)


def need_positive(owner: str, **values: Any) -> None:
    """Refuse arguments of a formula that are not finite and positive.

    Raises:
        ParameterError: one is not.
    """
    for name, value in values.items():
        got = value if isinstance(value, Real) else describe_type(value)
        need(is_finite(value) and value > 0, owner, f"a finite {name} > 0", name, got)


def fingerprint(*parts: object) -> tuple[bytes, ...]:
    """Return a digest of each part's serialised fields; empty if one of them cannot be serialised.

    Equal fingerprints mean equal types and fields, compared or not in `==`, to the last byte. Equal
    objects may have different ones, so that a doubt costs time and never a stale value.
    """
    try:
        # `==` may skip fields; what pickle writes does not.
        return tuple(hashlib.sha256(pickle.dumps(part)).digest() for part in parts)
    except Exception:  # whatever a field of a third party's class raises
        return ()
