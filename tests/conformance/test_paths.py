"""Halving a path between two data sets ends at the neighbours between which a statistic jumps."""

import numpy as np
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE, Range
from dpcore.conformance.attacks.neighbours import pair_of
from dpcore.conformance.attacks.paths import Path, largest_step, paths
from dpcore.conformance.attacks.rows import Rows
from dpcore.domain.domain import Domain

DOMAIN = Domain(columns={"a": Range(-1, 1)}, target="y", labels=Range(-1, 1), exact=1000)


def group(records):
    """The number of positive labels, 0 where there are fewer than 137."""
    count = int((records.labels > 0).sum())
    return np.array([float(count) if count >= 137 else 0.0])


@pytest.mark.parametrize("relation", [REPLACE_ONE, ADD_REMOVE])
def test_the_step_with_the_jump_is_found_in_few_evaluations(relation):
    rows, calls = Rows(DOMAIN), []
    every = np.zeros(1000, dtype=np.intp)
    path = Path(
        raw=np.zeros((2, 1)),
        labels=np.array([-1.0, 1.0]),
        old=every,
        new=every + 1,
        rest=every[:0],
        origin="by hand",
    )

    def value(records):
        calls.append(len(records))
        return group(records)

    found = largest_step(path, rows, relation, value, np.random.default_rng(0))
    pair = pair_of(found, rows, relation)
    counts = sorted(int((r.labels > 0).sum()) for r in (pair.before, pair.after))
    assert counts == [136, 137]
    assert len(calls) <= 12


@pytest.mark.parametrize("relation", [REPLACE_ONE, ADD_REMOVE])
@pytest.mark.parametrize("size", [1, 2, 40])
def test_every_step_of_every_path_is_a_pair_of_neighbours_of_its_size(relation, size):
    rows = Rows(DOMAIN)
    ways = paths(rows, size, relation, np.random.default_rng(5))
    for _ in range(20):
        path = next(ways)
        for number in {0, path.steps // 2, path.steps - 1}:
            pair = pair_of(path.step(number, rows, relation), rows, relation)
            more = int(relation.membership)
            assert len(pair.after) == len(pair.before) + more
            assert len(pair.after) == size or relation.membership
            kept = np.delete(pair.after.labels, pair.changed)
            other = pair.before.labels if more else np.delete(pair.before.labels, pair.changed)
            assert np.array_equal(kept, other)
