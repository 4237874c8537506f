"""Completion by the shell, of which click writes the script: shown, or read at every start."""

import os
from pathlib import Path

import click
from click.shell_completion import shell_complete

from dpcore.cli.console import fail, guarded

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


def complete(ctx: click.Context, *, is_installed: bool) -> None:
    """Print the script of the current shell, or have the shell read it when it starts."""
    with guarded():
        shell = Path(os.environ.get("SHELL", "")).name
        if shell not in _STARTS:
            raise fail(f"completion is for {', '.join(_STARTS)}: set SHELL, got {shell!r}")
        if not is_installed:
            shell_complete(ctx.command, {}, "dpcore", "_DPCORE_COMPLETE", f"{shell}_source")
            return
        path, line = Path.home() / _STARTS[shell][0], _STARTS[shell][1]
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a+", encoding="utf-8") as start:
            start.seek(0)
            if line not in start.read():
                start.write(f"\n{line}\n")
        click.echo(f"{shell} completion is installed in {path}; restart the terminal")
