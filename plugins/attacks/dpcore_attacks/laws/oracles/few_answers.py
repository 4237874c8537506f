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
    size = min(duel.mechanism.most_points, _POINTS)
    flat = Expansion(kernel=case.query.kernel, points=case.points[:1], coefficients=np.zeros(1))
    step = duel.after.coefficients[:1]
    raised = Expansion(kernel=case.query.kernel, points=case.points[:1], coefficients=step)
    # Where the difference of both functions is largest, and where it is smallest.
    corners = np.vstack([case.points, -case.points])
    values = raised(corners)
    high, low = corners[int(np.argmax(values))], corners[int(np.argmin(values))]
    half = max(1, size // 2)
    # Different points, so that each costs a question; near enough to count as one.
    shrinking = 1 - _NEAR * np.arange(half)[:, None]
    points = np.vstack([high * shrinking, low * shrinking])[:size]
    distinct = {answer for k in range(3) for answer in _ask_all(duel.oracle(raised, k), points)}
    if len(distinct) > _FEW:
        raise NotApplicableError("its answers are numbers: other laws ask for them")
    count = max(400, _TIMES * (transcripts or Effort().transcripts))
    start = 3_000_000 * (1 + seed)

    def draws(function: Expansion, first: int) -> list[NDArray[np.float64]]:
        return [_ask_all(oracle, points) for oracle in duel.oracles(function, first, count)]

    after, before = draws(raised, start), draws(flat, start + count)
    samples = [
        Sample(p=_numbers(after, score), q=_numbers(before, score), what=what)
        for what, score in (
            ("more answers here than there", partial(_difference, half)),
            ("the sum of answers", _sum),
            ("how many were answered", len),
        )
    ]
    # All answers together are paid for by as many events as the oracle may be asked.
    event = repeated(duel.mechanism.event(duel.query, duel.sensitivity), duel.mechanism.asks)
    worst = excess(samples, event, rate)
    if worst is not None and worst.broken:
        raise BrokenLawError(
            f"by {worst.what} of {size} questions, delta({worst.epsilon:g}) >= {worst.least:.4g} "
            f"was seen (chance {rate:g} of an error), {worst.claimed:.4g} is claimed"
        )
    limit = visible(count, rate)
    return f"{2 * count} draws; a delta that is {limit:.2g} too small would have been seen"


def _ask_all(oracle: Oracle, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """All at once, or one by one as far as it answers."""
    try:
        return np.asarray(oracle.ask(points), dtype=np.float64)
    except ExhaustedError:
        answers: list[float] = []
        for point in points:
            try:
                answers.append(float(oracle.ask(point[None, :])[0]))
            except ExhaustedError:
                break
        return np.array(answers)


def _difference(half: int, answers: NDArray[np.float64]) -> float:
    return float(answers[:half].sum() - answers[half:].sum())


def _sum(answers: NDArray[np.float64]) -> float:
    return float(answers.sum())


def _numbers(played: list[NDArray[np.float64]], score: Score) -> NDArray[np.float64]:
    return np.array([[float(score(answers))] for answers in played])
