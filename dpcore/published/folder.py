"""Run folder: `public/` carries only what came through the release boundary; `operator/` is for
insiders.

Paid metrics with their intervals: what a run says of its hold-out, covered by the guarantee.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

import attrs
import msgspec
import numpy as np
from numpy.typing import NDArray

from dpcore.claims.plan.plan import Plan
from dpcore.claims.plan.request import RELEASE
from dpcore.domain.domain import Table, encoded_names
from dpcore.errors import RequestError, need
from dpcore.guarantee import Guarantee
from dpcore.learner import Answer, Model, Published
from dpcore.models.description import (
    Description,
    only_model,
    only_published,
)
from dpcore.models.figures import Figures, Statistics
from dpcore.published.formats import format_of, write_csv
from dpcore.published.lock import Lock
from dpcore.published.stacking import Transcript, stacked
from dpcore.shown import Shown
from dpcore.specs.spec import Spec
from dpcore.transcript.isolated_copies import Arrays

if TYPE_CHECKING:
    from dpcore.models.predictions import Predictions

LOCK, ANSWERS, MODEL = "spec.lock.json", "answers.npz", "model.npz"
GUARANTEE_JSON, GUARANTEE_TEXT = "guarantee.json", "guarantee.txt"
PUBLIC, REHEARSAL, REPRODUCTION = "public", "operator/rehearsal", "operator/reproduction"
EVALUATION, PREDICTIONS = "evaluation.json", "predictions.csv"
UNCOVERED = (
    "Operator channel: computed from private records, NOT covered by the guarantee. Do not publish."
)


def _npz(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return an uncompressed archive whose bytes depend on names and arrays only."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]  # numpy types the keyword as bool
    return buffer.getvalue()


def public_files(
    lock: Lock,
    answers: Mapping[str, tuple[Answer, ...]],
    models: Mapping[str, Published],
    fitted: Mapping[str, Arrays],
    guarantee: Guarantee,
    evaluation: Mapping[str, Any] | None = None,
    descriptions: Mapping[str, Description] | None = None,
) -> dict[str, bytes]:
    """Return every file of `public/`, by name, as a function of the lock and the answers only.

    Args:
        fitted: The arrays of each model, by its name.
        evaluation: The paid metrics, computed from the paid evaluation's answers.
        descriptions: Of models that hand over one, by name.
    """
    # Names and values only. What else an answer carries is no part of the archive.
    transcripts = {
        name: Transcript([a.query.name for a in series], [np.asarray(a.value) for a in series])
        for name, series in answers.items()
    }
    tables = tables_of(models, descriptions or {})
    return files_of(lock, stacked(transcripts), evaluation or {}, models, fitted, tables, guarantee)


def means(answers: Mapping[str, tuple[Answer, ...]]) -> dict[str, NDArray[Any]]:
    """Return the statistics that a paid evaluation released, by query name."""
    return {answer.query.name: answer.value for answer in answers.get(RELEASE, ())}


def files_of(
    lock: Lock,
    answers: Mapping[str, NDArray[Any]],
    paid_metrics: Mapping[str, Any],
    models: Mapping[str, Published],
    model_arrays: Mapping[str, Arrays],
    tables: Mapping[str, Mapping[str, Figures]],
    guarantee: Guarantee,
) -> dict[str, bytes]:
    """Return every file of a run's channel, by name, made of its answers."""
    parameters = {
        f"{name}.{key}": a for name, arrays in model_arrays.items() for key, a in arrays.items()
    }
    evaluation = {EVALUATION: _json(paid_metrics)} if paid_metrics else {}
    predictions = {
        f"{name}.{PREDICTIONS}": write_csv(
            [model.domain.target], [(value,) for value in model.values.tolist()]
        )
        for name, model in models.items()
        if isinstance(model, Model) and _is_predictions(model)
    }
    # These names are the format on disk: a replay compares each of them, byte for byte.
    return {
        LOCK: lock.encode(),
        ANSWERS: _npz(answers),
        **model_files(lock, parameters, tables),
        GUARANTEE_JSON: _json(format_of(lock.format).guarantee(guarantee)),
        GUARANTEE_TEXT: format_of(lock.format).paragraph(guarantee).encode() + b"\n",
        **evaluation,
        **predictions,
    }


def model_files(
    lock: Lock,
    parameters: Mapping[str, NDArray[Any]],
    tables: Mapping[str, Mapping[str, Figures]],
) -> dict[str, bytes]:
    """Return the files of numbers computed from answers: the archive of models, and all tables.

    Args:
        parameters: The arrays of all models, by `RELEASE.ARRAY`.
        tables: As `tables_of` gives them.
    """
    figures = {
        f"{name}.csv": write_csv(list(table), table.rows(), empty=lock.leaves_empty)
        for name, table in by_name(tables).items()
    }
    statistics = {
        f"{name}.table.json": _json(
            {key or name: format_of(lock.format).table(table) for key, table in group.items()}
        )
        for name, group in tables.items()
        if group
    }
    return {MODEL: _npz(parameters), **figures, **statistics}


def _is_predictions(model: Published) -> TypeGuard[Predictions]:
    """Return whether it is published answers at points.

    A class derived from it may state other values, and is not.
    """
    from dpcore.models.predictions import Predictions

    return type(model) is Predictions


