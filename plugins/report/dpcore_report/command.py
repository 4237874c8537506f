"""`dpcore report`: one HTML page of a run, from its public folder only, or of a ledger."""

import webbrowser
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from dpcore.console.console import SlowProgress, guarded, note, out, show_json
from dpcore.console.options import in_bytes, in_number, memory_option, work_option
from dpcore.console.parameters import PATH, argument, command, json_option
from dpcore.errors import ReplayError, SpecError, near, need
from dpcore.ledger.book import Ledger
from dpcore.ledger.locations import ledger_names, place_of
from dpcore.published.files import replace_file
from dpcore.published.folder import PUBLIC
from dpcore.published.lock import Lock
from dpcore.siblings import sibling


@command()
@argument("what", "A run folder, or a ledger by name or path.", metavar="RUN|LEDGER")
@click.option("--output", type=PATH, help="The page. [default: RUN/report.html or ./LEDGER.html]")
@click.option(
    "--operator/--no-operator",
    default=False,
    help="Add what the operator by itself may see, in RUN/operator: not covered by the guarantee.",
)
@click.option(
    "--attacks",
    multiple=True,
    type=PATH,
    metavar="FILE",
    help="Add what was attacked: SPEC.audit.json, or what falsify --json printed. Again for more.",
)
@click.option("--title", help="The page's title. [default: what was released]")
@click.option(
    "--published",
    metavar="DAY",
    type=click.DateTime(["%Y-%m-%d"]),
    help="The day it was published, such as 2026-03-31: no part of what is published.",
)
@click.option(
    "--record",
    is_flag=True,
    help="Write RUN/record.json instead: a deployment record, with what you are to state.",
)
@click.option("--open", "browser", is_flag=True, help="Open the page in the browser, too.")
@memory_option
@work_option
@json_option
def report(
    what: str,
    output: Path | None,
    operator: bool,
    attacks: tuple[Path, ...],
    title: str | None,
    published: datetime | None,
    record: bool,
    browser: bool,
    memory: str | None,
    work: str | None,
    json: bool,
) -> None:
    """Write one HTML page of a run, from its public folder only, or of a ledger."""
    with guarded():
        # A folder wins over a ledger of the same name.
        run = Path(what)
        place = place_of(what)
        # A ledger has one page, for its keepers; the options for runs do not apply to it.
        if (what in ledger_names() or isinstance(place, Path)) and not run.is_dir():
            need(
                not operator,
                SpecError,
                "--operator is for runs: a ledger's page is its keepers' anyhow",
            )
            need(
                not record,
                SpecError,
                "--record is for runs: a ledger is no release",
            )
            need(
                not attacks,
                SpecError,
                "--attacks is for runs: a ledger is a sum, and no claim to attack",
            )
            book = Ledger.open(place)

            from dpcore_report import ledger  # imported when a page is written

            path = Path(f"{book.name}.html") if output is None else output
            with SlowProgress(None, "reading and drawing"):
                replace_file(path, ledger.ledger_report(book), private=True)
        else:
            need(
                run.exists() or run.parent.name,
                ReplayError,
                f"no run folder or ledger is called {what!r}{near(what, ledger_names())}: "
                f"`dpcore run` writes the one, `dpcore ledger list` shows the others",
            )
            from dpcore_report import page  # imported when a page is written
            from dpcore_report.record import deployment_record

            # What the operator by itself may see goes to the operator's own folder.
            default_path = run / "operator" / "report.html" if operator else run / "report.html"
            if record:
                default_path = run / "record.json"
            path = default_path if output is None else output
            # A page there would be taken for published, and the folder would not replay.
            need(
                path.resolve().parent != (run / PUBLIC).resolve(),
                SpecError,
                f"--output: {PUBLIC}/ holds what replays, and nothing else",
            )
            # An operator may have written into an older record.
            need(
                not (record and path.exists()),
                SpecError,
                f"{path} exists, and may hold what you stated: name another --output, or remove it",
            )
            day = published.date() if published else None
            limits = {"memory": in_bytes(memory), "work": in_number(work)}
            with SlowProgress(None, "replaying and drawing"):
                html = (
                    deployment_record(run, published=day, **limits)
                    if record
                    else page.report(
                        run,
                        operator=operator,
                        attacks=_reader(attacks),
                        title=title,
                        name=run.resolve().name,
                        published=day,
                        **limits,
                    )
                )
            replace_file(path, html, private=operator)
        if json:
            show_json({"page": str(path)})
        else:
            out().print(str(path))
        if browser and not webbrowser.open(path.absolute().as_uri()):
            note("no browser was found: open the file in one")


def _reader(files: Sequence[Path]) -> Callable[[Lock], Sequence[Any]] | None:
    """What reads the lines about a locked plan; None where no file is given.

    Raises:
        MissingPluginError: the distribution that writes such files is not installed.
    """
    if not files:
        return None
    attack_files = sibling("attacks", "attack_files", "--attacks")
    return lambda lock: attack_files.read_attacks(files, lock)
