"""What a mechanism that chooses must be: steps in opposite directions, moved rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.conformance.laboratory.bench import Bench
from dpcore.conformance.laboratory.excess import Sample, excess, visible
from dpcore.conformance.laws.law import BrokenLawError, Law, NotApplicableError
from dpcore.conformance.laws.trial import MORE, Trial, told
from dpcore.distance import Distance
from dpcore.events.base import Direction, Event

CHOICES = Law(
    "mechanism.event-of-any-step",
    "No event of the outputs exceeds the curve when coordinates move in opposite directions "
    "(attacked).",
    statistical=True,
)

_LONG = 1e3  # a row, beside a claim of about 1


def choices(trial: Trial) -> str:
    """Steps in opposite directions, from several values; the worst pair of a pilot gets most."""
    if trial.distance is Distance.PSD_ROWS:
        return _rows_moved(trial)
    if trial.distance in (Distance.RKHS, Distance.HAMMING):
        raise NotApplicableError(f"{trial.distance} has no directions")
    bench = trial.bench(64, 0.1)
    if bench.takes(np.ones(64)) and bench.is_local(np.zeros(64), np.ones(64)):
        raise NotApplicableError(
            "its coordinates are independent: see mechanism.event-at-any-value"
        )
    count = max(3000, round(10_000 * trial.effort))
    for scale in (1.0, 0.3):
        best: tuple[float, Bench, Any, Any] | None = None
        for number, (bench, before, after) in enumerate(_opposed(trial, scale)):
            pilot = max(100, round(400 * trial.effort))
            p, q = (
                _labels(bench.draws(value, pilot, 60_000 + 1000 * number + 500 * side))
                for side, value in enumerate((after, before))
            )
            event = trial.event(bench)
            gain = _gain(p, q, event)
            if best is None or gain > best[0]:
                best = gain, bench, before, after
        if best is None:
            raise NotApplicableError("it refuses the values that were made up")
        _, bench, before, after = best
        what = f"the choice among {bench.query.real_size}"
        for many, start in ((count, 100_000), (MORE * count, 1_000_000)):
            p = _labels(bench.draws(after, many, start))[:, None]
            q = _labels(bench.draws(before, many, 2 * start))[:, None]
            found = excess([Sample(p=p, q=q, what=what)], trial.event(bench), trial.rate / 4)
            if found is not None and found.broken:
                raise BrokenLawError(told(found, f"at scale {scale:g}, mixed steps", trial.rate))
            if found is None or not found.suspicious:
                break
    seen = visible(count, trial.rate / 2)
    return f"{4 * count} draws; a delta that is {seen:.2g} too small would have been seen"


def _rows_moved(trial: Trial) -> str:
    """Gram matrices of rows of which the first is moved by the whole claim: along a second row so
    long that it tells the samples' coefficients, from 0, and longer.
    """
    size = trial.case.query.shape[0]
    unit, count = trial.case.sensitivity.unit, max(1000, round(6000 * trial.effort))
    corner = np.zeros((size, size))
    corner[0, 0] = 1.0
    pairs = (
        (_beside(size, 0.0), _beside(size, unit)),
        (0 * corner, unit**2 * corner),
        (np.eye(size), np.eye(size) + (2 + unit) * unit * corner),
    )
    for scale in (1.0, 0.3):
        mechanism = trial.case.at(scale)
        bench = Bench(
            mechanism=mechanism,
            query=trial.case.query,
            sensitivity=trial.case.sensitivity,
            seed=trial.seed,
        )
        for before, after in pairs:
            for many, start in ((count, 100_000), (MORE * count, 1_000_000)):
                p, q = (
                    bench.draws(value.ravel(), many, first).reshape(many, size, size)
                    for value, first in ((after, start), (before, 2 * start))
                )
                found = excess(_of_rows(p, q), trial.event(bench), trial.rate / 12)
                if found is not None and found.broken:
                    where = f"at scale {scale:g}, a moved row"
                    raise BrokenLawError(told(found, where, trial.rate))
                if found is None or not found.suspicious:
                    break
    seen = visible(count, trial.rate / 12)
    return f"{12 * count} draws; a delta that is {seen:.2g} too small would have been seen"


def _of_rows(p: NDArray[np.float64], q: NDArray[np.float64]) -> list[Sample]:
    """What matrices tell of the first row: shape (releases, size, size) each."""
    numbers: dict[str, Callable[[NDArray[np.float64]], NDArray[Any]]] = {
        "the first entry": lambda found: found[:, :1, 0],
        "the first row along the second": _along,
        "the least eigenvalue": lambda found: np.linalg.eigvalsh(found)[:, :1],
    }
    return [
        Sample(p=np.asarray(number(p), float), q=np.asarray(number(q), float), what=what)
        for what, number in numbers.items()
    ]


def _beside(size: int, moved: float) -> NDArray[np.float64]:
    """The Gram matrix of a row of that length, a long one in the same direction, and zero rows."""
    rows = np.zeros(size)
    rows[:2] = moved, _LONG
    return np.outer(rows, rows)


def _along(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """The first row's component along the second, as second moments tell it, shape (count, 1)."""
    return np.asarray(matrices[:, 0, 1] / np.sqrt(matrices[:, 1, 1]))[:, None]


def _opposed(trial: Trial, scale: float) -> Iterator[tuple[Bench, Any, Any]]:
    for size in (2, 5):
        bench = trial.bench(size, scale)
        signs: NDArray[np.float64] = np.full(size, -1.0)
        signs[0] = 1.0
        spread = {Distance.L1: size, Distance.L2: math.sqrt(size)}.get(trial.distance, 1.0)
        for base in (np.zeros(size), -0.5 * signs, 2.0 * np.arange(size)):
            before: NDArray[np.float64] = np.asarray(base, dtype=np.float64)
            after = before + signs / spread
            if not bench.takes(before) or not bench.takes(after):
                before, after = np.rint(before), np.rint(before) + np.eye(size)[0]
            if bench.takes(before) and bench.takes(after):
                yield bench, before, after  # events of either order are compared


def _labels(outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """The number of the largest coordinate where outputs are few, else the first coordinate."""
    if len(np.unique(outputs)) <= 2:
        return np.asarray(np.argmax(outputs, axis=1), dtype=np.float64)
    return np.asarray(outputs[:, 0])


def _gain(p: NDArray[np.float64], q: NDArray[np.float64], event: Event) -> float:
    """The largest excess of one option's share over the curve, as it was seen."""
    worst = -math.inf
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        claimed = max(event.delta(epsilon, d) for d in Direction)
        for option in np.unique(np.concatenate([p, q]))[:20]:
            ours, theirs = float((p == option).mean()), float((q == option).mean())
            for a, b in ((ours, theirs), (theirs, ours)):
                worst = max(worst, a - math.exp(epsilon) * b - claimed)
    return worst
