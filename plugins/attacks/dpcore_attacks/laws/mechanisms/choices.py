"""What a mechanism that chooses must be: steps in opposite directions, moved rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.distance import Distance
from dpcore_attacks.laboratory.draws import Bench
from dpcore_attacks.laboratory.excess import Excess, Sample, excess, visible
from dpcore_attacks.laws.law import BrokenLawError, Law, NotApplicableError
from dpcore_attacks.laws.mechanisms.statistical_trial import STAGES, Trial, told

CHOICES = Law(
    "mechanism.event-of-any-step",
    "No event of the outputs exceeds the curve when coordinates move in opposite directions "
    "(attacked).",
    statistical=True,
)

_PILOTS = ((3, 400), (1, 1200))
"""How many pairs stay, after so many draws of either value."""

_STARTS = (100_000, 400_000, 1_000_000)  # of the stages' streams
_LONG = 1e3  # a row, beside a claim of about 1


Opposed = tuple[Bench, NDArray[np.float64], NDArray[np.float64]]
"""A bench, and two values that it takes."""


def choices(trial: Trial) -> str:
    """Steps in opposite directions, from several values; pilots choose the pair with most draws."""
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
        pairs = list(_opposed(trial, scale))
        if not pairs:
            raise NotApplicableError("it refuses the values that were made up")
        # Pilots rank the pairs; all later draws go to the most suspicious one, on fresh streams.
        for stage, (survivors, times) in enumerate(_PILOTS):
            pilot = max(100, round(times * trial.effort))
            ranked = sorted(enumerate(pairs), key=lambda p: -_doubt(trial, p, pilot, stage))
            pairs = [pair for _, pair in ranked[:survivors]]
        doubt = math.inf
        for (times, threshold), start in zip(STAGES, _STARTS, strict=True):
            # Go on to more draws only where those of the stage before were suspicious.
            if doubt <= threshold:
                break
            worst = _compare_choices(trial, pairs[0], times * count, start)
            if worst is not None and worst.broken:
                raise BrokenLawError(told(worst, f"at scale {scale:g}, mixed steps", trial.rate))
            doubt = -math.inf if worst is None else worst.doubt
    limit = visible(count, trial.rate / 2)
    return f"{4 * count} draws; a delta that is {limit:.2g} too small would have been seen"


def _rows_moved(trial: Trial) -> str:
    """Gram matrices of rows of which the first is moved by the whole claim: along a second row so
    long that it tells the samples' coefficients, from 0, and longer.
    """
    size = trial.case.query.shape[0]
    unit, count = trial.case.sensitivity.unit, max(1000, round(6000 * trial.effort))
    corner = np.zeros((size, size))
    corner[0, 0] = 1.0
    # Beside a long row, from nothing, and one of several orthogonal rows made longer.
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
            doubt = math.inf
            for (times, threshold), start in zip(STAGES, _STARTS, strict=True):
                if doubt <= threshold:
                    break
                draws = times * count
                p, q = (
                    bench.draws(value.ravel(), draws, first).reshape(draws, size, size)
                    for value, first in ((after, start), (before, 2 * start))
                )
                # Two scales and three pairs, each at every stage: a union bound.
                rate = trial.rate / (6 * len(STAGES))
                worst = excess(_of_rows(p, q), trial.event(bench), rate)
                if worst is not None and worst.broken:
                    where = f"at scale {scale:g}, a moved row"
                    raise BrokenLawError(told(worst, where, trial.rate))
                doubt = -math.inf if worst is None else worst.doubt
    limit = visible(count, trial.rate / (6 * len(STAGES)))
    return f"{12 * count} draws; a delta that is {limit:.2g} too small would have been seen"


def _of_rows(p: NDArray[np.float64], q: NDArray[np.float64]) -> list[Sample]:
    """What matrices tell of the first row: shape (releases, size, size) each."""
    numbers: dict[str, Callable[[NDArray[np.float64]], NDArray[Any]]] = {
        "the first entry": lambda matrices: matrices[:, :1, 0],
        "the first row along the second": _along,
        "the least eigenvalue": lambda matrices: np.linalg.eigvalsh(matrices)[:, :1],
    }
    return [
        Sample(p=np.asarray(number(p), float), q=np.asarray(number(q), float), what=what)
        for what, number in numbers.items()
    ]


def _beside(size: int, length: float) -> NDArray[np.float64]:
    """The Gram matrix of a row of that length, a long one in the same direction, and zero rows."""
    rows = np.zeros(size)
    rows[:2] = length, _LONG
    return np.outer(rows, rows)


def _along(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """The first row's component along the second, as second moments tell it, shape (count, 1)."""
    return np.asarray(matrices[:, 0, 1] / np.sqrt(matrices[:, 1, 1]))[:, None]


def _opposed(trial: Trial, scale: float) -> Iterator[Opposed]:
    for size in (2, 5):
        bench = trial.bench(size, scale)
        signs: NDArray[np.float64] = np.full(size, -1.0)
        signs[0] = 1.0
        spread = {Distance.L1: size, Distance.L2: math.sqrt(size)}.get(trial.distance, 1.0)
        # At a tie, with the first coordinate about to overtake, and far from any tie.
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


def _compare_choices(trial: Trial, pair: Opposed, draws: int, start: int) -> Excess | None:
    """By so many draws of either value."""
    bench, before, after = pair
    p, q = (
        _labels(bench.draws(value, draws, first))[:, None]
        for value, first in ((after, start), (before, 2 * start))
    )
    sample = Sample(p=p, q=q, what=f"the choice among {bench.query.real_size}")
    return excess([sample], trial.event(bench), trial.rate / (2 * len(STAGES)))


def _doubt(trial: Trial, numbered: tuple[int, Opposed], draws: int, stage: int) -> float:
    """How far a pilot's worst event lies above the curve, in standard errors."""
    number, pair = numbered
    worst = _compare_choices(trial, pair, draws, 10_000 * (stage + 1) + 100 * number + 1)
    return -math.inf if worst is None else worst.doubt
