"""What many answers of an oracle say, by draws: at points that know nothing of each other, where
two functions lie most distant apart, and where answers are few different ones (thresholds, say).
"""

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.claims.events.composition import repeated
from dpcore.errors import ExhaustedError
from dpcore.functions import Expansion, Oracle
from dpcore_attacks.attacks.oracle_attack import Duel
from dpcore_attacks.effort import Effort
from dpcore_attacks.laboratory.excess import Sample
from dpcore_attacks.laws.attack_by_draws import (
    AttackByDraws,
    Attempt,
    Draw,
    Stage,
    describe_limit,
    pool_outputs,
    two_stages,
)
from dpcore_attacks.laws.law import RATE, Law, Verdict, judge, skip_if
from dpcore_attacks.laws.oracles.interactive import InteractiveCase

DISTANT_POINTS = Law(
    "interactive.event-at-far-points",
    "No event of one answer exceeds the price of all questions, where answers at points that are "
    "far from one another are pooled (attacked by many draws).",
    statistical=True,
)
ONE_QUESTION = Law(
    "interactive.event-at-one-point",
    "No event of answers where two functions lie most distant apart exceeds the planned events "
    "together (attacked by many draws).",
    statistical=True,
)
FEW_ANSWERS = Law(
    "interactive.event-of-many-questions",
    "Where answers are few different ones, no count of them at points where two functions differ "
    "in opposite directions exceeds the planned events together (attacked).",
    statistical=True,
)

LAWS = (DISTANT_POINTS, ONE_QUESTION, FEW_ANSWERS)

_SIDE = 5  # points along each axis
_AXES = 3
_SPACINGS = (1.0, 4.0, 16.0)
_APART = 1e-12  # of K(x, x): what two of the points may have in common
_FRACTION = 0.3  # oracles at far points, of the transcripts of a game
_FEWEST = 30  # oracles of either function
_MORE = 8  # times as many, where the first ones are suspicious
_STREAMS = 6  # at which answers must depend on the function at their own point only
_EXACT = 1e-9  # of a movement

_SUMS = 10  # as many draws at one point as transcripts of a game
_MOST_QUERIES = 16
_DEAR = (0.0, 1.0)  # where curves are compared that are composed for every number

_COUNTS = 4  # as many draws of few answers as transcripts of a game
_POINTS = 256
_FEW = 8  # different answers
_NEAR = {ONE_QUESTION: 1e-6, FEW_ANSWERS: 1e-7}
"""Relative: different points, nearly the same question."""


def answers_verdict(
    law: Law, case: InteractiveCase, seed: int, transcripts: int | None, rate: float = RATE
) -> Verdict:
    """Return the verdict on one of these laws.

    Args:
        transcripts: Of either function in a game, of which each law draws a multiple; those of the
            default effort if None.
        rate: Chance that a right mechanism fails it.
    """
    count = transcripts or Effort().transcripts
    return judge(law, case.name, partial(_CHECKS[law], case, seed, count, rate))


def _distant_points(case: InteractiveCase, seed: int, transcripts: int, rate: float) -> str:
    """Return a function that moves by the claim at every point, for an oracle that looks at each
    only.
    """
    duel = case.duel()
    skip_if(duel.mechanism.query_count != 1, "its price is of several answers together")
    points = _unrelated_points(case)[: duel.mechanism.most_points]
    skip_if(len(points) < 2, "no two points of the domain have nothing in common")
    # Each point's own term has exactly the claimed norm, and the points share nothing.
    steps = case.sensitivity.value / np.sqrt(case.query.kernel.diagonal(points))
    # Longer than the claim as a whole, which only an oracle that looks at one point ignores.
    before = Expansion(kernel=case.query.kernel, points=points, coefficients=0 * steps)
    after = attrs.evolve(before, coefficients=steps)
    _require_local(duel, before, after, seed)
    first = max(_FEWEST, round(_FRACTION * transcripts))
    # A second look on fresh oracles, only where the first is suspicious.
    starts = 40_000_000 + 200_000 * seed, 60_000_000 + 200_000 * seed
    attack = AttackByDraws(
        event=duel.mechanism.event(duel.query, duel.sensitivity),
        rate=rate,
        stages=two_stages(starts, _MORE),
    )
    draw = _drawing(duel, before, after, lambda oracle: oracle.ask(points))
    draws = attack.run(
        first, Attempt(draw, pool_outputs(f"single answers at {len(points)} points"))
    )
    limit = describe_limit(first * len(points), rate / 2)
    return f"{2 * draws * len(points)} answers; {limit}"


def _unrelated_points(case: InteractiveCase) -> NDArray[np.float64]:
    """Points of the domain between which the kernel is 0: of a lattice, or of the axes."""
    width, kernel, kappa = case.query.width, case.query.kernel, case.query.kappa
    axes = min(width, _AXES)
    grid = np.array(list(itertools.product(range(_SIDE), repeat=axes)), dtype=np.float64)
    lattice = np.zeros((len(grid), width))
    lattice[:, :axes] = grid - (_SIDE - 1) / 2
    candidates = [spacing * lattice for spacing in _SPACINGS]
    candidates.append(kappa * (1 - 1e-9) * np.eye(width))
    for points in candidates:
        diagonal = kernel.diagonal(points)
        if (diagonal > kappa**2).any() or (diagonal <= 0).any():
            continue
        shared = np.abs(kernel(points, points) - np.diag(diagonal))
        if shared.max() <= _APART * diagonal.min():
            return points
    return np.empty((0, width))


