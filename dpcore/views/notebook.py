"""`notebook`: write and draw what notebooks and terminals show of the core's objects.

All of it is public. Plots are drawn by dpcore-report, which with matplotlib is imported only where
somebody draws.
"""

from collections.abc import Iterable, Mapping
from functools import singledispatch
from typing import Any

import attrs

from dpcore.claims.plan.plan import Plan
from dpcore.claims.plan.planned_query import PlannedQuery
from dpcore.domain.classes import Classes
from dpcore.domain.domain import encoded_names
from dpcore.errors import ContractError, need_value
from dpcore.event import Event
from dpcore.guarantee import Guarantee, Status, rounded_up
from dpcore.interval import Interval
from dpcore.learner import Published
from dpcore.ledger.book import Ledger
from dpcore.ledger.entries import charge_fractions, latest
from dpcore.mechanism import AnyMechanism
from dpcore.models.coefficients import line_of
from dpcore.models.description import Description, ShownModel
from dpcore.models.figures import Figures, Statistics
from dpcore.models.predictions import Predictions
from dpcore.models.shapes import Shaped
from dpcore.private.outcome import Outcome
from dpcore.published.folder import Run
from dpcore.randomness import PublicRandomness
from dpcore.runs.session import PaidRelease, Session
from dpcore.sensitivity import Sensitivity
from dpcore.siblings import sibling
from dpcore.views.markup import MOST_ROWS, Listing, Summary, facts


@singledispatch
def show(thing: Any) -> Summary:
    """Write the summary of an object of the core, by its class.

    Raises:
        ContractError: the core shows no objects of its class.
    """
    raise ContractError(
        f"dpcore shows no {type(thing).__name__}: its class writes its own `shown_summary`"
    )


@singledispatch
def plot(thing: Any, axes: Any = None) -> Any:
    """Draw an object of the core on matplotlib's axes, or new ones; return the axes.

    Raises:
        ContractError: the core draws no objects of its class, or there is nothing to draw.
        ImportError: dpcore-report or matplotlib is not installed.
    """
    raise ContractError(f"dpcore draws no {type(thing).__name__}: its class writes its own `plot`")


@show.register
def show_interval(interval: Interval) -> Summary:
    """Show both ends, digit by digit."""
    return Summary(title=f"[{interval.lower!r}, {interval.upper!r}]")


@show.register(Event)
def show_event(event: Any) -> Summary:
    """Show the event's class name and its parameters."""
    if not attrs.has(type(event)):
        return Summary(title=str(event))
    rows = [(f.name, getattr(event, f.name)) for f in attrs.fields(type(event)) if f.repr]
    return Summary(title=type(event).__name__, tables=(facts(*rows),))


def _shorten(guarantee: Guarantee) -> str:
    """Return one clause: epsilon and delta rounded up, the relation, and what it rests on."""
    if guarantee.status is Status.NONE:
        return "NOT PRIVATE"
    claim = f"({rounded_up(guarantee.epsilon)}, {rounded_up(guarantee.delta)})"
    return f"{guarantee.status}, {claim}-differentially private under {guarantee.adjacency}"


@show.register
def show_guarantee(guarantee: Guarantee) -> Summary:
    """Show the claim in short and in full."""
    # Where nothing is claimed, no number is shown: somebody would quote it.
    numbers = () if guarantee.status is Status.NONE else ("epsilon", "delta")
    table = facts(
        ("status", guarantee.status),
        *((name, rounded_up(getattr(guarantee, name))) for name in numbers),
        ("neighbours", guarantee.adjacency),
        ("publishes", guarantee.release),
        ("accountant", guarantee.basis.accountant),
    )
    return Summary(
        title=f"Guarantee: {_shorten(guarantee)}",
        tables=(table,),
        sentences=guarantee.paragraph().split("\n\n"),
    )


@show.register
def show_plan(plan: Plan) -> Summary:
    """Show the guarantee in short, every query with its noise, and how wide intervals will be."""
    rows = [
        (scheduled.name, *_cells(planned_query))
        for scheduled in plan.schedule.releases
        for planned_query in scheduled.queries.values()
    ] + [("evaluation", *_cells(planned_query)) for planned_query in plan.schedule.evaluation]
    table = Listing.of(
        ("release", "query", "numbers", "times", "distance", "sensitivity", "noise"), rows
    )
    return Summary(
        title=f"Plan: {_shorten(plan.guarantee)}",
        tables=(table,),
        sentences=[
            f"expected of {scheduled.name}: {line}."
            for scheduled in plan.schedule.releases
            for line in scheduled.forecast(PublicRandomness(0))
        ],
    )