def tables_of(
    models: Mapping[str, Published], descriptions: Mapping[str, Description]
) -> dict[str, Mapping[str, Figures]]:
    """Return every release's tables, published themselves or in another object's description."""
    nothing = Description()
    return {
        name: (
            model.tables
            if isinstance(model, Statistics)
            else descriptions.get(name, nothing).tables
        )
        for name, model in models.items()
    }


def by_name(tables: Mapping[str, Mapping[str, Figures]]) -> dict[str, Figures]:
    """Return every table of a run: `RELEASE`, or `RELEASE.NAME` if a release has several."""
    return {
        f"{name}.{key}".rstrip("."): table
        for name, group in tables.items()
        for key, table in group.items()
    }


def _json(data: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n"


@attrs.frozen(kw_only=True, eq=False)
class Run(Shown):
    """A run: its guarantee, its models ready to predict, and where it is kept.

    Args:
        folder: Of the run.
        channel: Where in it its files are: `public`, or what is below `operator` of a rehearsal or
            a reproduction.
        plan: As the lock states it, at the lock's randomness.
        models: By release name, rebuilt from the answers.
        descriptions: What models hand over to be shown, by release name.
        answers: By release name, released values in order of asking.
        evaluation: Paid hold-out metrics by release: covered by the guarantee, and published.
        files: What its channel must hold, byte for byte.
        operator: NOT covered by the guarantee: what the one who ran it saw also, such as
            `evaluation` and `seconds`. Empty in a sealed run, and in one that was loaded.
        note: Why the lock could not be kept next to the spec, the answers not be replayed in a
            clean process, or the stated epsilon not be confirmed; or empty.
        rounding: Files in which `replay` found floats rounded otherwise, each with the largest
            difference in an array of the run, by the largest magnitude in that array.
    """

    folder: Path
    channel: str
    spec: Spec
    lock: Lock
    plan: Plan = attrs.field(repr=False)
    guarantee: Guarantee
    models: Mapping[str, Published]
    answers: Mapping[str, tuple[NDArray[Any], ...]]
    evaluation: Mapping[str, Mapping[str, float]]
    files: Mapping[str, bytes] = attrs.field(repr=False)
    operator: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    note: str = ""
    descriptions: Mapping[str, Description] = attrs.field(factory=dict, repr=False)
    rounding: Mapping[str, float] = attrs.field(factory=dict, repr=False)
    __str__ = Shown.text

    @property
    def kept(self) -> Path:
        """The folder that holds the files of the run's channel."""
        return self.folder / self.channel

    @property
    def model(self) -> Model:
        """The model of a run that publishes exactly one.

        Raises:
            NoModelError: there are several, or none (a ValueError).
        """
        return only_model(self.models)

    @property
    def published(self) -> Published:
        """What the only release published, whatever it is.

        Raises:
            NoModelError: there are several releases.
        """
        return only_published(self.models)

    def predict(self, table: Table) -> NDArray[Any]:
        """Return predictions of the only model, in the file's units, or classes; shape (n,).

        Args:
            table: Columns by name, a data frame among others, of any number of rows: models work on
                some at a time.

        Raises:
            NoModelError: there are several models, or none (a ValueError).
            SourceError: a column is missing.
        """
        return self.model.predict(table)

    def get_feature_names_out(self) -> tuple[str, ...]:
        """Return the names of the encoded columns, in the order of coefficients."""
        return encoded_names(self.spec.request.domain)

    @property
    def tables(self) -> dict[str, Figures]:
        """Every published table: `RELEASE`, or `RELEASE.NAME` where a release has several."""
        return by_name(tables_of(self.models, self.descriptions))

    def table(self, name: str = "") -> Figures:
        """Return one published table: a mapping of columns, with `to_pandas` and `to_arrow`.

        Args:
            name: Of `tables`; not needed where there is one.

        Raises:
            RequestError: there is no such table, or there are several and none is named.
        """
        tables = self.tables
        if not name and len(tables) == 1:
            return next(iter(tables.values()))
        listing = ", ".join(tables) or "none"
        need(name in tables, RequestError, f"the run has no table {name!r}; it publishes {listing}")
        return tables[name]


_MISS = 0.05


@attrs.frozen(kw_only=True)
class MetricInterval:
    """One metric of one release, and where it lies without the noise, at 95 %."""

    release: str
    metric: str
    value: float
    low: float
    high: float


def paid(run: Run) -> tuple[MetricInterval, ...]:
    """Return every metric that a run paid for, as a function of its answers and plan.

    Intervals are of the noise only: they say nothing of how few records were in the hold-out.
    """
    evaluation, values = run.spec.request.evaluation, run.answers.get(RELEASE, ())
    if evaluation is None:
        return ()
    intervals = []
    for planned_query, value in zip(run.plan.schedule.evaluation, values, strict=True):
        assert planned_query.noise_distribution is not None, (
            "metrics are released with Laplace noise"
        )
        name, half_width = planned_query.query.name, planned_query.noise_distribution.within(_MISS)
        # The statistic is moved by the width of its noise; the metric then words all three alike.
        readings = [
            evaluation.stated({name: value + move}) for move in (0.0, -half_width, half_width)
        ]
        (release, metrics), *_ = readings[0].items()
        (metric,) = metrics
        middle, low, high = (reading[release][metric] for reading in readings)
        intervals.append(
            MetricInterval(release=release, metric=metric, value=middle, low=low, high=high)
        )
    return tuple(intervals)
