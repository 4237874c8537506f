"""Completion by the shell: what `--show-completion` prints and `--install-completion` writes."""

import os
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from dpcore.cli.console import fail, guarded

_PLACES = {
    "bash": (".bash_completions/dpcore.sh", ".bashrc", "source ~/.bash_completions/dpcore.sh"),
    "zsh": (".zfunc/_dpcore", ".zshrc", "fpath+=~/.zfunc; autoload -Uz compinit; compinit"),
    "fish": (".config/fish/completions/dpcore.fish", None, ""),
}
"""By shell, below the home: the script, the file read at the start, and the line needed in it."""


def show_completion(ctx: click.Context) -> None:
    """Print the script of the current shell."""
    with guarded():
        click.echo(_script(ctx, _shell()))


def install_completion(ctx: click.Context) -> None:
    """Write the script of the current shell, and have the shell read it when it starts."""
    with guarded():
        shell = _shell()
        script, start_file, line = _PLACES[shell]
        path = Path.home() / script
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_script(ctx, shell), "utf-8")
        if start_file is not None:
            start = Path.home() / start_file
            text = start.read_text("utf-8") if start.is_file() else ""
            if line not in text.splitlines():
                start.write_text(f"{text.rstrip()}\n{line}\n".lstrip(), "utf-8")
        click.echo(f"{shell} completion is installed in {path}; restart the terminal")


def _shell() -> str:
    shell = Path(os.environ.get("SHELL", "")).name
    if shell not in _PLACES:
        raise fail(f"completion is for {', '.join(_PLACES)}: set SHELL, got {shell!r}")
    return shell


def _script(ctx: click.Context, shell: str) -> str:
    words = get_completion_class(shell)
    assert words is not None  # of the shells above
    return words(ctx.command, {}, "dpcore", "_DPCORE_COMPLETE").source()
