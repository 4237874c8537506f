"""What is shown of a priced plan: its guarantee, its noise, what attacks and audits found."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from dpcore.claims.plan.plan import Plan
from dpcore.console.console import columns
from dpcore.console.verdict import readable_evidence
from dpcore.domain.columns import summary
from dpcore.guarantee import Guarantee
from dpcore.published.lock import Lock
from dpcore.published.phrases import (
    describe_mechanism,
    describe_proofs,
    describe_sensitivity,
    shorten_bounds,
)
from dpcore.randomness import PublicRandomness
from dpcore.registry.evidence import Evidence
from dpcore.registry.kinds import EVIDENCE
from dpcore.specs.spec import Spec

if TYPE_CHECKING:
    from dpcore.console.layout import Page


def reading(plan: Plan) -> dict[str, str]:
    """By release, how it reads the records, and what that needs."""
    return {scheduled.name: scheduled.reads.describe() for scheduled in plan.schedule.releases}


def show_plan(console: Page, guarantee: Guarantee, lock: Lock, plan: Plan | None = None) -> None:
    """The guarantee in English, what bounds each query, and a table of them with their noise."""
    sources = [] if plan is None else _describe_sources(guarantee, plan)
    console.print(guarantee.paragraph(4, sources))
    console.print()
    headings = ("release", "query", "shape", "times", "distance", "sensitivity", "noise")
    rows = [
        (
            release,
            query["query"],
            "x".join(map(str, query["shape"])),
            str(query["at_most"]),
            query["distance"],
            describe_sensitivity(query["sensitivity"]),
            describe_mechanism(query["mechanism"]),
        )
        for release, queries in lock.plan["releases"].items()
        for query in queries
    ]
    console.print(columns(*headings, rows=rows))
    # The weights are locked as they stand here: a replay computes none of them.
    for release, queries in lock.plan["releases"].items():
        for query in (query for query in queries if "bands" in query):
            weights = summary(query["bands"])
            console.print(f"{release}: {query['query']} adds its last sums up, times {weights}")


def _describe_sources(guarantee: Guarantee, plan: Plan) -> list[str]:
    """Each query by its name with what bounds it; then the theorems about noise and randomness."""
    schedule, relation = plan.schedule, plan.request.adjacency
    several = len(schedule.releases) > 1
    proofs = [
        f"{entry.name}.{sentence}" if several else sentence
        for entry in schedule.releases
        for sentence in describe_proofs(entry, relation)
    ]
    bounds = {
        planned_query.sensitivity.source
        for entry in schedule.releases
        for planned_query in entry.queries.values()
    }
    theorems = [shorten_bounds(text) for text in guarantee.basis.sources if text not in bounds]
    return [*proofs, *([f"Sources: {'; '.join(theorems)}."] if theorems else [])]


def show_intervals(console: Page, plan: Plan) -> None:
    """How wide the confidence intervals of a run will be, where public facts say it."""
    randomness = plan.randomness or PublicRandomness(0)
    for scheduled in plan.schedule.releases:
        for sentence in scheduled.forecast(randomness):
            console.print(f"{scheduled.name}: {sentence}")


def show_bounds(console: Page, spec: Spec, plan: Plan) -> None:
    """Per release: how hard its bound was attacked at the versions in use, or never."""
    _show_evidence(console, spec, lambda evidence: evidence.of_bounds(plan, spec.registry))


def show_audits(console: Page, spec: Spec, path: Path, lock: Lock) -> None:
    """What audits of exactly this plan found, if there were any."""
    _show_evidence(console, spec, lambda evidence: evidence.of_runs(path, lock))


def _show_evidence(console: Page, spec: Spec, lines: Callable[[Evidence], Iterable[str]]) -> None:
    for source in spec.registry.known(EVIDENCE):
        with readable_evidence():
            for line in lines(source()):
                console.print(line)
