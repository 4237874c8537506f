"""`dpcore account EVENTS`: what a list of events costs, by every method."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from dpcore.accounting.account import Account
from dpcore.accounting.account import account as account_of
from dpcore.cli.console import columns, guarded, out
from dpcore.cli.names import options
from dpcore.errors import SpecError
from dpcore.events.catalogue import Catalogue
from dpcore.registry.events import catalogue_of
from dpcore.strict_yaml.located import read
from dpcore.strict_yaml.places import placed


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
        with options("delta"), placed(node):
            found = account_of(node.plain(), delta, catalogue)
        if json:
            print(msgspec.json.format(msgspec.json.encode(found.data()), indent=2).decode())
        else:
            _show(found)
        if plot is not None:
            _plot(node.plain(), delta, catalogue, plot)


def _show(found: Account) -> None:
    console = out()
    table = columns("method", "epsilon at least", "epsilon at most")
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
