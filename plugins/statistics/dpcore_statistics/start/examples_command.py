"""`dpcore examples`: the specs that plugins ship, listed, shown and copied."""

from pathlib import Path
from typing import cast

import click

from dpcore.console.app import NamedCommands
from dpcore.console.console import columns, guarded, out, show_json, show_list
from dpcore.console.parameters import PATH, argument, json_option
from dpcore.errors import SpecError, need
from dpcore.registry.plugin_files import find_entry, plugins_next_to, shipped
from dpcore.registry.registry import Registry
from dpcore.siblings import INSTALL

examples = NamedCommands(
    "examples", help="List, show and copy the example specs that plugins ship."
)

name_argument = argument("name", "Of an example, as listed.")


@examples.command("list")
@json_option
def list_examples(json: bool) -> None:
    """Every example spec of the admitted plugins, with what its comment begins with."""
    with guarded():
        descriptions = {
            name: _describe(path) for name, path in shipped(Registry.default(), "examples").items()
        }
        if json:
            show_json([{"example": name, "shows": shows} for name, shows in descriptions.items()])
            return
        table = columns("example", "what it shows", rows=descriptions.items())
        show_list(table, f"No plugin that ships examples is installed: {INSTALL} in a clone.")


def _describe(path: Path) -> str:
    """Describe an example by its own comment, or by the error of reading it."""
    try:
        return _first_sentence(_read(path))
    except SpecError as error:
        return error.message


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        reason = error.strerror
    except UnicodeError:
        reason = "it is no UTF-8 text"
    raise SpecError(f"its plugin ships no readable file ({reason})", place=str(path))


def _first_sentence(text: str) -> str:
    """Return the comment up to the first line that ends a sentence."""
    comment_lines: list[str] = []
    for line in text.splitlines():
        if line[:1] != "#" or (comment_lines and comment_lines[-1].endswith(".")):
            break
        comment_lines.append(line.removeprefix("#").strip())
    return " ".join(comment_lines)


def _spec(name: str) -> Path:
    return cast(Path, find_entry(Registry.default(), "examples", "example", name))


@examples.command()
@name_argument
def show(name: str) -> None:
    """Write an example spec to standard output."""
    with guarded():
        click.echo(_read(_spec(name)), nl=False)


@examples.command()
@name_argument
@argument("folder", "Where the files go.  [default: .]", type=PATH, default=Path())
@json_option
def copy(name: str, folder: Path, json: bool) -> None:
    """Copy an example spec, and the files that it names, into a folder; none is overwritten."""
    with guarded():
        need(
            folder.suffix not in (".yaml", ".yml") and not folder.is_file(),
            SpecError,
            "needs a folder, got the name of a spec or another file",
            place=str(folder),
        )
        spec = _spec(name)
        _read(spec)  # which says what is wrong with it
        files = plugins_next_to(spec)
        # Checked for all files before the first is written, so a copy is complete or not begun.
        if clashes := [p.name for p in files if (folder / p.name).exists()]:
            raise SpecError(
                f"already holds {', '.join(clashes)}: name another folder", place=str(folder)
            )
        folder.mkdir(parents=True, exist_ok=True)
        for path in files:
            (folder / path.name).write_bytes(path.read_bytes())
            if not json:
                out().print(str(folder / path.name))
        if json:
            show_json({"copied": [str(folder / path.name) for path in files]})
