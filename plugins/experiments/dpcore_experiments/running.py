"""Running an experiment as printed. Nothing that is found here is private."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

import attrs
import msgspec
import numpy as np
from numpy.typing import NDArray

from dpcore_experiments.data import Draw, Split, draws
from dpcore_experiments.experiment import Experiment, fields
from dpcore_experiments.grammar import ExperimentText, SeriesText
from dpcore_experiments.groups import Predicted, drawn_gap, exact_gap, parity
from dpcore_experiments.leaked_epsilon import KnownLoss, audit_randomness, movements

Floats = NDArray[np.float64]


class Fitted(Protocol):
    """What a method that fits returns; a method that draws noise may ask more of it."""

    coefficients: Floats

    def features(self, x: Floats) -> Floats:
        """Shape (n, d) to (n, N)."""


@attrs.frozen(eq=False)
class Found:
    """Mean squared test errors of one series at one value of the sweep, one for each split.

    Args:
        loses: The least epsilon that an audit of the first split shows; None if there was none.
        further: Exact gaps of further splits; none where no study has one.
    """

    series: int
    at: int | float
    errors: Floats
    loses: float | None = None
    further: Floats = attrs.field(factory=lambda: np.empty(0))


@attrs.define(eq=False)
class _KnownFit:
    """A fit, the randomness as it took them, and how far changed labels move it."""

    fit: Fitted
    randomness: np.random.Generator
    moves: list[Floats] | None = None


def run(
    experiment: Experiment,
    folder: Path | None,
    *,
    quick: bool = False,
    key: int | None = None,
    audit: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[Found]:
    """Return every series at every value of the sweep; under `quick` at the first and the last.

    Args:
        folder: Of the user's files.
        key: Of everything drawn; the experiment's own if None.
        audit: How many labels an audit of each series changes, one at a time, on the first split.
        progress: Stated how many fits are done, and how many there will be.

    Raises:
        SpecError: a file is missing or altered.
    """
    text = experiment.text
    drawing = draws(experiment, folder)
    values = [text.sweep.at[0], text.sweep.at[-1]] if quick else text.sweep.at
    # A sweep of one value has the same first and last one: run it once.
    values = list(dict.fromkeys(values))
    splits = text.repeats.quick if quick else text.repeats.splits
    tell = progress or (lambda fits_done, fit_count: None)
    # Further splits, of the exact gaps that a study has too, come after all others.
    compared = {value: _compared_gaps(text, value) for value in values}
    further_fits = text.repeats.further * sum(map(len, compared.values()))
    fits_done, fit_count = 0, splits * len(values) * len(text.series) + further_fits
    errors: dict[tuple[int, int | float], list[float]] = {}
    further: dict[tuple[int, int | float], list[float]] = {}
    lost: dict[tuple[int, int | float], float] = {}
    seed = text.key if key is None else key
    # Splits outermost: series at one value share randomness, data and fits.
    for number in range(splits + text.repeats.further):
        for place, value in enumerate(values):
            is_further = number >= splits
            # Randomness of their own: the numbers of a full run and of `quick` do not meet.
            entropy = [seed, number - splits, place, 1] if is_further else [seed, number, place]
            results = _run_split(
                experiment,
                drawing,
                np.random.default_rng(entropy),
                value,
                compared[value] if is_further else range(len(text.series)),
                # Audits refit once for each changed label, so the first split by itself has one.
                partial(_choose_records, seed, place, audit) if audit and not number else None,
            )
            for index, error, loss in results:
                (further if is_further else errors).setdefault((index, value), []).append(error)
                if loss is not None:
                    lost[index, value] = loss
                fits_done += 1
                tell(fits_done, fit_count)
    return [
        Found(
            index,
            value,
            np.array(series_errors),
            lost.get((index, value)),
            np.array(further.get((index, value), [])),
        )
        for (index, value), series_errors in errors.items()
    ]


def _compared_gaps(text: ExperimentText, value: float) -> list[int]:
    """Return the series whose exact gap at a value of the sweep is compared with a study's."""
    place = text.sweep.at.index(value)
    return [
        index
        for index, series in enumerate(text.series)
        if series.exact
        and text.metric == "risk_gap"
        and series.independent is not None
        and series.independent.mean[place] is not None
    ]


