"""An oracle asked at points that know nothing of each other: each answer is a draw of its own."""

from __future__ import annotations

import itertools
from functools import partial

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.functions.kernels.base import Expansion
from dpcore_attacks.attacks.oracle_attack import Duel
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

FAR_POINTS = Law(
    "interactive.event-at-far-points",
    "No event of one answer exceeds the price of all questions, where answers at points that are "
    "far from one another are pooled (attacked by many draws).",
    statistical=True,
)

LAWS = (FAR_POINTS,)

_SIDE = 5  # points along each axis
_AXES = 3
_SPACINGS = (1.0, 4.0, 16.0)
_APART = 1e-12  # of K(x, x): what two of the points may have in common
_SHARE = 0.3  # oracles, of the transcripts of a game
_FEWEST = 30  # oracles of either function
_MORE = 8  # times as many, where the first ones are suspicious
_STREAMS = 6  # at which answers must depend on the function at their own point alone
_EXACT = 1e-9  # of a movement


def far_points_verdict(
    case: InteractiveCase, seed: int, transcripts: int | None, rate: float = RATE
) -> Verdict:
    """A function that moves by the claim at every point, for an oracle that looks at each alone."""
    return judge(FAR_POINTS, case.name, partial(_far_points, case, seed, transcripts, rate))


def _far_points(case: InteractiveCase, seed: int, transcripts: int | None, rate: float) -> str:
    duel = case.duel()
    if duel.mechanism.asks != 1:
        raise NotApplicableError("its price is of several answers together")
    points = _unrelated_points(case)[: duel.mechanism.most_points]
    if len(points) < 2:
        raise NotApplicableError("no two points of the domain have nothing in common")
    kernel = case.query.kernel
    # Each point's own term has exactly the claimed norm, and the points share nothing.
    steps = case.sensitivity.value / np.sqrt(kernel.diagonal(points))

    def function(weights: NDArray[np.float64]) -> Expansion:
        return Expansion(kernel=kernel, points=points, coefficients=weights)

    # Longer than the claim as a whole, which only an oracle that looks at one point ignores.
    before, after = function(np.zeros(len(points))), function(steps)
    _require_local(duel, points, steps, seed)
    level, first = rate / 2, max(_FEWEST, round(_SHARE * (transcripts or Effort().transcripts)))
    event = duel.mechanism.event(duel.query, duel.sensitivity)
    answers = 0
    # A second look on fresh oracles, only where the first is suspicious.
    for count, start in ((first, 40_000_000), (_MORE * first, 60_000_000)):
        first_seed = start + 200_000 * seed
        p, q = (
            np.array([oracle.ask(points) for oracle in duel.oracles(target, side, count)])
            for target, side in ((after, first_seed), (before, first_seed + count))
        )
        answers += 2 * p.size
        sample = Sample(p=p, q=q, what=f"single answers at {len(points)} points")
        worst = excess([sample], event, level)
        if worst is not None and worst.broken:
            raise BrokenLawError(
                f"by {worst.what}, delta({worst.epsilon:g}) >= {worst.least:.4g} was seen (chance "
                f"{rate:g} of an error), {worst.claimed:.4g} is claimed"
            )
        if worst is None or not worst.suspicious:
            break
    limit = visible(first * len(points), level)
    return f"{answers} answers; a delta that is {limit:.2g} too small would have been seen"


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


def _require_local(
    duel: Duel, points: NDArray[np.float64], steps: NDArray[np.float64], seed: int
) -> None:
    """At equal streams, an answer must be moved by what the function at its point is moved by.

    Raises:
        NotApplicableError: it depends on the function elsewhere.
    """
    rng = np.random.default_rng(seed)
    flat = Expansion(kernel=duel.query.kernel, points=points, coefficients=0 * steps)
    step_function = attrs.evolve(flat, coefficients=steps)
    for number in range(_STREAMS):
        # Half of the points moved: each answer must be as if all, or none, had moved.
        mask = rng.random(len(points)) < 0.5
        mixed = attrs.evolve(flat, coefficients=np.where(mask, steps, 0.0))
        old, new, answers = (
            duel.oracle(function, 30_000_000 + number).ask(points)
            for function in (flat, step_function, mixed)
        )
        if np.abs(answers - np.where(mask, new, old)).max() > _EXACT * float(np.abs(steps).min()):
            raise NotApplicableError("its answers depend on the function at other points")
