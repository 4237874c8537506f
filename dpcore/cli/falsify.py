"""`dpcore falsify SPEC`: attack the bounds that a spec's guarantee rests on."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from dpcore.cli.attackable import attackable, counterexample
from dpcore.cli.console import guarded, out
from dpcore.cli.efforts import EffortOption, SecondsOption
from dpcore.cli.verdicts import NO_PROOF, SYNTHETIC, failed, keep, show_findings
from dpcore.conformance.attacks.case import Case
from dpcore.conformance.attacks.falsifier import Finding, falsify
from dpcore.conformance.attacks.movement import ALLOWANCE
from dpcore.conformance.attacks.release_attack import ReleaseFinding, attack_release
from dpcore.conformance.effort import Effort
from dpcore.errors import SpecError
from dpcore.spec.spec import Spec, load_spec


def falsify_spec(
    spec: Annotated[Path, typer.Argument(help="A spec file (YAML).", show_default=False)],
    effort: EffortOption = 1.0,
    seed: Annotated[int, typer.Option(help="Of the search.")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    save: Annotated[
        Path | None,
        typer.Option(help="Where counterexamples go; the user's data folder if left out."),
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(help="Evaluate this saved counterexample instead of searching.")
    ] = None,
    seconds: SecondsOption = None,
) -> None:
    """Search for neighbours that break the bounds of a spec: exit code 1 if any is found.

    The search uses the spec's domain, adjacency, part and locked coins, and made-up records; the
    spec's data is not opened. What is refuted is attacked as printed. Of a function release the
    answers are attacked too, at the worst neighbours found.
    """
    with guarded():
        loaded = load_spec(spec)
        if replay is not None:
            _replay(loaded, replay)
            return
        findings, releases = _attack(loaded, Effort().times(effort), seed)
        saved = keep(findings, loaded.registry, save)
        if json:
            found = {
                "attacks": [finding.to_dict() for finding in findings],
                "releases": [release.to_dict() for release in releases],
                "counterexamples": [str(path) for path in saved],
            }
            print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
        else:
            console = out()
            show_findings(console, findings)
            for release in releases:
                verdict = "BROKEN" if release.broken else "stands so far"
                answers = f"answers of {release.release} ({release.mechanism}): {verdict}"
                console.print(f"{answers}: {release.breach.describe()}", markup=False)
            for path in saved:
                console.print(f"counterexample: {path}", markup=False)
            console.print(f"{SYNTHETIC} {NO_PROOF}", markup=False)
        if any(failed(finding) for finding in findings) or any(r.broken for r in releases):
            raise typer.Exit(1)


def _attack(spec: Spec, effort: Effort, seed: int) -> tuple[list[Finding], list[ReleaseFinding]]:
    """Findings on every bound, and on the answers of every function release."""
    plan = attackable(spec, write=False).plan
    share = effort.share(len(plan.schedule.releases))
    findings: list[Finding] = []
    releases: list[ReleaseFinding] = []
    for scheduled in plan.schedule.releases:
        case = Case.of(plan, scheduled)
        found = falsify(case, share, seed, refuted=True)
        findings += found
        asked = (attack_release(scheduled.name, case, f, seed, effort.transcripts) for f in found)
        releases += [answers for answers in asked if answers is not None]
    return findings, releases


def _replay(spec: Spec, saved: Path) -> None:
    """Print the ratio of one saved pair; exit code 1 if it breaks the claim."""
    found = counterexample(saved)
    plan = attackable(spec, write=False).plan
    for scheduled in plan.schedule.releases:
        case = Case.of(plan, scheduled)
        try:
            shot = found.replay(case)
        except ValueError:
            continue
        ratio = "no statistic" if shot.ratio is None else f"{shot.ratio:.6g}"
        out().print(f"{case.name}: {found.query}: movement over claim {ratio}", markup=False)
        if shot.ratio is not None and shot.ratio > 1 + ALLOWANCE and shot.inside is not False:
            raise typer.Exit(1)
        return
    raise SpecError(f"the spec makes no claim about a query {found.query!r}", place=str(saved))
