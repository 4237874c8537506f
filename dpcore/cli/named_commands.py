"""Names on the command line: what is nearly right is told with the nearest right one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from dpcore.cli.console import fail
from dpcore.errors import ParameterError, SpecError, near, shown

_USAGE_ERROR: Any = typer.BadParameter.__mro__[1]  # its module differs by version


class NamedCommands(TyperGroup):
    """A group that answers a mistyped name with the nearest one, whatever typer's version."""

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
    except _USAGE_ERROR as error:
        message = str(error.format_message())
        if "\n" in message:  # the help of a group that was named without a command
            raise
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "dpcore"
        if context and hasattr(error, "possibilities"):  # of an option that the command lacks
            names = [name.strip("-") for param in context.command.params for name in param.opts]
            hint = near(error.option_name.strip("-"), names).replace("mean '", "mean '--")
            message = f"no option is called {shown(error.option_name)}{hint}"
        # Words of the library that reads them, which differ by its version, are put into ours.
        message = message.partition(", unable")[0].replace("Value error, ", "")
        message = message.replace("Input should be", "it needs to be").rstrip(".")
        way = "" if "did you mean" in message else f"; `{path} --help` shows what it takes"
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
