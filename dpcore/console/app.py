"""`app`: the commands by name, the core's and those of plugins, each imported when it is used.

So help, version, completion and a mistyped word cost next to nothing. Of completion by the shell
click writes the script: shown, or read at every start.

A name that is nearly right is reported with the nearest right one.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from dpcore.console.console import fail, guarded
from dpcore.console.offers import Offer, command_of, offers
from dpcore.console.parameters import Command
from dpcore.errors import ParameterError, SpecError, near, shown
from dpcore.registry.commands import COMMANDS, ORDER

_COMMANDS = {
    "add": "dpcore plugins enable NAME",
    "components": "dpcore plugins show statistics",
    "create": "dpcore init DATA",
    "delete": "dpcore plugins disable NAME",
    "help": "dpcore --help",
    "install": "pip install`, then `dpcore plugins enable NAME",
    "learners": "dpcore plugins show statistics",
    "list": "dpcore plugins list",
    "new": "dpcore init DATA",
    "price": "dpcore check SPEC",
    "remove": "dpcore plugins disable NAME",
    "start": "dpcore init DATA",
    "uninstall": "dpcore plugins disable NAME",
    "validate": "dpcore check SPEC",
    "version": "dpcore --version",
}
"""Words that other tools have for commands, and the command here."""
_SETTINGS = {
    "--budget": "`budget: {epsilon: 1}` in the spec sets it",
    "--csv": "`--source FILE` of `dpcore run` names another file",
    "--data": "`--source FILE` of `dpcore run` names another file",
    "--delta": "`budget: {epsilon: 1, delta: 1e-6}` in the spec sets it",
    "--epsilon": "`budget: {epsilon: 1}` in the spec sets it",
    "--ledger": "`ledger: NAME` in the spec sets it",
    "--mechanism": "`mechanism: NAME` of a release in the spec sets it",
    "--out": "`--runs FOLDER` of `dpcore run` sets where run folders are made",
    "--output": "`--runs FOLDER` of `dpcore run` sets where run folders are made",
    "--seed": "noise is fixed only in a rehearsal, which is not private: "
    "`dpcore run SPEC --rehearsal SEED`",
}
"""Options that `check` and `run` do not have, and what sets the same."""


class NamedCommands(click.Group):
    """A group that answers a mistyped name with the nearest one, and no name with its help."""

    command_class = Command

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As any group does; without words, help and exit code 2, whatever click's version."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help(), err=True)
            ctx.exit(2)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """List commands as they were defined: help has them in this order."""
        return [*self.commands]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command as any group does; a mistyped name fails with the nearest one."""
        name = args[0]
        if self.get_command(ctx, name) is None and name[:1].isalnum() and not ctx.resilient_parsing:
            known = f"; did you mean `{_COMMANDS[name]}`?" if name in _COMMANDS else ""
            hint = known or near(name, self.list_commands(ctx))
            ctx.fail(f"No such command {shown(name)}{hint}")
        return super().resolve_command(ctx, args)


@contextmanager
def usage_in_one_line() -> Iterator[None]:
    """A command line that cannot be read is reported in one line, with the way out."""
    try:
        yield
    except KeyboardInterrupt:
        raise click.exceptions.Exit(130) from None  # click says `Aborted!` of all that it sees
    except click.UsageError as error:
        message = " ".join(error.format_message().split())  # choices stand in lines
        path = error.ctx.command_path if error.ctx else "dpcore"
        if error.ctx and isinstance(error, click.NoSuchOption):
            names = [name.strip("-") for param in error.ctx.command.params for name in param.opts]
            hint = near(error.option_name.strip("-"), names).replace("mean '", "mean '--")
            is_of_spec = error.ctx.info_name in ("check", "run")
            known = _SETTINGS.get(error.option_name, "") if is_of_spec else ""
            message = f"No such option {shown(error.option_name)}{f'; {known}' if known else hint}"
            path = "" if known else path
        way = "" if "did you mean" in message else f"; `{path} --help` shows what it takes"
        way = way if path else ""
        message = message.rstrip(".").replace("valid float", "valid number").removesuffix(" range")
        raise fail(message + way, 2) from None


@contextmanager
def options(*names: str) -> Iterator[None]:
    """A parameter of the library that an option of this name gives is reported by the option."""
    try:
        yield
    except ParameterError as error:
        if error.place is not None or error.field not in names:
            raise
        raise SpecError(
            f"needs {error.needed}, got {error.field}={shown(error.got)}",
            place=f"--{error.field}",
        ) from None


