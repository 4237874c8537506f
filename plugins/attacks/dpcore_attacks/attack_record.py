"""The record of attacks: what was attacked, how hard, when, and at which version.

Kept in the user's data folder, one JSON file. It is about components and synthetic records only:
nothing of any user's data ever enters it.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dpcore import REPLACE_ONE, Adjacency, DpcoreError, Registry
from dpcore.registry.user_folder import data_folder

if TYPE_CHECKING:
    from dpcore_attacks.attacks.result import Finding
    from dpcore_attacks.attacks.setting import Case


class AttackRecordError(DpcoreError):
    """The record of attacks cannot be read or written."""


class Attack(msgspec.Struct, frozen=True):
    """What is known of attacks on one bound of one learner under one adjacency.

    Args:
        pairs: Neighbouring pairs evaluated, all attacks of this version together.
        worst: Largest ratio of movement to claim.
        date: Day of the latest attack, ISO 8601.
        broken: Whether the claim was broken.
    """

    pairs: int
    worst: float
    date: str
    broken: bool

    def describe(self) -> str:
        """`attacked: N pairs, worst ratio r, on DATE`."""
        verdict = ": BROKEN" if self.broken else ""
        return (
            f"attacked: {self.pairs} pairs, worst ratio {self.worst:.4g}, on {self.date}{verdict}"
        )


NEVER = "not tested yet"


def _record_path() -> Path:
    return data_folder() / "attacks.json"


def _read_record() -> dict[str, Attack]:
    path = _record_path()
    if not path.exists():
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Attack])
    except (OSError, msgspec.MsgspecError) as error:
        raise AttackRecordError(f"{path}: cannot be read ({error}); remove it") from None


def record(findings: Iterable[Finding], registry: Registry, today: datetime.date) -> None:
    """Add what attacks found to the record, under the versions in use.

    Raises:
        AttackRecordError: the file cannot be read or written.
    """
    attacks = _read_record()
    # Counts add up over attacks of one version; a broken claim stays broken.
    for finding in findings:
        if finding.claim is None or not finding.pairs:
            continue
        key = _key(finding.case, finding.case.adjacency, registry)
        before = attacks.get(key, Attack(0, 0.0, "", False))
        attacks[key] = Attack(
            pairs=before.pairs + finding.pairs,
            worst=max(before.worst, finding.worst),
            date=today.isoformat(),
            broken=before.broken or finding.broken or finding.fallback_broken,
        )
    path = _record_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Written next to and moved over: a reader never sees half a file.
        fresh = path.with_suffix(f".{os.getpid()}.tmp")
        fresh.write_bytes(
            msgspec.json.format(msgspec.json.encode(attacks, order="sorted"), indent=2)
        )
        fresh.replace(path)
    except OSError as error:
        raise AttackRecordError(f"{path}: cannot be written ({error.strerror})") from None


def lookup(case: Case, registry: Registry) -> Attack | None:
    """Return what is known of a case's bound at the versions in use, or None.

    A smaller replacement relation falls back to attacks under replace-one, of which it is a part.
    """
    attacks = _read_record()
    # The exact relation first: its own attacks say more than those of a larger one.
    exact = attacks.get(_key(case, case.adjacency, registry))
    if exact is None and case.adjacency <= REPLACE_ONE:
        return attacks.get(_key(case, REPLACE_ONE, registry))
    return exact


def _key(case: Case, adjacency: Adjacency, registry: Registry) -> str:
    learner, bound = type(case.learner), type(case.bound)
    # Versions are part of the key: what was attacked in an older version says nothing of this one.
    parts = [
        f"{cls.__module__}:{cls.__qualname__} {_version(cls, registry)}" for cls in (learner, bound)
    ]
    return " | ".join([*parts, str(adjacency)])


def _version(cls: type[Any], registry: Registry) -> str:
    """Version of the admitted distribution whose module the class is from; of the core; or none."""
    package = cls.__module__.partition(".")[0]
    distributions: Mapping[str, str] = {
        entry.entry_point.partition(".")[0]: entry.distribution
        for entry in registry.entries.values()
    }
    try:
        return metadata.version(distributions.get(package, package))
    except metadata.PackageNotFoundError:
        return "unversioned"
