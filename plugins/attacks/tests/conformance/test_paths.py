"""Halving a path between two data sets ends at the neighbours between which a statistic jumps."""

import sys

import attrs
import numpy as np
import pytest

from dpcore import ADD_REMOVE, REPLACE_ONE, Range
from dpcore.domain.domain import Domain
from dpcore_attacks.attacks.branches import followed
from dpcore_attacks.attacks.neighbours import configuration_of, pair_of
from dpcore_attacks.attacks.paths import Path, branching_step, largest_step, paths
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.source_constants import written

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


def test_a_path_is_halved_where_a_statistic_takes_another_branch():
    rows = Rows(DOMAIN)
    every = np.zeros(1000, dtype=np.intp)
    path = Path(
        raw=np.zeros((2, 1)),
        labels=np.array([-1.0, 1.0]),
        old=every,
        new=every + 1,
        rest=every[:0],
        origin="by hand",
    )

    def statistic(records):  # the branch changes nothing that can be measured
        return 1 if (records.labels > 0).sum() >= 703 else 2 - 1

    def taken(records):
        return followed(lambda: statistic(records), frozenset([__file__]))[1]

    pair = pair_of(branching_step(path, rows, REPLACE_ONE, taken), rows, REPLACE_ONE)
    assert [int((r.labels > 0).sum()) for r in (pair.before, pair.after)] == [702, 703]
    assert branching_step(path, rows, REPLACE_ONE, lambda records: frozenset()) is None


def test_following_branches_puts_a_tracer_back_and_follows_no_other_code():
    before = sys.gettrace()
    found, taken = followed(lambda: group(next(iter([Fixed()]))), frozenset(["elsewhere.py"]))
    assert (float(found[0]), taken) == (0.0, frozenset())
    assert sys.gettrace() is before


class Fixed:
    labels = np.ones(3)


LIMIT = 0.375


def helper(labels):
    return np.abs(labels - 0.3125) < LIMIT / 64


class Special:
    """A class with numbers in a method, a helper of it and a global."""

    def statistic(self, records):
        return helper(records.labels).sum() * 29 + abs(-0.75)


def test_numbers_are_read_from_methods_from_what_they_call_and_from_globals():
    found = written(Special(), 1.0)
    assert {0.3125, -0.3125, 0.375, 0.75} <= set(found.numbers.tolist())
    assert {29, 64} <= set(found.counts)
    assert found.files == {__file__}


@pytest.mark.parametrize("relation", [REPLACE_ONE, ADD_REMOVE])
def test_a_saved_pair_becomes_the_same_neighbours_in_a_domain_of_another_size(relation):
    rows = Rows(DOMAIN)
    start = next(paths(rows, 40, relation, np.random.default_rng(3))).step(5, rows, relation)
    pair = pair_of(start, rows, relation)
    found = configuration_of(pair, rows)
    assert found.base_size == 999
    again = pair_of(found, rows, relation)
    for one, other in ((pair.before, again.before), (pair.after, again.after)):
        ours, theirs = ({*map(tuple, np.c_[r.features, r.labels])} for r in (one, other))
        assert ours == theirs
    narrow = attrs.evolve(DOMAIN, labels=Range(-0.1, 0.1))
    assert np.abs(pair.after.labels).max() <= 0.1 or configuration_of(pair, Rows(narrow)) is None
    wide = attrs.evolve(DOMAIN, columns={"a": Range(-1, 1), "b": Range(-1, 1)})
    assert configuration_of(pair, Rows(wide)) is None
