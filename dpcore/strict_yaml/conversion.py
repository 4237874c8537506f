"""Plain YAML data to strict frozen structs; every misfit at its file, line and column.

The structs themselves say what is allowed (msgspec validates them and writes their JSON Schema);
this module turns a validation error into one located sentence with the nearest valid name.
"""

import difflib
import re
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from dpcore.errors import SpecError
from dpcore.strict_yaml.located import Node

T = TypeVar("T")

_AT = re.compile(r"\A(?P<what>.*?)(?: - at `(?P<path>\$[^`]*)`)?\Z", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_FIELD = re.compile(r"field `([^`]*)`")
_TYPES = re.compile(r"`([^`]*)`")
_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
}


def nearest(name: str, valid: Iterable[str]) -> str:
    """A hint with the closest valid name, or with all of them if they are few."""
    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; valid: {', '.join(names)}" if 0 < len(names) <= 12 else ""


def convert(node: Node, to: type[T], owner: str) -> T:
    """`node` as a `to`, or one located error.

    Args:
        to: A msgspec struct type.
        owner: What the node is, in the words of messages ("data", "learner cosines").

    Raises:
        SpecError: at the misfit's file, line and column.
    """
    try:
        return msgspec.convert(node.plain(), to, strict=True)
    except msgspec.ValidationError as error:
        match = _AT.match(str(error))
        assert match is not None
        raise _located(node, to, owner, match["what"], match["path"] or "$") from None


def _located(node: Node, to: Any, owner: str, what: str, path: str) -> SpecError:
    steps = [key or int(index) for key, index in _STEP.findall(path)]
    here, names = node, [owner]
    for step in steps:
        inner = here.value
        if isinstance(inner, dict) and step in inner:
            here = inner[str(step)]
        elif isinstance(inner, list) and isinstance(step, int) and step < len(inner):
            here = inner[step]
        else:
            break
        names.append(str(step))
    dotted = ".".join(name for name in names if name)
    prefix = f"{dotted}: " if dotted else ""
    field = _FIELD.search(what)
    if field and what.startswith("Object contains unknown"):
        hint = nearest(field[1], _fields_at(to, steps))
        return SpecError(f"{prefix}unknown key {field[1]!r}{hint}", here.where_key(field[1]))
    if field and what.startswith("Object missing"):
        return SpecError(f"{prefix}the key {field[1]!r} is missing", here.where)
    what = _TYPES.sub(_in_words, what).replace("Expected ", "needs ")
    got = f" ({here.value!r})" if isinstance(here.value, str | int | float) else ""
    return SpecError(f"{prefix}{what}{got}", here.where)


def _in_words(types: re.Match[str]) -> str:
    """`float | null` as "a number": a key that may be left out need not be null."""
    options = [option for option in types[1].split(" | ") if option != "null"]
    return " or ".join(_WORDS.get(option, option) for option in options) or "nothing"


def _fields_at(to: Any, steps: list[Any]) -> list[str]:
    """Valid keys of the struct that `steps` lead to."""
    info = msgspec.inspect.type_info(to)
    for step in [*steps, None]:
        if isinstance(info, msgspec.inspect.UnionType):
            structs = [t for t in info.types if isinstance(t, msgspec.inspect.StructType)]
            info = structs[0] if structs else info.types[0]
        if step is None or not isinstance(info, msgspec.inspect.StructType):
            break
        inner = [field.type for field in info.fields if field.encode_name == step]
        if not inner:
            return []
        info = inner[0]
    if isinstance(info, msgspec.inspect.StructType):
        return [field.encode_name for field in info.fields]
    return []
