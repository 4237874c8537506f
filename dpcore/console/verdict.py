"""`verdict`: what `check` and `run` say in at most eight lines of eighty columns.

Lines come in one order, each only where it has something to say: the guarantee, what is published,
what it costs, where it lies, the one warning that matters, and where all of it is told.

The warning is from public facts and published answers alone. Each function words one, or is empty
where it has no cause; the table has them in order, the most serious first.
"""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import attrs
import numpy as np
from rich.cells import cell_len

from dpcore.claims.plan.plan import Plan
from dpcore.claims.plan.schedule import Scheduled
from dpcore.console.offers import offers
from dpcore.console.plan_view import Budgets, readable_evidence
from dpcore.errors import one_line
from dpcore.guarantee import Guarantee, ReleaseKind, Status, rounded_up
from dpcore.learner import Model, promises
from dpcore.models.description import Picture
from dpcore.models.error_bars import NoBars
from dpcore.models.figures import NOT_STATED, Figures
from dpcore.models.linear import LinearModel
from dpcore.models.predictions import Predictions
from dpcore.published.folder import Run, tables_of
from dpcore.published.lock import Lock
from dpcore.published.paid_metrics import paid, plan_of
from dpcore.randomness import PublicCoins
from dpcore.registry.kinds import EVIDENCE
from dpcore.shown import NO_NUMBER, in_bytes, in_digits, interval_cells
from dpcore.specs.spec import Spec

MOST_LINES, WIDTH = 8, 80
_NAME = 24  # columns of a name


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
        bar_shares=_bar_shares(plan),
        ledger="" if budgets is None or not budgets.warning else _brief(budgets.name),
        broken=tuple(broken),
        untested=tuple(untested),
    )
    # The release whose bars are widest comes first: it decides whether a run is worth its price.
    releases = sorted(plan.schedule.releases, key=lambda item: -facts.bar_shares[_brief(item.name)])
    disk = f", {in_bytes(plan.resources.disk)} of disk" if plan.resources.disk else ""
    costs = [
        f"A run costs about {in_digits(plan.resources.seconds, 2)} s of a processor and "
        f"{in_bytes(plan.resources.memory)} of memory{disk}."
    ]
    if budgets is not None:
        left = budgets.after.brief()
        costs.insert(0, f"Ledger {_brief(budgets.name)} keeps {left} after it.")
    return _assemble(
        plan.guarantee,
        _planned_lines(releases, plan.coins or PublicCoins(0)),
        " releases",
        costs,
        "",
        first_warning(facts),
        f"Next: `dpcore run {_argument(path, 'SPEC', 38)}`; --explain prints all.",
    )


def run_lines(run: Run, *, is_rehearsal: bool) -> list[str]:
    """What `run` says of what it published, in at most eight lines."""
    plan, recorded = plan_of(run), run.guarantee.recorded
    facts = PublicFacts(
        guarantee=run.guarantee,
        bar_shares=_bar_shares(plan),
        tables={_brief(name): table for name, table in run.tables.items()},
        pictures={_brief(name): entry.pictures for name, entry in run.descriptions.items()},
    )
    groups = tables_of(run.models, run.descriptions)
    objects = _describe_objects(run, plan, groups)
    if len(groups) == 1:
        ((name, group),) = groups.items()
        # What is no table is said first: its tables describe it.
        content = [*objects.get(name, ()), *_rows(group)]
        if name in objects:
            learner = type(plan.schedule.named(name).learner).__name__
            content[0] = f"Published {content[0]} ({_brief(learner)})."
        more = f" rows in {_brief(name)}{'' if '' in group else '.*'}.csv"
    else:
        content = [
            f"{_brief(name)}: {'; '.join(objects.get(name, ())) or _first_of(group, name)}"
            for name, group in groups.items()
        ]
        more = " releases"
    left = "" if recorded is None else f"Ledger {_brief(recorded.ledger)} keeps {recorded.left}."
    # A command of a plugin is advised only where it is installed.
    offer = offers().get("report")
    is_offered = offer is not None and offer.is_installed
    report = f"`dpcore report {_argument(run.folder, 'RUN', 36)}`; " if is_offered else ""
    return _assemble(
        run.guarantee,
        content,
        more,
        [left] if left else [],
        # A path is known by its ends: where it is too long its middle is left out.
        one_line(f"{'Rehearsed' if is_rehearsal else 'Published'} in {run.kept}", WIDTH),
        first_warning(facts),
        f"Next: {report}`check --explain`.",
    )


