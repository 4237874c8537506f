"""`dpcore audit SPEC`: sample a whole run on made-up neighbours, and test what it claims."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import attrs
import msgspec
import typer

from dpcore.cli.attackable import Attackable, attackable, counterexample
from dpcore.cli.console import SlowProgress, columns, err, guarded, out
from dpcore.cli.efforts import EffortOption, SecondsOption
from dpcore.cli.verdicts import NO_PROOF, SYNTHETIC
from dpcore.conformance.audits.audit_file import AuditFileError, add, audit_path, audited
from dpcore.conformance.audits.run_audit import FEWEST, RunAudit, audit_run, runs_within
from dpcore.conformance.effort import Effort
from dpcore.spec.spec import load_spec

if TYPE_CHECKING:
    from rich.console import Console


def audit_spec(
    spec: Annotated[Path, typer.Argument(help="A spec file (YAML).", show_default=False)],
    effort: EffortOption = 1.0,
    samples: Annotated[
        int | None,
        typer.Option(
            min=FEWEST,
            help="Runs of either neighbour; 10000 times the effort if left out, fewer where a run "
            "answers much.",
            show_default=False,
        ),
    ] = None,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.999999999, help="That no stated bound is too large.")
    ] = 0.95,
    seed: Annotated[int, typer.Option(help="Of the search and the sampled coins.")] = 0,
    pair: Annotated[
        Path | None, typer.Option(help="Sample this saved counterexample instead of searching.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    seconds: SecondsOption = None,
) -> None:
    """Lower confidence bounds on epsilon, from sampled runs: exit code 1 if a claim is refuted.

    The spec's data is not opened: every record is made up. What was found is written beside the
    spec, where `dpcore check` finds it.
    """
    with guarded():
        loaded = load_spec(spec)
        target = attackable(loaded, write=True)
        tried = Effort().times(effort)
        if samples is None:
            samples = max(FEWEST, runs_within(target.plan, tried.samples))
        given = None if pair is None else counterexample(pair)
        with SlowProgress(samples, "samples") as bar:
            found = audit_run(
                target.plan,
                attrs.evolve(tried, samples=samples),
                confidence=confidence,
                seed=seed,
                given=given,
                progress=bar.reach,
            )
        _keep(found, target, spec)
        if json:
            told = {**found.to_dict(), "as_printed": target.refusal or None}
            print(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
        else:
            _show(out(), found, target)
        if found.refuted:
            raise typer.Exit(1)


def _keep(found: RunAudit, target: Attackable, spec: Path) -> None:
    """Beside the spec, for a plan that a run could be locked to."""
    if target.lock is None:
        return
    today = datetime.datetime.now(datetime.UTC).date()
    try:
        add(audit_path(spec), audited(found, target.lock, today))
    except AuditFileError as error:
        err().print(f"note: {error}", markup=False)


def _show(console: Console, found: RunAudit, target: Attackable) -> None:
    """A line per claim, and what the samples were."""
    if target.refusal:
        console.print(f"Attacked as printed; dpcore run refuses it: {target.refusal}", markup=False)
    table = columns("claim", "found", "verdict", "told apart by")
    for audit in found.audits:
        table.add_row(
            audit.claim.describe(),
            audit.claim.finding(audit.measured.strength),
            "REFUTED" if audit.broken else "not refuted",
            audit.distinguisher,
        )
    console.print(table)
    first = found.audits[0]
    console.print(
        f"{100 * first.confidence:g} % confidence for all lines together, {first.samples} sampled "
        f"runs of either of two made-up neighbours ({found.origin}; they move a statistic by "
        f"{found.ratio:.4g} of its claim). {SYNTHETIC} {NO_PROOF}",
        markup=False,
    )