@plot.register
def plot_plan(plan: Plan, axes: Any = None) -> Any:
    """Draw the certified curve, and what an attacker detects at most, on two axes."""
    curves = sibling("report", "plots.curves", "Plan.plot")
    curve_axes, trade_off_axes = curves.axes_or_new(axes, 2)
    curve, guarantee = plan.curve(), plan.guarantee
    curves.draw_curve(curve_axes, curve, guarantee.epsilon, guarantee.delta)
    curves.draw_trade_off(trade_off_axes, curve)
    return curve_axes, trade_off_axes


def _cells(planned_query: PlannedQuery) -> tuple[object, ...]:
    query, sensitivity = planned_query.query, planned_query.sensitivity
    return (
        query.name,
        query.real_size,
        query.at_most,
        str(sensitivity.distance),
        sensitivity.value if isinstance(sensitivity, Sensitivity) else type(sensitivity).__name__,
        _describe_noise(planned_query.mechanism),
    )


def _describe_noise(mechanism: AnyMechanism) -> str:
    """`Gaussian(noise_multiplier=3.73)`: its fields, numbers by six digits."""
    kind: Any = type(mechanism)  # frozen attrs classes, as every component
    inner = ", ".join(
        f"{field.name}={value:.4g}" if isinstance(value, float) else f"{field.name}={value}"
        for field in attrs.fields(kind)
        if (value := getattr(mechanism, field.name)) is not None
    )
    return f"{kind.__name__}({inner})"


@show.register(ShownModel)
def show_model(model: Any) -> Summary:
    """Show its shapes, or its coefficients where it is a line; else the sizes of its arrays."""
    arrays = [(name, str(array.shape)) for name, array in model.arrays().items()]
    tables = [Listing.of(("published", "shape"), arrays)]
    # A reader looks at the arrays' sizes last.
    if isinstance(model, Shaped):
        shapes = [(" and ".join(s.columns), s.importance, s.floor) for s in model.shapes()]
        tables.insert(0, Listing.of(("shape", "importance", "noise alone"), shapes))
    elif (line := line_of(model)) is not None:
        names = (*encoded_names(model.domain), "intercept")
        rows = [*zip(names, [*line.values.tolist(), line.intercept], strict=True)]
        tables.insert(0, Listing.of(("column", "coefficient"), rows))
    return Summary(title=type(model).__name__, tables=tuple(tables))


@plot.register(ShownModel)
def plot_model(model: Any, axes: Any = None) -> Any:
    """Draw its most important shapes, an axis each, or its coefficients."""
    labels = model.domain.labels
    axes_or_new = sibling("report", "plots.curves", "plot").axes_or_new
    plots = sibling("report", "plots.models", "plot")
    if isinstance(model, Shaped):
        shapes = model.shapes()[:4]  # that are drawn side by side
        panels = axes_or_new(axes, len(shapes))
        classes = tuple(map(str, labels.values)) if isinstance(labels, Classes) else ()
        for axis, shape in zip(panels, shapes, strict=False):
            plots.draw_shape(axis, shape, classes)
        return panels
    # Without shapes, only a line has coefficients in the file's units to draw.
    line = need_value(
        line_of(model),
        ContractError,
        f"{type(model).__name__} is neither a sum of shapes nor a line: there is nothing to draw",
    )
    panels = axes_or_new(axes)
    plots.draw_coefficients(panels[0], encoded_names(model.domain), line.values)
    return panels


@show.register
def show_figures(figures: Figures) -> Summary:
    """Show the table, and what its intervals say."""
    table = Listing(
        headings=tuple(figures),
        rows=tuple(figures.printed_rows()),
        numeric=tuple(not any(isinstance(v, str) for v in column) for column in figures.values()),
    )
    title = f"{figures.estimate.size} released numbers"
    return Summary(title=title, tables=(table,), sentences=(figures.interval_sentence,))


