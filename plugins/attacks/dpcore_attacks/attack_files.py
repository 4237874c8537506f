"""Files of attacks that are handed to `dpcore report`: each must be of exactly the run's plan."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
import msgspec

from dpcore.errors import ReplayError, SpecError, need
from dpcore.published.bounded_reading import read_bytes
from dpcore.published.lock import Lock
from dpcore_attacks.attack_report import AttackReport
from dpcore_attacks.audits.audit_file import Audited, plan_digest

_WRITTEN = "what dpcore audit wrote next to the spec, or what dpcore falsify --json printed"


@attrs.frozen(kw_only=True)
class AttackLine:
    """One line about an attack on exactly the plan of the run.

    Args:
        what: Was attacked. effort: How hard. found: What came of it. date: ISO 8601.
        broken: Whether a claim did not hold.
    """

    what: str
    effort: str
    found: str
    date: str
    broken: bool


def read_attacks(files: Sequence[Path], lock: Lock) -> tuple[AttackLine, ...]:
    """Return every line of files of attacks that are about a locked plan.

    Raises:
        SpecError: a file is missing, something else, or of another plan only.
    """
    # A line about another plan would praise, or blame, a run that no one attacked.
    digest = plan_digest(lock)
    attacks: list[AttackLine] = []
    for path in files:
        lines = list(_lines(path, digest))
        need(
            lines,
            SpecError,
            "attacks on another plan: attack the spec at the run's lock",
            place=str(path),
        )
        attacks += lines
    return tuple(attacks)


def _lines(path: Path, digest: str) -> Iterator[AttackLine]:
    try:
        content = msgspec.json.decode(read_bytes(path), type=tuple[Audited, ...] | AttackReport)
    except FileNotFoundError:
        raise SpecError("no such file", place=str(path)) from None
    # Whatever else the file is: the message names what was expected, and not what it holds.
    except (OSError, ReplayError, msgspec.MsgspecError, RecursionError):
        raise SpecError(f"needs {_WRITTEN}", place=str(path)) from None
    if isinstance(content, AttackReport):
        if content.plan == digest:
            yield from _searched(content)
        return
    for audit in content:
        if audit.plan == digest:
            yield from _audited(audit)


def _audited(audit: Audited) -> Iterator[AttackLine]:
    for claim in audit.claims:
        yield AttackLine(
            what=f"the whole run: {claim.claim}",
            effort=f"{audit.samples} runs of either of two neighbours",
            found=f"{claim.finding} ({100 * audit.confidence:g} % confidence)",
            date=audit.date,
            broken=claim.refuted,
        )


def _searched(report: AttackReport) -> Iterator[AttackLine]:
    for claim in report.attacks:
        outcome = f"moved by at most {claim.worst_ratio or 0.0:.4g} of what is claimed"
        if claim.not_attacked:
            outcome = f"not attacked: {claim.not_attacked}"
        elif claim.failures:
            outcome += f"; {claim.failures} statistics failed"
        yield AttackLine(
            what=f"the bound of {claim.case}, query {claim.query}",
            effort=f"{claim.pairs} pairs of neighbours",
            found=outcome,
            date=report.date,
            broken=claim.broken or claim.fallback_broken,
        )
    # Function releases are attacked by their answers, not by pairs of statistics.
    for answers in report.releases:
        yield AttackLine(
            what=f"answers of {answers.release}",
            effort=f"{answers.transcripts} transcripts of either of two neighbours",
            found="distinguished more often than is claimed" if answers.broken else "not broken",
            date=report.date,
            broken=answers.broken,
        )
