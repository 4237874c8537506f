"""One plugin module, asked through pluggy for what it provides; faults are isolated here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import attrs
import pluggy

from dpcore.errors import RegistryError, need
from dpcore.registry import hookspecs
from dpcore.registry.kinds import COMMAND, KINDS, Kind
from dpcore.registry.lazy_mapping import LazyMapping

if TYPE_CHECKING:
    from dpcore.learning.statement import Statement

Names = dict[str, list[str] | dict[str, str]]
"""What a plugin provides: names by kind; of commands, each with a line of help."""


@attrs.frozen(eq=False)
class Loaded:
    """Components of one module by kind and name, and what it ships beside them, by name."""

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

    def consented(self, plugin: str) -> Names:
        """What `provides` returns, and a line of help for each command, imported for it.

        Raises:
            RegistryError: a command is none.
        """
        lines = {}
        for name, command in sorted(self.of(COMMAND).items()):
            require_kind(COMMAND, name, command, plugin)
            lines[name] = next(iter((command.help or "").strip().splitlines()), "")
        return {**self.provides(), **({COMMAND.plural: lines} if lines else {})}


def load(module: ModuleType, plugin: str) -> Loaded:
    """Call every hook of `module` in a manager of its own.

    Raises:
        RegistryError: a hook is unknown, raises, or returns something else than its kind.
    """
    # A manager for each plugin: one that is broken, or that names an unknown hook, fails alone.
    manager = pluggy.PluginManager("dpcore")
    manager.add_hookspecs(hookspecs)
    try:
        manager.register(module, plugin)
        manager.check_pending()
    except Exception as error:
        raise RegistryError(f"plugin {plugin}: {_first_line(error)}") from error
    return Loaded(
        {kind.plural: _ask(manager, kind, plugin) for kind in KINDS},
        examples=_call_for_paths(manager, "dpcore_examples", plugin),
        experiments=_call_for_paths(manager, "dpcore_experiments", plugin),
        methods=_call(manager, "dpcore_methods", plugin),
        theory=_call(manager, "dpcore_theory", plugin),
    )


def _call(manager: pluggy.PluginManager, hook: str, plugin: str) -> Mapping[str, Any]:
    try:
        results = getattr(manager.hook, hook)()
    except Exception as error:
        raise RegistryError(f"plugin {plugin}: hook {hook} failed: {_first_line(error)}") from error
    result = results[0] if results else {}  # of one module, so of one implementation at most
    need(
        isinstance(result, Mapping),
        RegistryError,
        f"plugin {plugin}: hook {hook} must return a mapping",
    )
    return result


def _call_for_paths(manager: pluggy.PluginManager, hook: str, plugin: str) -> dict[str, Path]:
    paths = _call(manager, hook, plugin)
    for name, path in paths.items():
        need(
            isinstance(name, str) and isinstance(path, str | Path),
            RegistryError,
            f"plugin {plugin}: {hook} must map names to paths, has a {type(path)}",
        )
    return {name: Path(path) for name, path in paths.items()}


def _ask(manager: pluggy.PluginManager, kind: Kind, plugin: str) -> Mapping[str, type[Any]]:
    answer = _call(manager, kind.hook, plugin)
    if isinstance(answer, LazyMapping):
        return answer  # its classes are imported when they are asked for; a test checks ours
    for name, component in answer.items():
        need(
            isinstance(name, str),
            RegistryError,
            f"plugin {plugin}: {kind.hook} must map names, has a {type(name)}",
        )
        # The class is checked now, so that a wrong one is a fault of the plugin and not of a spec.
        require_kind(kind, name, component, plugin)
    return dict(answer)


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
