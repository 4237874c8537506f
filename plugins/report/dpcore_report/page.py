"""The page of a report: what a published run says, put into words and one HTML file.

Nothing is read but the files of `public/`, and these must replay: what is shown is what the answers
and the locked plan determine.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from dpcore import Run, replay
from dpcore.claims.accounting.certainty import Curve
from dpcore.domain import Classes
from dpcore.errors import NoClaimError, ReplayError, need
from dpcore.guarantee import Noise, Status, rounded_up
from dpcore.models import LinearModel, Lines, Model
from dpcore.models.description import describe
from dpcore.models.error_bars import NOISE_OF_FIT, NoIntervals
from dpcore.models.figures import NOT_STATED, Statistics
from dpcore.models.predictions import Predictions
from dpcore.published.folder import PUBLIC, paid
from dpcore.published.formats import paid_queries
from dpcore.published.lock import Lock
from dpcore.published.phrases import describe_mechanism, describe_sensitivity
from dpcore.published.verdict import verdict_of
from dpcore.rounding import up
from dpcore.shown import digits_within, number_cell
from dpcore.views.notebook import describe_model
from dpcore_report.operators import LastStep, operators
from dpcore_report.pictures import Additions, drawn
from dpcore_report.results import draw, readable, show_table
from dpcore_report.shapes import shapes_of
from dpcore_report.templates import filled

_MOST_ROWS = 200  # of one table; its file holds all
_MOST_NAMES = 4  # of releases in a title, of the tables of one
_SMALL = 0.01  # deltas above it are drawn, and no line of a table
_CONTENTS = (
    ("results", "Results"),
    ("evaluation", "Evaluation"),
    ("guarantee", "Guarantee"),
    ("person", "One person"),
    ("queries", "Queries and noise"),
    ("assumptions", "Assumptions"),
    ("attacks", "Attacks"),
    ("limits", "Limits"),
)
_ACCUSED = (0.01, 0.05, 0.1)  # rates of false accusations that the page lists


def report(
    folder: Path | str,
    *,
    operator: bool = False,
    attacks: Callable[[Lock], Sequence[Any]] | None = None,
    title: str | None = None,
    name: str = "",
    published: date | None = None,
    memory: int | None = None,
    work: int | None = None,
) -> bytes:
    """Return one self-contained HTML page of a published run.

    Equal `public/` give equal bytes, unless the operator's part, attacks or words are added.

    Args:
        operator: Add what the operator by itself may see, marked as that: NOT covered by the
            guarantee.
        attacks: Lines about attacks on a locked plan, handed over next to the run, as
            `dpcore_attacks.attack_files` reads them; none if None.
        title: Of the page; what was released if None.
        name, published: Of the run, and the day it was published: no part of `public/`, so that
            anyone who makes the page hands them over.
        memory, work: As for `replay`.

    Raises:
        ReplayError: the folder is damaged, of something else, or a rehearsal's; or its lock states
            less than its noise costs.
        NoClaimError: the run guarantees nothing.
        SourceError: the operator's file is missing or damaged.
    """
    run = read_published(folder, memory=memory, work=work)
    # The only private input, and only where the operator asks for it.
    operator_view = operators(run.folder) if operator else None
    attack_lines = tuple(attacks(run.lock)) if attacks else ()
    day = f"published {readable(published.isoformat())}" if published else ""
    facts = (f"Run {name}" if name else "", day, f"dpcore {run.lock.versions['dpcore']}")
    return _fill_page(
        run,
        operator_view,
        attack_lines,
        title=title,
        facts=", ".join(filter(None, facts)),
    ).encode()


def read_published(
    folder: Path | str, *, memory: int | None = None, work: int | None = None
) -> Run:
    """A run that was published under a guarantee, replayed.

    Raises:
        ReplayError: the folder is damaged, of something else, or a rehearsal's.
        NoClaimError: the run guarantees nothing.
    """
    # Replay first: what is shown is what answers and the locked plan determine.
    run = replay(folder, memory=memory, work=work)
    # A rehearsal replays too, and must never look like a publication.
    need(
        run.channel == PUBLIC,
        ReplayError,
        f"{folder}: has no {PUBLIC}/: a report shows what was published by itself",
    )
    need(
        run.guarantee.status is not Status.NONE,
        NoClaimError,
        f"{folder}: the run guarantees nothing, so there is nothing to report",
    )
    return run


def _title(run: Run) -> str:
    """Return what was released, in a few words."""
    names = [*run.models]
    if run.spec.request.domain.labelled and any(isinstance(m, Model) for m in run.models.values()):
        return f"A private model of {run.spec.request.domain.target}"
    suffix = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return f"Private statistics: {', '.join(names[:_MOST_NAMES])}{suffix}"


def _fill_page(
    run: Run,
    operator_view: LastStep | None,
    attack_lines: tuple[Any, ...],
    *,
    title: str | None = None,
    facts: str = "",
) -> str:
    """Return the template with what it shows; every text is escaped there."""
    # The curve is that of the locked plan, priced again here.
    claim, plan, curve = run.guarantee, run.lock.plan, run.plan.curve()
    verdict = verdict_of(run.kept)
    need(not verdict.is_refuted, ReplayError, f"{run.kept}: {verdict.sentence}")
    return filled(
        "page.html",
        verdict=verdict.sentence,
        accused=[
            (f"{100 * entry:g} %", _percent(curve.true_positive_rate(entry))) for entry in _ACCUSED
        ],
        attacks=attack_lines,
        described={
            name: draw(description.pictures)
            for name, description in run.descriptions.items()
            if description.pictures
        },
        conditional=claim.status is Status.CONDITIONAL,
        curve=[(rounded_up(d), rounded_up(e)) for d, e in _sample_curve(curve)],
        delta=rounded_up(claim.delta),
        epsilon=rounded_up(claim.epsilon),
        evaluation=[
            (
                f"{entry.release}, {entry.metric}",
                *map(
                    partial(_number, digits=digits_within(entry.low, entry.high, 6)),
                    (entry.value, entry.low, entry.high),
                    (0, -1, 1),
                ),
            )
            for entry in paid(run)
        ],
        # e^epsilon as a factor of odds; rounded up, and beyond floats it says nothing anyhow.
        factor=rounded_up(up(math.exp(claim.epsilon), roundings=4))
        if claim.epsilon < 700
        else "huge",
        floats=any(planned_query.noise is Noise.FLOATS for planned_query in claim.basis.queries),
        guarantee=claim,
        operator=operator_view,
        pictures=[_draw_curve(curve, claim.epsilon, claim.delta), _draw_trade_off(curve)],
        queries=[
            (name, *_query(query))
            for name, release_queries in plan["releases"].items()
            for query in release_queries
        ]
        # Paid evaluations are queries of shape () that are asked once.
        + [
            ("evaluation", *_query({"shape": [], "at_most": 1, **entry}))
            for entry in paid_queries(plan)
        ],
        releases=[(name, _released(model)) for name, model in run.models.items()],
        right=_percent(curve.right),
        # Models of which nothing that is published says how wrong they are.
        unscored=[
            name
            for name, model in run.models.items()
            if isinstance(model, Model)
            and run.spec.request.evaluation is None
            and all(release.of != name for release in run.spec.request.releases)
        ],
        run=run,
        shapes=shapes_of(run.models, _classes(run)),
        tables={
            name: show_table(name, figures, _MOST_ROWS) for name, figures in run.tables.items()
        },
        contents=[pair for pair in _CONTENTS if operator_view or pair[0] != "evaluation"],
        title=title or _title(run),
        facts=facts,
    )


def _draw_curve(curve: Curve, epsilon: float, delta: float) -> Markup:
    """Epsilon over delta, with the stated pair."""
    lines = Lines(
        title="The certified privacy curve",
        at=tuple(map(float, curve.deltas)),
        values=curve.epsilons,
        across="delta",
        up="epsilon at most",
    )
    return drawn(lines, Additions(log=True, dot=(delta, epsilon) if delta > 0 else None))


def _draw_trade_off(curve: Curve) -> Markup:
    """The share that an attacker may detect over the share that he accuses wrongly."""
    alphas = np.linspace(0.0, 1.0, 101)
    lines = Lines(
        title="The trade-off",
        at=tuple(map(float, alphas)),
        values=[curve.true_positive_rate(float(alpha)) for alpha in alphas],
        across="false positive rate",
        up="true positive rate, at most",
    )
    return drawn(lines, Additions(reference=((0.0, 0.0), (1.0, 1.0))))


def _classes(run: Run) -> tuple[str, ...]:
    """Names of the target's classes; none of a number."""
    domain = run.spec.request.domain
    # A target that is a number has no classes to name.
    if not (domain.labelled and isinstance(domain.labels, Classes)):
        return ()
    return tuple(map(str, domain.labels.named(np.arange(domain.labels.count))))


