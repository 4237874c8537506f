"""What a plan and an outcome show of themselves: public facts alone."""

from collections.abc import Mapping
from typing import Any

import attrs

from dpcore.guarantee import Guarantee
from dpcore.learner import Published
from dpcore.learning.models.description import Description
from dpcore.learning.models.figures import Statistics
from dpcore.learning.models.predictions import Predictions
from dpcore.mechanism import AnyMechanism
from dpcore.notebook_view import Listing, Sheet
from dpcore.plan.ask import Ask
from dpcore.randomness import PublicCoins
from dpcore.running.schedule import Schedule
from dpcore.sensitivity import Sensitivity

_HEADINGS = ("release", "query", "numbers", "times", "distance", "sensitivity", "noise")


def plan_sheet(schedule: Schedule, guarantee: Guarantee) -> Sheet:
    """The guarantee in short, every query with its noise, and how wide bars will be."""
    rows = [
        (scheduled.name, *_cells(ask))
        for scheduled in schedule.releases
        for ask in scheduled.asks.values()
    ] + [("evaluation", *_cells(ask)) for ask in schedule.look]
    bars = tuple(
        f"expected of {scheduled.name}: {line}."
        for scheduled in schedule.releases
        for line in scheduled.forecast(PublicCoins(0))
    )
    return Sheet(
        title=f"Plan: {guarantee.short}", tables=(Listing.of(_HEADINGS, rows),), sentences=bars
    )


def _cells(ask: Ask) -> tuple[object, ...]:
    query, sensitivity = ask.query, ask.sensitivity
    change: object = (
        sensitivity.value if isinstance(sensitivity, Sensitivity) else type(sensitivity).__name__
    )
    return (
        query.name,
        query.real_size,
        query.at_most,
        str(sensitivity.distance),
        change,
        _describe_noise(ask.mechanism),
    )


def _describe_noise(mechanism: AnyMechanism) -> str:
    """`Gaussian(noise_multiplier=3.73)`: its fields, numbers by six digits."""
    kind: Any = type(mechanism)  # frozen attrs classes, as every component
    fields = {field.name: getattr(mechanism, field.name) for field in attrs.fields(kind)}
    inner = ", ".join(
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in fields.items()
        if value is not None
    )
    return f"{kind.__name__}({inner})"


def released_sheet(
    title: str,
    models: Mapping[str, Published],
    guarantee: Guarantee,
    descriptions: Mapping[str, Description],
) -> Sheet:
    """What was published by name, the tables of descriptions, and the guarantee in full."""
    rows = [(name, described(model)) for name, model in models.items()]
    sheets = [table.sheet() for entry in descriptions.values() for table in entry.tables.values()]
    listings = tuple(listing for sheet in sheets for listing in sheet.tables)
    # Tables of one release mostly share a sentence about their bars, which is said once.
    sentences = dict.fromkeys(sentence for sheet in sheets for sentence in sheet.sentences)
    return Sheet(
        title=f"{title}: {guarantee.short}",
        tables=(Listing.of(("release", "published"), rows), *listings),
        sentences=(*sentences, *guarantee.paragraph().split("\n\n")),
    )


def described(model: Published) -> str:
    """What a release published, in a few words."""
    if isinstance(model, Statistics):
        count = len(model.tables)
        return f"{count} {'table' if count == 1 else 'tables'} of numbers with error bars"
    if isinstance(model, Predictions):
        return f"predictions at {len(model.values)} points"
    sizes = ", ".join(f"{name} {array.shape}" for name, array in model.arrays().items())
    return f"{type(model).__name__}: {sizes}"
