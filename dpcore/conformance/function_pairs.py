"""The pair on which a function moves farthest in its kernel's norm, and points that show it.

Arrays alone do not tell that norm; two expansions do: with coefficients a on one's points and -b on
the other's, it is sqrt(c^T K c).
"""

from __future__ import annotations

import math
import time
from typing import cast

import attrs
import numpy as np
from numpy.typing import NDArray

from dpcore.conformance.case import Case
from dpcore.conformance.constructions import starts
from dpcore.conformance.neighbours import Configuration, Pair, pair_of
from dpcore.conformance.rows import Rows
from dpcore.functions import FunctionLearner, FunctionQuery
from dpcore.kernels.base import Expansion
from dpcore.randomness import SecretCoins

_POINTS = 8  # asked about, at most
_CANDIDATES = 40  # points of which they are chosen


@attrs.frozen(eq=False)
class FunctionPair:
    """Two neighbours, the distance of their functions in the kernel's norm, and points to ask.

    Args:
        points: Encoded rows, shape (k, p), where the functions differ most first.
    """

    pair: Pair
    distance: float
    points: NDArray[np.float64]
    origin: str


def function_pair(
    case: Case, most_points: int, seconds: float, seed: int = 0
) -> FunctionPair | None:
    """The best of the constructions that the time allows (ten at least); None if all fits fail.

    Args:
        most_points: How many different points may be asked about.
    """
    rng, rows, end = np.random.default_rng(seed), Rows(case.domain), time.monotonic() + seconds
    size = case.domain.exact - 1 if case.domain.exact else min(case.domain.at_most or 100, 100)
    best: tuple[float, Configuration] | None = None
    stream = starts(rows, size, rng)
    tried = 0
    while tried < 10 or time.monotonic() < end:
        configuration, tried = next(stream), tried + 1
        if tried > 10_000:
            break
        pair = pair_of(configuration, rows, case.adjacency)
        fitted = _fitted(case, pair)
        if fitted is None:
            continue
        found = kernel_distance(*fitted)
        if math.isfinite(found) and (best is None or found > best[0]):
            best = found, configuration
    if best is None:
        return None
    pair = pair_of(best[1], rows, case.adjacency)
    points = _points(case, pair, rows, min(most_points, _POINTS), rng)
    return FunctionPair(pair, best[0], points, best[1].origin)


def kernel_distance(first: Expansion, second: Expansion) -> float:
    """The norm of the difference of two functions of one kernel."""
    points = np.vstack([first.points, second.points])
    coefficients = np.concatenate([first.coefficients, -second.coefficients])
    distinct, place = np.unique(points, axis=0, return_inverse=True)
    merged = np.bincount(place.reshape(-1), weights=coefficients, minlength=len(distinct))
    return math.sqrt(max(0.0, float(merged @ first.kernel(distinct, distinct) @ merged)))


def _fitted(case: Case, pair: Pair) -> tuple[Expansion, Expansion] | None:
    learner = cast(FunctionLearner, case.learner)
    (query,) = learner.queries(case.public)
    own = SecretCoins.rehearsal(0).learner(0, query.name, 1)
    asked = cast(FunctionQuery, query)
    try:
        first, second = (
            learner.function(asked, records, case.public, own)
            for records in (pair.before, pair.after)
        )
    except Exception:  # a fit that fails is no pair to sample; the kit has a law for it
        return None
    return first, second


def _points(
    case: Case, pair: Pair, rows: Rows, count: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Of the pair's own rows, corners and random rows, those where the functions differ most."""
    own = np.unique(np.vstack([pair.before.features, pair.after.features]), axis=0)
    raw = np.vstack([rows.corners(rng, _CANDIDATES), rows.anywhere(rng, _CANDIDATES)])
    made = rows.project(raw, np.zeros(len(raw))).features
    candidates = np.unique(np.vstack([own[: 2 * _CANDIDATES], made]), axis=0)
    fitted = _fitted(case, pair)
    assert fitted is not None, "the pair was fitted before"
    apart = np.abs(fitted[0](candidates) - fitted[1](candidates))
    order = np.argsort(-apart)
    # half of them where the functions differ most, half where they differ least: a difference of
    # two answers tells as much as either, and more where their noise is shared
    near = -(-count // 2)
    chosen = np.concatenate([order[:near], order[::-1][: count - near]])
    return np.asarray(candidates[chosen])
