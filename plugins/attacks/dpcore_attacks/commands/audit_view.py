"""What `dpcore audit` finds out about a spec, keeps and shows."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import msgspec

from dpcore.console.console import SlowProgress, columns, note, out
from dpcore.specs.spec import Spec
from dpcore_attacks.audits.audit_file import AuditFileError, add, audit_path, audited
from dpcore_attacks.audits.run_audit import RunAudit, affordable_runs, audit_run
from dpcore_attacks.commands.verdicts_view import NO_PROOF, SYNTHETIC
from dpcore_attacks.effort import Effort
from dpcore_attacks.plan_attack import Attackable, attackable, counterexample, queries

if TYPE_CHECKING:
    from dpcore.console.layout import Page


def audited_spec(
    spec: Spec,
    path: Path,
    effort: float,
    samples: int | None,
    confidence: float,
    seed: int,
    pair: Path | None,
    *,
    json: bool,
) -> bool:
    """Audit a run of a spec, keep and print what was found; whether a claim is refuted."""
    target = attackable(spec, write=True)
    note(target.note)
    counts = Effort().times(effort)
    if samples is None:
        samples = affordable_runs(target.plan, counts.samples)
    given = None if pair is None else counterexample(pair)
    with SlowProgress(queries(target.plan), "searching neighbours") as bar:
        audit = audit_run(
            target.plan,
            attrs.evolve(counts, samples=samples),
            confidence=confidence,
            seed=seed,
            given=given,
            progress=lambda count: bar.advance(count, samples, "samples"),
            searched=bar.step,
        )
    # kept before it is printed: a closed terminal loses no refutation
    _keep(audit, target, path)
    if json:
        report = {**audit.to_dict(), "as_printed": target.refusal or None}
        print(msgspec.json.format(msgspec.json.encode(report), indent=2).decode())
    else:
        _show(out(), audit, target)
    return audit.refuted


def _keep(audit: RunAudit, target: Attackable, spec: Path) -> None:
    """Next to the spec, for a plan that a run could be locked to."""
    # without a lock no run can be at this plan, and its audit would be about none
    if target.lock is None:
        return
    today = datetime.datetime.now(datetime.UTC).date()
    try:
        add(audit_path(spec), audited(audit, target.lock, today))
    except AuditFileError as error:
        note(str(error))


def _show(console: Page, run_audit: RunAudit, target: Attackable) -> None:
    """A line per claim, and what the samples were."""
    if target.refusal:
        console.print(f"Attacked as printed; dpcore run refuses it: {target.refusal}")
    table = columns("claim", "found", "verdict", "distinguished by")
    for audit in run_audit.audits:
        table.add_row(
            audit.claim.describe(),
            audit.claim.finding(audit.measured.strength),
            "REFUTED" if audit.broken else "not refuted",
            audit.distinguisher,
        )
    console.print(table)
    first = run_audit.audits[0]
    console.print(
        f"{100 * first.confidence:g} % confidence for all lines together, {first.samples} sampled "
        f"runs of either of two synthetic neighbours ({run_audit.origin}; they move a statistic by "
        f"{run_audit.ratio:.4g} of its claim). {SYNTHETIC} {NO_PROOF}",
    )
