"""What admitted plugins ship next to components: example specs, experiments, methods,
statements.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from dpcore.errors import RegistryError, nearest, unknown
from dpcore.registry.index import Index
from dpcore.registry.registry import Registry

Shelf = Literal["examples", "experiments", "methods", "theory"]
_LISTED = {
    "examples": "`dpcore examples list`",
    "experiments": "`dpcore reproduce --list`",
    "methods": "a plugin's hook `dpcore_methods`",
    "theory": "`dpcore theory`",
}


def shipped(registry: Registry, shelf: Shelf) -> dict[str, Any]:
    """List all on one shelf by name, sorted; plugins that cannot be loaded are passed over.

    Where two plugins give one name, it is the one's that ships with dpcore, else the first one's.
    """
    items: dict[str, Any] = {}
    plugins = {*registry.modules, *registry.entries} - registry.disabled
    packaged = Index.packaged().entries
    for plugin in sorted(plugins, key=lambda plugin: (plugin not in packaged, plugin)):
        with suppress(
            RegistryError
        ):  # reported to anyone who asks for one of its components by name
            items = {**getattr(registry.load(plugin), shelf), **items}
    return dict(sorted(items.items()))


def find_entry(registry: Registry, shelf: Shelf, noun: str, name: str) -> Any:
    """Find what goes by a name on a shelf.

    Raises:
        RegistryError: nothing does.
    """
    items = shipped(registry, shelf)
    if name not in items:
        way = "" if nearest(name, items) else f"; {_LISTED[shelf]} shows them"
        raise RegistryError(unknown(noun, name, items) + way)
    return items[name]


def plugins_next_to(spec: Path) -> list[Path]:
    """Return the spec and every file of its folder that it names, such as a table of points."""
    text = spec.read_text("utf-8")
    # By name in the text: a spec's paths are relative to its folder, whatever key holds them.
    files = (p for p in sorted(spec.parent.iterdir()) if p.is_file() and p != spec)
    return [spec, *(file for file in files if file.name in text)]
