"""`dpcore test PLUGIN`: every law and every attack on all that a plugin provides."""

import contextlib
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import ModuleType

import attrs
import click
from click.exceptions import Exit

from dpcore.console.console import SlowProgress, flush, guarded, out, show_json, tell
from dpcore.console.parameters import PATH, argument, command
from dpcore.registry.registry import Registry
from dpcore.registry.user_folder import data_folder
from dpcore_attacks.attacks.counterexample import saved
from dpcore_attacks.commands.child_process import PATIENCE, apart
from dpcore_attacks.commands.effort_option import effort_option
from dpcore_attacks.commands.plugin_folder import module_in
from dpcore_attacks.commands.verdicts_view import (
    COUNTEREXAMPLES,
    NO_PROOF,
    SYNTHETIC,
    keep,
    show_findings,
    show_verdicts,
)
from dpcore_attacks.effort import Effort
from dpcore_attacks.kit import examine

_SECONDS = 900  # of processor time at effort 1


@command()
@argument(
    "plugin", "An admitted plugin, dpcore itself, or the folder of one that is not installed."
)
@effort_option
@click.option("--seed", default=0, help="Of the search.")
@click.option("--json", is_flag=True, help="Print everything as JSON.")
@click.option("--all", "every", is_flag=True, help="A line for every verdict.")
@click.option(
    "--only",
    multiple=True,
    metavar="LAW|COMPONENT",
    help="Only this law, or the laws of this component. May be given several times.",
)
@click.option("--until-broken", is_flag=True, help="Stop at the first law that is not passed.")
@click.option(
    "--save", type=PATH, help="Where counterexamples go; the user's data folder if left out."
)
@click.option(
    "--patience",
    type=click.IntRange(min=1),
    default=PATIENCE,
    help="Seconds for which its code may sleep before it is given up as not tested.",
)
def examine_plugin(
    plugin: str,
    effort: float,
    seed: int,
    json: bool,
    every: bool,
    only: tuple[str, ...],
    until_broken: bool,
    save: Path | None,
    patience: int,
) -> None:
    """Put a plugin to the test: exit code 0 if no law is broken, else 1. No data is opened.

    Verdicts are printed as they come, those that cost least first: what is broken at once, what
    passed at the end of each stage, a line a law.
    Its code runs in a process of its own: where that exits, crashes, hangs or takes too much, the
    plugin is not tested, and the exit code is 1. A folder's code is run as it is.
    """

    page = out()

    def work() -> int:
        if page.is_terminal:
            os.environ |= {"COLUMNS": str(page.width), "FORCE_COLOR": "1"}  # it is shown here
        try:
            with guarded():
                return _examine(
                    plugin, effort, seed, json, every, save, only=only, until=until_broken
                )
        except Exit as end:
            return end.exit_code

    with contextlib.ExitStack() as stack:
        intervals: list[SlowProgress] = []

        def waiting(seconds: float) -> None:
            if not intervals:  # after the fork: a bar has a thread
                intervals.append(stack.enter_context(SlowProgress(None, f"testing {plugin}")))

        def write(text: str) -> None:
            stack.close()  # while a bar is there, it takes what is written to itself
            click.echo(text, nl=False)
            flush()

        limit = round(_SECONDS * max(1.0, effort))
        show = None if json else write
        outcome = apart(work, limit, patience, waiting=waiting, show=show)
    click.echo(outcome.output, nl=False)
    click.echo(outcome.errors, nl=False, err=True)
    if outcome.code is None or outcome.reason:
        tell(f"{plugin} is not tested: {outcome.reason}")
        raise Exit(1)
    if outcome.code:
        raise Exit(outcome.code)


def adjacent(registry: Registry, module: ModuleType) -> Registry:
    """The registry with a folder's module: its examples may name components of admitted plugins."""
    name = module.__name__
    # The folder takes the place of the same plugin where that is installed too.
    entries = {n: entry for n, entry in registry.entries.items() if entry.entry_point != name}
    return attrs.evolve(registry, entries=entries, modules={**registry.modules, name: module})


def _examine(
    plugin: str,
    effort: float,
    seed: int,
    json: bool,
    every: bool,
    save: Path | None,
    *,
    only: Sequence[str],
    until: bool,
) -> int:
    """The report, printed as it comes; the exit code."""
    registry = Registry.default()
    name = plugin
    # a folder does not shadow an admitted plugin of its name, unless it is written as a path
    if ("/" in plugin or plugin not in {*registry.entries, *registry.modules}) and Path(
        plugin
    ).is_dir():
        module = module_in(Path(plugin))
        registry, name = adjacent(registry, module), module.__name__
    counterexamples = saved(save or data_folder() / COUNTEREXAMPLES)
    console = out()
    report = examine(
        name,
        registry,
        Effort().times(effort),
        seed,
        until_broken=until,
        known=counterexamples,
        only=only,
        show=(lambda _: None) if json else partial(show_verdicts, console, everything=every),
    )
    files = keep(report.findings, registry, save)
    if json:
        # what was left out is no part of a pass
        lists = {"only": [*only], "counterexamples": [str(path) for path in files]}
        show_json({**report.to_dict(), **lists})
    else:
        show_findings(console, report.findings)
        for path in files:
            console.print(f"counterexample: {path}")
        broken = sorted({verdict.law.id for verdict in report.verdicts if verdict.failed})
        untested = sorted({verdict.subject for verdict in report.verdicts if verdict.untested})
        verdict = f"breaks {', '.join(broken)}" if broken else "breaks no law"
        if untested:
            verdict += f", and {', '.join(untested)} could not be tested"
        elif not broken and not report.passed:
            verdict = "provides nothing that was tested"
        elif only:
            verdict += " of those that --only names. The others were not tested"
        message = f"{plugin} {verdict}. {SYNTHETIC} {NO_PROOF}"
        if report.error_rate:
            message += (
                f" A right plugin fails a statistical check with chance {report.error_rate:.2g} at "
                f"most."
            )
        console.print(message)
    return 0 if report.passed else 1
