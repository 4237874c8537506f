"""Hover texts: what each key of a spec means, from the `Args:` of the class that reads it."""

import inspect
import re
from typing import Any

_SECTION = re.compile(r"^Args:\n((?:[ ]{4}.*\n|\n)+)", re.MULTILINE)
_ENTRY = re.compile(r"^    (?P<names>\w+(?:, \w+)*): ", re.MULTILINE)
_CODE = re.compile(r":math:`([^`]*)`|`([^`]*)`")


def arguments(owner: type[Any]) -> dict[str, str]:
    """Return what the docstrings of a class and its parents say of each argument, in plain text."""
    descriptions: dict[str, str] = {}
    # Parents first, so that a class's own words replace those that it inherits.
    for base in reversed(owner.__mro__[:-1]):
        section = _SECTION.search(inspect.cleandoc(base.__doc__ or "") + "\n")
        if section is None:
            continue
        parts = _ENTRY.split(section[1])[1:]
        for names, text in zip(parts[::2], parts[1::2], strict=True):
            description = _CODE.sub(lambda match: match[1] or match[2], " ".join(text.split()))
            descriptions |= dict.fromkeys(names.split(", "), description)
    return descriptions


def summary(owner: type[Any]) -> str:
    """Return the first line of a class's docstring, in plain text."""
    lines = (owner.__doc__ or "").strip().splitlines() or [""]
    return _CODE.sub(lambda match: match[1] or match[2], lines[0])


def annotate(schema: dict[str, Any], owner: type[Any]) -> None:
    """Give the properties of an object's schema their hover texts."""
    descriptions = arguments(owner)
    for name, part in schema.get("properties", {}).items():
        if name in descriptions:
            part["description"] = descriptions[name]
