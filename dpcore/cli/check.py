"""`dpcore check SPEC`: the whole guarantee, without opening the data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from dpcore.cli.console import columns, err, guarded, out
from dpcore.conformance.attacks.attack_record import NEVER, AttackRecordError, lookup
from dpcore.conformance.attacks.case import Case
from dpcore.conformance.audits.audit_file import AuditFileError, audit_path, of_plan
from dpcore.errors import below
from dpcore.guarantee import Guarantee
from dpcore.ledger.book import Ledger
from dpcore.publish.lock import Lock, locked
from dpcore.publish.whole_run import ledger_of
from dpcore.running.plan import Plan
from dpcore.spec.spec import Spec, load_spec

if TYPE_CHECKING:
    from rich.console import Console


def check(
    spec: Annotated[Path, typer.Argument(help="A spec file (YAML).", show_default=False)],
    json: Annotated[bool, typer.Option("--json", help="Print the priced plan as JSON.")] = False,
) -> None:
    """State the guarantee of a spec without opening its data, and lock the public coins."""
    with guarded():
        loaded = load_spec(spec)
        found = locked(loaded)
        plan, lock = found.plan, found.lock
        if found.note:
            err().print(f"note: {found.note}", markup=False)
        ledger = ledger_of(loaded)
        charged = {} if ledger is None else {"ledger": _would_be(loaded, ledger, plan)}
        if json:
            told = {**lock.plan, **charged}
            print(msgspec.json.format(msgspec.json.encode(told), indent=2).decode())
        else:
            show_plan(out(), plan.guarantee, lock)
            show_attacks(out(), loaded, plan)
            show_audits(out(), spec, lock)
        if charged and not json:
            left = charged["ledger"]
            out().print(
                f"Ledger {left['name']}: left {left['left']}; after this run {left['after']}.",
                markup=False,
            )


def _would_be(spec: Spec, ledger: Ledger, plan: Plan) -> dict[str, str]:
    """What is left, and what a run would leave; nothing is reserved."""
    with spec.placed(), below("ledger"):
        after = ledger.would_leave(plan.charge())
    return {
        "name": ledger.name,
        "left": ledger.left().describe(),
        "after": after.describe(),
    }


def show_plan(console: Console, guarantee: Guarantee, lock: Lock) -> None:
    """The guarantee in English, and a table of queries, sensitivities and noise."""
    console.print(guarantee.paragraph(), markup=False)
    console.print()
    table = columns("release", "query", "shape", "asks", "distance", "sensitivity", "noise")
    for release, queries in lock.plan["releases"].items():
        for query in queries:
            table.add_row(
                release,
                query["query"],
                "x".join(map(str, query["shape"])),
                str(query["at_most"]),
                query["distance"],
                describe_sensitivity(query["sensitivity"]),
                describe_mechanism(query["mechanism"]),
            )
    console.print(table)


def show_attacks(console: Console, spec: Spec, plan: Plan) -> None:
    """Per release: how hard its bound was attacked at the versions in use, or never."""
    for scheduled in plan.schedule.releases:
        case = Case.of(plan, scheduled)
        try:
            found = lookup(case, spec.registry)
        except AttackRecordError as error:
            err().print(f"note: {error}", markup=False)
            return
        told = NEVER if found is None else found.describe()
        console.print(f"{scheduled.name}, bound {type(case.bound).__name__}: {told}", markup=False)


def show_audits(console: Console, path: Path, lock: Lock) -> None:
    """What audits of exactly this plan found, if there were any."""
    try:
        found = of_plan(audit_path(path), lock)
    except AuditFileError as error:
        err().print(f"note: {error}", markup=False)
        return
    if not found:
        console.print("never audited at this plan", markup=False)
        return
    console.print(found[-1].describe(), markup=False)
    refuted = sum(one.refuted for one in found)
    if len(found) > 1:
        console.print(f"{len(found)} audits of this plan, {refuted} REFUTED it", markup=False)


def describe_sensitivity(sensitivity: float | dict[str, Any]) -> str:
    """A number, or a law's range: `law: 0.01 to 0.4`."""
    if isinstance(sensitivity, dict):
        return f"law: {sensitivity['smallest']:.4g} to {sensitivity['largest']:.4g}"
    return f"{sensitivity:.6g}"


def describe_mechanism(mechanism: dict[str, Any]) -> str:
    """`Gaussian(noise_multiplier=3.73)`."""
    fields = {name: value for name, value in mechanism.items() if name != "class"}
    inner = ", ".join(
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in fields.items()
    )
    return f"{mechanism['class']}({inner})"
