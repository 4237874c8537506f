"""`dpcore theory`: a statement of a paper, as printed and as corrected, from public facts."""

import inspect
import math
from collections.abc import Iterator
from typing import Any

import click

from dpcore.console.console import columns, guarded, out, show_json, show_list
from dpcore.console.parameters import argument, command
from dpcore.errors import SpecError, need, shown
from dpcore.learners.statement import Statement
from dpcore.registry.plugin_files import find_entry, shipped
from dpcore.registry.registry import Registry
from dpcore.siblings import INSTALL


@command(context_settings={"ignore_unknown_options": True})
@argument("statement", "PAPER/STATEMENT; all are listed without it.", required=False)
@argument("values", "--NAME VALUE for every parameter.", nargs=-1)
@click.option("--json", is_flag=True, help="Print everything as JSON.")
def theory(statement: str | None, values: tuple[str, ...], json: bool) -> None:
    """Compute a statement of a paper from public facts, as printed and as corrected.

    Without parameters it says which ones a statement needs.
    """
    with guarded():
        # Statements are functions of public facts: no record is read, no budget is spent.
        registry = Registry.default()
        if statement is None:
            _list(registry, json=json)
            return
        definition: Statement = find_entry(registry, "theory", "statement", statement)
        # Without parameters it explains instead of failing.
        if not values:
            _show(definition, statement, json=json)
            return
        arguments = dict(_parse_arguments(values))
        numbers = definition.values(arguments)
        if json:
            facts = {"source": definition.source, "wrong": definition.wrong, "given": arguments}
            show_json({"statement": statement, **facts, **numbers})
            return
        table = columns("", *numbers, title=f"{definition.title}. {definition.source}.")
        # Sides may differ in their numbers: one row for each that any of them has.
        for key in dict.fromkeys(key for side in numbers.values() for key in side):
            table.add_row(key, *(f"{s[key]:.6g}" if key in s else "-" for s in numbers.values()))
        out().print(table)
        if definition.wrong:
            out().print(f"What to know of it: {definition.wrong}.")


def _list(registry: Registry, *, json: bool) -> None:
    if json:
        show_json([
            {"statement": name, "title": definition.title, "source": definition.source}
            for name, definition in shipped(registry, "theory").items()
        ])  # fmt: skip
        return
    table = columns("statement", "what it says", "source")
    for name, definition in shipped(registry, "theory").items():
        table.add_row(name, definition.title, definition.source)
    show_list(table, f"No plugin that states a theory is installed: {INSTALL} in a clone.")


def _show(definition: Statement, name: str, *, json: bool) -> None:
    """What it needs."""
    if json:
        needs = {
            definition.option(key): None if default is inspect.Parameter.empty else default
            for key, default in definition.parameters().items()
        }
        header = {"statement": name, "title": definition.title, "source": definition.source}
        show_json({**header, "parameters": needs})
        return
    out().print(f"{name}: {definition.title}. {definition.source}.")
    for key, default in definition.parameters().items():
        option = definition.option(key)
        default_text = "needed" if default is inspect.Parameter.empty else f"{default} if left out"
        out().print(f"  --{option}{'' if option == key else f' ({key})'}: {default_text}")


def _parse_arguments(values: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """NAME=VALUE, --NAME=VALUE or --NAME VALUE."""
    words = list(values)
    while words:
        word = words.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        # `--NAME VALUE` as two words; a value may itself begin with a minus.
        if not equals:
            need(
                word.startswith("--") and words, SpecError, f"needs --NAME VALUE, got {shown(word)}"
            )
            value = words.pop(0)
        yield name.replace("-", "_"), _number(name, value)


def _number(name: str, text: str) -> float | int | bool:
    if text in ("true", "false"):
        return text == "true"
    try:
        value = float(text)
    except ValueError:
        raise SpecError(f"--{name} needs a number, got {shown(text)}") from None
    need(math.isfinite(value), SpecError, f"--{name} needs a finite number, got {shown(text)}")
    # A count must be an integer, but 1.0 and 1e3 stay floats, as they were typed.
    return int(value) if value == int(value) and "." not in text and "e" not in text else value
