"""Distributions: whose code a guarantee rests on, in which versions."""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from typing import Any

import attrs

_SIBLING = re.compile(r"(dpcore[a-z-]*)(?![^;]*;.*\bextra\b)")
_OUTSIDE = sys.stdlib_module_names - {"__main__"}
UNKNOWN = "of no distribution"


def distributions_of(
    components: Iterable[Any], distributions: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The distributions that hold components, what is inside these, and what they derive from.

    dpcore is always among them, and so is each sibling that one of them requires: what siblings
    share is imported from there.

    Args:
        components: Frozen objects, or classes, which are not looked into.
        distributions: Names by the package that each brings, where they are not alike.

    Returns:
        Versions by name, sorted; `of no distribution` of a program's own module.
    """
    packages = {module.partition(".")[0] for module in _modules(components)} - _OUTSIDE
    names = {package: package.replace("_", "-") for package in packages} | {
        package: name for package, name in (distributions or {}).items() if package in packages
    }
    return with_siblings(["dpcore", *names.values()])


def with_siblings(names: Iterable[str]) -> dict[str, str]:
    """Distributions and the siblings that they require: installed versions by name, sorted."""
    versions: dict[str, str] = {}
    pending = [*names]
    while pending:
        name = pending.pop()
        if name in versions:
            continue
        try:
            distribution = metadata.distribution(name)
        except (metadata.PackageNotFoundError, ValueError):
            versions[name] = UNKNOWN
            continue
        versions[name] = distribution.version
        matches = map(_SIBLING.match, distribution.requires or ())
        pending += [match[1] for match in matches if match]
    return dict(sorted(versions.items()))


def _modules(components: Iterable[Any]) -> Iterator[str]:
    """The modules of the classes of components and of whatever their fields hold."""
    pending = [*components]
    while pending:
        component = pending.pop()
        if isinstance(component, Mapping):
            pending += component.values()
        elif isinstance(component, tuple | list):
            pending += component
        else:
            kind = component if isinstance(component, type) else type(component)
            yield from (base.__module__ for base in kind.__mro__)
            if attrs.has(kind) and kind is not component:
                pending += [getattr(component, field.name) for field in attrs.fields(kind)]
