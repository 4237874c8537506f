"""What a mechanism that chooses must be: steps in opposite directions, moved rows."""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcore.sensitivity import Distance
from dpcore_attacks.laboratory.draws import Bench
from dpcore_attacks.laboratory.excess import Sample
from dpcore_attacks.laws.attack_by_draws import (
    AttackByDraws,
    Attempt,
    describe_limit,
    pool_outputs,
    three_stages,
)
from dpcore_attacks.laws.law import Law, skip_if
from dpcore_attacks.laws.mechanisms.statistical_trial import REFUSED_VALUES, Trial

CHOICES = Law(
    "mechanism.event-of-any-step",
    "No event of the outputs exceeds the curve when coordinates move in opposite directions "
    "(attacked).",
    statistical=True,
)

_PILOTS = ((3, 400), (1, 1200))
"""How many pairs stay, after so many draws of either value."""

_STAGES = three_stages(100_000, 400_000, 1_000_000)
_SCALES = (1.0, 0.3)
_LONG = 1e3  # a row, next to a claim of about 1


def choices(trial: Trial) -> str:
    """Steps in opposite directions, from several values; pilots choose the pair with most draws."""
    if trial.distance is Distance.PSD_ROWS:
        return _rows_moved(trial)
    skip_if(
        trial.distance in (Distance.RKHS, Distance.HAMMING), f"{trial.distance} has no directions"
    )
    bench = trial.bench(64, 0.1)
    skip_if(
        bench.takes(np.ones(64)) and bench.is_local(np.zeros(64), np.ones(64)),
        "its coordinates are independent: see mechanism.event-at-any-value",
    )
    count = max(3000, round(10_000 * trial.effort))
    for scale in _SCALES:
        attacks = list(_opposed(trial, scale))
        skip_if(not attacks, REFUSED_VALUES)
        # Pilots rank the pairs; all later draws go to the most suspicious one, on fresh streams.
        for stage, (survivors, times) in enumerate(_PILOTS, start=1):
            pilot = max(100, round(times * trial.effort))
            doubts = [
                attack.excess(attempt, pilot, 10_000 * stage + 100 * number + 1).doubt
                for number, (attack, attempt) in enumerate(attacks)
            ]
            attacks = [attacks[k] for k in np.argsort(-np.array(doubts), kind="stable")[:survivors]]
        ((attack, attempt),) = attacks
        attack.run(count, attempt)
    return f"{4 * count} draws; {describe_limit(count, trial.rate / 2)}"


def _rows_moved(trial: Trial) -> str:
    """Gram matrices of rows of which the first is moved by the whole claim: along a second row so
    long that it says the samples' coefficients, from 0, and longer.
    """
    size = trial.case.query.shape[0]
    unit, count = trial.case.sensitivity.unit, max(1000, round(6000 * trial.effort))
    corner = np.zeros((size, size))
    corner[0, 0] = 1.0
    # Next to a long row, from nothing, and one of several orthogonal rows made longer.
    pairs = (
        (_with(size, 0.0), _with(size, unit)),
        (0 * corner, unit**2 * corner),
        (np.eye(size), np.eye(size) + (2 + unit) * unit * corner),
    )
    parts = len(_SCALES) * len(pairs)
    for scale in _SCALES:
        bench = trial.own_bench(scale)
        attack = AttackByDraws(
            event=trial.event(bench), rate=trial.rate, parts=parts, stages=_STAGES
        )
        for before, after in pairs:
            draw = partial(_draw_pair, bench, before.ravel(), after.ravel())
            attack.run(count, Attempt(draw, _of_rows, f"at scale {scale:g}, a moved row"))
    limit = describe_limit(count, trial.rate / (parts * len(_STAGES)))
    return f"{12 * count} draws; {limit}"


def _draw_pair(
    bench: Bench,
    before: NDArray[np.float64],
    after: NDArray[np.float64],
    count: int,
    start: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Releases of the moved value and of the other, in the query's shape."""
    shape = count, *bench.query.shape
    return (
        bench.draws(after, count, start).reshape(shape),
        bench.draws(before, count, 2 * start).reshape(shape),
    )


def _of_rows(p: NDArray[np.float64], q: NDArray[np.float64]) -> list[Sample]:
    """Return what matrices say of the first row: shape (releases, size, size) each."""
    numbers: dict[str, Callable[[NDArray[np.float64]], NDArray[Any]]] = {
        "the first entry": lambda matrices: matrices[:, :1, 0],
        "the first row along the second": _along,
        "the least eigenvalue": lambda matrices: np.linalg.eigvalsh(matrices)[:, :1],
    }
    return [
        Sample(p=np.asarray(number(p), float), q=np.asarray(number(q), float), what=what)
        for what, number in numbers.items()
    ]


def _with(size: int, length: float) -> NDArray[np.float64]:
    """Return the Gram matrix of a row of that length, a long one in the same direction, and zero
    rows.
    """
    rows = np.zeros(size)
    rows[:2] = length, _LONG
    return np.outer(rows, rows)


def _along(matrices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the first row's component along the second, as second moments say it, shape (count,
    1).
    """
    return np.asarray(matrices[:, 0, 1] / np.sqrt(matrices[:, 1, 1]))[:, None]


def _opposed(trial: Trial, scale: float) -> Iterator[tuple[AttackByDraws, Attempt]]:
    """Values that the mechanism takes, and the same after a step in opposite directions."""
    for size in (2, 5):
        bench = trial.bench(size, scale)
        signs: NDArray[np.float64] = np.full(size, -1.0)
        signs[0] = 1.0
        deviation = {Distance.L1: size, Distance.L2: math.sqrt(size)}.get(trial.distance, 1.0)
        # At a tie, with the first coordinate about to overtake, and far from any tie.
        for base in (np.zeros(size), -0.5 * signs, 2.0 * np.arange(size)):
            before: NDArray[np.float64] = np.asarray(base, dtype=np.float64)
            after = before + signs / deviation
            if not bench.takes(before) or not bench.takes(after):
                before, after = np.rint(before), np.rint(before) + np.eye(size)[0]
            if bench.takes(before) and bench.takes(after):
                # Events of either order of the two values are compared.
                attack = AttackByDraws(
                    event=trial.event(bench), rate=trial.rate, parts=len(_SCALES), stages=_STAGES
                )
                draw = partial(_draw_pair, bench, before, after)
                yield attack, Attempt(draw, _choice, f"at scale {scale:g}, mixed steps")


def _choice(p: NDArray[np.float64], q: NDArray[np.float64]) -> Sequence[Sample]:
    """Return the option that either side chose."""
    return pool_outputs(f"the choice among {p.shape[1]}")(_labels(p), _labels(q))


def _labels(outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the number of the largest coordinate where outputs are few, else the first
    coordinate.
    """
    if len(np.unique(outputs)) <= 2:
        return np.asarray(np.argmax(outputs, axis=1, keepdims=True), dtype=np.float64)
    return outputs[:, :1]
