"""Commands whose help describes their arguments, and the parameters that several of them take."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import click

Decorated = TypeVar("Decorated", bound="Callable[..., Any] | click.Command")

PATH = click.Path(path_type=Path, readable=False)  # what reads it says what is wrong with it


class Argument(click.Argument):
    """An argument with a line of help, which click has from 8.5 on, in a layout of its own.

    Args:
        summary: What help says of it.
    """

    def __init__(self, declarations: list[str], *, summary: str, **attributes: Any) -> None:
        super().__init__(declarations, **attributes)
        self.summary = summary

    @property
    def help_record(self) -> tuple[str, str]:
        """Its name, as the line of usage has it, and what help says of it."""
        name = self.human_readable_name + ("" if self.nargs == 1 else "...")
        return name, self.summary + ("  [required]" if self.required else "")


class Command(click.Command):
    """A command whose help lists its arguments before its options."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write both lists, each where it has a line."""
        arguments = [param.help_record for param in self.params if isinstance(param, Argument)]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        super().format_options(ctx, formatter)


command = partial(click.command, cls=Command)


def argument(name: str, summary: str, **attributes: Any) -> Callable[[Decorated], Decorated]:
    """Return a decorator: the command takes a word without an option's name."""
    return click.argument(name, cls=Argument, summary=summary, **attributes)


spec_argument = argument("spec", "A spec file (YAML).", type=PATH)
explain_option = click.option(
    "--explain", is_flag=True, help="Print all of it: every query, bound, premise and table."
)
json_option = click.option("--json", is_flag=True, help="Print the same as JSON.")
