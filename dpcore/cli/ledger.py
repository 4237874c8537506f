"""`dpcore ledger`: budgets that several runs on the same records share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import attrs
import msgspec
import typer

from dpcore.accounting.account import read_adjacency
from dpcore.cli.console import JsonOption, columns, guarded, out, show_json
from dpcore.cli.named_commands import NamedCommands, options
from dpcore.cli.progress import SlowProgress, slow_progress
from dpcore.errors import ReplayError, SpecError, shown
from dpcore.ledger.book import Ledger
from dpcore.ledger.entries import latest
from dpcore.ledger.journal import LedgerError
from dpcore.ledger.locations import ledger_names, place_of
from dpcore.ledger.planning import allowances
from dpcore.ledger.remaining_budget import shown_down
from dpcore.ledger.total import Notion
from dpcore.publish.bounded_reading import read_bytes
from dpcore.publish.folder import GUARANTEE_JSON
from dpcore.strict_yaml.error_positions import placed
from dpcore.strict_yaml.located import parse

ledger = typer.Typer(
    add_completion=False,
    cls=NamedCommands,
    help="Create, look at and check ledgers: budgets that several runs share.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[
    str, typer.Argument(help="The ledger's name, or the path of its file.", show_default=False)
]


@ledger.command()
def create(
    name: Name,
    epsilon: Annotated[float, typer.Option(help="What everything may cost together.")],
    delta: Annotated[float, typer.Option(help="Likewise; 0 for pure releases only.")],
    adjacency: Annotated[str, typer.Option(help="As in a spec: add_remove, replace_one, ...")],
    notion: Annotated[
        Notion | None,
        typer.Option(
            help="How costs add up; fixed for ever. [default: gaussian; basic at delta 0]"
        ),
    ] = None,
    failures: Annotated[
        float | None, typer.Option(help="Part of delta kept for failure probabilities.")
    ] = None,
    order: Annotated[
        float | None, typer.Option(help="Of renyi; by default the best for Gaussian releases.")
    ] = None,
    json: JsonOption = False,
    shared: Annotated[
        bool, typer.Option("--shared", help="The group of the ledger's folder may spend, too.")
    ] = False,
) -> None:
    """Create a ledger, by name in your data folder or at a path: its total can never be changed."""
    with guarded():
        text = parse(adjacency, "--adjacency")
        with placed(text):
            relation = read_adjacency(text.plain())
        with options("epsilon", "delta", "notion", "failures", "order"):
            made = Ledger.create(
                place_of(name),
                epsilon=epsilon,
                delta=delta,
                adjacency=relation,
                notion=notion,
                failures=failures,
                order=order,
                shared=shared,
            )
        state = _state(made)
        if json:
            show_json({**state, "file": str(made.journal.path)})
            return
        out().print(f"Created {made.journal.path}", markup=False)
        _show_state(state)


@ledger.command("list")
def list_ledgers(json: JsonOption = False) -> None:
    """Every ledger of this user, with what is left."""
    with guarded():
        if json:
            show_json([_listed(name) for name in ledger_names()])
            return
        table = columns("ledger", "epsilon", "delta", "adjacency", "left")
        for name in ledger_names():
            try:
                found = Ledger.open(place_of(name))
                total = found.total
                left = found.left().describe()
                table.add_row(
                    name, f"{total.epsilon:g}", f"{total.delta:g}", str(total.adjacency), left
                )
            except LedgerError as error:
                table.add_row(name, "", "", "", str(error))
        out().print(table)


def _listed(name: str) -> dict[str, Any]:
    """Its state, or why there is none."""
    try:
        return _state(Ledger.open(name))
    except LedgerError as error:
        return {"ledger": name, "error": str(error)}


@ledger.command()
def show(
    name: Name,
    last: Annotated[int, typer.Option(min=1, help="How many of the latest entries.")] = 200,
    json: JsonOption = False,
) -> None:
    """What was spent, on what, and what is left."""
    with guarded():
        found = Ledger.open(place_of(name))
        state = _state(found)
        with SlowProgress(None, "reading"):
            shown, entries = latest(found.each_row(), last)
        headings = ("row", "time", "what", "cost", "status")
        if json:
            listed = [
                {**dict(zip(headings, one.cells, strict=True)), "row": one.row.number}
                for one in shown
            ]
            show_json({**state, "entries": entries, "latest": listed})
            return
        _show_state(state)
        table = columns(*headings)
        for entry in shown:
            table.add_row(*entry.cells)
        out().print(table)
        if entries > len(shown):
            out().print(
                f"{entries - len(shown)} earlier entries: --last, or `dpcore ledger export {name}`",
                markup=False,
            )


@ledger.command()
def plan(
    name: Name,
    releases: Annotated[
        int, typer.Option(help="How many equal releases each label makes, say in a month.")
    ] = 1,
    share: Annotated[
        list[str] | None,
        typer.Option(help="LABEL=WEIGHT, an analyst or project; repeatable."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """State the largest releases that still fit, for everybody or shared by label."""
    with guarded():
        found = Ledger.open(place_of(name))
        left = found.left()
        with options("releases"):
            planned = allowances(left, releases, _shares(share or []))
        if json:
            show_json({"left": attrs.asdict(left), "allowances": [*map(attrs.asdict, planned)]})
            return
        console = out()
        console.print(f"left: {left.describe()}", markup=False)
        table = columns(
            "label", "releases", "each Gaussian, mu", "epsilon", "or each pure, epsilon"
        )
        for one in planned:
            figures = (shown_down(figure) for figure in (one.mu, one.epsilon, one.pure))
            table.add_row(one.label, str(one.releases), *figures)
        console.print(table)


def _shares(given: list[str]) -> dict[str, float]:
    shares = {}
    for text in given:
        label, _, weight = text.rpartition("=")
        try:
            shares[label or text] = float(weight)
        except ValueError:
            raise SpecError(f"--share needs LABEL=WEIGHT, got {shown(text)}") from None
    return shares


@ledger.command()
def export(name: Name) -> None:
    """Everything recorded, as JSON."""
    with guarded():
        for piece in Ledger.open(place_of(name)).export():
            sys.stdout.write(piece.decode())


@ledger.command()
def verify(
    name: Name,
    run: Annotated[
        list[Path] | None, typer.Option(help="Also find this run folder's guarantee in it.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Check the file, its chain and its sums: exit code 4 if anything is wrong."""
    with guarded():
        found = Ledger.open(place_of(name))
        with slow_progress("verifying") as progress:
            told = found.verified(progress)
        if told.faults:
            raise LedgerError(f"the ledger {name!r} is damaged: {'; '.join(told.faults)}")
        for folder in run or []:
            _verify_run(found, folder)
        if json:
            runs = [str(folder) for folder in run or []]
            show_json({"ledger": name, "rows": told.rows, "end": told.end, "runs": runs})
            return
        out().print(
            f"{told.rows} rows, chained and recomputed; the chain ends in {told.end}",
            markup=False,
        )


