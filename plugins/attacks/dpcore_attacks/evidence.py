"""What the record of attacks and the files of audits know of a plan, for `dpcore check`."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from dpcore import Plan, Registry
from dpcore.published.lock import Lock
from dpcore.registry.evidence import Evidence
from dpcore_attacks.attack_record import NEVER, Attack, lookup
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.audits.audit_file import audit_path, of_plan


def _names(
    plan: Plan, registry: Registry, is_listed: Callable[[Attack | None], bool]
) -> Iterable[str]:
    """Return the names of bounds, each once, by what is known of attacks on them."""
    cases = [Case.of(plan, scheduled) for scheduled in plan.schedule.releases]
    return dict.fromkeys(
        type(case.bound).__name__ for case in cases if is_listed(lookup(case, registry))
    )


class KnownAttacks(Evidence):
    """Attacks on the bounds of a plan at the versions in use, and audits of exactly this plan."""

    def of_bounds(self, plan: Plan, registry: Registry) -> Iterator[str]:
        """Per release: how hard its bound was attacked, or never."""
        for scheduled in plan.schedule.releases:
            case = Case.of(plan, scheduled)
            attack = lookup(case, registry)
            line = NEVER if attack is None else attack.describe()
            yield f"{scheduled.name}, bound {type(case.bound).__name__}: {line}"

    def broken(self, plan: Plan, registry: Registry, spec: Path, lock: Lock) -> Iterator[str]:
        """Bounds that an attack broke, and the plan where an audit refuted it."""
        if any(audit.refuted for audit in of_plan(audit_path(spec), lock)):
            yield "the plan (refuted by an audit)"
        yield from _names(plan, registry, lambda attack: attack is not None and attack.broken)

    def untested(self, plan: Plan, registry: Registry) -> Iterator[str]:
        """Bounds of which no attack is on record."""
        yield from _names(plan, registry, lambda attack: attack is None)

    def of_runs(self, spec: Path, lock: Lock) -> Iterator[str]:
        """Yield the latest audit, and how many refuted the plan."""
        audits = of_plan(audit_path(spec), lock)
        if not audits:
            yield "No audit has been run for this exact plan. `dpcore audit SPEC` runs one."
            return
        yield audits[-1].describe()
        # All audits count, lest a late one that found nothing hides one that refuted.
        if len(audits) > 1:
            refuted = sum(audit.refuted for audit in audits)
            yield f"{len(audits)} audits of this plan, {refuted} REFUTED it"
