"""Names on the command line: what is nearly right is told with the nearest right one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from typer.core import TyperGroup

from dpcore.errors import ParameterError, SpecError, near, shown


class NamedCommands(TyperGroup):
    """A group that answers a mistyped name with the nearest one, whatever typer's version."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command as any group does; a mistyped name fails with the nearest one."""
        name = args[0]
        if self.get_command(ctx, name) is None and name[:1].isalnum() and not ctx.resilient_parsing:
            ctx.fail(f"No such command {shown(name)}{near(name, self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


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
