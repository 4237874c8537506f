"""Installations: the plugins that distributions on this machine announce, and the gate to them."""

import base64
import hashlib
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs
import msgspec
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from dpcore.errors import RegistryError, need, one_line
from dpcore.registry.index import Entry, Index
from dpcore.registry.loading import import_home
from dpcore.siblings import INSTALL

GROUP = "dpcore.plugins"
_POINTS = "entry_points.txt"


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
    """Return every plugin announced on this machine, without importing any, sorted by name.

    Those that go by one name if `plugin` is given: the metadata of others are not parsed.
    """
    plugins: dict[tuple[str, str, str], Installed] = {}
    for dist in metadata.distributions():
        # One distribution may be on the path twice; the first one wins, as with imports.
        for announcement in _read_announcements(dist, plugin):
            key = (
                announcement.name,
                canonicalize_name(announcement.distribution),
                announcement.value,
            )
            plugins.setdefault(key, announcement)
    return tuple(sorted(plugins.values(), key=lambda plugin: (plugin.name, plugin.distribution)))


def _read_announcements(dist: metadata.Distribution, plugin: str | None) -> list[Installed]:
    """Return what one distribution announces; nothing where its own files are malformed.

    Anybody's distribution may be installed: what cannot be read is no one's plugin, and anyone who
    asks for it by name is given that it is not installed.
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
        # Imports take the earlier one, so only what that one announces would run.
        first = metadata.distribution(name)
        if first.read_text(_POINTS) != dist.read_text(_POINTS) or first.version != version:
            return []  # hidden by one of the same name that is earlier on the path
        words = [name, version, *(text for point in points for text in (point.name, point.value))]
    except Exception:  # the metadata of a stranger: anything may be wrong with it
        return []
    if not all(isinstance(word, str) and word.isprintable() and word for word in words):
        return []
    return [Installed(point.name, point.value, name, version, origin) for point in points]


def _direct_url(dist: metadata.Distribution) -> dict[str, Any]:
    """Return what an installer says of where it took the distribution from (PEP 610)."""
    try:
        return msgspec.json.decode(dist.read_text("direct_url.json") or "", type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeError, OSError):
        return {}  # none is written, or it is malformed: then only the installer is known


def _is_editable(dist: metadata.Distribution) -> bool:
    """Return whether its code lies outside of what its RECORD lists: `pip install -e`."""
    folder = _direct_url(dist).get("dir_info")
    return isinstance(folder, dict) and bool(folder.get("editable"))


def _origin(dist: metadata.Distribution) -> str:
    """Return the place that it was taken from, else who installed it."""
    url = _direct_url(dist).get("url")
    if isinstance(url, str) and url:
        return one_line(url)
    installer = one_line((dist.read_text("INSTALLER") or "").strip())
    return f"a package index, by {installer}" if installer else "unknown"


def not_installed(plugin: str, entry: Entry) -> str:
    """Return one line that says so, and how a sibling is installed: its name is on no package
    index.
    """
    is_sibling = Index.packaged().entries.get(plugin) == entry
    stranger = f"it is the distribution {entry.distribution}"
    way = f"{INSTALL} in a clone of dpcore" if is_sibling else stranger
    return f"plugin {plugin} is not installed: {way}"


def find(plugin: str, entry: Entry) -> Installed:
    """Find the installed distribution that an entry admits.

    Raises:
        RegistryError: it is not installed, another claims its name, or its version is out of range.
    """
    # Two distributions under one name: refuse, since which of them would run depends on the path.
    candidates = installed(plugin)
    claimants = " and ".join(sorted(f"{f.distribution} {f.version}" for f in candidates))
    need(
        len({canonicalize_name(match.distribution) for match in candidates}) <= 1,
        RegistryError,
        f"plugin name {plugin} is claimed by {claimants}: uninstall one of them",
    )
    need(candidates, RegistryError, not_installed(plugin, entry))
    match = candidates[0]
    need(
        match.matches(entry),
        RegistryError,
        f"plugin {plugin} is admitted as {entry.distribution} ({entry.entry_point}), but "
        f"{match.distribution} ({match.value}) is installed under that name",
    )
    need(
        SpecifierSet(entry.version).contains(match.version, prereleases=True),
        RegistryError,
        f"plugin {plugin}: version {entry.version} is admitted, {match.version} is installed",
    )
    # What ships with dpcore has no digest: it is admitted by its version.
    need(
        not entry.digest or entry.digest == code_digest(plugin, match.distribution),
        RegistryError,
        f"plugin {plugin}: its code changed since version {match.version} was admitted; look at "
        f"it, and admit it again with `dpcore plugins enable {plugin}`",
    )
    _require_siblings(plugin, match.distribution)
    return match


def code_digest(plugin: str, distribution: str) -> str:
    """SHA-256 of a distribution's RECORD, after its files were held against the hashes in it.

    Empty where no RECORD lists the code: none is written, or it is installed in place. Anyone who
        can
    write these files can write RECORD too: this finds accidents and updates, not an intruder.

    Raises:
        RegistryError: a file is not what RECORD says.
    """
    dist = metadata.distribution(distribution)
    record = dist.read_text("RECORD")
    if not record or _is_editable(dist):
        return ""
    for file in dist.files or ():
        # Compiled files have no hash: installers and imports write them anew.
        if file.hash is None:
            continue
        try:
            digest = hashlib.new(file.hash.mode, Path(str(file.locate())).read_bytes()).digest()
        except (OSError, ValueError):
            digest = b""
        need(
            base64.urlsafe_b64encode(digest).decode().rstrip("=") == file.hash.value,
            RegistryError,
            f"plugin {plugin}: {one_line(str(file))} of {distribution} is not as it was installed; "
            f"install it again, and admit it with `dpcore plugins enable {plugin}`",
        )
    return hashlib.sha256(record.encode()).hexdigest()


def _require_siblings(plugin: str, distribution: str) -> None:
    """Refuse a plugin next to whose dpcore, or other distribution of ours, is another version.

    Raises:
        RegistryError: one that it needs is missing, or of a version that it does not admit.
    """
    sibling_names = {"dpcore", *(entry.distribution for entry in Index.packaged().entries.values())}
    for line in metadata.requires(distribution) or ():
        requirement = Requirement(line)
        if requirement.name not in sibling_names or requirement.marker is not None:
            continue
        try:
            version = metadata.version(requirement.name)
        except metadata.PackageNotFoundError:
            version = "no version"
        need(
            version != "no version" and requirement.specifier.contains(version, prereleases=True),
            RegistryError,
            f"plugin {plugin} needs {requirement.name}{requirement.specifier}, {version} is "
            f"installed: {INSTALL} in a clone of dpcore",
        )


def import_plugin(plugin: str, value: str) -> ModuleType:
    """Import the module that an entry point names.

    Raises:
        RegistryError: importing it fails, whatever the reason.
    """
    # By the value that was admitted, not by the installed metadata: the two were compared before,
    # and this is the one that the user consented to.
    module = import_home(value, f"plugin {plugin}")
    if not isinstance(module, ModuleType):
        raise RegistryError(f"plugin {plugin}: entry point {value!r} names no module")
    return module