def _assemble(
    guarantee: Guarantee,
    content: Sequence[str],
    more: str,
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
        content = [*content[: room - 1], f"... and {surplus + 1} more{more}"]
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
    if guarantee.assumptions:
        texts = "; ".join(f"{entry.name}: {entry.text}" for entry in guarantee.assumptions)
        lines.append(cut(f"CONDITIONAL on {texts}"))
    return lines


def _planned_lines(releases: Sequence[Scheduled], coins: PublicCoins) -> list[str]:
    """What will be published, with the width of its bars where public facts tell it."""
    forecasts = {entry.name: entry.forecast(coins) for entry in releases}
    if len(releases) > 1:
        return [
            f"{_brief(entry.name)}: {'; '.join(forecasts[entry.name]) or _describe_kind(entry)}"
            for entry in releases
        ]
    (entry,) = releases
    learner = _brief(type(entry.learner).__name__)
    return [f"Publishes {_describe_kind(entry)} ({learner}).", *forecasts[entry.name]]


def _describe_kind(scheduled: Scheduled) -> str:
    if scheduled.publishes is ReleaseKind.STATISTICS:
        return "statistics"
    if scheduled.publishes in (ReleaseKind.PREDICTIONS, ReleaseKind.FUNCTION):
        return f"predictions of {_brief(scheduled.part.target)}"
    if promises(scheduled.learner, Model):
        return f"a model of {_brief(scheduled.part.target)}"
    return "an object of its own kind"


def _describe_objects(
    run: Run, plan: Plan, groups: Mapping[str, Mapping[str, Figures]]
) -> dict[str, list[str]]:
    """Of each release that is more than tables: what it is, and how it scored where that is known.

    An evaluation by the operator is told to whoever ran it, and said to be covered by nothing.
    """
    scores: dict[str, list[str]] = {}
    for metric in paid(run, plan):
        value, low, high = interval_cells(metric.value, metric.low, metric.high)
        text = f"covered: {metric.metric} {value} (95 %: {low} to {high})"
        scores.setdefault(metric.release, []).append(text)
    for name, metrics in run.operator.get("evaluation", {}).items():
        texts = [
            f"{metric} {in_digits(errors['private'])} (a constant: {in_digits(errors['constant'])})"
            for metric, errors in metrics.items()
        ]
        # The mark comes first: what is cut off is never it.
        scores.setdefault(name, []).append(f"for you alone, not covered: {', '.join(texts)}")
    descriptions = {}
    for name, model in run.models.items():
        scheduled = plan.schedule.named(name)
        parts = scores.get(name, [])
        if isinstance(model, LinearModel) and not isinstance(model.bars, NoBars):
            parts = [*parts, f"{model.bars.describe()} (95 %, noise only)"]
        elif isinstance(model, LinearModel) and groups[name]:
            parts = [*parts, model.bars.describe()]
        pictures = run.descriptions[name].pictures if name in run.descriptions else ()
        # A model's score says more of it than its pictures' titles do.
        parts = parts or [", ".join(picture.title for picture in pictures)]
        kind = (
            f"predictions at {len(model.values)} points"
            if isinstance(model, Predictions)
            else _describe_kind(scheduled)
        )
        # Neither evaluated on a hold-out, nor by a release of its own.
        is_scored = name in scores or any(e.release.of == name for e in plan.schedule.releases)
        kind += ", no score was bought" if isinstance(model, Model) and not is_scored else ""
        if scheduled.publishes is not ReleaseKind.STATISTICS or any(parts):
            descriptions[name] = [kind, *filter(None, parts)]
    return descriptions


def _rows(group: Mapping[str, Figures]) -> list[str]:
    """Every number of a release's tables with its bar, a line each."""
    lines = []
    for name, table in group.items():
        width = len(table.about)
        for row in table.printed_rows():
            estimate, low, high = row[width : width + 3]
            # Of the population both ends, or once that they say nothing.
            ends = dict.fromkeys(row[width + 3 : width + 5] if table.population else ())
            wider = f"; population: {' to '.join(ends)}" if ends else ""
            bar = (
                f"{100 * table.level:g} %: {low} to {high}{wider}"
                if low != NOT_STATED
                else f"its bar is {low}"
            )
            # A text says what it is, a number only beside the name of its column.
            about = " ".join(
                [
                    *filter(None, [name]),
                    *(
                        text if isinstance(cells[0], str) else f"{column} {text}"
                        for (column, cells), text in zip(table.about.items(), row, strict=False)
                        if text != NO_NUMBER
                    ),
                ]
            )
            lines.append(f"{about} = {estimate} ({bar})" if about else f"{estimate} ({bar})")
    return lines


def _first_of(group: Mapping[str, Figures], name: str) -> str:
    """The first row of a release's tables and how many there are besides, beside its name."""
    rows = _rows(group)
    more = f"; and {len(rows) - 1} more" if len(rows) > 1 else ""
    room = WIDTH - cell_len(_brief(name)) - len(more) - 2
    return cut(rows[0], room) + more if rows else "an empty table"


def _bar_shares(plan: Plan) -> dict[str, float]:
    coins = plan.coins or PublicCoins(0)
    return {_brief(entry.name): entry.bar_share(coins) for entry in plan.schedule.releases}


def _brief(name: str) -> str:
    return cut(name, _NAME)


def _argument(path: Path, placeholder: str, width: int) -> str:
    """A path that can be typed as it is printed, or what stands for it."""
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
        bar_shares: By release, its widest bar as a share of the range of its number.
        tables, pictures: What was published, by release.
        ledger: The name of one of which a run takes most of what is left; or empty.
    """

    guarantee: Guarantee
    broken: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
    bar_shares: Mapping[str, float] = attrs.field(factory=dict)
    tables: Mapping[str, Figures] = attrs.field(factory=dict)
    pictures: Mapping[str, tuple[Picture, ...]] = attrs.field(factory=dict)
    ledger: str = ""


def broken_bound(facts: PublicFacts) -> str:
    """An attack moved a statistic farther than its bound says: the claim does not hold."""
    verb = "was" if len(facts.broken) == 1 else "were"
    return f"{_listing(facts.broken)} {verb} BROKEN by an attack" if facts.broken else ""


def worthless_noise(facts: PublicFacts) -> str:
    """A bar is wider than the range that the number can have by declared facts."""
    shares = {name: share for name, share in facts.bar_shares.items() if share >= 1}
    if not shares:
        return ""
    name = max(shares, key=lambda name: shares[name])
    more = f" (and {len(shares) - 1} more)" if len(shares) > 1 else ""
    return (
        f"worthless: the noise of {name}{more} is {in_digits(shares[name], 2)} times too large to "
        f"tell anything"
    )


def flat_shapes(facts: PublicFacts) -> str:
    """A straight level line fits between the bars of every picture of a release."""
    names = [
        name
        for name, pictures in facts.pictures.items()
        if (shapes := [picture for picture in pictures if picture.low is not None])
        and all(map(_is_flat, shapes))
    ]
    return f"no shape of {_listing(names)} stands out from its noise" if names else ""


def _is_flat(picture: Picture) -> bool:
    # A picture states both ends or none.
    low, high = np.asarray(picture.low), np.asarray(picture.high)
    return bool(np.all(low.max(axis=1) <= high.min(axis=1)))


def bars_around_zero(facts: PublicFacts) -> str:
    """Every bar of a table includes 0, and reaches at least as far as its number lies from 0."""
    names = [
        name
        for name, table in facts.tables.items()
        if table.estimate.size
        and np.all((table.low <= 0) & (table.high >= 0))
        and table.kind != "test"  # such numbers have no bars
    ]
    return f"every bar of {_listing(names)} includes 0" if names else ""


def spent_budget(facts: PublicFacts) -> str:
    """One run takes most of what a ledger has left."""
    return f"a run takes most of what ledger {facts.ledger} has left" if facts.ledger else ""


def accepted_assumption(facts: PublicFacts) -> str:
    """The claim rests on what nobody proved."""
    names = [assumption.name for assumption in facts.guarantee.assumptions]
    return f"nothing tests the accepted assumption {_listing(names)}" if names else ""


def untested_bound(facts: PublicFacts) -> str:
    """No attack has been tried on a bound at the versions in use."""
    names = _listing(facts.untested) if facts.untested else ""
    return f"untested at these versions: {names} (`dpcore test`)" if names else ""


WARNINGS: tuple[Callable[[PublicFacts], str], ...] = (
    broken_bound,
    worthless_noise,
    flat_shapes,
    bars_around_zero,
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
