"""What `dpcore falsify` finds out about a spec, and shows."""

import datetime
from pathlib import Path

from dpcore.console.console import SlowProgress, note, out, show_json
from dpcore.errors import SpecError
from dpcore.specs.spec import Spec
from dpcore_attacks.attack_report import attack_report
from dpcore_attacks.attacks.movement import ALLOWANCE
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.commands.verdicts_view import NO_PROOF, SYNTHETIC, failed, keep, show_findings
from dpcore_attacks.effort import Effort
from dpcore_attacks.plan_attack import attack_plan, attackable, counterexample, queries


def attacked(spec: Spec, effort: float, seed: int, save: Path | None, *, json: bool) -> bool:
    """Attack every bound, print and keep what was found; whether anything is broken."""
    with SlowProgress(None, "pricing") as bar:
        target = attackable(spec, write=False)
        note(target.note)
        bar.advance(0, queries(target.plan), "attacking queries")
        findings, releases = attack_plan(target.plan, Effort().times(effort), seed, bar.step)
    saved = keep(findings, spec.registry, save)
    if json:
        today = datetime.datetime.now(datetime.UTC).date()
        report = attack_report(findings, releases, target.lock, today)
        show_json({**report, "counterexamples": [str(path) for path in saved]})
    else:
        console = out()
        show_findings(console, findings)
        for release in releases:
            verdict = "BROKEN" if release.broken else "not broken"
            answers = f"answers of {release.release} ({release.mechanism}): {verdict}"
            console.print(f"{answers}: {release.breach.describe()}")
        for path in saved:
            console.print(f"counterexample: {path}")
        console.print(f"{SYNTHETIC} {NO_PROOF}")
    return any(failed(finding) for finding in findings) or any(r.broken for r in releases)


def replayed(spec: Spec, saved: Path) -> bool:
    """Print the ratio of one saved pair; whether it breaks the claim.

    Raises:
        SpecError: it is no pair, or about a query of another spec.
    """
    example = counterexample(saved)
    plan = attackable(spec, write=False).plan
    for scheduled in plan.schedule.releases:
        case = Case.of(plan, scheduled)
        try:
            # a file names its query and not its release: the first release that asks it is meant
            shot = example.replay(case)
        except ValueError:
            continue
        ratio = "no statistic" if shot.ratio is None else f"{shot.ratio:.6g}"
        out().print(f"{case.name}: {example.query}: movement over claim {ratio}")
        broken = shot.ratio is not None and shot.ratio > 1 + ALLOWANCE
        # outside its assumptions a claim cannot be broken
        return broken and shot.inside is not False
    raise SpecError(f"the spec makes no claim about a query {example.query!r}", place=str(saved))
