"""`dpcore ledger`: budgets that several runs on the same records share."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import attrs
import click
import msgspec

from dpcore.claims.events.relation_text import parse_adjacency
from dpcore.console.app import NamedCommands, options
from dpcore.console.console import (
    SlowProgress,
    columns,
    guarded,
    out,
    show_json,
    show_list,
    slow_progress,
)
from dpcore.console.options import public_option
from dpcore.console.parameters import PATH, argument, json_option
from dpcore.errors import LedgerError, ReplayError, SpecError, need, shown
from dpcore.guarantee import rounded_up
from dpcore.ledger.book import Ledger
from dpcore.ledger.entries import latest
from dpcore.ledger.locations import ledger_names, place_of
from dpcore.ledger.remaining_budget import ON_DISK, shown_down
from dpcore.ledger.total import Notion
from dpcore.published.bounded_reading import folder_inside, read_json
from dpcore.published.folder import GUARANTEE_JSON, PUBLIC
from dpcore.published.replay import load_run
from dpcore.siblings import sibling
from dpcore.yaml.located import locate_errors, parse

ledger = NamedCommands(
    "ledger", help="Create, look at and check ledgers: budgets that several runs share."
)

name_argument = argument("name", "The ledger's name, the path of its file, or NAME@postgresql.")


@ledger.command()
@name_argument
@click.option("--epsilon", type=float, required=True, help="What everything may cost together.")
@click.option("--delta", type=float, required=True, help="Likewise; 0 for pure releases only.")
@click.option("--adjacency", required=True, help="As in a spec: add_remove, replace_one, ...")
@click.option(
    "--notion",
    type=click.Choice(get_args(Notion)),
    help="How costs add up; fixed for ever. [default: gaussian; basic at delta 0]",
)
@click.option("--failures", type=float, help="Part of delta kept for failure probabilities.")
@click.option("--order", type=float, help="Of renyi; by default the best for Gaussian releases.")
@json_option
@click.option("--shared", is_flag=True, help="The group of the ledger's folder may spend, too.")
def create(
    name: str,
    epsilon: float,
    delta: float,
    adjacency: str,
    notion: Notion | None,
    failures: float | None,
    order: float | None,
    json: bool,
    shared: bool,
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
        out().print(f"Created {book.journal.path}")
        _show_state(book)


@ledger.command("list")
@json_option
def list_ledgers(json: bool) -> None:
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
@name_argument
@click.option(
    "--last", type=click.IntRange(min=1), default=200, help="How many of the latest entries."
)
@json_option
def show(name: str, last: int, json: bool) -> None:
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
            )


@ledger.command()
@name_argument
@argument("analyst", "A name; a spec says `ledger: {name: NAME, analyst: ANALYST}`.")
@click.option("--epsilon", type=float, required=True, help="What the analyst may spend, at most.")
@click.option("--delta", type=float, required=True, help="Likewise; 0 in a ledger of delta 0.")
def limit(name: str, analyst: str, epsilon: float, delta: float) -> None:
    """Give an analyst a limit inside a ledger, for ever; then every charge names an analyst."""
    with guarded():
        book = Ledger.open(place_of(name))
        with options("epsilon", "delta"):
            book.limit(analyst, epsilon=epsilon, delta=delta)
        _show_state(book)


@ledger.command()
@name_argument
@click.option(
    "--releases", default=1, help="How many equal releases each label makes, say in a month."
)
@click.option("--share", multiple=True, help="LABEL=WEIGHT, an analyst or project; repeatable.")
@json_option
def plan(name: str, releases: int, share: tuple[str, ...], json: bool) -> None:
    """State the largest releases that still fit, for everybody or shared by label."""
    with guarded():
        remaining_budget = Ledger.open(place_of(name)).left()
        with options("releases"):
            # Figures are rounded down, so that what is printed here is never refused later.
            planning = sibling("report", "planning", "dpcore ledger plan")
            plans = planning.allowances(remaining_budget, releases, _fractions(share))
        if json:
            show_json(
                {"left": remaining_budget.figures(), "allowances": [*map(attrs.asdict, plans)]}
            )
            return
        out().print(f"left: {remaining_budget.describe()}")
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


def _fractions(texts: tuple[str, ...]) -> dict[str, float]:
    fractions = {}
    for text in texts:
        label, _, weight = text.rpartition("=")
        try:
            fractions[label or text] = float(weight)
        except ValueError:
            raise SpecError(f"--share needs LABEL=WEIGHT, got {shown(text)}") from None
    return fractions


@ledger.command()
@name_argument
def export(name: str) -> None:
    """Print all that the ledger has recorded, as JSON."""
    with guarded():
        for piece in Ledger.open(place_of(name)).export():
            sys.stdout.write(piece.decode())


@ledger.command()
@name_argument
@click.option(
    "--run", multiple=True, type=PATH, help="Also find this run folder's guarantee in it."
)
@public_option
@json_option
def verify(name: str, run: tuple[Path, ...], public: tuple[str, ...], json: bool) -> None:
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
        for folder in run:
            _verify_run(book, folder, dict(pair.partition("=")[::2] for pair in public))
        if json:
            runs = [str(folder) for folder in run]
            show_json({"ledger": name, "rows": verdict.rows, "end": verdict.end, "runs": runs})
            return
        out().print(
            f"{verdict.rows} rows, chained and recomputed; the chain ends in {verdict.end}",
        )


def _verify_run(book: Ledger, folder: Path, public: Mapping[str, str]) -> None:
    """Raise `LedgerError` unless the run's guarantee is in the ledger, word for word, and the row
    that paid for it has the events of the run's lock."""
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
        f"{path}: it is not in the ledger {book.name!r} as it is: the run belongs to "
        f"another ledger, was changed, or an older copy of the ledger was put back",
    )
    try:
        charge = load_run(folder, public=public).plan.charge()
    except ReplayError as error:
        raise LedgerError(f"{folder}: its lock shows no events: {error.message}") from None
    row = next(row.body for row in book.iterate_rows() if row.digest == digest)
    events = msgspec.to_builtins(charge.written(book.events)["events"])
    need(
        row.get("stands_for", row["events"]) == events,
        LedgerError,
        f"{folder}: its lock has other events than the ledger {book.name!r} was charged for",
    )


def _state(book: Ledger) -> dict[str, Any]:
    total, remaining_budget = book.total, book.left()
    limits = {
        analyst: {**spent.total.claims(), "left": spent.left().describe(ON_DISK)}
        for analyst, spent in book.limits().items()
    }
    return {
        "ledger": book.name,
        **total.claims(),
        "notion": total.notion,
        "left": {
            **remaining_budget.figures(),
            "largest": remaining_budget.largest,
            "told": remaining_budget.describe(ON_DISK),
        },
        **({"analysts": limits} if limits else {}),
    }


def _show_state(book: Ledger) -> None:
    console, total = out(), book.total
    console.print(
        f"{book.name}: all together ({rounded_up(total.epsilon)}, {rounded_up(total.delta)}) under "
        f"{total.adjacency}, {total.notion} composition",
    )
    console.print(f"left: {book.left().describe()}")
    for analyst, spent in book.limits().items():
        limit = spent.total
        console.print(
            f"{analyst}: at most ({rounded_up(limit.epsilon)}, {rounded_up(limit.delta)}) of it; "
            f"left of that: {spent.left().describe()}",
        )
