"""`dpcore account EVENTS`: what a list of events costs, by every method."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich import box
from rich.table import Table as RichTable

from dpcore.accounting.account import Account
from dpcore.accounting.account import account as account_of
from dpcore.cli.console import guarded, out
from dpcore.errors import SpecError
from dpcore.events.catalogue import Catalogue
from dpcore.registry.events import catalogue_of
from dpcore.strict_yaml.located import Node, read


def account(
    events: Annotated[
        Path, typer.Argument(help="YAML: adjacency, and a list of events.", show_default=False)
    ],
    delta: Annotated[float, typer.Option(help="The delta at which epsilon is stated.")],
    json: Annotated[bool, typer.Option("--json", help="Print every interval as JSON.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw epsilon against delta (needs dpcore[report]).")
    ] = None,
) -> None:
    """State what events cost together: every method's interval, the best, and why."""
    with guarded():
        node, catalogue = read(events), catalogue_of()
        try:
            found = account_of(node.plain(), delta, catalogue)
        except SpecError as error:
            if error.where is None:  # about the command line, not about the file
                raise
            raise SpecError(error.message, _place(node, error.where)) from None
        if json:
            print(msgspec.json.format(msgspec.json.encode(found.data()), indent=2).decode())
        else:
            _show(found)
        if plot is not None:
            _plot(node.plain(), delta, catalogue, plot)


def _place(node: Node, path: str) -> str:
    """FILE:LINE:COLUMN of a dotted path, as far as it leads."""
    for step in path.split("."):
        inner = node.value
        if isinstance(inner, dict) and step in inner:
            node = inner[step]
        elif isinstance(inner, list) and step.isdecimal() and int(step) < len(inner):
            node = inner[int(step)]
        else:
            break
    return node.where


def _show(found: Account) -> None:
    console = out()
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("method", "epsilon at least", "epsilon at most"):
        table.add_column(heading)
    for name, interval in sorted(found.intervals.items(), key=lambda item: item[1].upper):
        table.add_row(name, f"{interval.lower:.6g}", f"{interval.upper:.6g}")
    console.print(table)
    for name, reason in found.refusals.items():
        console.print(f"{name}: {reason}", markup=False)
    console.print(
        f"epsilon = {found.epsilon.upper:.6g} at delta = {found.delta!r}, {found.adjacency}: "
        f"{found.why}",
        markup=False,
    )


def _plot(data: Any, delta: float, catalogue: Catalogue, path: Path) -> None:
    """Epsilon's upper end at twenty deltas around the one asked for."""
    try:
        from matplotlib.figure import Figure  # an optional extra
    except ImportError:
        raise SpecError("--plot needs matplotlib: pip install dpcore[report]") from None
    deltas = [delta * 10 ** (step / 4) for step in range(-12, 9) if delta * 10 ** (step / 4) < 0.5]
    if delta == 0 or not deltas:
        raise SpecError("--plot needs a delta above 0 and below 0.5")
    upper = [account_of(data, one, catalogue).epsilon.upper for one in deltas]
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    axes.semilogx(deltas, upper, marker=".")
    axes.set_xlabel("delta")
    axes.set_ylabel("epsilon (certified upper end)")
    axes.grid(alpha=0.3)
    figure.savefig(path)
