"""How `dpcore test` and `dpcore falsify` show what they found."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dpcore.console.console import columns, note
from dpcore.registry.registry import Registry
from dpcore.registry.user_folder import data_folder
from dpcore_attacks.attack_record import AttackRecordError, record
from dpcore_attacks.attacks.result import Finding
from dpcore_attacks.laws.law import Outcome, Verdict

if TYPE_CHECKING:
    from dpcore.console.layout import Page

SYNTHETIC = "Only synthetic records inside the declared domain were used."
COUNTEREXAMPLES = "counterexamples"  # in the user's data folder
_LAW, _OUTCOME = 36, 14  # characters, of the longest id and outcome
NO_PROOF = "Passing these tests is no proof."


def show_verdicts(console: Page, verdicts: Sequence[Verdict], *, everything: bool) -> None:
    """A line per law, with its subjects counted; a line per broken subject; or every verdict.

    Laws that are reported in several parts get a line in each.
    """

    def show_row(*cells: str) -> None:
        law, outcome, subjects, detail = cells
        end = f": {detail}" if detail else ""
        console.print(f"{law:<{_LAW}} {outcome:<{_OUTCOME}} {subjects}{end}")

    for law in dict.fromkeys(verdict.law for verdict in verdicts):
        of_law = [verdict for verdict in verdicts if verdict.law == law]
        for verdict in of_law:
            if verdict.failed or verdict.untested or everything:
                show_row(law.id, str(verdict.outcome), verdict.subject, verdict.detail)
        passed = [verdict for verdict in of_law if verdict.outcome is Outcome.PASSED]
        inapplicable = [verdict for verdict in of_law if verdict.outcome is Outcome.NOT_APPLICABLE]
        if passed and not everything:
            summary = passed[0].detail if len(passed) == 1 else ""
            show_row(law.id, "passed", str(len(passed)), summary)
        if inapplicable and not everything:
            reasons = "; ".join(dict.fromkeys(verdict.detail for verdict in inapplicable))
            show_row(law.id, "not applicable", str(len(inapplicable)), reasons)


def show_findings(console: Page, findings: Sequence[Finding]) -> None:
    """A line per attacked claim; nothing if there is none."""
    if not findings:
        return
    conditional = any(finding.outside is not None for finding in findings)
    headings = ["attacked", "pairs", "worst ratio", "verdict"]
    if conditional:
        headings.append("outside its assumptions")
    table = columns(*headings)
    for finding in findings:
        outside = "" if finding.outside is None else f"{finding.outside:.4g}"
        worst = f"{finding.worst:.4g}" if finding.pairs else ""
        row = [finding.name, str(finding.pairs), worst, _verdict(finding)]
        table.add_row(*row, *([outside] if conditional else []))
    console.print(table)


def _verdict(finding: Finding) -> str:
    if finding.broken:
        pair = finding.counterexample
        return f"BROKEN: {pair.describe()}" if pair is not None else "BROKEN"
    if finding.fallback_broken:
        return "BROKEN: 0 is not covered"
    if finding.failures and finding.case.learner.total:
        return f"NOT TOTAL: {finding.failure}"
    return f"not attacked: {finding.reason}" if finding.reason else "not broken"


def failed(finding: Finding) -> bool:
    """Whether an attack found something wrong."""
    # a learner that calls itself total must answer for all records of its domain
    not_total = bool(finding.failures) and finding.case.learner.total
    return finding.broken or finding.fallback_broken or not_total


def keep(findings: Sequence[Finding], registry: Registry, folder: Path | None) -> list[Path]:
    """Remember the attacks, and save the counterexamples of broken claims; their files."""
    try:
        record(findings, registry, datetime.datetime.now(datetime.UTC).date())
    except AttackRecordError as error:
        note(str(error))
    # a pair that refutes nothing is no counterexample, and gets no file
    broken = [f for f in findings if f.broken and f.counterexample is not None]
    folder = folder or data_folder() / COUNTEREXAMPLES
    saved = []
    for number, finding in enumerate(broken, start=1):
        assert finding.counterexample is not None
        folder.mkdir(parents=True, exist_ok=True)
        stem = re.sub(r"[^A-Za-z0-9]+", "-", finding.name).strip("-")
        path = folder / f"{number:02d}-{stem[:80]}.npz"
        finding.counterexample.save(path)
        saved.append(path)
    return saved
