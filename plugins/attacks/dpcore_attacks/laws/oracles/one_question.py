"""An oracle asked where two functions lie farthest apart, by many draws."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpcore.events.composition import repeated
from dpcore.functions.kernels.base import Expansion
from dpcore_attacks.effort import Effort
from dpcore_attacks.laboratory.excess import Sample, excess, visible
from dpcore_attacks.laws.law import RATE, BrokenLawError, Law, Verdict, judge
from dpcore_attacks.laws.oracles.interactive import InteractiveCase

ONE_QUESTION = Law(
    "interactive.event-at-one-point",
    "No event of answers where two functions lie farthest apart exceeds the planned events "
    "together (attacked by many draws).",
    statistical=True,
)

LAWS = (ONE_QUESTION,)

_TIMES = 10  # as many draws as transcripts of a game
_DEAR = (0.0, 1.0)  # where curves are compared that are composed for every number
_NEAR = 1e-6  # relative: different points, nearly the same question


def one_question_verdict(
    case: InteractiveCase, seed: int, transcripts: int | None, rate: float = RATE
) -> Verdict:
    """As many answers as were paid for, up to 16, at points next to one another; their sum."""
    return judge(ONE_QUESTION, case.name, partial(_one_question, case, seed, transcripts, rate))


def _one_question(case: InteractiveCase, seed: int, transcripts: int | None, rate: float) -> str:
    duel = case.duel()
    asks = min(duel.mechanism.asks, duel.mechanism.most_points, 16)
    far_point = case.points[int(np.argmax(np.abs(duel.difference(case.points))))]
    # Points next to one another: the sum of their answers moves as one answer many times.
    points = far_point * (1 - _NEAR * np.arange(asks)[:, None])
    count = max(200, _TIMES * (transcripts or Effort().transcripts) // asks**2)

    def draws(function: Expansion, first: int) -> NDArray[np.float64]:
        sums = [oracle.ask(points).sum() for oracle in duel.oracles(function, first, count)]
        return np.array(sums, dtype=np.float64)[:, None]

    start = 1_000_000 * (1 + seed)
    sample = Sample(
        p=draws(duel.after, start), q=draws(duel.before, start + count), what="the sum of answers"
    )
    event = duel.mechanism.event(duel.query, duel.sensitivity)
    epsilons = None if duel.mechanism.asks == 1 else _DEAR
    worst = excess([sample], repeated(event, duel.mechanism.asks), rate, epsilons)
    if worst is not None and worst.broken:
        raise BrokenLawError(
            f"by {worst.what} at one point, delta({worst.epsilon:g}) >= {worst.least:.4g} was seen "
            f"(chance {rate:g} of an error), {worst.claimed:.4g} is claimed"
        )
    limit = visible(count, rate)
    return f"{2 * count} draws; a delta that is {limit:.2g} too small would have been seen"
