"""What `falsify` and `audit` attack: a priced plan, or a claim as printed; and the attack."""

from collections.abc import Callable
from pathlib import Path

import attrs

from dpcore import Plan, Spec
from dpcore.errors import NoClaimError, SpecError
from dpcore.published.lock import Lock, locked
from dpcore_attacks.attacks.counterexample import Counterexample, load
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.release_attack import ReleaseFinding, attack_release
from dpcore_attacks.attacks.result import Finding
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort


@attrs.frozen(eq=False)
class Attackable:
    """A plan to attack.

    Args:
        lock: Of the plan; None for a claim as printed, which no run is locked to.
        refusal: Why `dpcore run` refuses it, or empty.
        note: What is to be reported of its lock, or empty.
    """

    plan: Plan
    lock: Lock | None
    refusal: str
    note: str = ""


def attackable(spec: Spec, *, write: bool) -> Attackable:
    """Return the plan at its lock; where there is no price, what `dpcore reproduce` would price.

    Args:
        write: Whether a new lock is written next to the spec, as `dpcore check` does.

    Raises:
        NoClaimError: there is no claim at all.
    """
    try:
        locked_plan = locked(spec, write=write)
    except NoClaimError as refusal:
        # A claim as printed has a price by `reproduce` only, and no run is ever locked to it.
        try:
            return Attackable(spec.price(reproduce=True), None, str(refusal))
        # The first refusal is the one that `dpcore run` gives.
        except (NoClaimError, SpecError):
            raise refusal from None
    return Attackable(locked_plan.plan, locked_plan.lock, "", locked_plan.note)


def counterexample(path: Path) -> Counterexample:
    """Return a saved pair of neighbours.

    Raises:
        SpecError: the file is missing, or is none.
    """
    try:
        return load(path)
    except FileNotFoundError:
        raise SpecError("no such file", place=str(path)) from None
    except (OSError, ValueError, KeyError):
        raise SpecError("needs a counterexample that dpcore saved", place=str(path)) from None


def queries(plan: Plan) -> int:
    """Return how many queries all releases of a plan ask: what a search goes through."""
    return sum(len(release.queries) for release in plan.schedule.releases)


def attack_plan(
    plan: Plan, effort: Effort, seed: int, searched: Callable[[], None]
) -> tuple[list[Finding], list[ReleaseFinding]]:
    """Findings on every bound, and on the answers of every function release."""
    # Every release gets an equal part of the pairs.
    fraction = effort.share(len(plan.schedule.releases))
    findings: list[Finding] = []
    releases: list[ReleaseFinding] = []
    for scheduled in plan.schedule.releases:
        case = Case.of(plan, scheduled)
        case_findings = falsify(case, fraction, seed, refuted=True, searched=searched)
        findings += case_findings
        attacks = (
            attack_release(scheduled.name, case, f, seed, effort.transcripts) for f in case_findings
        )
        releases += [answers for answers in attacks if answers is not None]
    return findings, releases