def _require_local(duel: Duel, before: Expansion, after: Expansion, seed: int) -> None:
    """At equal streams, an answer must be moved by what the function at its point is moved by.

    Raises:
        NotApplicableError: it depends on the function elsewhere.
    """
    rng, points, steps = np.random.default_rng(seed), after.points, after.coefficients
    for number in range(_STREAMS):
        # Half of the points moved: each answer must be as if all, or none, had moved.
        mask = rng.random(len(points)) < 0.5
        mixed = attrs.evolve(before, coefficients=np.where(mask, steps, 0.0))
        old, new, answers = (
            duel.oracle(function, 30_000_000 + number).ask(points)
            for function in (before, after, mixed)
        )
        skip_if(
            np.abs(answers - np.where(mask, new, old)).max() > _EXACT * np.abs(steps).min(),
            "its answers depend on the function at other points",
        )


def _one_question(case: InteractiveCase, seed: int, transcripts: int, rate: float) -> str:
    """As many answers as were paid for, up to 16, at points next to one another; their sum."""
    duel = case.duel()
    query_count = min(duel.mechanism.query_count, duel.mechanism.most_points, _MOST_QUERIES)
    distant_point = case.points[int(np.argmax(np.abs(duel.difference(case.points))))]
    # Points next to one another: the sum of their answers moves as one answer many times.
    points = distant_point * (1 - _NEAR[ONE_QUESTION] * np.arange(query_count)[:, None])
    draw = _drawing(duel, duel.before, duel.after, lambda oracle: [float(oracle.ask(points).sum())])
    epsilons = None if duel.mechanism.query_count == 1 else _DEAR
    attack = _attack_on_all_queries(duel, 1_000_000 * (1 + seed), rate, epsilons)
    count = max(200, _SUMS * transcripts // query_count**2)
    draws = attack.run(count, Attempt(draw, pool_outputs("the sum of answers at one point")))
    return f"{2 * draws} draws; {describe_limit(count, rate)}"


def _few_answers(case: InteractiveCase, seed: int, transcripts: int, rate: float) -> str:
    """Half of the questions where a function rises, half where it falls; from 0, and back to it."""
    duel = case.duel()
    size = min(duel.mechanism.most_points, _POINTS)
    flat = Expansion(kernel=case.query.kernel, points=case.points[:1], coefficients=np.zeros(1))
    raised = attrs.evolve(flat, coefficients=duel.after.coefficients[:1])
    # Where the difference of both functions is largest, and where it is smallest.
    corners = np.vstack([case.points, -case.points])
    values = raised(corners)
    high, low = corners[int(np.argmax(values))], corners[int(np.argmin(values))]
    half = max(1, size // 2)
    # Different points, so that each costs a question; near enough to count as one.
    shrinking = 1 - _NEAR[FEW_ANSWERS] * np.arange(half)[:, None]
    points = np.vstack([high * shrinking, low * shrinking])[:size]
    distinct = {answer for k in range(3) for answer in _ask_all(points, duel.oracle(raised, k))}
    skip_if(len(distinct) > _FEW, "its answers are numbers: other laws ask for them")
    attack = _attack_on_all_queries(duel, 3_000_000 * (1 + seed), rate)
    count = max(400, _COUNTS * transcripts)
    draw = _drawing(duel, flat, raised, partial(_ask_all, points))
    draws = attack.run(count, Attempt(draw, partial(_counts, size, half)))
    return f"{2 * draws} draws; {describe_limit(count, rate)}"


def _ask_all(points: NDArray[np.float64], oracle: Oracle) -> NDArray[np.float64]:
    """Return all at once, or one by one as far as it answers."""
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


def _counts(
    size: int, half: int, after: list[NDArray[np.float64]], before: list[NDArray[np.float64]]
) -> list[Sample]:
    """Return what counts of few different answers tell: oracles may answer different numbers of
    them.
    """
    scores: dict[str, Callable[[NDArray[np.float64]], float]] = {
        "more answers here than there": lambda answers: answers[:half].sum() - answers[half:].sum(),
        "the sum of answers": lambda answers: answers.sum(),
        "how many were answered": len,
    }
    return [
        Sample(
            p=np.array([[float(score(answers))] for answers in after]),
            q=np.array([[float(score(answers))] for answers in before]),
            what=f"{label} of {size} questions",
        )
        for label, score in scores.items()
    ]


def _attack_on_all_queries(
    duel: Duel, start: int, rate: float, epsilons: tuple[float, ...] | None = None
) -> AttackByDraws:
    """Return all answers together are paid for by as many events as the oracle may be asked."""
    event = repeated(duel.mechanism.event(duel.query, duel.sensitivity), duel.mechanism.query_count)
    return AttackByDraws(event=event, rate=rate, stages=(Stage(1, start),), epsilons=epsilons)


def _drawing(
    duel: Duel, before: Expansion, after: Expansion, query: Callable[[Oracle], Any]
) -> Draw:
    """Answers of fresh oracles of either function, by streams that never meet."""

    def draw(count: int, start: int) -> tuple[Any, Any]:
        return (
            [query(oracle) for oracle in duel.oracles(after, start, count)],
            [query(oracle) for oracle in duel.oracles(before, start + count, count)],
        )

    return draw


_CHECKS: Mapping[Law, Callable[[InteractiveCase, int, int, float], str]] = {
    DISTANT_POINTS: _distant_points,
    ONE_QUESTION: _one_question,
    FEW_ANSWERS: _few_answers,
}
