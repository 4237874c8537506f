"""`loading`: ask one plugin module, through pluggy, what it provides; faults are isolated here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import attrs
import pluggy

from dpcore.errors import RegistryError, need
from dpcore.registry import hookspecs
from dpcore.registry.kinds import COMMAND, KINDS, Kind

if TYPE_CHECKING:
    from dpcore.learners.statement import Statement

Names = dict[str, list[str] | dict[str, str]]
"""What a plugin provides: names by kind; of commands, each with a line of help."""


@attrs.frozen(eq=False)
class ByName(Mapping[str, Any]):
    """What a plugin provides, by name; what it gives as a text is imported when it is asked for.

    Args:
        homes: By name, the object, or where it is: "module:name".
        kind: What each must be; None of methods, which have no kind.
    """

    plugin: str
    homes: Mapping[str, Any]
    kind: Kind | None = None

    def __getitem__(self, name: str) -> Any:
        provided = self.homes[name]
        if isinstance(provided, str):
            provided = import_home(provided, f"plugin {self.plugin}: {name!r}")
        if self.kind:
            require_kind(self.kind, name, provided, self.plugin)
        return provided

    def __iter__(self) -> Iterator[str]:
        return iter(self.homes)

    def __len__(self) -> int:
        return len(self.homes)


@attrs.frozen(eq=False)
class Loaded:
    """Components of one module by kind and name, and what it ships next to them, by name."""

    components: Mapping[str, Mapping[str, type[Any]]]
    examples: Mapping[str, Path]
    experiments: Mapping[str, Path] = attrs.field(factory=dict)
    methods: Mapping[str, Callable[..., Any]] = attrs.field(factory=dict)
    theory: Mapping[str, Statement] = attrs.field(factory=dict)

    def of(self, kind: Kind) -> Mapping[str, type[Any]]:
        """Components of one kind, by name."""
        return self.components[kind.plural]

    def provides(self) -> Names:
        """Names by kind, sorted; a kind without names is left out."""
        return {
            kind: sorted(components) for kind, components in self.components.items() if components
        }

    def consented(self) -> Names:
        """Return what `provides` returns, with a line of help for each command, imported for it.

        Raises:
            RegistryError: a command is none.
        """
        lines = {
            name: next(iter((command.help or "").strip().splitlines()), "")
            for name, command in sorted(self.of(COMMAND).items())
        }
        return {**self.provides(), **({COMMAND.plural: lines} if lines else {})}


def load(module: ModuleType, plugin: str) -> Loaded:
    """Call every hook of `module`, and read its table `provides`, in a manager of its own.

    Raises:
        RegistryError: a hook is unknown, raises, or returns something else than its kind.
    """
    # A manager for each plugin: one that is broken, or that names an unknown hook, fails only.
    manager = pluggy.PluginManager("dpcore")
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(module, plugin)
        manager.register(_hooks_of_table(module), f"{plugin}: provides")
        manager.check_pending()
    except Exception as error:
        raise RegistryError(f"plugin {plugin}: {_first_line(error)}") from error
    folder = Path(getattr(module, "__file__", None) or "").parent
    return Loaded(
        {kind.plural: _ask(manager, kind, plugin) for kind in KINDS},
        examples=_call_for_paths(manager, "dpcore_examples", plugin, folder),
        experiments=_call_for_paths(manager, "dpcore_experiments", plugin, folder),
        methods=ByName(plugin, _call(manager, "dpcore_methods", plugin)),
        theory=_call(manager, "dpcore_theory", plugin),
    )


def _hooks_of_table(module: ModuleType) -> ModuleType:
    """Return a module with the hooks that the table `provides` of a plugin's module writes out."""
    hooks = ModuleType(f"{module.__name__}.provides")
    table = getattr(module, "provides", {})
    need(isinstance(table, Mapping), RegistryError, f"`provides` must be a table, is {table!r:.80}")
    for kind, names in table.items():
        setattr(hooks, f"dpcore_{kind}", hookspecs.hookimpl(lambda names=names: names))
    return hooks


def _call(manager: pluggy.PluginManager, hook: str, plugin: str) -> Mapping[str, Any]:
    try:
        results = getattr(manager.hook, hook)()
    except Exception as error:
        raise RegistryError(f"plugin {plugin}: hook {hook} failed: {_first_line(error)}") from error
    need(
        len(results) <= 1,
        RegistryError,
        f"plugin {plugin}: give {hook} once, as a hook or in the table `provides`",
    )
    result = results[0] if results else {}
    if isinstance(result, str):
        result = import_home(result, f"plugin {plugin}: {hook}")
    need(
        isinstance(result, Mapping),
        RegistryError,
        f"plugin {plugin}: hook {hook} must return a mapping",
    )
    return result


def _call_for_paths(
    manager: pluggy.PluginManager, hook: str, plugin: str, folder: Path
) -> dict[str, Path]:
    """Paths by name, relative ones from `folder`; a star in both represents any file's stem."""
    paths: dict[str, Path] = {}
    for name, path in _call(manager, hook, plugin).items():
        need(
            isinstance(name, str) and isinstance(path, str | Path),
            RegistryError,
            f"plugin {plugin}: {hook} must map names to paths, has a {type(path)}",
        )
        is_pattern = "*" in name
        need(
            not (is_pattern and Path(path).is_absolute()),
            RegistryError,
            f"plugin {plugin}: {hook} must map {name!r} to a path from the plugin's folder",
        )
        files = sorted(folder.glob(str(path))) if is_pattern else [folder / path]
        paths |= {name.replace("*", file.stem): file for file in files}
    return paths


def _ask(manager: pluggy.PluginManager, kind: Kind, plugin: str) -> Mapping[str, Any]:
    answer = _call(manager, kind.hook, plugin)
    for name, component in answer.items():
        need(
            isinstance(name, str),
            RegistryError,
            f"plugin {plugin}: {kind.hook} must map names, has a {type(name)}",
        )
        # A class is checked now, so that a wrong one is a fault of the plugin and not of a spec;
        # what is not imported yet, when it is asked for.
        if not isinstance(component, str):
            require_kind(kind, name, component, plugin)
    return ByName(plugin, dict(answer), kind)


def import_home(home: str, subject: str) -> Any:
    """Import what a text names: "module:name", or a module; messages name `subject`.

    Raises:
        RegistryError: importing it fails, whatever the reason.
    """
    try:
        return metadata.EntryPoint(subject, home, "").load()
    except Exception as error:
        raise RegistryError(f"{subject} cannot be imported: {_first_line(error)}") from error


def require_kind(kind: Kind, name: str, component: object, plugin: str) -> None:
    """Refuse what a plugin hands over as a component and is none, with what was needed.

    Raises:
        RegistryError: it is none.
    """
    if not kind.accepts(component):
        base = ".".join(kind.home) if kind.way else f"subclass of {kind.home[1]}"
        way = f": {kind.way}" if kind.way else ""
        raise RegistryError(
            f"plugin {plugin}: {name!r} is no {kind.name}: a {base} was needed{way}"
        )


def _first_line(error: Exception) -> str:
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"
