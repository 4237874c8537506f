"""`verdict`: what `check` and `run` say in at most eight lines of eighty columns.

Lines come in one order, each only where it has something to say: the guarantee, what is published,
what it costs, where it lies, the one warning that matters, and where all of it is reported.

The warning is from public facts and published answers only. Each function words one, or is empty
where it has no cause; the table has them in order, the most serious first.
"""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import numpy as np
from rich.cells import cell_len

from dpcore.claims.plan.plan import Plan
from dpcore.claims.plan.schedule import Scheduled
from dpcore.console.console import note
from dpcore.errors import DpcoreError, below, one_line
from dpcore.guarantee import Guarantee, ReleaseKind, Status, rounded_up
from dpcore.learner import Model, promises
from dpcore.published.lock import Lock
from dpcore.randomness import PublicRandomness
from dpcore.registry.kinds import EVIDENCE
from dpcore.shown import in_bytes, in_digits
from dpcore.specs.spec import Spec

if TYPE_CHECKING:
    from dpcore.ledger.remaining_budget import RemainingBudget
    from dpcore.models.description import Picture
    from dpcore.models.figures import Figures

MOST_LINES, WIDTH = 8, 80
_NAME = 24  # columns of a name


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
        """All of it as JSON-ready data, reported in words with six digits."""
        from dpcore.ledger.remaining_budget import ON_DISK

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


def check_lines(
    spec: Spec, path: Path, plan: Plan, lock: Lock, budgets: Budgets | None
) -> list[str]:
    """What `check` says of a priced plan, in at most eight lines."""
    broken: list[str] = []
    untested: list[str] = []
    for source in spec.registry.known(EVIDENCE):
        with readable_evidence():
            broken += source().broken(plan, spec.registry, path, lock)
            untested += source().untested(plan, spec.registry)
    facts = PublicFacts(
        guarantee=plan.guarantee,
        relative_half_widths=relative_half_widths_of(plan),
        ledger="" if budgets is None or not budgets.warning else brief(budgets.name),
        broken=tuple(broken),
        untested=tuple(untested),
    )
    # The release whose intervals are widest comes first: it decides whether a run is worth its
    # price.
    releases = sorted(
        plan.schedule.releases, key=lambda item: -facts.relative_half_widths[brief(item.name)]
    )
    disk = f", {in_bytes(plan.resources.disk)} of disk" if plan.resources.disk else ""
    costs = [
        f"A run costs about {in_digits(plan.resources.seconds, 2)} s of a processor and "
        f"{in_bytes(plan.resources.memory)} of memory{disk}."
    ]
    if budgets is not None:
        balance = budgets.after.brief()
        costs.insert(0, f"Ledger {brief(budgets.name)} keeps {balance} after it.")
    return assemble(
        plan.guarantee,
        _planned_lines(releases, plan.randomness or PublicRandomness(0)),
        " releases",
        costs,
        "",
        first_warning(facts),
        f"Next: `dpcore run {argument_of(path, 'SPEC', 38)}`; --explain prints all.",
    )


def assemble(
    guarantee: Guarantee,
    content: Sequence[str],
    note: str,
    costs: Sequence[str],
    place: str,
    warning: str,
    last: str,
) -> list[str]:
    """All lines in their order; what is published has the room that others leave."""
    above = _guarantee_lines(guarantee)
    below = [place, f"Warning: {warning}." if warning else "", last]
    below = [line for line in below if line]
    # A line of costs gives way before the guarantee, the warning or what is published does.
    costs = costs[: max(0, MOST_LINES - len(above) - len(below) - 1)]
    room = MOST_LINES - len(above) - len(costs) - len(below)
    surplus = len(content) - room
    if surplus > 0 and room > 1:
        content = [*content[: room - 1], f"... and {surplus + 1} more{note}"]
    elif surplus > 0:
        suffix = f"; and {surplus} more"
        content = [cut(content[0], WIDTH - len(suffix)) + suffix]
    return [*above, *map(cut, (*content, *costs, *below))]


def _guarantee_lines(guarantee: Guarantee) -> list[str]:
    """The claim in a sentence, whole, and what it is conditional on."""
    if guarantee.status is Status.NONE:
        return [cut(guarantee.claim())]
    claim = f"({rounded_up(guarantee.epsilon)}, {rounded_up(guarantee.delta)})"
    sentence = (
        f"{str(guarantee.status).capitalize()}: {claim}-differentially private, for datasets that "
        f"differ {guarantee.adjacency.describe()}."
    )
    # Never cut: a claim without its whole relation would be a stronger one.
    lines = textwrap.wrap(sentence, WIDTH)
    if guarantee.basis.assumptions:
        texts = "; ".join(f"{entry.name}: {entry.text}" for entry in guarantee.basis.assumptions)
        lines.append(cut(f"CONDITIONAL on {texts}"))
    return lines


def _planned_lines(releases: Sequence[Scheduled], randomness: PublicRandomness) -> list[str]:
    """What will be published, with the width of its intervals where public facts say it."""
    forecasts = {entry.name: entry.forecast(randomness) for entry in releases}
    if len(releases) > 1:
        return [
            f"{brief(entry.name)}: {'; '.join(forecasts[entry.name]) or describe_kind(entry)}"
            for entry in releases
        ]
    (entry,) = releases
    learner = brief(type(entry.learner).__name__)
    return [f"Publishes {describe_kind(entry)} ({learner}).", *forecasts[entry.name]]


