"""The commands by name: each is imported when it is used, so that help, version, completion and a
mistyped word cost next to nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module, metadata
from typing import Any

import typer

from dpcore.cli.names import NamedCommands

# name: where it is defined, and the first line of its own help text
COMMANDS: Mapping[str, tuple[str, str]] = {
    "check": (
        "check:check",
        "State the guarantee of a spec, and lock the public coins. --data alone opens the data.",
    ),
    "run": (
        "run:run",
        "Open the data, publish the release in a new run folder, and state its guarantee.",
    ),
    "replay": (
        "replay:replay",
        "Rebuild a run's public folder from its answers alone, and compare every byte.",
    ),
    "report": (
        "report:report",
        "Write one HTML page of a run, from its public folder alone, or of a ledger.",
    ),
    "reproduce": (
        "reproduce:reproduce",
        "Run a refuted or conditional spec, or a paper's table, as printed. NOT private: keep it.",
    ),
    "examples": ("examples:examples", "List, show and copy the example specs that plugins ship."),
    "theory": (
        "theory:theory",
        "Compute a statement of a paper from public facts, as printed and as corrected.",
    ),
    "schema": (
        "schema:schema",
        "Write the JSON Schema of a spec to standard output, for editors and validators.",
    ),
    "test": (
        "test:examine_plugin",
        "Put a plugin to the test: exit code 0 if no law is broken, else 1. No data is opened.",
    ),
    "falsify": (
        "falsify:falsify_spec",
        "Search for neighbours that break the bounds of a spec: exit code 1 if any is found.",
    ),
    "audit": (
        "audit:audit_spec",
        "Lower confidence bounds on epsilon, from sampled runs: exit code 1 if a claim is refuted.",
    ),
    "account": (
        "account:account",
        "State what events cost together: every method's interval, the best, and why.",
    ),
    "plugins": ("plugins:plugins", "List, look at, admit and disable plugins."),
    "ledger": (
        "ledger:ledger",
        "Create, look at and check ledgers: budgets that several runs share.",
    ),
}


def command(name: str) -> Any:
    """The command itself, imported."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    found = getattr(import_module(f"dpcore.cli.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(found)
        found = alone
    return typer.main.get_command(found)


class Commands(NamedCommands):
    """The table above: a name, a help text, and the command once it is chosen."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As any group does, with the imported command in the place of its entry."""
        name, entry, rest = super().resolve_command(ctx, args)
        return name, None if entry is None else command(str(name)), rest


app = typer.Typer(
    cls=Commands,
    help="Differential privacy from plugins: priced before it is read, attacked before believed.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"dpcore {metadata.version('dpcore')}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
    quiet: bool = typer.Option(
        False, "--quiet", "-q", help="No notes and no progress: results and errors alone."
    ),
    verbose: bool = typer.Option(
        False, "--verbose", "-v", help="Progress as lines, too, where there is no terminal."
    ),
) -> None:
    """Exit codes: 0 done, 1 failed, 2 wrong spec, 3 no claim, 4 ledger refuses, 5 wrong source,
    6 spent but not published, 7 published without what goes to the operator.
    """
    from dpcore.cli.console import Volume, set_volume

    if quiet and verbose:
        raise typer.BadParameter("not together with --quiet", param_hint="--verbose")
    set_volume(Volume.QUIET if quiet else Volume.VERBOSE if verbose else Volume.NORMAL)


def _entry() -> None:
    """Stands in the table; the command that is imported runs in its place."""


for _name, (_, _help) in COMMANDS.items():
    app.command(_name, help=_help)(_entry)