@show.register
def show_statistics(statistics: Statistics) -> Summary:
    """Show all tables on one summary."""
    tables = statistics.tables
    return show_tables(", ".join(filter(None, tables)) or "Statistics", tables.values())


def show_tables(title: str, tables: Iterable[Figures]) -> Summary:
    """Show several tables below one title, each sentence about their intervals once."""
    summaries = [show_figures(figures) for figures in tables]
    listings = tuple(listing for summary in summaries for listing in summary.tables)
    # Tables of one release mostly share a sentence about their intervals.
    sentences = dict.fromkeys(sentence for summary in summaries for sentence in summary.sentences)
    return Summary(title=title, tables=listings, sentences=tuple(sentences))


def describe_model(model: Published) -> str:
    """Describe what a release published, in a few words."""
    if isinstance(model, Statistics):
        count = len(model.tables)
        return f"{count} {'table' if count == 1 else 'tables'} of numbers with confidence intervals"
    if isinstance(model, Predictions):
        return f"predictions at {len(model.values)} points"
    sizes = ", ".join(f"{name} {array.shape}" for name, array in model.arrays().items())
    return f"{type(model).__name__}: {sizes}"


@show.register
def show_outcome(outcome: Outcome) -> Summary:
    """Show what was published, the tables of descriptions, and the guarantee in full."""
    return _show_releases("Outcome", outcome.models, outcome.guarantee, outcome.descriptions)


@show.register
def show_paid_release(release: PaidRelease) -> Summary:
    """Show what was published, its tables, and its guarantee in full."""
    models, descriptions = {release.name: release.published}, {release.name: release.description}
    return _show_releases(release.name, models, release.guarantee, descriptions)


@show.register
def show_run(run: Run) -> Summary:
    """Show what was published, its tables, and the guarantee in full."""
    page = _show_releases(f"Run {run.folder.name}", run.models, run.guarantee, {})
    figures = show_tables("", run.tables.values())
    return attrs.evolve(page, tables=(*page.tables, *figures.tables))


@show.register
def show_session(session: Session) -> Summary:
    """Show every release, what it cost, and what is left."""
    table = Listing.of(
        ("release", "guarantee", "left after it"),
        [(release.name, _shorten(release.guarantee), release.left) for release in session.releases],
    )
    return Summary(title="Session", tables=(table,), sentences=(f"Left: {session.left}.",))


@show.register
def show_ledger(ledger: Ledger) -> Summary:
    """Show the ledger's promise, its latest entries, and what is left of its budget."""
    total, (entries, count) = ledger.total, latest(ledger.iterate_rows(), MOST_ROWS)
    # A promise may be shown as weaker than it is by rounding, never as stronger.
    promise = facts(
        ("epsilon", rounded_up(total.epsilon)),
        ("delta", rounded_up(total.delta)),
        ("neighbours", total.adjacency),
        ("adds up", total.notion),
    )
    rows = Listing.of(("row", "time", "what", "cost", "status"), [e.cells for e in entries])
    return Summary(
        title=f"Ledger {ledger.name!r}: {count} entries",
        tables=(promise, rows),
        sentences=(f"Left: {ledger.left().describe()}.",),
    )


@plot.register
def plot_ledger(ledger: Ledger, axes: Any = None) -> Any:
    """Draw what is spent after each charge."""
    (figure_axes,) = sibling("report", "plots.curves", "Ledger.plot").axes_or_new(axes)
    sibling("report", "plots.ledgers", "Ledger.plot").draw_spending(
        figure_axes,
        [charge.share for charge in charge_fractions(ledger.total, ledger.iterate_rows())],
    )
    return figure_axes


def _show_releases(
    title: str,
    models: Mapping[str, Published],
    guarantee: Guarantee,
    descriptions: Mapping[str, Description],
) -> Summary:
    """Show what was published by name, the tables of descriptions, and the guarantee in full."""
    page = show_tables(
        f"{title}: {_shorten(guarantee)}",
        [table for entry in descriptions.values() for table in entry.tables.values()],
    )
    rows = [(name, describe_model(model)) for name, model in models.items()]
    return attrs.evolve(
        page,
        tables=(Listing.of(("release", "published"), rows), *page.tables),
        sentences=(*page.sentences, *guarantee.paragraph().split("\n\n")),
    )
