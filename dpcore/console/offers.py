"""Commands that plugins bring, as registry files state them: help imports no plugin for it.

Files are read here for their words only. Before a command of a plugin runs, the registry admits
the plugin by its own strict reading.
"""

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from dpcore.registry.user_folder import user_file

_PACKAGED = Path(__file__).parent.parent / "registry" / "registry.yaml"


class Offer(NamedTuple):
    """A command that a registry file promises: its plugin, its line of help, and its module."""

    plugin: str
    help: str
    module: str

    @property
    def is_installed(self) -> bool:
        """Whether the plugin's package can be found; to look for a module in it would import it."""
        return find_spec(self.module.partition(".")[0]) is not None


def offers() -> dict[str, Offer]:
    """Return every promised command by name, whether or not its plugin is installed."""
    promises = {}
    # The user's file comes second, so that its words replace packaged ones of the same name.
    for entries in (_packaged(), _entries(user_file())):
        for plugin, entry in entries.items():
            for name, text in _mapping(_mapping(entry, "provides"), "commands").items():
                promises[str(name)] = Offer(
                    plugin=str(plugin), help=str(text), module=str(entry.get("entry_point", ""))
                )
    return promises


@cache  # a file of the package: it is the same for ever
def _packaged() -> Mapping[str, Any]:
    return _entries(_PACKAGED)


def _entries(path: Path) -> Mapping[str, Any]:
    """What a file holds; nothing where it is malformed, which the registry says in its turn."""
    if not path.is_file():  # nothing, or what would be waited for
        return {}

    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same, where it was built: faster
    try:
        entries = yaml.load(path.read_text("utf-8"), loader)  # noqa: S506  # either is a safe one
    except (OSError, UnicodeError, yaml.YAMLError):
        return {}
    items = entries.items() if isinstance(entries, dict) else ()
    return {name: entry for name, entry in items if isinstance(entry, dict)}


def _mapping(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = entry.get(key)
    return value if isinstance(value, dict) else {}


def command_of(name: str, offer: Offer) -> Any:
    """Return the command itself, from its admitted plugin.

    Raises:
        RegistryError: two plugins provide it; its plugin is missing, disabled or broken.
    """
    from dpcore.errors import RegistryError
    from dpcore.registry.index import Index
    from dpcore.registry.kinds import COMMAND
    from dpcore.registry.registry import Registry
    from dpcore.siblings import missing

    registry = Registry.default()
    # A sibling that is missing gets the way to install it; a stranger gets the registry's words.
    if not offer.is_installed and Index.packaged().entries.get(offer.plugin) == (
        registry.entries.get(offer.plugin)
    ):
        raise RegistryError(missing(f"dpcore {name}", offer.plugin))
    owners = [
        plugin for plugin, entry in registry.entries.items() if name in entry.provides.commands
    ]
    if [*{*owners} - registry.disabled] != [offer.plugin]:
        return registry.component(COMMAND, name)  # which says what is wrong
    return registry.load(offer.plugin).of(COMMAND)[name]  # and asks no other module
