"""What the record of attacks and the files of audits know of a plan, for `dpcore check`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dpcore.publish.lock import Lock
from dpcore.registry.evidence import Evidence
from dpcore.registry.registry import Registry
from dpcore.running.plan import Plan
from dpcore_attacks.attack_record import NEVER, lookup
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.audits.audit_file import audit_path, of_plan


class KnownAttacks(Evidence):
    """Attacks on the bounds of a plan at the versions in use, and audits of exactly this plan."""

    def of_bounds(self, plan: Plan, registry: Registry) -> Iterator[str]:
        """Per release: how hard its bound was attacked, or never."""
        for scheduled in plan.schedule.releases:
            case = Case.of(plan, scheduled)
            attack = lookup(case, registry)
            line = NEVER if attack is None else attack.describe()
            yield f"{scheduled.name}, bound {type(case.bound).__name__}: {line}"

    def of_runs(self, spec: Path, lock: Lock) -> Iterator[str]:
        """The latest audit, and how many refuted the plan."""
        audits = of_plan(audit_path(spec), lock)
        if not audits:
            yield "No audit has been run for this exact plan. `dpcore audit SPEC` runs one."
            return
        yield audits[-1].describe()
        # All audits count, lest a late one that found nothing hides one that refuted.
        if len(audits) > 1:
            refuted = sum(audit.refuted for audit in audits)
            yield f"{len(audits)} audits of this plan, {refuted} REFUTED it"
