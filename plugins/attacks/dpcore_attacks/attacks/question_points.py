"""Points at which a function release is asked about, in an audit."""

from typing import cast

import numpy as np
from numpy.typing import NDArray

from dpcore import Query, SecretRandomness
from dpcore.functions import Expansion
from dpcore_attacks.attacks.neighbours import Pair
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.attacks.statistic import compute

_POINTS = 8  # asked about, at most
_CANDIDATES = 40  # corners, and random rows, of which they are chosen


def question_points(case: Case, pair: Pair, most: int, seed: int = 0) -> NDArray[np.float64]:
    """Of the pair's own rows, corners and random rows, encoded; shape (k, p), k <= `most`.

    Half of them lie where the two functions differ most, half where they differ least: a difference
    of two answers says as much as either, and more where their noise is shared.
    """
    rng, rows = np.random.default_rng(seed), Rows(case.domain)
    pair_rows = np.unique(np.vstack([pair.before.features, pair.after.features]), axis=0)
    raw = np.vstack([rows.corners(rng, _CANDIDATES), rows.anywhere(rng, _CANDIDATES)])
    domain_rows = rows.project(raw, np.zeros(len(raw))).features
    # rows of the pair, which its functions are made of, and rows from all over the domain
    candidates = np.unique(np.vstack([pair_rows[: 2 * _CANDIDATES], domain_rows]), axis=0)
    (query,) = case.learner.queries(case.public)
    first, second = functions_of(case, query, pair)
    order = np.argsort(-np.abs(first(candidates) - second(candidates)))
    count = min(most, _POINTS, len(candidates))
    near = -(-count // 2)
    return np.asarray(candidates[np.concatenate([order[:near], order[::-1][: count - near]])])


def functions_of(case: Case, query: Query, pair: Pair) -> tuple[Expansion, ...]:
    """Return what a learner of functions fits on either neighbour."""
    # one value of the secret randomness for both: the functions differ by the records only
    randomness = SecretRandomness.rehearsal(0).learner(0, query.name, 1)
    values = (
        compute(case.learner, query, records, case.public, randomness)
        for records in (pair.before, pair.after)
    )
    return tuple(cast(Expansion, value) for value in values)
