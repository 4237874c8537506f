"""What a plan and an outcome show of themselves: public facts alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from dpcore.guarantee import Guarantee
from dpcore.learner import Published
from dpcore.learning.models.figures import Statistics
from dpcore.mechanism import AnyMechanism
from dpcore.notebook_view import Listing, Sheet
from dpcore.plan.ask import Ask
from dpcore.running.function_release import Predictions
from dpcore.running.schedule import Schedule
from dpcore.sensitivity import Sensitivity

_HEADINGS = ("release", "query", "numbers", "times", "distance", "sensitivity", "noise")


def plan_sheet(schedule: Schedule, guarantee: Guarantee) -> Sheet:
    """The guarantee in short, and every query with its noise."""
    rows = [(one.name, *_cells(ask)) for one in schedule.releases for ask in one.asks.values()] + [
        ("evaluation", *_cells(ask)) for ask in schedule.look
    ]
    table = Listing.of(_HEADINGS, rows)
    return Sheet(title=f"Plan: {guarantee.short}", tables=(table,))


def _cells(ask: Ask) -> tuple[object, ...]:
    query, moved = ask.query, ask.sensitivity
    told: object = moved.value if isinstance(moved, Sensitivity) else type(moved).__name__
    return (
        query.name,
        query.real_size,
        query.at_most,
        str(query.distance),
        told,
        _noise(ask.mechanism),
    )


def _noise(mechanism: AnyMechanism) -> str:
    """`Gaussian(noise_multiplier=3.73)`: its fields, numbers by six digits."""
    kind: Any = type(mechanism)  # frozen attrs classes, as every component
    fields = {one.name: getattr(mechanism, one.name) for one in attrs.fields(kind)}
    inner = ", ".join(
        f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in fields.items()
        if value is not None
    )
    return f"{kind.__name__}({inner})"


def released_sheet(title: str, models: Mapping[str, Published], guarantee: Guarantee) -> Sheet:
    """What was published by name, and the guarantee in full."""
    rows = [(name, described(one)) for name, one in models.items()]
    table = Listing.of(("release", "published"), rows)
    return Sheet(
        title=f"{title}: {guarantee.short}",
        tables=(table,),
        sentences=tuple(guarantee.paragraph().split("\n\n")),
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