def _choose_records(seed: int, place: int, count: int, records: int) -> NDArray[np.intp]:
    """Which labels an audit changes: the same ones for every series on as many records."""
    return audit_randomness(seed, place).choice(records, count)


def _run_split(
    experiment: Experiment,
    drawing: Mapping[str, Draw],
    randomness: np.random.Generator,
    value: float,
    indices: Iterable[int],
    choose_records: Callable[[int], NDArray[np.intp]] | None,
) -> Iterator[tuple[int, float, float | None]]:
    """Number, error and loss of some series, all on one draw of each data set."""
    text = experiment.text
    records = int(value) if text.sweep.over == "records" else None
    data: dict[str, Split] = {}
    fit_cache: dict[bytes, _KnownFit] = {}
    for index in indices:
        series, loss = text.series[index], None
        # A formula takes no randomness, so it does not shift what later series draw.
        if series.statement is not None:
            yield index, computed(experiment, series.statement, value), None
            continue
        # One draw for all series on the same data: they are compared on one split.
        if series.data not in data:
            data[series.data] = drawing[series.data](randomness, records)
        split = data[series.data]
        known_fit = _fit_once(experiment, series, split, value, randomness, fit_cache)
        if choose_records is not None:
            chosen = choose_records(len(split.train_y))
            loss = _audit_loss(experiment, series, split, value, known_fit, chosen)
        yield index, _measure(experiment, series, split, known_fit.fit, randomness, value), loss


def computed(experiment: Experiment, component: Mapping[str, Any], value: float) -> float:
    """Return a statement's number at one value of the sweep, from public facts only."""
    arguments = {key: field for key, field in component.items() if key not in ("name", "which")}
    statement = experiment.statements[component["name"]]
    sides = list(statement.values({**arguments, experiment.text.sweep.over: value}).values())
    # The first side is the statement as printed, the last one as corrected.
    (number,) = sides[0 if component["which"] == "printed" else -1].values()
    return number


def _refitting(
    experiment: Experiment, series: SeriesText, split: Split, value: float
) -> tuple[bytes, Callable[[Floats, np.random.Generator], Fitted]]:
    """Return a name that is the same for series that differ in noise only, and what fits."""
    over = experiment.text.sweep.over
    assert series.fit is not None
    arguments: Mapping[str, Any] = fields(series.fit, len(split.train_y))
    # A sweep over anything but records or noise is a field of the fit.
    if series.claims_sweep or over not in ("records", "epsilon"):
        arguments = {**arguments, over: value}
    method = experiment.methods[series.fit["name"]]

    def fitting(y: Floats, randomness: np.random.Generator) -> Fitted:
        return cast(Fitted, method(split.train_x, y, randomness, **arguments))

    return msgspec.json.encode(
        [series.data, series.fit["name"], sorted(arguments.items())]
    ), fitting


def _fit_once(
    experiment: Experiment,
    series: SeriesText,
    split: Split,
    value: float,
    randomness: np.random.Generator,
    fit_cache: dict[bytes, _KnownFit],
) -> _KnownFit:
    """Return the fit; the same one for series that differ in noise only."""
    name, fitting = _refitting(experiment, series, split, value)
    if name not in fit_cache:
        # The randomness before the fit: an audit repeats it with these, and only a label changed.
        randomness_before = copy.deepcopy(randomness)
        fit_cache[name] = _KnownFit(fitting(split.train_y, randomness), randomness_before)
    return fit_cache[name]


