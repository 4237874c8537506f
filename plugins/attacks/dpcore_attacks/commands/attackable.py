"""What `falsify` and `audit` attack: a priced plan, or a refuted claim as printed."""

from __future__ import annotations

from pathlib import Path

import attrs

from dpcore.cli.console import note
from dpcore.errors import NoClaimError, SpecError
from dpcore.publish.lock import Lock, locked
from dpcore.running.plan import Plan
from dpcore.specs.spec import Spec
from dpcore_attacks.attacks.counterexample import Counterexample, load


@attrs.frozen(eq=False)
class Attackable:
    """A plan to attack.

    Args:
        lock: Of the plan; None for a claim as printed, which no run is locked to.
        refusal: Why `dpcore run` refuses it, or empty.
    """

    plan: Plan
    lock: Lock | None
    refusal: str


def attackable(spec: Spec, *, write: bool) -> Attackable:
    """The plan at its lock; where there is no price, what `dpcore reproduce` would price.

    Args:
        write: Whether a new lock is written beside the spec, as `dpcore check` does.

    Raises:
        NoClaimError: there is no claim at all.
    """
    try:
        found = locked(spec, write=write)
    except NoClaimError as refusal:
        try:
            return Attackable(spec.price(reproduce=True), None, str(refusal))
        except (NoClaimError, SpecError):
            raise refusal from None
    if found.note:
        note(found.note)
    return Attackable(found.plan, found.lock, "")


def counterexample(path: Path) -> Counterexample:
    """A saved pair of neighbours.

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
    """How many queries all releases of a plan ask: what a search goes through."""
    return sum(len(one.asks) for one in plan.schedule.releases)
