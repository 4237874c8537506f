"""Registry: admits installed plugins, and looks components up by name.

In force are the index packaged with dpcore, the user's file and whatever a program passes in; never
a file in the working directory or one that a spec names. An installed plugin that no index admits
is not imported. The gate is a record of consent, not a sandbox: an admitted plugin's code runs in
the process that reads the records.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import metadata
from types import ModuleType
from typing import Any

import attrs

from dpcore.errors import RegistryError, nearest, need, shown
from dpcore.registry.index import Entry, Index
from dpcore.registry.installations import find, import_plugin, installed
from dpcore.registry.kinds import Kind
from dpcore.registry.loading import Loaded, Names, load
from dpcore.registry.user_folder import user_file


def _core() -> dict[str, ModuleType]:
    """The core's own components, imported when a registry is made: a mistyped key needs none."""
    from dpcore.registry import builtin

    return {"dpcore": builtin}


@attrs.define(eq=False)
class Registry:
    """Components by name, from the core, from modules a program passes, and from admitted plugins.

    A plugin is imported when one of its components is first asked for, and only then; one that is
    broken is reported to anyone who asks for it and disturbs no other.

    Args:
        locked: The versions that a published lock names, by distribution, where its spec is read.
    """

    entries: Mapping[str, Entry]
    disabled: frozenset[str] = frozenset()
    modules: Mapping[str, ModuleType] = attrs.field(factory=dict)
    locked: Mapping[str, str] = attrs.field(factory=dict)
    _loaded: dict[str, Loaded] = attrs.field(factory=dict, init=False)

    @classmethod
    def default(cls) -> "Registry":
        """Return the packaged index and the user's file.

        Raises:
            RegistryError: both define a plugin, differently.
        """
        packaged, user = Index.packaged(), Index.user()
        for name, entry in user.entries.items():
            # The user's file may not replace a packaged plugin by another distribution.
            packaged_entry = packaged.entries.get(name)
            if packaged_entry is not None and (
                packaged_entry.distribution,
                packaged_entry.entry_point,
            ) != (
                entry.distribution,
                entry.entry_point,
            ):
                raise RegistryError(
                    f"plugin {name} is {packaged_entry.distribution} in the packaged registry and "
                    f"{entry.distribution} in {user_file()}; remove the latter"
                )
        return cls(
            {**packaged.entries, **user.entries},
            user.disabled | packaged.disabled,
            _core(),
        )

    @classmethod
    def of(cls, *modules: ModuleType) -> "Registry":
        """Return the core and the given modules only: the program's own decision, no gate."""
        return cls({}, frozenset(), {**_core(), **{m.__name__: m for m in modules}})

    def component(self, kind: Kind, name: str) -> type[Any]:
        """Return the class that goes by `name`.

        Raises:
            RegistryError: no one admitted provides it, its plugin is not installed, disabled,
                broken, of another version, or two provide it.
        """
        # Names come from the indexes, so looking one up imports no plugin but its owner.
        owners = [owner for owner, names in self._names(kind).items() if name in names]
        if not owners:
            raise RegistryError(self._explain_unknown(kind, name))
        claimants = " and ".join(self._distribution(owner) for owner in owners)
        way = " or ".join(f"`dpcore plugins disable {o}`" for o in owners if o in self.entries)
        need(
            len(owners) == 1,
            RegistryError,
            f"{kind.name} {name!r} is provided by {claimants}: disable one of them"
            + (f", with {way}" if way else ""),
        )
        return self.load(owners[0]).of(kind)[name]

    def names(self, kind: Kind) -> list[str]:
        """Return every admitted name of a kind, sorted, whether or not its plugin is installed."""
        return sorted({name for names in self._names(kind).values() for name in names})

    def name_of(self, kind: Kind, component: type[Any]) -> str | None:
        """Return the name that a class goes by, None if no one admitted provides it.

        Plugins that provide some of the kind are imported to find out; broken ones are passed over.
        """
        for owner in [owner for owner, names in self._names(kind).items() if names]:
            with suppress(RegistryError):  # reported to anyone who asks for a component by name
                for name, candidate in sorted(self.load(owner).of(kind).items()):
                    if candidate is component:
                        return name
        return None

    def load(self, plugin: str) -> Loaded:
        """Import an admitted plugin and check what it provides.

        Raises:
            RegistryError: as for `component`.
        """
        if plugin not in self._loaded:
            self._loaded[plugin] = self._load(plugin)
        return self._loaded[plugin]

    def versions(self) -> dict[str, str]:
        """Distributions whose components were used, with their versions."""
        # Only plugins that were loaded are in here: these versions are what a run depended on.
        distributions = [self.entries[p].distribution for p in self._loaded if p in self.entries]
        return {name: metadata.version(name) for name in sorted(["dpcore", *distributions])}

    def premises(self) -> tuple[str, ...]:
        """Return what a guarantee takes for granted of plugins that were used: that their code is
        theirs.

        One sentence for each that is admitted without a digest, and does not ship with dpcore.
        """
        packaged = Index.packaged().entries
        plugins = [(plugin, self.entries.get(plugin)) for plugin in sorted(self._loaded)]
        return tuple(
            f"the code of plugin {plugin} is that of {entry.distribution} "
            f"{metadata.version(entry.distribution)}, which is admitted for development: no change "
            f"of it is seen"
            for plugin, entry in plugins
            if entry is not None and not entry.digest and packaged.get(plugin) != entry
        )

    def provides(self, kind: Kind, name: str) -> bool:
        """Return whether somebody admitted provides a component of this name, installed or not."""
        return name in self.names(kind)

    def known(self, kind: Kind) -> list[Any]:
        """List all of a kind that installed plugins provide; no run's versions depend on it."""
        # In another registry, because what is loaded in this one counts as used by the run.
        other_registry = Registry(self.entries, self.disabled, self.modules)
        components = []
        for name in self.names(kind):
            with suppress(RegistryError):  # its plugin is not installed, or broken
                components.append(other_registry.component(kind, name))
        return components

    def _names(self, kind: Kind) -> dict[str, Iterable[str]]:
        names: dict[str, Iterable[str]] = {
            owner: self.load(owner).of(kind) for owner in self.modules
        }
        admitted = [item for item in self.entries.items() if item[0] not in self.disabled]
        names.update({plugin: entry.provides.of(kind) for plugin, entry in admitted})
        return names

    def _distribution(self, owner: str) -> str:
        entry = self.entries.get(owner)
        return f"distribution {entry.distribution}" if entry else f"module {owner}"

    def _load(self, plugin: str) -> Loaded:
        if plugin in self.modules:
            return load(self.modules[plugin], plugin)
        entry = self.entries.get(plugin)
        if entry is None:
            names = {*self.entries, *self.modules}
            raise RegistryError(f"no plugin {shown(plugin)} is admitted{nearest(plugin, names)}")
        # Check distribution, value and version first: importing is already running its code.
        find(plugin, entry)
        loaded = load(import_plugin(plugin, entry.entry_point), plugin)
        # Consent was to these components: a new one could be chosen by a spec without being
        # admitted.
        difference = _difference(entry.provides.to_dict(), loaded.provides())
        need(
            not difference,
            RegistryError,
            f"plugin {plugin} does not provide what was admitted: {difference}",
        )
        return loaded

    def _explain_unknown(self, kind: Kind, name: str) -> str:
        for plugin in sorted(self.disabled):
            entry = self.entries.get(plugin)
            if entry and name in entry.provides.of(kind):
                return (
                    f"{kind.name} {name!r} belongs to plugin {plugin}, which is disabled; "
                    f"enable it with `dpcore plugins enable {plugin}`"
                )
        # No one admitted provides the name; an installed plugin of that prefix is the likely way
        # out.
        prefix = name.split(".")[0]
        for match in installed():
            if match.name not in self.entries and match.name.replace("-", "_") == prefix:
                return (
                    f"no admitted plugin provides {kind.name} {name!r}; plugin {match.name} "
                    f"({match.distribution} {match.version}) is installed but not admitted: "
                    f"look at it with `dpcore plugins enable {match.name}`"
                )
        way = nearest(name, self.names(kind)) or f"; `dpcore describe {name}` looks further"
        return f"no admitted plugin provides {kind.name} {name!r}{way}"


def _difference(consented: Names, provided: Names) -> str:
    parts = []
    for kind in sorted({*consented, *provided}):
        missing = sorted({*consented.get(kind, [])} - {*provided.get(kind, [])})
        extra = sorted({*provided.get(kind, [])} - {*consented.get(kind, [])})
        if missing:
            parts.append(f"{kind} missing: {', '.join(missing)}")
        if extra:
            parts.append(f"{kind} not admitted: {', '.join(extra)}")
    return "; ".join(parts)
