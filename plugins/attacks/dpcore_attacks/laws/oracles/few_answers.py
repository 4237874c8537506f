"""An oracle whose answers are few different ones (thresholds, say), asked many times at once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpcore.errors import ExhaustedError
from dpcore.events.composition import repeated
from dpcore.functions.interactive import Oracle
from dpcore.functions.kernels.base import Expansion
from dpcore_attacks.effort import Effort
from dpcore_attacks.laboratory.excess import Sample, excess, visible
from dpcore_attacks.laws.law import (
    RATE,
    BrokenLawError,
    Law,
    NotApplicableError,
    Verdict,
    judge,
)
from dpcore_attacks.laws.oracles.interactive import InteractiveCase

FEW_ANSWERS = Law(
    "interactive.event-of-many-questions",
    "Where answers are few different ones, no count of them at points where two functions differ "
    "in opposite directions exceeds the planned events together (attacked).",
    statistical=True,
)

LAWS = (FEW_ANSWERS,)

_POINTS = 256
_FEW = 8  # different answers
_TIMES = 4  # as many draws as transcripts of a game
_NEAR = 1e-7  # relative: different points, nearly the same question


Score = Callable[[NDArray[np.float64]], float]


def few_answers_verdict(
    case: InteractiveCase, seed: int, transcripts: int | None, rate: float = RATE
) -> Verdict:
    """Half of the questions where a function rises, half where it falls; from 0, and back to it."""
    return judge(FEW_ANSWERS, case.name, partial(_few_answers, case, seed, transcripts, rate))


def _few_answers(case: InteractiveCase, seed: int, transcripts: int | None, rate: float) -> str:
    duel = case.duel()
    most = min(duel.mechanism.most_points, _POINTS)
    flat = Expansion(kernel=case.query.kernel, points=case.points[:1], coefficients=np.zeros(1))
    step = duel.after.coefficients[:1]
    raised = Expansion(kernel=case.query.kernel, points=case.points[:1], coefficients=step)
    corners = np.vstack([case.points, -case.points])
    moved = raised(corners)
    high, low = corners[int(np.argmax(moved))], corners[int(np.argmin(moved))]
    half = max(1, most // 2)
    shrinking = 1 - _NEAR * np.arange(half)[:, None]
    points = np.vstack([high * shrinking, low * shrinking])[:most]
    seen = {answer for k in range(3) for answer in _asked(duel.oracle(raised, k), points)}
    if len(seen) > _FEW:
        raise NotApplicableError("its answers are numbers: other laws ask for them")
    count = max(400, _TIMES * (transcripts or Effort().transcripts))
    start = 3_000_000 * (1 + seed)

    def draws(function: Expansion, first: int) -> list[NDArray[np.float64]]:
        return [_asked(oracle, points) for oracle in duel.oracles(function, first, count)]

    after, before = draws(raised, start), draws(flat, start + count)
    samples = [
        Sample(p=_numbers(after, score), q=_numbers(before, score), what=what)
        for what, score in (
            ("more answers here than there", partial(_difference, half)),
            ("the sum of answers", _sum),
            ("how many were answered", len),
        )
    ]
    event = repeated(duel.mechanism.event(duel.query, duel.sensitivity), duel.mechanism.asks)
    found = excess(samples, event, rate)
    if found is not None and found.broken:
        raise BrokenLawError(
            f"by {found.what} of {most} questions, delta({found.epsilon:g}) >= {found.least:.4g} "
            f"was seen (chance {rate:g} of an error), {found.claimed:.4g} is claimed"
        )
    least = visible(count, rate)
    return f"{2 * count} draws; a delta that is {least:.2g} too small would have been seen"


def _asked(oracle: Oracle, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """All at once, or one by one as far as it answers."""
    try:
        return np.asarray(oracle.ask(points), dtype=np.float64)
    except ExhaustedError:
        given: list[float] = []
        for point in points:
            try:
                given.append(float(oracle.ask(point[None, :])[0]))
            except ExhaustedError:
                break
        return np.array(given)


def _difference(half: int, answers: NDArray[np.float64]) -> float:
    return float(answers[:half].sum() - answers[half:].sum())


def _sum(answers: NDArray[np.float64]) -> float:
    return float(answers.sum())


def _numbers(played: list[NDArray[np.float64]], score: Score) -> NDArray[np.float64]:
    return np.array([[float(score(answers))] for answers in played])
