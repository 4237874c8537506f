"""`dpcore ledger`: budgets that several runs on the same records share."""

import sys
from pathlib import Path
from typing import Annotated, Any

import attrs
import msgspec
import typer

from dpcore.cli.console import JsonOption, columns, guarded, out, show_json, show_list
from dpcore.cli.named_commands import NamedCommands, options
from dpcore.cli.progress import SlowProgress, slow_progress
from dpcore.errors import LedgerError, ReplayError, SpecError, need, shown
from dpcore.events.relation_text import parse_adjacency
from dpcore.guarantee import rounded_up
from dpcore.ledger.book import Ledger
from dpcore.ledger.entries import latest
from dpcore.ledger.locations import ledger_names, place_of
from dpcore.ledger.planning import allowances
from dpcore.ledger.remaining_budget import ON_DISK, shown_down
from dpcore.ledger.total import Notion
from dpcore.publish.bounded_reading import folder_inside, read_json
from dpcore.publish.folder import GUARANTEE_JSON, PUBLIC
from dpcore.strict_yaml.error_positions import locate_errors
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
        # Read as in a spec, so that one word means the same relation in both.
        text = parse(adjacency, "--adjacency")
        with locate_errors(text):
            relation = parse_adjacency(text.plain())
        with options("epsilon", "delta", "notion", "failures", "order"):
            book = Ledger.create(
                place_of(name),
                epsilon=epsilon,
                delta=delta,
                adjacency=relation,
                notion=notion,
                failures=failures,
                order=order,
                shared=shared,
            )
        if json:
            show_json({**_state(book), "file": str(book.journal.path)})
            return
        out().print(f"Created {book.journal.path}", markup=False)
        _show_state(book)


@ledger.command("list")
def list_ledgers(json: JsonOption = False) -> None:
    """Every ledger of this user, with what is left."""
    with guarded():
        states = [_state_or_error(name) for name in ledger_names()]
        if json:
            show_json(states)
            return
        # A ledger that cannot be read is listed with its fault, since its budget may be spent.
        rows = [
            (state["ledger"], "", "", "", state["error"])
            if "error" in state
            else (
                state["ledger"],
                rounded_up(state["epsilon"]),
                rounded_up(state["delta"]),
                state["adjacency"],
                state["left"]["told"],
            )
            for state in states
        ]
        headings = ("ledger", "epsilon", "delta", "adjacency", "left")
        command = "dpcore ledger create NAME --epsilon E --delta D --adjacency A"
        show_list(columns(*headings, rows=rows), f"You have no ledger: `{command}` makes one.")


def _state_or_error(name: str) -> dict[str, Any]:
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
        book = Ledger.open(place_of(name))
        with SlowProgress(None, "reading"):
            # Rows are read one by one: a ledger may be longer than memory.
            tail, entries = latest(book.iterate_rows(), last)
        headings = ("row", "time", "what", "cost", "status")
        if json:
            rows = [
                {**dict(zip(headings, record.cells, strict=True)), "row": record.row.number}
                for record in tail
            ]
            show_json({**_state(book), "entries": entries, "latest": rows})
            return
        _show_state(book)
        out().print(columns(*headings, rows=[entry.cells for entry in tail]))
        if entries > len(tail):
            out().print(
                f"{entries - len(tail)} earlier entries: --last, or `dpcore ledger export {name}`",
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
        remaining_budget = Ledger.open(place_of(name)).left()
        with options("releases"):
            # Figures are rounded down, so that what is printed here is never refused later.
            plans = allowances(remaining_budget, releases, _shares(share or []))
        if json:
            show_json(
                {"left": remaining_budget.figures(), "allowances": [*map(attrs.asdict, plans)]}
            )
            return
        out().print(f"left: {remaining_budget.describe()}", markup=False)
        headings = ("label", "releases", "each Gaussian, mu", "epsilon", "or each pure, epsilon")
        rows = [
            (
                entry.label,
                str(entry.releases),
                *map(shown_down, (entry.mu, entry.epsilon, entry.pure)),
            )
            for entry in plans
        ]
        out().print(columns(*headings, rows=rows))


def _shares(texts: list[str]) -> dict[str, float]:
    shares = {}
    for text in texts:
        label, _, weight = text.rpartition("=")
        try:
            shares[label or text] = float(weight)
        except ValueError:
            raise SpecError(f"--share needs LABEL=WEIGHT, got {shown(text)}") from None
    return shares


@ledger.command()
def export(name: Name) -> None:
    """Print all that the ledger has recorded, as JSON."""
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
        book = Ledger.open(place_of(name))
        with slow_progress("verifying") as progress:
            # The chain shows that no row was changed or removed; sums are computed again from the
            # rows.
            verdict = book.verified(progress)
        need(
            not verdict.faults,
            LedgerError,
            f"the ledger {name!r} is damaged: {'; '.join(verdict.faults)}",
        )
        for folder in run or []:
            _verify_run(book, folder)
        if json:
            runs = [str(folder) for folder in run or []]
            show_json({"ledger": name, "rows": verdict.rows, "end": verdict.end, "runs": runs})
            return
        out().print(
            f"{verdict.rows} rows, chained and recomputed; the chain ends in {verdict.end}",
            markup=False,
        )


def _verify_run(book: Ledger, folder: Path) -> None:
    """Raise `LedgerError` unless the run's guarantee is in the ledger, word for word."""
    path = folder / PUBLIC / GUARANTEE_JSON
    try:
        path = folder_inside(folder, PUBLIC) / GUARANTEE_JSON
        guarantee = msgspec.json.decode(read_json(path), type=dict[str, Any])
        digest = str(guarantee["ledger"]["digest"])
    except (OSError, ReplayError, RecursionError, msgspec.MsgspecError, LookupError, TypeError):
        raise LedgerError(
            f"{path}: no guarantee that names a ledger: --run takes a run folder"
        ) from None
    # Word for word: a guarantee that claims less epsilon than was charged must not pass.
    need(
        book.guarantee_of(digest) == guarantee,
        LedgerError,
        f"{path}: it is not in the ledger {book.name!r} as it stands: the run belongs to "
        f"another ledger, was changed, or an older copy of the ledger was put back",
    )


def _state(book: Ledger) -> dict[str, Any]:
    total, remaining_budget = book.total, book.left()
    return {
        "ledger": book.name,
        **total.claims(),
        "notion": total.notion,
        "left": {
            **remaining_budget.figures(),
            "largest": remaining_budget.largest,
            "told": remaining_budget.describe(ON_DISK),
        },
    }


def _show_state(book: Ledger) -> None:
    console, total = out(), book.total
    console.print(
        f"{book.name}: all together ({rounded_up(total.epsilon)}, {rounded_up(total.delta)}) under "
        f"{total.adjacency}, {total.notion} composition",
        markup=False,
    )
    console.print(f"left: {book.left().describe()}", markup=False)
