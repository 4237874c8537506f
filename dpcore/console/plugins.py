"""`dpcore plugins`: what is installed, what is admitted, and the user's consent."""

from pathlib import Path
from typing import Any

import click
from packaging.utils import canonicalize_name

from dpcore.console.app import NamedCommands
from dpcore.console.console import SlowProgress, columns, guarded, out, show_json, show_list
from dpcore.console.parameters import PATH, argument, json_option
from dpcore.console.scaffold import PluginKind, write_plugin
from dpcore.errors import RegistryError, near, need
from dpcore.registry.consent import admit, candidate, inspect, withdraw
from dpcore.registry.index import Index
from dpcore.registry.installations import Installed, find, installed
from dpcore.registry.loading import Names
from dpcore.registry.registry import Registry
from dpcore.siblings import INSTALL

plugins = NamedCommands("plugins", help="List, look at, admit and disable plugins.")

name_argument = argument("name", "The plugin's name.")


@plugins.command("list")
@json_option
def list_plugins(json: bool) -> None:
    """Every admitted or installed plugin, without importing any."""
    with guarded():
        registry = Registry.default()
        # From metadata only: listing a plugin must not run its code.
        plugins_by_name = {plugin.name: plugin for plugin in installed()}
        rows = [
            {
                "plugin": name,
                "distribution": _distribution(registry, plugins_by_name, name),
                "status": _status(registry, name),
            }
            for name in sorted({*registry.entries, *plugins_by_name})
        ]
        if json:
            show_json(rows)
            return
        table = columns("plugin", "distribution", "status", rows=[r.values() for r in rows])
        show_list(table, f"No plugin is installed or admitted: {INSTALL} in a clone.")


def _distribution(registry: Registry, plugins_by_name: dict[str, Installed], name: str) -> str:
    plugin = plugins_by_name.get(name)
    return (
        f"{plugin.distribution} {plugin.version}" if plugin else registry.entries[name].distribution
    )


def _status(registry: Registry, name: str) -> str:
    entry = registry.entries.get(name)
    if name in registry.disabled:
        return "disabled"
    if entry is None:
        return "installed, not admitted"
    try:
        find(name, entry)
    except RegistryError as error:
        return error.message
    return "admitted"


@plugins.command()
@name_argument
@json_option
def show(name: str, json: bool) -> None:
    """Where a plugin comes from and what it provides, as admitted; nothing is imported."""
    with guarded():
        registry = Registry.default()
        console = out()
        installations = [plugin for plugin in installed() if plugin.name == name]
        entry = registry.entries.get(name)
        if entry is None and not installations:
            names = {*registry.entries, *(plugin.name for plugin in installed())}
            raise RegistryError(
                f"plugin {name} is neither admitted nor installed{near(name, names)}"
            )
        if json:
            show_json(_describe(registry, name, installations))
            return
        for plugin in installations:
            _metadata(plugin)
        console.print(f"status:       {_status(registry, name)}")
        if entry is not None:
            console.print(f"admitted:     {entry.distribution} {entry.version}")
            if entry.paper:
                console.print(f"paper:        {entry.paper}")
            _components(entry.provides.to_dict())


def _describe(registry: Registry, name: str, installations: list[Installed]) -> dict[str, Any]:
    entry = registry.entries.get(name)
    return {
        "plugin": name,
        "installed": [
            {
                "distribution": installation.distribution,
                "version": installation.version,
                "origin": installation.origin,
                "entry point": installation.value,
            }
            for installation in installations
        ],
        "status": _status(registry, name),
        "admitted": None
        if entry is None
        else {
            "distribution": entry.distribution,
            "version": entry.version,
            "paper": entry.paper,
            "provides": entry.provides.to_dict(),
        },
    }


def _metadata(plugin: Installed) -> None:
    console = out()
    console.print(f"distribution: {plugin.distribution} {plugin.version}")
    console.print(f"origin:       {plugin.origin}")
    console.print(f"entry point:  {plugin.value}")


def _components(provides: Names) -> None:
    for kind, names in provides.items():
        out().print(f"{kind + ':':<13} {', '.join(names)}")


@plugins.command()
@name_argument
@click.option("--yes", is_flag=True, help="Consent without being asked.")
@click.option(
    "--editable",
    is_flag=True,
    help="For development: its code may change, and guarantees that rest on it say so.",
)
def enable(name: str, yes: bool, editable: bool) -> None:
    """Show an installed plugin, ask, import it in a process without data, and admit it."""
    with guarded():
        plugin = candidate(name)
        # From metadata only: none of its code runs before it is admitted.
        _metadata(plugin)
        need(
            yes
            or click.confirm(
                "Its code will run, also in the process that reads your records. Admit this "
                "version?"
            ),
            RegistryError,
            f"plugin {name} stays as it was",
        )
        with SlowProgress(None, "importing it apart"):
            provides = inspect(plugin)
        _components(provides)
        admit(plugin, provides, editable=editable)
        out().print(f"{canonicalize_name(plugin.distribution)} {plugin.version} is admitted.")


@plugins.command()
@name_argument
@json_option
def disable(name: str, json: bool) -> None:
    """Withdraw consent: the plugin is not imported any more."""
    with guarded():
        withdraw(name)
        if json:
            show_json({"disabled": name})
        else:
            out().print(f"{name} is disabled.")


@plugins.command()
@argument("name", "Lower-case words joined by hyphens.")
@click.option(
    "--kind",
    required=True,
    type=click.Choice([*map(str, PluginKind)]),
    help="What it provides at first.",
)
@click.option("--path", type=PATH, default=Path(), help="The folder is made in here.")
@json_option
def new(name: str, kind: str, path: Path, json: bool) -> None:
    """Write a complete plugin that installs, is admitted and passes `dpcore test`."""
    with guarded():
        need(
            name not in Index.packaged().entries,
            RegistryError,
            f"plugin {name} is in the packaged registry; take another name",
        )
        folder = write_plugin(name, PluginKind(kind), path)
        # The three steps to a plugin that runs; the second one asks for consent.
        steps = (
            f"pip install -e {folder}",
            f"dpcore plugins enable --editable {name}",
            f"dpcore test {name}",
        )
        if json:
            show_json({"written": str(folder), "next": steps})
            return
        console = out()
        console.print(f"Written to {folder}. Next:")
        for step in steps:
            console.print(f"  {step}")