def _verify_run(found: Ledger, folder: Path) -> None:
    """Raise `LedgerError` unless the run's guarantee is in the ledger, word for word."""
    path = folder / "public" / GUARANTEE_JSON
    try:
        stated = msgspec.json.decode(read_bytes(path), type=dict[str, Any])
        entered = stated["ledger"]
        digest = str(entered["digest"])
    except (OSError, ReplayError, RecursionError, msgspec.MsgspecError, LookupError, TypeError):
        raise LedgerError(f"{path}: no guarantee that names a ledger") from None
    if found.guarantee_of(digest) != stated:
        raise LedgerError(
            f"{path}: it is not in the ledger {found.name!r} as it stands: the run belongs to "
            f"another ledger, was changed, or an older copy of the ledger was put back"
        )


def _state(found: Ledger) -> dict[str, Any]:
    total, left = found.total, found.left()
    return {
        "ledger": found.name,
        **total.claims(),
        "notion": total.notion,
        "left": {**attrs.asdict(left), "largest": left.largest, "told": left.describe()},
    }


def _show_state(state: dict[str, Any]) -> None:
    console = out()
    console.print(
        f"{state['ledger']}: all together ({state['epsilon']:g}, {state['delta']:g}) under "
        f"{state['adjacency']}, {state['notion']} composition",
        markup=False,
    )
    console.print(f"left: {state['left']['told']}", markup=False)
