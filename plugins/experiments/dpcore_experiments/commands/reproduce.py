"""`dpcore reproduce`: a refuted claim as printed, or a paper's table or figure; not private."""

from pathlib import Path

import attrs
import click

from dpcore.console.console import columns, guarded, out, show_json, show_list, slow_progress
from dpcore.console.parameters import PATH, argument, command, json_option
from dpcore.errors import SpecError
from dpcore.siblings import INSTALL

AUDITED = 4  # labels changed in a full run: for the slowest fits, half of the run's own time


@command()
@argument("what", "A spec file (YAML), or PAPER/ITEM of --list.", required=False)
@click.option("--source", help="Use this file or LOADER:NAME instead of the spec's source.")
@click.option("--runs", type=PATH, default=Path("runs"), help="Where run folders are made.")
@click.option("--list", "listed", is_flag=True, help="List the papers' tables and figures.")
@click.option("--quick", is_flag=True, help="Few splits, first and last value of the sweep.")
@click.option(
    "--data",
    type=PATH,
    envvar="DPCORE_DATA",
    show_envvar=True,
    help="Folder with the CSV files of a PAPER/ITEM.",
)
@click.option(
    "--key",
    type=click.IntRange(min=0),
    help="Of all that a PAPER/ITEM draws; its own if left out.",
)
@click.option(
    "--audit",
    type=click.IntRange(min=0),
    help="Labels that an audit of every series changes: what is really lost."
    f" [default: {AUDITED}; 0 under --quick]",
)
@json_option
def reproduce(
    what: str | None,
    source: str | None,
    runs: Path,
    listed: bool,
    quick: bool,
    data: Path | None,
    key: int | None,
    audit: int | None,
    json: bool,
) -> None:
    """Run a refuted or conditional spec, or a paper's table, as printed. NOT private: keep it.

    Exit code 0 for a table or figure only if every judged number is within its tolerances.
    """
    with guarded():
        # A name ends in .yaml, is a file, or is PAPER/ITEM: in this order.
        if listed:
            _list(json=json)
        elif what is None:
            raise SpecError("a spec or PAPER/ITEM was needed; --list shows what there is")
        elif what.endswith((".yaml", ".yml")) or Path(what).is_file():
            _spec(Path(what), source, runs, json=json)
        elif not _experiment(what, quick, data, key, audit, runs, json=json):
            raise click.exceptions.Exit(1)


def _list(*, json: bool) -> None:
    from dpcore_experiments.experiment import experiments, load_experiment

    items = []
    for name in experiments():
        text = load_experiment(name).text
        files = sorted({d.csv.file for d in text.data.values() if d.csv is not None})
        items.append({"item": name, "title": text.title, "reading": text.reading, "needs": files})
    if json:
        show_json(items)
        return
    table = columns("paper/item", "what it shows", "reading", "needs")
    for item in items:
        needs = ", ".join(item["needs"]) or "nothing"
        table.add_row(str(item["item"]), str(item["title"]), str(item["reading"]), needs)
    show_list(table, f"No plugin that brings a paper is installed: {INSTALL} in a clone.")


def _spec(path: Path, source: str | None, runs: Path, *, json: bool) -> None:
    from dpcore.specs.spec import load_spec

    loaded = load_spec(path)

    from dpcore.console.plan_view import show_plan  # imported for a spec that is right
    from dpcore.runs.run_spec import reproduce as as_printed

    # A refuted spec runs as printed: the lock says so, and nothing is published.
    with slow_progress() as progress:
        reproduction = as_printed(loaded, source=source, runs=runs, progress=progress)
    if json:
        show_json({**reproduction.lock.plan, "reproduced, not private": str(reproduction.kept)})
        return
    console = out()
    show_plan(console, reproduction.guarantee, reproduction.lock)
    console.print(f"Reproduced, NOT PRIVATE, in {reproduction.kept}")


def _experiment(
    name: str,
    quick: bool,
    data: Path | None,
    key: int | None,
    audit: int | None,
    runs: Path,
    *,
    json: bool,
) -> bool:
    """Whether all is within."""
    from dpcore_experiments.cache import keep
    from dpcore_experiments.commands.reproduced_view import show, summary
    from dpcore_experiments.compare import judged
    from dpcore_experiments.experiment import load_experiment
    from dpcore_experiments.running import run

    experiment = load_experiment(name)
    key = experiment.text.key if key is None else key
    # A quick run skips the audit, which costs as much as the fits themselves.
    audit = (0 if quick else AUDITED) if audit is None else audit
    with slow_progress(name) as progress:
        results = run(experiment, data, quick=quick, key=key, audit=audit, progress=progress)
    cells = judged(experiment.text, results)
    operator_folder, note = keep(experiment, cells, key=key, quick=quick, audit=audit, runs=runs)
    # None is no verdict: what is not judged does not fail.
    is_good = all(cell.within is not False for cell in cells)
    if json:
        rows = [{**attrs.asdict(cell), "within": cell.within} for cell in cells]
        show_json(
            {
                "item": name,
                "key": key,
                "audit": audit,
                "cells": rows,
                "not private, in": str(operator_folder),
            }
        )
        return is_good
    console = out()
    show(console, experiment, cells, audit)
    console.print(f"{summary(cells)} NOT PRIVATE, in {operator_folder}")
    if note:
        console.print(note)
    return is_good
