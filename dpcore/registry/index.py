"""Index: what a registry file admits, plugin by plugin, and what it disables."""

from collections.abc import Mapping
from functools import cache
from importlib import resources

import attrs
import msgspec
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from dpcore.errors import ParameterError, RegistryError, SpecError, map_below, need
from dpcore.registry.kinds import COMMAND, KINDS, Kind
from dpcore.registry.loading import Names
from dpcore.registry.user_folder import user_file
from dpcore.yaml.conversion import convert
from dpcore.yaml.located import Node, locate_errors, parse, read, require_regular

DISABLED = "disabled"


class Provides(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The component names that an index admits of one plugin, by kind."""

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
        """Return the admitted names of one kind, in the order of the file."""
        return tuple(getattr(self, kind.plural))

    def to_dict(self) -> Names:
        """Return the names by kind, in the form of `Loaded.provides`, for comparison with it."""
        provided: Names = {kind.plural: sorted(self.of(kind)) for kind in KINDS if self.of(kind)}
        return provided | ({COMMAND.plural: self.commands} if self.commands else {})


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an index says of one plugin."""

    distribution: str
    entry_point: str
    version: str
    provides: Provides
    paper: str = ""
    digest: str = ""
    """Of the admitted code, as `code_digest` computes it; empty where the version by itself
    counts.
    """


@attrs.frozen
class Index:
    """One registry file: entries by plugin name, and names it disables."""

    entries: Mapping[str, Entry]
    disabled: frozenset[str]

    @classmethod
    def of(cls, node: Node) -> "Index":
        """Read an index from a parsed file.

        Raises:
            SpecError: at the misfit.
        """
        with locate_errors(node):
            is_mapping = isinstance(node.value, dict)
            need(is_mapping, SpecError, "needs a mapping from plugin names to entries")
            disabled = frozenset(n for n, child in node.mapping.items() if child.value == DISABLED)
            admitted = [item for item in node.mapping.items() if item[0] not in disabled]
            return cls(map_below(_read_entry, admitted), disabled)

    @classmethod
    @cache  # a file of the package: it is the same for ever
    def packaged(cls) -> "Index":
        """Return the index that ships with dpcore."""
        text = resources.files("dpcore.registry").joinpath("registry.yaml").read_text("utf-8")
        return cls.of(parse(text, "registry.yaml"))

    @classmethod
    def user(cls) -> "Index":
        """Return the index in the user's file; empty if there is no file, or nothing in it."""
        path = user_file()
        try:
            require_regular(path)
        except OSError as error:
            raise RegistryError(f"{path}: cannot be read ({error.strerror})") from None
        has_text = path.exists() and path.read_text("utf-8").strip()
        return cls.of(read(path)) if has_text else cls({}, frozenset())


def _read_entry(node: Node) -> Entry:
    entry = convert(node, Entry)
    try:
        # Parsed here for its error only: a range that is no range must fail at its line, not when
        # the plugin is first used.
        SpecifierSet(entry.version)
    except InvalidSpecifier:
        raise ParameterError("a plugin", "a version range", "version", entry.version) from None
    return entry