_STARTS = {
    "bash": (".bashrc", 'eval "$(_DPCORE_COMPLETE=bash_source dpcore)"'),
    "zsh": (
        ".zshrc",
        'autoload -Uz compinit; compinit; eval "$(_DPCORE_COMPLETE=zsh_source dpcore)"',
    ),
    "fish": (
        ".config/fish/completions/dpcore.fish",
        "_DPCORE_COMPLETE=fish_source dpcore | source",
    ),
}
"""By shell: the file below the home that it reads when it starts, and the line needed in it."""


def command(name: str, offer: Offer | None = None) -> click.Command:
    """Return the command itself, imported: of the core, or of the plugin that offers it.

    Raises:
        RegistryError: the plugin is missing, disabled or broken.
    """
    # The core's commands are imported by their home, a plugin's through the gate of consent.
    target: click.Command
    if offer is None:
        module, _, attribute = COMMANDS[name][0].partition(":")
        target = getattr(import_module(f"dpcore.console.{module}"), attribute)
    else:
        target = command_of(name, offer)
    return target


class Commands(NamedCommands):
    """The core's table and what plugins offer: a name, its help, and the command once chosen."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List the commands of the core, and of plugins that are installed."""
        # Commands of plugins that are not installed still answer, with a hint, but help leaves them
        # out.
        offer_names = {name for name, offer in offers().items() if offer.is_installed}
        names = {*COMMANDS, *offer_names}
        return [*(name for name in ORDER if name in names), *sorted(names - {*ORDER})]

    def get_command(self, ctx: Any, cmd_name: str) -> click.Command | None:
        """Return a command's entry, with its help; None if no one offers it."""
        if cmd_name in COMMANDS:
            return click.Command(cmd_name, help=COMMANDS[cmd_name][1])
        offer = offers().get(cmd_name)
        return None if offer is None else click.Command(cmd_name, help=offer.help)

    def make_context(self, *args: Any, **fields: Any) -> Any:
        """As any group does; a wrong option before the command's name is reported in one line."""
        with usage_in_one_line():
            return super().make_context(*args, **fields)

    def invoke(self, ctx: Any) -> Any:
        """As any group does; what is wrong behind the command's name is reported in one line."""
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


def _show_version(ctx: click.Context, param: click.Parameter, is_chosen: bool) -> None:
    if is_chosen:
        from importlib import metadata

        click.echo(f"dpcore {metadata.version('dpcore')}")
        ctx.exit()


def _complete(ctx: click.Context, param: click.Parameter, is_chosen: bool) -> None:
    """Print the script of the current shell, or have the shell read it when it starts."""
    if not is_chosen or ctx.resilient_parsing:
        return
    with guarded():
        shell = Path(os.environ.get("SHELL", "")).name
        if shell not in _STARTS:
            raise fail(f"completion is for {', '.join(_STARTS)}: set SHELL, got {shell!r}")
        if param.name == "install_completion":
            path, line = Path.home() / _STARTS[shell][0], _STARTS[shell][1]
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a+", encoding="utf-8") as start:
                start.seek(0)
                if line not in start.read():
                    start.write(f"\n{line}\n")
            click.echo(f"{shell} completion is installed in {path}; restart the terminal")
        else:
            from click.shell_completion import shell_complete

            shell_complete(ctx.command, {}, "dpcore", "_DPCORE_COMPLETE", f"{shell}_source")
    ctx.exit()


@click.group(
    cls=Commands,
    help="Compute and publish statistics and models with differential privacy.",
    context_settings={"show_default": True},
)
@click.option(
    "--version",
    is_flag=True,
    callback=_show_version,
    expose_value=False,
    is_eager=True,
    help="Print the version and stop.",
)
@click.option(
    "--quiet", "-q", is_flag=True, help="No notes and no progress: results and errors only."
)
@click.option(
    "--verbose", "-v", is_flag=True, help="Progress as lines, too, where there is no terminal."
)
@click.option(
    "--install-completion",
    is_flag=True,
    callback=_complete,
    expose_value=False,
    help="Install completion for the current shell.",
)
@click.option(
    "--show-completion",
    is_flag=True,
    callback=_complete,
    expose_value=False,
    help="Show completion for the current shell, to copy it or customize the installation.",
)
def app(quiet: bool, verbose: bool) -> None:
    """Exit codes: 0 done, 1 failed, 2 wrong spec, 3 no claim, 4 ledger refuses, 5 wrong source,
    6 spent but not published, 7 published without what goes to the operator.
    """
    from dpcore.console.console import VOLUME, Volume
    from dpcore.private.core_dumps import forbid_core_dumps

    forbid_core_dumps()  # before any command opens records
    if quiet and verbose:
        raise click.BadParameter("not together with --quiet", param_hint="--verbose")
    VOLUME.set(Volume.QUIET if quiet else Volume.VERBOSE if verbose else Volume.NORMAL)