def _released(model: Any) -> str:
    """Return what a release published, in a few words."""
    if isinstance(model, Statistics):
        has_intervals = all(figures.stated for figures in model.tables.values())
        return describe_model(model) if has_intervals else f"{describe_model(model)} {NOT_STATED}"
    if isinstance(model, LinearModel) and not isinstance(model.noise_intervals, NoIntervals):
        return (
            f"the parameters of a model; {model.noise_intervals.describe()} (95 %; {NOISE_OF_FIT})"
        )
    if isinstance(model, Model) and not isinstance(model, Predictions):
        return "the parameters of a model"
    # The shapes of dozens of arrays would fill a screen, and their tables follow below.
    tables, count = len(describe(model).tables), len(model.arrays())
    return f"{tables} tables, of {count} arrays" if tables > _MOST_NAMES else describe_model(model)


def _query(query: Mapping[str, Any]) -> tuple[str, ...]:
    """Cells of one query: name, numbers, how often, distance, sensitivity, noise."""
    return (
        query["query"],
        "x".join(map(str, query["shape"])) or "1",
        str(query["at_most"]),
        query["distance"],
        describe_sensitivity(query["sensitivity"]),
        describe_mechanism(query["mechanism"]),
    )


def _sample_curve(curve: Curve) -> list[tuple[float, float]]:
    """About eight of the small deltas, for a table."""
    # Large deltas promise nothing that a table should show.
    pairs = [(d, e) for d, e in zip(curve.deltas, curve.epsilons, strict=True) if d < _SMALL]
    return pairs[:: max(1, len(pairs) // 8)]


def _number(value: float, direction: int, digits: int) -> str:
    """So many digits of a number, an end of an interval rounded outwards."""
    return "no end" if math.isinf(value) else number_cell(value, direction, digits)


def _percent(fraction: float) -> str:
    """Return a bound with one decimal: never less than the share."""
    return f"{min(100.0, math.ceil(up(1000.0 * fraction, roundings=2)) / 10):g} %"