def describe_kind(scheduled: Scheduled) -> str:
    if scheduled.publishes is ReleaseKind.STATISTICS:
        return "statistics"
    if scheduled.publishes in (ReleaseKind.PREDICTIONS, ReleaseKind.FUNCTION):
        return f"predictions of {brief(scheduled.part.target)}"
    if promises(scheduled.learner, Model):
        return f"a model of {brief(scheduled.part.target)}"
    return "an object of its own kind"


def relative_half_widths_of(plan: Plan) -> dict[str, float]:
    randomness = plan.randomness or PublicRandomness(0)
    return {
        brief(entry.name): entry.relative_half_width(randomness) for entry in plan.schedule.releases
    }


def brief(name: str) -> str:
    return cut(name, _NAME)


def argument_of(path: Path, placeholder: str, width: int) -> str:
    """A path that can be typed as it is printed, or what represents it."""
    text = str(path)
    return text if cell_len(text) <= width and one_line(text) == text else placeholder


def cut(text: str, width: int = WIDTH) -> str:
    """Printable text of one line and at most so many columns, cut between words where it can be."""
    text = one_line(text)
    if cell_len(text) <= width:
        return text
    while cell_len(text) > width - 4:
        text = text[:-1]
    words = text.rpartition(" ")[0]
    return f"{words if cell_len(words) > width // 2 else text.rstrip()} ..."


@attrs.frozen(kw_only=True)
class PublicFacts:
    """What warnings may look at: nothing of it was computed from records without noise.

    Args:
        guarantee: As stated.
        broken, untested: Bounds that attacks broke, and those that none has been tried on.
        relative_half_widths: By release, its widest interval as a proportion of the range of its
            number.
        tables, pictures: What was published, by release.
        ledger: The name of one of which a run takes most of what is left; or empty.
    """

    guarantee: Guarantee
    broken: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
    relative_half_widths: Mapping[str, float] = attrs.field(factory=dict)
    tables: Mapping[str, Figures] = attrs.field(factory=dict)
    pictures: Mapping[str, tuple[Picture, ...]] = attrs.field(factory=dict)
    ledger: str = ""


def broken_bound(facts: PublicFacts) -> str:
    """An attack moved a statistic farther than its bound says: the claim does not hold."""
    verb = "was" if len(facts.broken) == 1 else "were"
    return f"{_listing(facts.broken)} {verb} BROKEN by an attack" if facts.broken else ""


def worthless_noise(facts: PublicFacts) -> str:
    """A bar is wider than the range that the number can have by declared facts."""
    fractions = {
        name: fraction for name, fraction in facts.relative_half_widths.items() if fraction >= 1
    }
    if not fractions:
        return ""
    name = max(fractions, key=lambda name: fractions[name])
    note = f" (and {len(fractions) - 1} more)" if len(fractions) > 1 else ""
    return (
        f"worthless: the noise of {name}{note} is {in_digits(fractions[name], 2)} times too large "
        f"to "
        f"say anything"
    )


def flat_shapes(facts: PublicFacts) -> str:
    """A straight level line fits between the intervals of every picture of a release."""
    names = [
        name
        for name, pictures in facts.pictures.items()
        if (shapes := [picture for picture in pictures if picture.low is not None])
        and all(map(_is_flat, shapes))
    ]
    return f"no shape of {_listing(names)} is out from its noise" if names else ""


def _is_flat(picture: Picture) -> bool:
    # A picture states both ends or none.
    low, high = np.asarray(picture.low), np.asarray(picture.high)
    return bool(np.all(low.max(axis=1) <= high.min(axis=1)))


def intervals_around_zero(facts: PublicFacts) -> str:
    """Every bar of a table includes 0, and reaches at least as far as its number lies from 0."""
    names = [
        name
        for name, table in facts.tables.items()
        if table.estimate.size
        and np.all((table.low <= 0) & (table.high >= 0))
        and table.kind != "test"  # such numbers have no intervals
    ]
    return f"every bar of {_listing(names)} includes 0" if names else ""


def spent_budget(facts: PublicFacts) -> str:
    """One run takes most of what a ledger has left."""
    return f"a run takes most of what ledger {facts.ledger} has left" if facts.ledger else ""


def accepted_assumption(facts: PublicFacts) -> str:
    """The claim rests on what no one proved."""
    names = [assumption.name for assumption in facts.guarantee.basis.assumptions]
    return f"nothing tests the accepted assumption {_listing(names)}" if names else ""


def untested_bound(facts: PublicFacts) -> str:
    """No attack has been tried on a bound at the versions in use."""
    names = _listing(facts.untested) if facts.untested else ""
    return f"untested at these versions: {names} (`dpcore test`)" if names else ""


WARNINGS: tuple[Callable[[PublicFacts], str], ...] = (
    broken_bound,
    worthless_noise,
    flat_shapes,
    intervals_around_zero,
    spent_budget,
    accepted_assumption,
    untested_bound,
)
"""All warnings, the most serious first."""


def first_warning(facts: PublicFacts) -> str:
    """The most serious warning that has a cause; empty where none has."""
    return next(filter(None, (warn(facts) for warn in WARNINGS)), "")


def _listing(names: Iterable[str]) -> str:
    name, *further = names
    return f"{name} and {len(further)} more" if further else name


@contextlib.contextmanager
def readable_evidence() -> Iterator[None]:
    """Evidence that cannot be read is a note: no guarantee rests on it."""
    try:
        yield
    except DpcoreError as error:
        note(str(error))
