"""What `dpcore falsify --json` writes: what was attacked of exactly one plan, and what came of it.

It is about synthetic records and public facts only, so that it may be shown with what was
published.
"""

import datetime
from collections.abc import Sequence
from typing import Any

import msgspec

from dpcore.published.lock import Lock
from dpcore_attacks.attacks.release_attack import ReleaseFinding
from dpcore_attacks.attacks.result import Finding
from dpcore_attacks.audits.audit_file import plan_digest


class AttackedClaim(msgspec.Struct, frozen=True):
    """One bound: how many neighbours were tried, and how much of the claim they reached.

    Args:
        case, query: What was attacked. not_attacked: Why it was not, or nothing.
        pairs: Neighbours. worst_ratio: Largest movement over claim.
        broken, fallback_broken: Whether the claim was broken. failures: Statistics that failed.
    """

    case: str
    query: str
    not_attacked: str
    pairs: int
    worst_ratio: float | None
    broken: bool
    fallback_broken: bool
    failures: int


class AttackedAnswers(msgspec.Struct, frozen=True):
    """Answers of one function release, asked about two synthetic neighbours."""

    release: str
    transcripts: int
    broken: bool


class AttackReport(msgspec.Struct, frozen=True):
    """One search by `dpcore falsify`, as it is written to a file.

    Args:
        plan: SHA-256 of the attacked plan's lock; None of a claim as printed.
        date: ISO 8601.
    """

    plan: str | None
    date: str
    attacks: tuple[AttackedClaim, ...]
    releases: tuple[AttackedAnswers, ...]


def attack_report(
    findings: Sequence[Finding],
    releases: Sequence[ReleaseFinding],
    lock: Lock | None,
    today: datetime.date,
) -> dict[str, Any]:
    """Return a search as plain data, for JSON."""
    # The keys are those of `AttackReport`, which reads the file back.
    return {
        "plan": None if lock is None else plan_digest(lock),
        "date": today.isoformat(),
        "attacks": [finding.to_dict() for finding in findings],
        "releases": [release.to_dict() for release in releases],
    }
