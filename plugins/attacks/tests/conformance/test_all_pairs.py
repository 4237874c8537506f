"""All pairs of a block of candidates: the most distant of an exact sum, against brute force."""

import itertools

import attrs
import numpy as np
import pytest

from dpcore import ADD_REMOVE, REPLACE_LABEL, REPLACE_ONE
from dpcore.models.features.identity import Identity
from dpcore.sensitivity import Distance
from dpcore_attacks.attacks.all_pairs import Candidates, attackable, distant_pairs
from dpcore_attacks.attacks.claim import Target
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.neighbours import pair_of
from dpcore_attacks.attacks.rows import Rows
from dpcore_attacks.attacks.setting import Case, queries_of
from dpcore_attacks.effort import Effort
from dpcore_linear import ClippedGradient, ClippedGradientBound

from doubles import domain

ORDERS = {Distance.L1: 1, Distance.L2: 2, Distance.LINF: np.inf}


def case(adjacency=REPLACE_ONE, bound=None):
    return Case(
        learner=ClippedGradient(features=Identity(), clip=0.3, steps=2),
        bound=bound or ClippedGradientBound(),
        domain=domain(records=12),
        adjacency=REPLACE_ONE,
    ).under(adjacency)


@pytest.mark.parametrize("distance", ORDERS)
def test_the_farthest_pair_is_that_of_brute_force(distance):
    totals = np.random.default_rng(0).normal(size=(30, 4))

    def tail(pair):
        return np.linalg.norm(totals[pair[0]] - totals[pair[1]], ord=ORDERS[distance])

    best = max(itertools.combinations(range(30), 2), key=tail)
    found = distant_pairs(totals, distance, REPLACE_ONE, 3)
    assert {*found[0]} == {*best}
    assert len({place for pair in found for place in pair}) == 6
    longest = int(np.argmax(np.linalg.norm(totals, ord=ORDERS[distance], axis=1)))
    assert distant_pairs(totals, distance, ADD_REMOVE, 1) == [(longest, longest)]


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_whole_datasets_move_as_far_as_their_two_records(adjacency):
    """Brute force: both datasets are evaluated, with eleven other records."""
    attacked = case(adjacency)
    rows = Rows(attacked.domain)
    query = queries_of(attacked, "gradient", np.random.default_rng(0))[0]
    found = Candidates.drawn(rows, 60, np.random.default_rng(1))
    ((_, claim),) = attacked.claims()
    totals = found.totals(attacked, query)
    (old, new), *_ = distant_pairs(totals, query.distance, adjacency, 1)
    step = totals[new] if adjacency.membership else totals[new] - totals[old]
    start = next(found.distant_configurations(attacked, query, query.distance))
    shot = Target(case=attacked, query=query, claim=claim).fire(pair_of(start, rows, adjacency))
    assert shot.ratio == pytest.approx(np.linalg.norm(step) / claim.unit, rel=1e-9)
    assert shot.ratio > 0.99


def test_only_relations_that_free_the_whole_record_are_attacked_so():
    for adjacency, attackable_so in (
        (REPLACE_ONE, True),
        (ADD_REMOVE, True),
        (REPLACE_LABEL, False),
    ):
        attacked = case(adjacency)
        query = queries_of(attacked, "gradient", np.random.default_rng(0))[0]
        assert attackable(attacked, query) is attackable_so


@attrs.frozen(kw_only=True)
class Half(ClippedGradientBound):
    """0.99 of what is true."""

    def sensitivity(self, query, learner, public, adjacency):
        found = super().sensitivity(query, learner, public, adjacency)
        return attrs.evolve(found, value=0.99 * found.value)


def test_a_bound_that_is_too_small_falls_before_the_search_begins():
    (found,) = falsify(case(bound=Half()), Effort(pairs=40))
    assert found.broken
    assert found.worst == pytest.approx(1 / 0.99, rel=1e-3)
