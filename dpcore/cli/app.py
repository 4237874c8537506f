"""The commands by name, the core's and those of plugins: each is imported when it is used, so that
help, version, completion and a mistyped word cost next to nothing.
"""

from importlib import import_module
from typing import Any

import typer

from dpcore.cli.console import guarded
from dpcore.cli.named_commands import NamedCommands, usage_in_one_line
from dpcore.cli.offers import Offer, command_of, offers
from dpcore.registry.commands import COMMANDS, ORDER


def command(name: str, offer: Offer | None = None) -> Any:
    """The command itself, imported: of the core, or of the plugin that offers it.

    Raises:
        RegistryError: the plugin is missing, disabled or broken.
    """
    # The core's commands are imported by their home, a plugin's through the gate of consent.
    if offer is None:
        module, _, attribute = COMMANDS[name][0].partition(":")
        target = getattr(import_module(f"dpcore.cli.{module}"), attribute)
    else:
        target = command_of(name, offer)
    is_group = isinstance(target, typer.Typer)
    return typer.main.get_command(target) if is_group else _single_command(name, target)


def _single_command(name: str, function: Any, summary: str | None = None) -> Any:
    group = typer.Typer(add_completion=False, rich_markup_mode=None)
    group.command(name, help=summary)(function)
    return typer.main.get_command(group)


class Commands(NamedCommands):
    """The table above and what plugins offer: a name, a help text, and the command once chosen."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Those of the core, and of plugins that are installed."""
        # Commands of plugins that are not installed still answer, with a hint, but help leaves them
        # out.
        offer_names = {name for name, offer in offers().items() if offer.is_installed}
        names = {*super().list_commands(ctx), *offer_names}
        return [*(name for name in ORDER if name in names), *sorted(names - {*ORDER})]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Its entry, with its help; None if nobody offers it."""
        entry = super().get_command(ctx, cmd_name)
        if entry is None and cmd_name in (promises := offers()):
            entry = _single_command(cmd_name, _entry, promises[cmd_name].help)
        return entry

    def make_context(self, *args: Any, **fields: Any) -> Any:
        """As any group does; a wrong option before the command's name is told in one line."""
        with usage_in_one_line():
            return super().make_context(*args, **fields)

    def invoke(self, ctx: Any) -> Any:
        """As any group does; what is wrong behind the command's name is told in one line."""
        with usage_in_one_line():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As any group does, with the imported command in the place of its entry."""
        name, entry, arguments = super().resolve_command(ctx, args)
        if entry is None:
            return name, None, arguments
        offer = None if name in COMMANDS else offers()[str(name)]
        # Only now is the command's module imported: an entry in the table has help and nothing
        # else.
        with guarded():
            return name, command(str(name), offer), arguments


app = typer.Typer(
    cls=Commands,
    help="Compute and publish statistics and models with differential privacy.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wants_version: bool) -> None:
    if wants_version:
        from importlib import metadata

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
    from dpcore.cli.console import VOLUME, Volume
    from dpcore.isolate.core_dumps import forbid_core_dumps

    forbid_core_dumps()  # before any command opens records
    if quiet and verbose:
        raise typer.BadParameter("not together with --quiet", param_hint="--verbose")
    VOLUME.set(Volume.QUIET if quiet else Volume.VERBOSE if verbose else Volume.NORMAL)


def _entry() -> None:
    """Stands in the table; the command that is imported runs in its place."""


for _name, (_, _help) in COMMANDS.items():
    app.command(_name, help=_help)(_entry)
