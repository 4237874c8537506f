"""`run_view`: what `run` says of what it published, in at most eight lines or at length."""

import io
from collections.abc import Mapping

import numpy as np
from rich.cells import cell_len

from dpcore.claims.plan.plan import Plan
from dpcore.console.console import columns
from dpcore.console.layout import Page
from dpcore.console.offers import offers
from dpcore.console.verdict import (
    WIDTH,
    PublicFacts,
    argument_of,
    assemble,
    brief,
    cut,
    describe_kind,
    first_warning,
    relative_half_widths_of,
)
from dpcore.errors import one_line
from dpcore.guarantee import ReleaseKind
from dpcore.learner import Model, Published
from dpcore.models.figures import NOT_STATED, Figures, Statistics
from dpcore.published.folder import MODEL, Run, paid, tables_of
from dpcore.shown import NO_NUMBER, in_digits, interval_cells

_SHOWN = 60  # rows of a table; its file holds all


def run_lines(run: Run, *, is_rehearsal: bool) -> list[str]:
    """What `run` says of what it published, in at most eight lines."""
    plan, recorded = run.plan, run.guarantee.provenance.recorded
    facts = PublicFacts(
        guarantee=run.guarantee,
        relative_half_widths=relative_half_widths_of(plan),
        tables={brief(name): table for name, table in run.tables.items()},
        pictures={brief(name): entry.pictures for name, entry in run.descriptions.items()},
    )
    groups = tables_of(run.models, run.descriptions)
    objects = _describe_objects(run, plan, groups)
    if len(groups) == 1:
        ((name, group),) = groups.items()
        # What is no table is said first: its tables describe it.
        content = [*objects.get(name, ()), *_rows(group)]
        if name in objects:
            learner = type(plan.schedule.find_release(name).learner).__name__
            content[0] = f"Published {content[0]} ({brief(learner)})."
        noun = f" rows in {brief(name)}{'' if '' in group else '.*'}.csv"
    else:
        content = [
            f"{brief(name)}: {'; '.join(objects.get(name, ())) or _first_of(group, name)}"
            for name, group in groups.items()
        ]
        noun = " releases"
    balance = "" if recorded is None else f"Ledger {brief(recorded.ledger)} keeps {recorded.left}."
    # A command of a plugin is advised only where it is installed.
    offer = offers().get("report")
    is_offered = offer is not None and offer.is_installed
    report = f"`dpcore report {argument_of(run.folder, 'RUN', 36)}`; " if is_offered else ""
    return assemble(
        run.guarantee,
        content,
        noun,
        [balance] if balance else [],
        # A path is known by its ends: where it is too long its middle is left out.
        one_line(f"{'Rehearsed' if is_rehearsal else 'Published'} in {run.kept}", WIDTH),
        first_warning(facts),
        f"Next: {report}`check --explain`.",
    )


def _describe_objects(
    run: Run, plan: Plan, groups: Mapping[str, Mapping[str, Figures]]
) -> dict[str, list[str]]:
    """Of each release that is more than tables: what it is, and how it scored where that is known.

    An evaluation by the operator is given to anyone who ran it, and said to be covered by nothing.
    """
    scores: dict[str, list[str]] = {}
    for metric in paid(run):
        value, low, high = interval_cells(metric.value, metric.low, metric.high)
        text = f"covered: {metric.metric} {value} (95 %: {low} to {high})"
        scores.setdefault(metric.release, []).append(text)
    for name, metrics in run.operator.get("evaluation", {}).items():
        texts = [
            f"{metric} {in_digits(errors['private'])} (a constant: {in_digits(errors['constant'])})"
            for metric, errors in metrics.items()
        ]
        # The mark comes first: what is cut off is never it.
        scores.setdefault(name, []).append(f"for you only, not covered: {', '.join(texts)}")
    descriptions = {}
    for name, model in run.models.items():
        scheduled = plan.schedule.find_release(name)
        parts = scores.get(name, [])
        kind = describe_kind(scheduled)
        if not isinstance(model, Statistics):
            from dpcore.models.predictions import Predictions

            parts = [*parts, *_describe_intervals(model, with_tables=bool(groups[name]))]
            if isinstance(model, Predictions):
                kind = f"predictions at {len(model.values)} points"
        pictures = run.descriptions[name].pictures if name in run.descriptions else ()
        # A model's score says more of it than its pictures' titles do.
        parts = parts or [", ".join(picture.title for picture in pictures)]
        # Neither evaluated on a hold-out, nor by a release of its own.
        is_scored = name in scores or any(e.release.of == name for e in plan.schedule.releases)
        kind += ", no score was bought" if isinstance(model, Model) and not is_scored else ""
        if scheduled.publishes is not ReleaseKind.STATISTICS or any(parts):
            descriptions[name] = [kind, *filter(None, parts)]
    return descriptions


def _describe_intervals(model: Published, *, with_tables: bool) -> list[str]:
    """The confidence intervals of a linear model, or next to tables why it has none; nothing of
    others.
    """
    from dpcore.models.error_bars import NoIntervals
    from dpcore.models.linear import LinearModel

    if not isinstance(model, LinearModel):
        return []
    if isinstance(model.noise_intervals, NoIntervals):
        return [model.noise_intervals.describe()] if with_tables else []
    return [f"{model.noise_intervals.describe()} (95 %, noise only)"]


def _rows(group: Mapping[str, Figures]) -> list[str]:
    """Every number of a release's tables with its interval, a line each."""
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
                else f"its interval is {low}"
            )
            # A text says what it is, a number only next to the name of its column.
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
    """The first row of a release's tables and how many there are also, next to its name."""
    rows = _rows(group)
    note = f"; and {len(rows) - 1} more" if len(rows) > 1 else ""
    room = WIDTH - cell_len(brief(name)) - len(note) - 2
    return cut(rows[0], room) + note if rows else "an empty table"


def show_noise(console: Page, models: Mapping[str, Published]) -> None:
    """The confidence intervals of models that have some, or why they have none; and what intervals
    cover.
    """
    from dpcore.models.error_bars import NOISE_OF_FIT, NONE, UNSTATED
    from dpcore.models.linear import LinearModel

    sentences = {
        name: model.noise_intervals.describe()
        for name, model in models.items()
        if isinstance(model, LinearModel) and model.noise_intervals is not UNSTATED
    }
    for name, sentence in sentences.items():
        console.print(f"{name}: {sentence}")
    # The intervals cover the noise of the mechanism only, not the sampling of records: say so once.
    if any(not sentence.startswith(NONE) for sentence in sentences.values()):
        console.print(f"95 % intervals; {NOISE_OF_FIT}.")


def show_figures(console: Page, tables: Mapping[str, Figures]) -> None:
    """Every published table, its numbers with their intervals."""
    for name, figures in tables.items():
        rows = figures.printed_rows()
        console.print(columns(*figures, title=name, rows=rows[:_SHOWN]))
        if len(rows) > _SHOWN:
            console.print(f"... {len(rows)} rows in all, in {name}.csv")
        console.print(f"{figures.interval_sentence}.")


def show_objects(console: Page, outcome: Run) -> None:
    """What was published that is neither model nor tables, and the titles of all pictures."""
    # As published: an object could say other arrays now than those that were compared.
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