def _noise_arguments(
    experiment: Experiment, series: SeriesText, split: Split, value: float
) -> dict[str, Any]:
    """Return what a method of noise is reported."""
    assert series.noise is not None
    text = experiment.text
    over = value if text.sweep.over == "epsilon" else series.epsilon
    noise_fields = fields(series.noise, len(split.train_y))
    return {"epsilon": over, "delta": text.delta, **noise_fields}


def _audit_loss(
    experiment: Experiment,
    series: SeriesText,
    split: Split,
    value: float,
    known_fit: _KnownFit,
    records: NDArray[np.intp],
) -> float | None:
    """Return what the noise does not hide of the chosen labels; None where that is not known."""
    if series.noise is None:
        return None
    method: Any = experiment.methods[series.noise["name"]]
    # No closed form of the loss, so nothing is claimed.
    if not isinstance(method, KnownLoss):
        return None
    # Series that differ in noise only share the refits.
    if known_fit.moves is None:
        _, fitting = _refitting(experiment, series, split, value)
        known_fit.moves = movements(
            lambda y, randomness: fitting(y, randomness).coefficients,
            split.train_y,
            known_fit.fit.coefficients,
            known_fit.randomness,
            records,
        )
    arguments = _noise_arguments(experiment, series, split, value)
    return max(method.loss(known_fit.fit, movement, **arguments) for movement in known_fit.moves)


def _measure(
    experiment: Experiment,
    series: SeriesText,
    split: Split,
    fit: Fitted,
    randomness: np.random.Generator,
    value: float,
) -> float:
    """Return the experiment's metric: on the records in the hold-out; of groups, on those fitted
    on.
    """
    text = experiment.text
    # Without noise the metric is that of the fit itself.
    method: Any = None
    arguments: dict[str, Any] = {}
    if series.noise is not None:
        method = experiment.methods[series.noise["name"]]
        arguments = _noise_arguments(experiment, series, split, value)

    def draw() -> Floats:
        return cast(Floats, method(fit, randomness, text.repeats.noises, **arguments))

    if text.metric in ("mse", "error_rate"):
        return _error(text.metric, split, fit, None if method is None else draw(), series.clip)
    matrix = fit.features(split.train_x)
    # An exact gap is one of features only: no coefficients are solved for.
    if series.exact and text.metric == "risk_gap":
        return exact_gap(matrix, split.groups, series.group, method, arguments, fit)
    evidence = Predicted(
        matrix=matrix, coefficients=fit.coefficients, labels=split.train_y, groups=split.groups
    )
    if text.metric == "risk_gap":
        return drawn_gap(evidence, series.group, draw)
    if series.of_labels:
        return parity(evidence.labels, evidence.groups, series.grid, series.span)
    # One zero noise represents none, so that both cases are averaged alike.
    noises = np.zeros((1, fit.coefficients.size)) if method is None else draw()
    predictions = evidence.matrix @ (fit.coefficients + noises).T
    return float(
        np.mean(
            [parity(column, evidence.groups, series.grid, series.span) for column in predictions.T]
        )
    )


def _error(
    metric: str, split: Split, fit: Fitted, noise: Floats | None, ends: Sequence[float] | None
) -> float:
    """Over the noises; predictions as they come, or cut to some ends."""
    matrix = fit.features(split.test_x)
    # Cut predictions are not linear in the noise: each draw has predictions of its own.
    if ends is not None and metric == "mse":
        noises = np.zeros((1, fit.coefficients.size)) if noise is None else noise
        predictions = np.clip(matrix @ (fit.coefficients + noises).T, ends[0], ends[1])
        return float(np.mean((predictions - split.test_y[:, None]) ** 2))
    if metric == "error_rate":
        return float(np.mean(np.argmax(matrix @ fit.coefficients, axis=1) != split.test_y))
    errors = matrix @ fit.coefficients - split.test_y
    if noise is None:
        return float(np.mean(errors**2))
    return float(np.mean((errors[:, None] + matrix @ noise.T) ** 2))
