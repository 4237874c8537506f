"""What admitted plugins ship beside components: example specs, experiments, methods, statements."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from dpcore.errors import RegistryError, unknown
from dpcore.registry.registry import Registry

Shelf = Literal["examples", "experiments", "methods", "theory"]


def shipped(registry: Registry, shelf: Shelf) -> dict[str, Any]:
    """Everything on one shelf by name, sorted; plugins that cannot be loaded are passed over."""
    found: dict[str, Any] = {}
    for plugin in sorted({*registry.modules, *registry.entries}):
        if plugin in registry.disabled:
            continue
        try:
            loaded: Mapping[str, Any] = getattr(registry.load(plugin), shelf)
        except RegistryError:
            continue  # told to whoever asks for one of its components by name
        found.update(loaded)
    return dict(sorted(found.items()))


def one(registry: Registry, shelf: Shelf, what: str, name: str) -> Any:
    """What goes by a name on a shelf.

    Raises:
        RegistryError: nothing does.
    """
    found = shipped(registry, shelf)
    if name not in found:
        raise RegistryError(unknown(what, name, found))
    return found[name]


def beside(spec: Path) -> list[Path]:
    """The spec and every file of its folder that it names, such as a table of points."""
    text = spec.read_text("utf-8")
    others = (p for p in sorted(spec.parent.iterdir()) if p.is_file() and p != spec)
    return [spec, *(other for other in others if other.name in text)]
