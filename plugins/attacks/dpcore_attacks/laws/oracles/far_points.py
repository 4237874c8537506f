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
    points = _apart(case)[: duel.mechanism.most_points]
    if len(points) < 2:
        raise NotApplicableError("no two points of the domain have nothing in common")
    kernel = case.query.kernel
    steps = case.sensitivity.value / np.sqrt(kernel.diagonal(points))

    def function(weights: NDArray[np.float64]) -> Expansion:
        return Expansion(kernel=kernel, points=points, coefficients=weights)

    before, after = function(np.zeros(len(points))), function(steps)
    _require_local(duel, points, steps, seed)
    level, first = rate / 2, max(_FEWEST, round(_SHARE * (transcripts or Effort().transcripts)))
    event = duel.mechanism.event(duel.query, duel.sensitivity)
    drawn = 0
    for count, start in ((first, 40_000_000), (_MORE * first, 60_000_000)):
        own = start + 200_000 * seed
        p, q = (
            np.array([oracle.ask(points) for oracle in duel.oracles(told, side, count)])
            for told, side in ((after, own), (before, own + count))
        )
        drawn += 2 * p.size
        sample = Sample(p=p, q=q, what=f"single answers at {len(points)} points")
        found = excess([sample], event, level)
        if found is not None and found.broken:
            raise BrokenLawError(
                f"by {found.what}, delta({found.epsilon:g}) >= {found.least:.4g} was seen (chance "
                f"{rate:g} of an error), {found.claimed:.4g} is claimed"
            )
        if found is None or not found.suspicious:
            break
    seen = visible(first * len(points), level)
    return f"{drawn} answers; a delta that is {seen:.2g} too small would have been seen"


def _apart(case: InteractiveCase) -> NDArray[np.float64]:
    """Points of the domain between which the kernel is 0: of a lattice, or of the axes."""
    width, kernel, kappa = case.query.width, case.query.kernel, case.query.kappa
    axes = min(width, _AXES)
    whole = np.array(list(itertools.product(range(_SIDE), repeat=axes)), dtype=np.float64)
    lattice = np.zeros((len(whole), width))
    lattice[:, :axes] = whole - (_SIDE - 1) / 2
    tried = [spacing * lattice for spacing in _SPACINGS]
    tried.append(kappa * (1 - 1e-9) * np.eye(width))
    for points in tried:
        own = kernel.diagonal(points)
        if (own > kappa**2).any() or (own <= 0).any():
            continue
        shared = np.abs(kernel(points, points) - np.diag(own))
        if shared.max() <= _APART * own.min():
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
    moved = attrs.evolve(flat, coefficients=steps)
    for number in range(_STREAMS):
        some = rng.random(len(points)) < 0.5
        mixed = attrs.evolve(flat, coefficients=np.where(some, steps, 0.0))
        old, new, found = (
            duel.oracle(told, 30_000_000 + number).ask(points) for told in (flat, moved, mixed)
        )
        if np.abs(found - np.where(some, new, old)).max() > _EXACT * float(np.abs(steps).min()):
            raise NotApplicableError("its answers depend on the function at other points")
