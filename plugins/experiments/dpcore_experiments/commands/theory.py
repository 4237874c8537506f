"""`dpcore theory`: a statement of a paper, as printed and as corrected, from public facts."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from dpcore.cli.console import columns, guarded, out, show_json
from dpcore.errors import SpecError, shown
from dpcore.learning.statement import Statement
from dpcore.registry.plugin_files import one, shipped
from dpcore.registry.registry import Registry

theory = typer.Typer(add_completion=False, rich_markup_mode=None)


@theory.command(context_settings={"ignore_unknown_options": True})
def compute(
    statement: Annotated[
        str | None,
        typer.Argument(help="PAPER/STATEMENT; all are listed without it.", show_default=False),
    ] = None,
    values: Annotated[
        list[str] | None,
        typer.Argument(help="--NAME VALUE for every parameter.", show_default=False),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Compute a statement of a paper from public facts, as printed and as corrected.

    Without parameters it says which ones a statement needs.
    """
    with guarded():
        registry = Registry.default()
        if statement is None:
            _list(registry, json=json)
            return
        found: Statement = one(registry, "theory", "statement", statement)
        if not values:
            _show(found, statement, json=json)
            return
        given = dict(_given(values))
        numbers = found.values(given)
        if json:
            told = {"statement": statement, "source": found.source, "wrong": found.wrong}
            told |= {"given": given, **numbers}  # type: ignore[dict-item]  # of several depths
            show_json(told)
            return
        table = columns("", *numbers, title=f"{found.title}. {found.source}.")
        for key in dict.fromkeys(key for side in numbers.values() for key in side):
            table.add_row(key, *(f"{s[key]:.6g}" if key in s else "-" for s in numbers.values()))
        out().print(table)
        if found.wrong:
            out().print(f"What to know of it: {found.wrong}.", markup=False)


def _list(registry: Registry, *, json: bool) -> None:
    if json:
        show_json([
            {"statement": name, "title": found.title, "source": found.source}
            for name, found in shipped(registry, "theory").items()
        ])  # fmt: skip
        return
    table = columns("statement", "what it says", "source")
    for name, found in shipped(registry, "theory").items():
        table.add_row(name, found.title, found.source)
    out().print(table)


def _show(found: Statement, name: str, *, json: bool) -> None:
    """What it needs."""
    if json:
        needs = {
            found.option(key): None if default is inspect.Parameter.empty else default
            for key, default in found.parameters().items()
        }
        named = {"statement": name, "title": found.title, "source": found.source}
        show_json({**named, "parameters": needs})
        return
    out().print(f"{name}: {found.title}. {found.source}.", markup=False)
    for key, default in found.parameters().items():
        own = found.option(key)
        told = "needed" if default is inspect.Parameter.empty else f"{default} if left out"
        out().print(f"  --{own}{'' if own == key else f' ({key})'}: {told}", markup=False)


def _given(values: list[str]) -> Iterator[tuple[str, Any]]:
    """NAME=VALUE, --NAME=VALUE or --NAME VALUE."""
    left = list(values)
    while left:
        word = left.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not equals:
            if not word.startswith("--") or not left:
                raise SpecError(f"needs --NAME VALUE, got {shown(word)}")
            value = left.pop(0)
        yield name.replace("-", "_"), _number(name, value)


def _number(name: str, text: str) -> float | int | bool:
    if text in ("true", "false"):
        return text == "true"
    try:
        value = float(text)
    except ValueError:
        raise SpecError(f"--{name} needs a number, got {shown(text)}") from None
    if not math.isfinite(value):
        raise SpecError(f"--{name} needs a finite number, got {shown(text)}")
    return int(value) if value == int(value) and "." not in text and "e" not in text else value
