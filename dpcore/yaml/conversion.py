"""Plain YAML data to strict frozen structs; every misfit with the path of its key.

The structs themselves say what is allowed (msgspec validates them and writes their JSON Schema);
this module says in words what was needed at the place where msgspec found a misfit.
"""

import re
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from dpcore.errors import SpecError, near, nearest, shown
from dpcore.yaml.located import Node, reached

T = TypeVar("T")

_AT = re.compile(r" - at `\$(?P<path>[^`]*)`\Z")
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")
_FIELD = re.compile(r"field `([^`]*)`")
_EXAMPLES = {
    "bins": ", such as {age: 10}",
    "edges": ", such as {age: [0, 18, 65, 110]}",
    "where": ", such as {age: {from: 18}} or {sex: [f]}",
}
"""What a mapping of this key looks like."""


def convert(node: Node, to: type[T]) -> T:
    """`node` as a `to`, or one error with the path of the misfit below `node`.

    Args:
        to: A msgspec struct type.

    Raises:
        SpecError: a key is unknown or missing, or a value does not fit.
    """
    try:
        return msgspec.convert(node.plain(), to, strict=True)
    except msgspec.ValidationError as error:
        raise _misfit(node, to, str(error)) from None


def _misfit(node: Node, to: Any, message: str) -> SpecError:
    """Return what msgspec's message is about, in our words."""
    # msgspec says the path and the misfit in one sentence: take the path from it and state what
    # was needed from the type at that path.
    match = _AT.search(message)
    path = match["path"].partition("[...]")[0] if match else ""  # of a mapping's value: the mapping
    steps = [key or index for key, index in _STEP.findall(path)]
    here, info = node, inspect.type_info(to)
    for step in steps:
        info, here = _inner(info, here, step), reached(here, [step])
    field = _FIELD.search(message)
    if field and "unknown" in message:
        hint = near(field[1], _keys(info)) or _elsewhere(field[1], inspect.type_info(to), steps)
        hint = hint or nearest(field[1], _keys(info))
        return SpecError(f"unknown key {shown(field[1])}{hint}", steps, key=field[1])
    if field and "missing" in message:
        return SpecError(f"the key {field[1]!r} is missing", steps)
    got = _got(here) if steps or not isinstance(here.value, str) else "text"  # a file of records?
    phrase = phrase_of(info)
    example = _EXAMPLES.get(steps[-1], "") if phrase == "a mapping" and steps else ""
    hint = example or _hint_nearest(here, info)
    return SpecError(f"needs {phrase}{example}, got {got}{'' if example else hint}", steps)


def _options(info: inspect.Type) -> list[inspect.Type]:
    """Return what a value may be, without null: a key that may be left out need not be null."""
    if isinstance(info, inspect.Metadata):
        return _options(info.type)
    types = info.types if isinstance(info, inspect.UnionType) else (info,)
    return [option for option in types if not isinstance(option, inspect.NoneType)]


def _inner(info: inspect.Type, node: Node, step: str) -> inspect.Type:
    """Return the type of what is at `step` in a value of type `info`."""
    for option in _options(info):
        if isinstance(option, inspect.StructType) and isinstance(node.value, dict):
            for field in option.fields:
                if field.encode_name == step:
                    return field.type
        if isinstance(option, inspect.TupleType) and int(step) < len(option.item_types):
            return option.item_types[int(step)]
        if isinstance(option, inspect.ListType | inspect.VarTupleType):
            return option.item_type
    return inspect.AnyType()


def _keys(info: inspect.Type) -> list[str]:
    """Valid keys of a mapping."""
    structs = [option for option in _options(info) if isinstance(option, inspect.StructType)]
    return [field.encode_name for struct in structs for field in struct.fields]


def _elsewhere(key: str, root: inspect.Type, steps: list[str]) -> str:
    """Return where else a key belongs: at the top, or below a key that has it; or nothing."""
    if steps and key in _keys(root):
        return f"; it belongs at the top level, not below {steps[0]!r}"
    level, depth = [("", root)], 0
    while level and depth < 4:
        level, depth = [
            (f"{path}.{field.encode_name}".lstrip("."), field.type)
            for path, info in level
            for option in _options(info)
            if isinstance(option, inspect.StructType)
            for field in option.fields
        ], depth + 1  # fmt: skip
        if places := [path for path, info in level if key in _keys(info)]:
            return f"; it belongs below {places[0]!r}"
    return ""


def _hint_nearest(node: Node, info: inspect.Type) -> str:
    names = [
        str(name)
        for option in _options(info)
        if isinstance(option, inspect.LiteralType)
        for name in option.values
    ]
    return near(node.value, names) if isinstance(node.value, str) else ""


def _got(node: Node) -> str:
    words: dict[type, str] = {type(None): "nothing", list: "a list", dict: "a mapping"}
    return words.get(type(node.value)) or shown(node.value)


def phrase_of(info: inspect.Type) -> str:
    """Return what a type accepts, in words."""
    if isinstance(info, inspect.Metadata):
        phrase = (info.extra or {}).get("needs")
        return str(phrase) if phrase else phrase_of(info.type)
    return _or([words for option in _options(info) for words in _words(option)]) or "a value"


def _words(info: inspect.Type) -> list[str]:
    if isinstance(info, inspect.Metadata):
        return [phrase_of(info)]
    if isinstance(info, inspect.LiteralType):
        plain = (str(value).replace("_", "").isalnum() for value in info.values)
        return [str(v) if p else repr(v) for v, p in zip(info.values, plain, strict=True)]
    if isinstance(info, inspect.BoolType):
        return ["true", "false"]
    if isinstance(info, inspect.IntType):
        return [f"a whole number{_bounds(info)}"]
    if isinstance(info, inspect.FloatType):
        return [f"a number{_bounds(info)}"]
    if isinstance(info, inspect.StrType):
        return ["one character" if info.max_length == 1 else "text"]
    if isinstance(info, inspect.TupleType):
        return [f"a list of {len(info.item_types)}: {', '.join(map(phrase_of, info.item_types))}"]
    if isinstance(info, inspect.ListType | inspect.VarTupleType):
        several = "one or more: " if getattr(info, "min_length", None) else ""
        return [f"a list of {several}{phrase_of(info.item_type)}"]
    if isinstance(info, inspect.StructType):
        required = [field.encode_name for field in info.fields if field.required]
        keys = ", ".join(f"{key}: ..." for key in required)
        return [f"{{{keys}}}" if keys else "a mapping"]
    return [{inspect.DictType: "a mapping", inspect.AnyType: "a value"}.get(type(info), "text")]


def _bounds(info: inspect.IntType | inspect.FloatType) -> str:
    signs = {">": info.gt, ">=": info.ge, "<": info.lt, "<=": info.le}
    bounds = [f"{sign} {value:g}" for sign, value in signs.items() if value is not None]
    return f" {' and '.join(bounds)}" if bounds else ""


def _or(words: list[str]) -> str:
    return " or ".join(part for part in (", ".join(words[:-1]), *words[-1:]) if part)
