"""Registry: admits installed plugins, and looks components up by name.

In force are the index packaged with dpcore, the user's file and whatever a program passes in; never
a file in the working directory or one that a spec names. An installed plugin that no index admits
is not imported. The gate is a record of consent, not a sandbox: an admitted plugin's code runs in
the process that reads the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import metadata, resources
from types import ModuleType
from typing import Any

import attrs
import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from dpcore.errors import ParameterError, RegistryError, SpecError, below, nearest, one_line, shown
from dpcore.registry.kinds import COMMAND, KINDS, Kind
from dpcore.registry.loading import Loaded, Names, load
from dpcore.registry.user_folder import user_file
from dpcore.siblings import INSTALL
from dpcore.strict_yaml.conversion import convert
from dpcore.strict_yaml.located import Node, parse, read
from dpcore.strict_yaml.places import placed

GROUP = "dpcore.plugins"
DISABLED = "disabled"
_POINTS = "entry_points.txt"


def _core() -> dict[str, ModuleType]:
    """The core's own components, imported when a registry is made: a mistyped key needs none."""
    from dpcore.registry import builtin

    return {"dpcore": builtin}


class Provides(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Component names by kind."""

    learners: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    mechanisms: tuple[str, ...] = ()
    accountants: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    kernels: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    engines: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    commands: dict[str, str] = {}  # msgspec copies it
    """With the line that `dpcore --help` prints, so that help imports no plugin."""
    estimators: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()

    def of(self, kind: Kind) -> tuple[str, ...]:
        """Names of one kind."""
        return tuple(getattr(self, kind.plural))

    def to_dict(self) -> Names:
        """As `Loaded.provides` states it."""
        provided: Names = {kind.plural: sorted(self.of(kind)) for kind in KINDS if self.of(kind)}
        return provided | ({COMMAND.plural: self.commands} if self.commands else {})


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an index says of one plugin."""

    distribution: str
    entry_point: str
    version: str
    provides: Provides
    paper: str = ""


@attrs.frozen
class Installed:
    """An entry point of the group `dpcore.plugins` that some distribution announces."""

    name: str
    value: str
    distribution: str
    version: str
    origin: str

    def matches(self, entry: Entry) -> bool:
        """Distribution and entry-point value must both be the admitted ones."""
        return (
            canonicalize_name(self.distribution) == canonicalize_name(entry.distribution)
            and self.value == entry.entry_point
        )


def installed(plugin: str | None = None) -> tuple[Installed, ...]:
    """Every plugin announced on this machine, without importing any, sorted by name.

    Those that go by one name if `plugin` is given: the metadata of others are not parsed.
    """
    found: dict[tuple[str, str, str], Installed] = {}
    for dist in metadata.distributions():
        for announced in _announced(dist, plugin):
            key = (announced.name, canonicalize_name(announced.distribution), announced.value)
            found.setdefault(key, announced)
    return tuple(sorted(found.values(), key=lambda plugin: (plugin.name, plugin.distribution)))


def _announced(dist: metadata.Distribution, plugin: str | None) -> list[Installed]:
    """What one distribution announces; nothing where its own files are malformed.

    Anybody's distribution may be installed: what cannot be read is nobody's plugin, and whoever
    asks for it by name is told that it is not installed.
    """
    try:
        if GROUP not in (dist.read_text(_POINTS) or ""):
            return []
        points = [
            point
            for point in dist.entry_points
            if point.group == GROUP and plugin in (None, point.name)
        ]
        if not points:
            return []
        name, version, origin = dist.name, dist.version, _origin(dist)
        first = metadata.distribution(name)
        if first.read_text(_POINTS) != dist.read_text(_POINTS) or first.version != version:
            return []  # hidden by one of the same name that stands earlier on the path
        words = [name, version, *(text for point in points for text in (point.name, point.value))]
    except Exception:  # the metadata of a stranger: anything may be wrong with it
        return []
    if not all(isinstance(word, str) and word.isprintable() and word for word in words):
        return []
    return [Installed(point.name, point.value, name, version, origin) for point in points]


def _origin(dist: metadata.Distribution) -> str:
    """Where an installer says it took the distribution from (PEP 610), else who installed it."""
    try:
        direct = msgspec.json.decode(dist.read_text("direct_url.json") or "", type=dict[str, Any])
        url = direct.get("url")
    except (msgspec.DecodeError, UnicodeError, OSError):
        url = None  # none is written, or it is malformed: then only the installer is known
    if isinstance(url, str) and url:
        return one_line(url)
    installer = one_line((dist.read_text("INSTALLER") or "").strip())
    return f"a package index, by {installer}" if installer else "unknown"


@attrs.frozen
class Index:
    """One registry file: entries by plugin name, and names it disables."""

    entries: Mapping[str, Entry]
    disabled: frozenset[str]

    @classmethod
    def of(cls, node: Node) -> Index:
        """From a parsed file.

        Raises:
            SpecError: at the misfit.
        """
        with placed(node):
            return cls._of(node)

    @classmethod
    def _of(cls, node: Node) -> Index:
        if not isinstance(node.value, dict):
            raise SpecError("needs a mapping from plugin names to entries")
        entries, off = {}, set()
        for name, child in node.value.items():
            if child.value == DISABLED:
                off.add(name)
                continue
            with below(name):
                entries[name] = convert(child, Entry)
                try:
                    SpecifierSet(entries[name].version)
                except InvalidSpecifier:
                    raise ParameterError(
                        "a plugin", "a version range", "version", entries[name].version
                    ) from None
        return cls(entries, frozenset(off))

    @classmethod
    def packaged(cls) -> Index:
        """The index that ships with dpcore."""
        text = resources.files("dpcore.registry").joinpath("registry.yaml").read_text("utf-8")
        return cls.of(parse(text, "registry.yaml"))

    @classmethod
    def user(cls) -> Index:
        """The user's file; empty if there is none."""
        path = user_file()
        if not path.exists() or not path.read_text("utf-8").strip():
            return cls({}, frozenset())
        return cls.of(read(path))


@attrs.define(eq=False)
class Registry:
    """Components by name, from the core, from modules a program passes, and from admitted plugins.

    A plugin is imported when one of its components is first asked for, and only then; one that is
    broken is reported to whoever asks for it and disturbs no other.
    """

    entries: Mapping[str, Entry]
    disabled: frozenset[str] = frozenset()
    modules: Mapping[str, ModuleType] = attrs.field(factory=dict)
    _loaded: dict[str, Loaded] = attrs.field(factory=dict, init=False)

    @classmethod
    def default(cls) -> Registry:
        """The packaged index and the user's file.

        Raises:
            RegistryError: both define a plugin, differently.
        """
        packaged, user = Index.packaged(), Index.user()
        for name, entry in user.entries.items():
            ours = packaged.entries.get(name)
            if ours is not None and (ours.distribution, ours.entry_point) != (
                entry.distribution,
                entry.entry_point,
            ):
                raise RegistryError(
                    f"plugin {name} is {ours.distribution} in the packaged registry and "
                    f"{entry.distribution} in {user_file()}; remove the latter"
                )
        return cls(
            {**packaged.entries, **user.entries},
            user.disabled | packaged.disabled,
            _core(),
        )

    @classmethod
    def of(cls, *modules: ModuleType) -> Registry:
        """The core and the given modules alone: the program's own decision, no gate."""
        return cls({}, frozenset(), {**_core(), **{m.__name__: m for m in modules}})

    def component(self, kind: Kind, name: str) -> type[Any]:
        """The class that goes by `name`.

        Raises:
            RegistryError: nobody admitted provides it, its plugin is not installed, disabled,
                broken, of another version, or two provide it.
        """
        owners = [owner for owner, names in self._names(kind).items() if name in names]
        if not owners:
            raise RegistryError(self._unknown(kind, name))
        if len(owners) > 1:
            both = " and ".join(self._distribution(owner) for owner in owners)
            raise RegistryError(f"{kind.name} {name!r} is provided by {both}: disable one of them")
        return self.load(owners[0]).of(kind)[name]

    def names(self, kind: Kind) -> list[str]:
        """Every admitted name of a kind, sorted, whether or not its plugin is installed."""
        return sorted({name for names in self._names(kind).values() for name in names})

    def name_of(self, kind: Kind, component: type[Any]) -> str | None:
        """The name that a class goes by, None if nobody admitted provides it.

        Plugins that provide some of the kind are imported to find out; broken ones are passed over.
        """
        for owner, names in self._names(kind).items():
            if not names:
                continue
            try:
                found = self.load(owner).of(kind)
            except RegistryError:
                continue  # reported to whoever asks for one of its components by name
            for name, provided in sorted(found.items()):
                if provided is component:
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
        used = [self.entries[p].distribution for p in self._loaded if p in self.entries]
        return {name: metadata.version(name) for name in sorted(["dpcore", *used])}

    def provides(self, kind: Kind, name: str) -> bool:
        """Whether somebody admitted provides a component of this name, installed or not."""
        return name in self.names(kind)

    def known(self, kind: Kind) -> list[Any]:
        """Everything of a kind that installed plugins provide; no run's versions depend on it."""
        apart = Registry(self.entries, self.disabled, self.modules)
        found = []
        for name in self.names(kind):
            with suppress(RegistryError):  # its plugin is not installed, or broken
                found.append(apart.component(kind, name))
        return found

    def _names(self, kind: Kind) -> dict[str, Iterable[str]]:
        names: dict[str, Iterable[str]] = {
            owner: self.load(owner).of(kind) for owner in self.modules
        }
        for plugin, entry in self.entries.items():
            if plugin not in self.disabled:
                names[plugin] = entry.provides.of(kind)
        return names

    def _distribution(self, owner: str) -> str:
        entry = self.entries.get(owner)
        return f"distribution {entry.distribution}" if entry else f"module {owner}"

    def _load(self, plugin: str) -> Loaded:
        if plugin in self.modules:
            return load(self.modules[plugin], plugin)
        entry = self.entries.get(plugin)
        if entry is None:
            known = {*self.entries, *self.modules}
            raise RegistryError(f"no plugin {shown(plugin)} is admitted{nearest(plugin, known)}")
        find(plugin, entry)
        loaded = load(import_plugin(plugin, entry.entry_point), plugin)
        difference = _difference(entry.provides.to_dict(), loaded.provides())
        if difference:
            raise RegistryError(f"plugin {plugin} does not provide what was admitted: {difference}")
        return loaded

    def _unknown(self, kind: Kind, name: str) -> str:
        for plugin in sorted(self.disabled):
            entry = self.entries.get(plugin)
            if entry and name in entry.provides.of(kind):
                return (
                    f"{kind.name} {name!r} belongs to plugin {plugin}, which is disabled; "
                    f"enable it with `dpcore plugins enable {plugin}`"
                )
        prefix = name.split(".")[0]
        for found in installed():
            if found.name not in self.entries and found.name.replace("-", "_") == prefix:
                return (
                    f"no admitted plugin provides {kind.name} {name!r}; plugin {found.name} "
                    f"({found.distribution} {found.version}) is installed but not admitted: "
                    f"look at it with `dpcore plugins enable {found.name}`"
                )
        return f"no admitted plugin provides {kind.name} {name!r}{nearest(name, self.names(kind))}"


def not_installed(plugin: str, entry: Entry) -> str:
    """One line that says so, and how a sibling is installed: its name is on no package index."""
    if Index.packaged().entries.get(plugin) == entry:
        return f"plugin {plugin} is not installed: {INSTALL} in a clone of dpcore"
    return f"plugin {plugin} is not installed: it is the distribution {entry.distribution}"


def find(plugin: str, entry: Entry) -> Installed:
    """The installed distribution that an entry admits.

    Raises:
        RegistryError: it is not installed, another claims its name, or its version is out of range.
    """
    named = installed(plugin)
    if len({canonicalize_name(found.distribution) for found in named}) > 1:
        both = " and ".join(sorted(f"{f.distribution} {f.version}" for f in named))
        raise RegistryError(f"plugin name {plugin} is claimed by {both}: uninstall one of them")
    if not named:
        raise RegistryError(not_installed(plugin, entry))
    found = named[0]
    if not found.matches(entry):
        raise RegistryError(
            f"plugin {plugin} is admitted as {entry.distribution} ({entry.entry_point}), but "
            f"{found.distribution} ({found.value}) is installed under that name"
        )
    if not SpecifierSet(entry.version).contains(found.version, prereleases=True):
        raise RegistryError(
            f"plugin {plugin}: version {entry.version} is admitted, {found.version} is installed"
        )
    return found


def import_plugin(plugin: str, value: str) -> ModuleType:
    """Import the module that an entry point names.

    Raises:
        RegistryError: importing it fails, whatever the reason.
    """
    point = metadata.EntryPoint(plugin, value, GROUP)
    try:
        module = point.load()
    except Exception as error:
        lines = str(error).splitlines() or [""]
        raise RegistryError(
            f"plugin {plugin} cannot be imported: {type(error).__name__}: {lines[0]}"
        ) from error
    if not isinstance(module, ModuleType):
        raise RegistryError(f"plugin {plugin}: entry point {value!r} names no module")
    return module


def _difference(admitted: Names, found: Names) -> str:
    parts = []
    for kind in sorted({*admitted, *found}):
        missing = sorted({*admitted.get(kind, [])} - {*found.get(kind, [])})
        extra = sorted({*found.get(kind, [])} - {*admitted.get(kind, [])})
        if missing:
            parts.append(f"{kind} missing: {', '.join(missing)}")
        if extra:
            parts.append(f"{kind} not admitted: {', '.join(extra)}")
    return "; ".join(parts)
