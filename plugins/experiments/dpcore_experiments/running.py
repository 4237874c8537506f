"""Running an experiment as printed. Nothing that is found here is private."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs
import msgspec
import numpy as np
from numpy.typing import NDArray

from dpcore_experiments.data import Split, draws
from dpcore_experiments.experiment import Experiment, fields
from dpcore_experiments.grammar import SeriesText
from dpcore_experiments.groups import Predicted, drawn_gap, exact_gap, parity
from dpcore_experiments.leaked_epsilon import KnownLoss, audit_coins, movements

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
    """

    series: int
    at: int | float
    errors: Floats
    loses: float | None = None


@attrs.define(eq=False)
class _Known:
    """A fit, the coins as it took them, and how far changed labels move it."""

    fit: Fitted
    coins: np.random.Generator
    moved: list[Floats] | None = None


def run(
    experiment: Experiment,
    folder: Path | None,
    *,
    quick: bool = False,
    key: int | None = None,
    audit: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[Found]:
    """Every series at every value of the sweep; under `quick` at the first and the last.

    Args:
        folder: Of the user's files.
        key: Of everything drawn; the experiment's own if None.
        audit: How many labels an audit of each series changes, one at a time, on the first split.
        progress: Told how many fits are done, and how many there will be.

    Raises:
        SpecError: a file is missing or altered.
    """
    text = experiment.text
    drawing = draws(experiment, folder)
    at = [text.sweep.at[0], text.sweep.at[-1]] if quick else text.sweep.at
    at = list(dict.fromkeys(at))
    splits = text.repeats.quick if quick else text.repeats.splits
    tell = progress or (lambda done, most: None)
    done, most = 0, splits * len(at) * len(text.series)
    errors: dict[tuple[int, int | float], list[float]] = {}
    lost: dict[tuple[int, int | float], float] = {}
    seed = text.key if key is None else key
    for number in range(splits):
        for place, value in enumerate(at):
            coins = np.random.default_rng([seed, number, place])
            records = int(value) if text.sweep.over == "records" else None
            data: dict[str, Split] = {}
            fitted: dict[bytes, _Known] = {}
            for index, series in enumerate(text.series):
                if series.statement is not None:
                    number_of = computed(experiment, series.statement, value)
                    errors.setdefault((index, value), []).append(number_of)
                    done += 1
                    tell(done, most)
                    continue
                if series.data not in data:
                    data[series.data] = drawing[series.data](coins, records)
                split = data[series.data]
                known = _fitted(experiment, series, split, value, coins, fitted)
                if audit and not number:
                    chosen = audit_coins(seed, place).choice(len(split.train_y), audit)
                    loss = _lost(experiment, series, split, value, known, chosen)
                    if loss is not None:
                        lost[index, value] = loss
                errors.setdefault((index, value), []).append(
                    _measured(experiment, series, split, known.fit, coins, value)
                )
                done += 1
                tell(done, most)
    return [
        Found(index, value, np.array(found), lost.get((index, value)))
        for (index, value), found in errors.items()
    ]


def computed(experiment: Experiment, component: Mapping[str, Any], value: float) -> float:
    """A statement's number at one value of the sweep, from public facts alone."""
    given = {key: one for key, one in component.items() if key not in ("name", "which")}
    statement = experiment.statements[component["name"]]
    sides = list(statement.values({**given, experiment.text.sweep.over: value}).values())
    (found,) = sides[0 if component["which"] == "printed" else -1].values()
    return found


def _refitting(
    experiment: Experiment, series: SeriesText, split: Split, value: float
) -> tuple[bytes, Callable[[Floats, np.random.Generator], Fitted]]:
    """A name that is the same for series that differ in noise alone, and what fits."""
    over = experiment.text.sweep.over
    assert series.fit is not None
    own: Mapping[str, Any] = fields(series.fit, len(split.train_y))
    if series.claims_sweep or over not in ("records", "epsilon"):
        own = {**own, over: value}
    method = experiment.methods[series.fit["name"]]

    def fitting(y: Floats, coins: np.random.Generator) -> Fitted:
        found: Fitted = method(split.train_x, y, coins, **own)
        return found

    return msgspec.json.encode([series.data, series.fit["name"], sorted(own.items())]), fitting


def _fitted(
    experiment: Experiment,
    series: SeriesText,
    split: Split,
    value: float,
    coins: np.random.Generator,
    known: dict[bytes, _Known],
) -> _Known:
    """The fit; the same one for series that differ in noise alone."""
    name, fitting = _refitting(experiment, series, split, value)
    if name not in known:
        before = copy.deepcopy(coins)
        known[name] = _Known(fitting(split.train_y, coins), before)
    return known[name]


def _given(
    experiment: Experiment, series: SeriesText, split: Split, value: float
) -> dict[str, Any]:
    """What a method of noise is told."""
    assert series.noise is not None
    text = experiment.text
    over = value if text.sweep.over == "epsilon" else series.epsilon
    own = fields(series.noise, len(split.train_y))
    return {"epsilon": over, "delta": text.delta, **own}


def _lost(
    experiment: Experiment,
    series: SeriesText,
    split: Split,
    value: float,
    known: _Known,
    chosen: NDArray[np.intp],
) -> float | None:
    """What the noise does not hide of the chosen labels; None where that is not known."""
    if series.noise is None:
        return None
    method: Any = experiment.methods[series.noise["name"]]
    if not isinstance(method, KnownLoss):
        return None
    if known.moved is None:
        _, fitting = _refitting(experiment, series, split, value)
        known.moved = movements(
            lambda y, coins: fitting(y, coins).coefficients,
            split.train_y,
            known.fit.coefficients,
            known.coins,
            chosen,
        )
    given = _given(experiment, series, split, value)
    return max(method.loss(known.fit, moved, **given) for moved in known.moved)


def _measured(
    experiment: Experiment,
    series: SeriesText,
    split: Split,
    fit: Fitted,
    coins: np.random.Generator,
    value: float,
) -> float:
    """The experiment's metric: on the records held out; of groups, on those fitted on."""
    text = experiment.text
    method, given = None, {}
    if series.noise is not None:
        method = experiment.methods[series.noise["name"]]
        given = _given(experiment, series, split, value)

    def draw() -> Floats:
        assert method is not None, "only noise is drawn"
        noises: Floats = method(fit, coins, text.repeats.noises, **given)
        return noises

    if text.metric in ("mse", "error_rate"):
        return _error(text.metric, split, fit, None if method is None else draw(), series.clip)
    shown = Predicted(
        matrix=fit.features(split.train_x),
        coefficients=fit.coefficients,
        labels=split.train_y,
        groups=split.groups,
    )
    if text.metric == "risk_gap":
        assert method is not None, "gaps are of noise"
        if series.exact:
            return exact_gap(shown, series.group, method, given, fit)
        return drawn_gap(shown, series.group, draw)
    if series.of_labels:
        return parity(shown.labels, shown.groups, series.grid, series.span)
    noises = np.zeros((1, fit.coefficients.size)) if method is None else draw()
    said = shown.matrix @ (fit.coefficients + noises).T
    return float(np.mean([parity(one, shown.groups, series.grid, series.span) for one in said.T]))


def _error(
    metric: str, split: Split, fit: Fitted, noise: Floats | None, ends: Sequence[float] | None
) -> float:
    """Over the noises; predictions as they come, or cut to some ends."""
    matrix = fit.features(split.test_x)
    if ends is not None and metric == "mse":
        drawn = np.zeros((1, fit.coefficients.size)) if noise is None else noise
        said = np.clip(matrix @ (fit.coefficients + drawn).T, ends[0], ends[1])
        return float(np.mean((said - split.test_y[:, None]) ** 2))
    if metric == "error_rate":
        return float(np.mean(np.argmax(matrix @ fit.coefficients, axis=1) != split.test_y))
    wrong = matrix @ fit.coefficients - split.test_y
    if noise is None:
        return float(np.mean(wrong**2))
    return float(np.mean((wrong[:, None] + matrix @ noise.T) ** 2))
