"""Consent: what the user's own registry file admits and disables, and how it is changed."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import cast

import msgspec
import yaml

from dpcore.errors import RegistryError, near, nearest, need
from dpcore.registry.commands import COMMANDS
from dpcore.registry.index import DISABLED, Entry, Index, Provides
from dpcore.registry.installations import Installed, code_digest, installed
from dpcore.registry.kinds import COMMAND, COMPONENTS, KINDS
from dpcore.registry.loading import Names
from dpcore.registry.registry import Registry
from dpcore.registry.user_folder import user_file

_INSPECT = """
import json, sys
from dpcore.registry.loading import load
from dpcore.registry.installations import import_plugin
from dpcore.errors import RegistryError
try:
    found = load(import_plugin(sys.argv[1], sys.argv[2]), sys.argv[1]).consented()
except RegistryError as error:
    print(json.dumps({"error": error.message}))
else:
    print(json.dumps({"provides": found}))
"""


def candidate(name: str) -> Installed:
    """Return the one installed distribution that announces plugin `name`.

    Raises:
        RegistryError: none does, or several do.
    """
    plugins = installed()
    candidates = [plugin for plugin in plugins if plugin.name == name]
    hint = nearest(name, {plugin.name for plugin in plugins})
    refusal = f"no installed distribution announces plugin {name}{hint}"
    need(candidates, RegistryError, f"{refusal}; `dpcore plugins list` shows them")
    claimants = " and ".join(f"{plugin.distribution} {plugin.version}" for plugin in candidates)
    need(
        len(candidates) == 1,
        RegistryError,
        f"plugin name {name} is claimed by {claimants}: uninstall one of them",
    )
    return candidates[0]


def inspect(plugin: Installed) -> Names:
    """Find what a plugin provides, in a child process that has no data.

    Raises:
        RegistryError: it cannot be imported or breaks the hooks' rules.
    """
    # Importing runs the plugin's code. A process of its own holds no records, and what the import
    # changes in globals ends with it.
    child = subprocess.run(
        [sys.executable, "-c", _INSPECT, plugin.name, plugin.value],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = child.stdout.strip().splitlines()
    need(
        child.returncode == 0 and lines,
        RegistryError,
        f"plugin {plugin.name} cannot be imported: its process ended early",
    )
    # The last line is ours; a plugin may print others while it is imported.
    answer = json.loads(lines[-1])
    if "error" in answer:
        raise RegistryError(answer["error"])
    return cast(Names, answer["provides"])


def admit(plugin: Installed, provides: Names, *, editable: bool = False) -> None:
    """Record consent to exactly this distribution, entry point, version, code and components.

    Args:
        editable: Whether the code may change under this version: for development.

    Raises:
        RegistryError: it takes a name that is not its own, or changes of its code could not be
            seen and `editable` is not set.
    """
    packaged = Index.packaged().entries.get(plugin.name)
    # Names in specs begin with the plugin's name, so a stranger under a packaged name would run in
    # the place of a component that somebody has reviewed.
    if packaged is not None and not plugin.matches(packaged):
        raise RegistryError(
            f"plugin {plugin.name} is {packaged.distribution} in the packaged registry; "
            f"{plugin.distribution} may not take its name"
        )
    user = Index.user()
    entries = dict(user.entries)
    if packaged is None:
        _require_names(plugin.name, provides)
        entries[plugin.name] = Entry(
            distribution=plugin.distribution,
            entry_point=plugin.value,
            # Consent is to the version that was looked at: the next one has to be admitted again.
            version=f"=={plugin.version}",
            provides=msgspec.convert(provides, Provides),
            digest="" if editable else _digest(plugin),
        )
    _write(entries, user.disabled - {plugin.name})


def _digest(plugin: Installed) -> str:
    """Of its code; refused where there is none, since no change could be seen."""
    digest = code_digest(plugin.name, plugin.distribution)
    need(
        digest,
        RegistryError,
        f"plugin {plugin.name} has no record of its files, or is installed in place: changes of "
        f"its code could not be seen; for development, use `dpcore plugins enable --editable "
        f"{plugin.name}`",
    )
    return digest


def _require_names(plugin: str, provides: Names) -> None:
    """Refuse components that are not named after their plugin, and any name that is in use."""
    entries = [entry for n, entry in Registry.default().entries.items() if n != plugin]
    core, prefix = Registry.of(), plugin.replace("-", "_")
    for kind in KINDS:
        names = sorted(provides.get(kind.plural, ()))
        # Anyone who reads a spec sees from a component's name which plugin it comes from.
        foreign = [n for n in names if n != prefix and not n.startswith(f"{prefix}.")]
        need(
            kind not in COMPONENTS or not foreign,
            RegistryError,
            f"plugin {plugin} provides {kind.name} {', '.join(map(repr, foreign))}: its own names "
            f"are {prefix!r} and those that begin with '{prefix}.'",
        )
        in_use = {name for entry in entries for name in entry.provides.of(kind)}
        in_use |= {*core.names(kind), *(COMMANDS if kind is COMMAND else ())}
        clashes = sorted(in_use & {*names})
        need(
            not clashes,
            RegistryError,
            f"plugin {plugin} brings {kind.plural} that dpcore has already: {', '.join(clashes)}",
        )


def withdraw(name: str) -> None:
    """Disable a plugin: a user's entry is removed, a packaged one is marked.

    Raises:
        RegistryError: no registry in force admits it.
    """
    user, packaged = Index.user(), Index.packaged()
    names = {*user.entries, *packaged.entries}
    need(
        name in names,
        RegistryError,
        f"plugin {name} is not admitted, so there is nothing to disable{near(name, names)}",
    )
    entries = {n: entry for n, entry in user.entries.items() if n != name}
    _write(entries, user.disabled | ({name} if name in packaged.entries else frozenset()))


def _write(entries: Mapping[str, Entry], disabled: frozenset[str]) -> None:
    content: dict[str, object] = dict.fromkeys(sorted(disabled), DISABLED)
    for name, entry in sorted(entries.items()):
        content[name] = {
            "distribution": entry.distribution,
            "entry_point": entry.entry_point,
            "version": entry.version,
            **({"paper": entry.paper} if entry.paper else {}),
            **({"digest": entry.digest} if entry.digest else {}),
            "provides": entry.provides.to_dict(),
        }
    path = user_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written anew as a whole and in sorted order, so that a user can compare two versions of
        # it.
        head = "# Plugins this user admits or disables; written by `dpcore plugins`.\n"
        path.write_text(head + yaml.safe_dump(content, sort_keys=False), "utf-8")
    except OSError as error:
        raise RegistryError(f"{path}: cannot be written ({error.strerror})") from None
