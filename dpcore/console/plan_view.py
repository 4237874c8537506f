"""What is shown of a priced plan: its guarantee, its noise, what attacks and audits found."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import numpy as np

from dpcore.claims.plan.plan import Plan
from dpcore.console.console import columns, note
from dpcore.domain.columns import summary
from dpcore.errors import DpcoreError, below, one_line
from dpcore.guarantee import Guarantee
from dpcore.learner import Model, Published
from dpcore.ledger.remaining_budget import ON_DISK, RemainingBudget
from dpcore.models.error_bars import NOISE_OF_FIT, NONE, UNSTATED
from dpcore.models.figures import Figures, Statistics
from dpcore.models.linear import LinearModel
from dpcore.published.folder import MODEL, Run
from dpcore.published.lock import Lock
from dpcore.published.phrases import (
    describe_mechanism,
    describe_proofs,
    describe_sensitivity,
    shorten_bounds,
)
from dpcore.randomness import PublicCoins
from dpcore.registry.evidence import Evidence
from dpcore.registry.kinds import EVIDENCE
from dpcore.specs.spec import Spec

if TYPE_CHECKING:
    from dpcore.console.layout import Page

_SHOWN = 60  # rows of a table; its file holds all


@attrs.frozen
class Budgets:
    """What is left in a ledger before a run and after it.

    Args:
        name: Of the ledger. left, after: Before and after the run.
    """

    name: str
    left: RemainingBudget
    after: RemainingBudget

    @property
    def warning(self) -> str:
        """That the run takes most of what is left; or empty."""
        return self.left.most_taken_by(self.after)

    def plain(self) -> dict[str, str]:
        """All of it as JSON-ready data, told in words with six digits."""
        texts = {"left": self.left.describe(ON_DISK), "after": self.after.describe(ON_DISK)}
        return {"name": self.name, **texts, "warning": self.warning}


def budgets_of(spec: Spec, plan: Plan) -> Budgets | None:
    """What is left in the spec's ledger, and what a run would leave; nothing is reserved.

    Raises:
        SpecError: the spec names a ledger that does not exist.
        BudgetExceededError, LedgerError: it refuses, or cannot be used.
    """
    if spec.ledger is None:
        return None
    from dpcore.runs.run_spec import ledger_of

    ledger = ledger_of(spec)
    assert ledger is not None, "the spec names one"
    # Asks what a run would leave, under the rule by which it would be charged; nothing is written.
    with spec.locate_errors(), below("ledger"):
        after = ledger.remaining_after(plan.charge())
    return Budgets(ledger.name, ledger.left(), after)


def reading(plan: Plan) -> dict[str, str]:
    """By release, how it reads the records, and what that needs."""
    return {scheduled.name: scheduled.reads.describe() for scheduled in plan.schedule.releases}


def show_plan(console: Page, guarantee: Guarantee, lock: Lock, plan: Plan | None = None) -> None:
    """The guarantee in English, what bounds each query, and a table of them with their noise."""
    sources = [] if plan is None else _describe_sources(guarantee, plan)
    console.print(guarantee.paragraph(4, sources))
    console.print()
    headings = ("release", "query", "shape", "asks", "distance", "sensitivity", "noise")
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
    """Each query by its name with what bounds it; then the theorems about noise and coins."""
    schedule, relation = plan.schedule, plan.request.adjacency
    several = len(schedule.releases) > 1
    proofs = [
        f"{entry.name}.{sentence}" if several else sentence
        for entry in schedule.releases
        for sentence in describe_proofs(entry, relation)
    ]
    bounds = {ask.sensitivity.source for entry in schedule.releases for ask in entry.asks.values()}
    theorems = [shorten_bounds(text) for text in guarantee.sources if text not in bounds]
    return [*proofs, *([f"Sources: {'; '.join(theorems)}."] if theorems else [])]


def show_bars(console: Page, plan: Plan) -> None:
    """How wide the error bars of a run will be, where public facts tell it."""
    coins = plan.coins or PublicCoins(0)
    for scheduled in plan.schedule.releases:
        for sentence in scheduled.forecast(coins):
            console.print(f"{scheduled.name}: {sentence}")


def show_noise(console: Page, models: Mapping[str, Published]) -> None:
    """The error bars of models that have some, or why they have none; and what bars cover."""
    sentences = {
        name: model.bars.describe()
        for name, model in models.items()
        if isinstance(model, LinearModel) and model.bars is not UNSTATED
    }
    for name, sentence in sentences.items():
        console.print(f"{name}: {sentence}")
    # The bars cover the noise of the mechanism alone, not the sampling of records: say so once.
    if any(not sentence.startswith(NONE) for sentence in sentences.values()):
        console.print(f"95 % intervals; {NOISE_OF_FIT}.")


def show_figures(console: Page, tables: Mapping[str, Figures]) -> None:
    """Every published table, its numbers with their intervals."""
    for name, figures in tables.items():
        rows = figures.printed_rows()
        console.print(columns(*figures, title=name, rows=rows[:_SHOWN]))
        if len(rows) > _SHOWN:
            console.print(f"... {len(rows)} rows in all, in {name}.csv")
        console.print(f"{figures.bars}.")


def show_objects(console: Page, outcome: Run) -> None:
    """What was published that is neither model nor tables, and the titles of all pictures."""
    # As published: an object could tell other arrays now than those that were compared.
    arrays = np.load(io.BytesIO(outcome.files[MODEL]))
    for name, model in outcome.models.items():
        if not isinstance(model, Model | Statistics):
            keys = [key for key in arrays if key.startswith(f"{name}.")]
            sizes = ", ".join(f"{key.removeprefix(f'{name}.')} {arrays[key].shape}" for key in keys)
            line = one_line(f"{name}: {type(model).__name__}: {sizes}")
            console.print(line)
    for name, description in outcome.descriptions.items():
        if description.pictures:
            titles = "; ".join(picture.title for picture in description.pictures)
            console.print(f"{name}: `dpcore report` draws {one_line(titles)}")


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


@contextlib.contextmanager
def readable_evidence() -> Iterator[None]:
    """Evidence that cannot be read is a note: no guarantee rests on it."""
    try:
        yield
    except DpcoreError as error:
        note(str(error))
