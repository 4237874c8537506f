"""Names on the command line: what is nearly right is told with the nearest right one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from dpcore.console.console import fail
from dpcore.console.parameters import Command
from dpcore.errors import ParameterError, SpecError, near, shown


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
        """Its commands as they were defined: help lists them in this order."""
        return [*self.commands]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command as any group does; a mistyped name fails with the nearest one."""
        name = args[0]
        if self.get_command(ctx, name) is None and name[:1].isalnum() and not ctx.resilient_parsing:
            ctx.fail(f"No such command {shown(name)}{near(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


@contextmanager
def usage_in_one_line() -> Iterator[None]:
    """A command line that cannot be read is told in one line, with the way out."""
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
            message = f"no option is called {shown(error.option_name)}{hint}"
        way = "" if "did you mean" in message else f"; `{path} --help` shows what it takes"
        message = message.rstrip(".").replace("valid float", "valid number").removesuffix(" range")
        raise fail(message + way, 2) from None


@contextmanager
def options(*names: str) -> Iterator[None]:
    """A parameter of the library that an option of this name gives is told by the option."""
    try:
        yield
    except ParameterError as error:
        if error.place is not None or error.field not in names:
            raise
        raise SpecError(
            f"needs {error.needed}, got {error.field}={shown(error.got)}",
            place=f"--{error.field}",
        ) from None
