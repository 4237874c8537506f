"""The file of audits next to a spec: what was audited at exactly this plan, and what came of it.

`quickstart.yaml` has `quickstart.audit.json`. It is about synthetic records and public facts only.
An audit counts for the plan whose lock it names; at any other it is not shown. None is ever removed
for a later one that found less.
"""

from __future__ import annotations

import datetime
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dpcore.errors import DpcoreError
from dpcore.published.lock import Lock

if TYPE_CHECKING:
    from dpcore_attacks.audits.run_audit import RunAudit


class AuditFileError(DpcoreError):
    """A file of audits cannot be read or written."""


class AuditedClaim(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One claim: what is claimed, and the least epsilon that was not refuted."""

    claim: str
    finding: str
    epsilon_at_least: float
    claimed_epsilon: float
    refuted: bool


class Audited(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One audit.

    Args:
        plan: SHA-256 of the lock that it was of.
        date: ISO 8601. samples: Of either neighbour. pair: Where the synthetic pair came from.
    """

    plan: str
    date: str
    confidence: float
    samples: int
    pair: str
    claims: tuple[AuditedClaim, ...]

    @property
    def refuted(self) -> bool:
        """Whether the audit refuted any of its claims."""
        return any(claim.refuted for claim in self.claims)

    def describe(self) -> str:
        """`audited: epsilon >= x of claimed y at 95 %, ...`, of the claim it came nearest to."""
        # nearest in ratio: a bound says little until it is compared with what is claimed
        best = max(self.claims, key=lambda c: c.epsilon_at_least / max(c.claimed_epsilon, 1e-300))
        verdict = ": REFUTED" if self.refuted else ""
        return (
            f"audited: epsilon >= {best.epsilon_at_least:.4g} of claimed "
            f"{best.claimed_epsilon:.4g} at {100 * self.confidence:g} % ({best.claim}; "
            f"{self.samples} samples of either of two synthetic neighbours), on "
            f"{self.date}{verdict}"
        )


def audit_path(spec_path: Path) -> Path:
    """Next to the spec: `quickstart.yaml` has `quickstart.audit.json`."""
    return spec_path.with_name(f"{spec_path.stem}.audit.json")


def plan_digest(lock: Lock) -> str:
    """Return what names a priced plan: spec, versions, key, sensitivities and noise."""
    # of the whole lock: another spec, version or noise is another plan, with audits of its own
    return hashlib.sha256(lock.encode()).hexdigest()


def audited(run: RunAudit, lock: Lock, today: datetime.date) -> Audited:
    """Return the entry that a file holds for one audit of the plan that `lock` names."""
    return Audited(
        plan=plan_digest(lock),
        date=today.isoformat(),
        confidence=run.audits[0].confidence,
        samples=run.audits[0].samples,
        pair=run.origin,
        claims=tuple(
            AuditedClaim(
                claim=audit.claim.describe(),
                finding=audit.claim.finding(audit.measured.strength),
                # a curve claims strength 0, and its violation is no epsilon: 0 represents none
                epsilon_at_least=audit.epsilon if audit.claim.claimed > 0 else 0.0,
                claimed_epsilon=audit.claimed_epsilon,
                refuted=audit.broken,
            )
            for audit in run.audits
        ),
    )


def read_audits(path: Path) -> tuple[Audited, ...]:
    """Return all audits of a file, in order; none if there is no file.

    Raises:
        AuditFileError: it is none of these files.
    """
    if not path.exists():
        return ()
    try:
        return msgspec.json.decode(path.read_bytes(), type=tuple[Audited, ...])
    except (OSError, msgspec.MsgspecError) as error:
        raise AuditFileError(f"{path}: cannot be read ({error}); remove it") from None


def of_plan(path: Path, lock: Lock) -> tuple[Audited, ...]:
    """Return the audits in a file that are of exactly this plan, oldest first.

    Raises:
        AuditFileError: as for `read_audits`.
    """
    digest = plan_digest(lock)
    return tuple(audit for audit in read_audits(path) if audit.plan == digest)


def add(path: Path, audited: Audited) -> None:
    """Append an audit; those of other plans are dropped.

    Raises:
        AuditFileError: the file cannot be read or written.
    """
    # a later audit that refutes less does not replace an earlier one of the same plan
    audits: list[Any] = [audit for audit in read_audits(path) if audit.plan == audited.plan]
    text = msgspec.json.format(msgspec.json.encode([*audits, audited]), indent=2)
    # renamed into place, so that no reader meets half a file
    fresh = path.with_suffix(f".{os.getpid()}.tmp")
    try:
        fresh.write_bytes(text + b"\n")
        fresh.replace(path)
    except OSError as error:
        raise AuditFileError(f"{path}: cannot be written ({error.strerror})") from None
