"""The relation in which one record is replaced by one that contributes nothing.

Oracles: laws of small lists written down place by place, and a tree's nodes drawn by hand.
"""

import itertools
import math

import attrs
import numpy as np
import pytest

dp_accounting = pytest.importorskip("dp_accounting")

from dp_accounting import UnsupportedEventError, dp_event as dp
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from dpcore.adjacency import ADD_REMOVE, BLANK_ONE, REPLACE_ONE
from dpcore.claims.events.event_text import write_event
from dpcore.errors import ContractError, ParameterError
from dpcore.event import Direction
from dpcore.ledger.book import Ledger
from dpcore.ledger.charge import Charge
from dpcore.registry.events import Catalogue
from dpcore_bridges.dp_accounting import DpcoreAccountant, from_dp_event, relation_of

SPECIAL = dp_accounting.NeighboringRelation.REPLACE_SPECIAL
ADD = dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE
DELTA = 1e-6


def excess(p, q, epsilon):
    """delta(epsilon) of two laws by their masses."""
    return float(np.sum(np.maximum(p - math.exp(epsilon) * q, 0.0)))


@pytest.mark.parametrize(("p", "k"), [(0.3, 2), (0.5, 5), (0.9, 3), (0.02, 40)])
def test_randomized_response_against_a_uniform_answer(p, k):
    kept = np.full(k, p / k)
    kept[0] += 1 - p
    blank = np.full(k, 1 / k)
    epsilon = DpcoreAccountant(SPECIAL).compose(dp.RandomizedResponseDpEvent(p, k)).get_epsilon(0)
    assert max(excess(kept, blank, epsilon), excess(blank, kept, epsilon)) <= 1e-15
    less = epsilon * (1 - 1e-9)
    assert max(excess(kept, blank, less), excess(blank, kept, less)) > 0
    ((event, _),) = from_dp_event(dp.RandomizedResponseDpEvent(p, k), SPECIAL)
    for at in np.linspace(0, epsilon, 20):
        for one, other in ((kept, blank), (blank, kept)):
            assert excess(one, other, at) <= event.curve.upper(np.array([at]), Direction.ADD)[0]


GRID = np.linspace(-30, 30, 60001)
QUADRATURE = 1e-6  # a kink in a cell of 1e-3


def distribution(places, q, sigma):
    """Density of a noisy sum over a Poisson sample of places, None being the special record."""
    density = np.zeros_like(GRID)
    for taken in itertools.product((False, True), repeat=len(places)):
        weight = math.prod(q if one else 1 - q for one in taken)
        total = sum(x for x, one in zip(places, taken, strict=True) if one and x is not None)
        density += weight * np.exp(-0.5 * ((GRID - total) / sigma) ** 2) / sigma
    return density / math.sqrt(2 * math.pi) * (GRID[1] - GRID[0])


@pytest.mark.parametrize("rest", [(), (0.4, -1.0), (None, 0.7)])
@pytest.mark.parametrize("x", [1.0, -0.6])
def test_a_noisy_sum_over_a_sample_of_places(rest, x):
    q, sigma = 0.3, 0.8
    event = dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(sigma))
    ((ours, _),) = from_dp_event(event, SPECIAL)
    there, blank = distribution((x, *rest), q, sigma), distribution((None, *rest), q, sigma)
    for epsilon in (0.0, 0.1, 0.3, 0.6, 1.0):
        removed = float(ours.curve.upper(np.array([epsilon]), Direction.REMOVE)[0])
        added = float(ours.curve.upper(np.array([epsilon]), Direction.ADD)[0])
        assert excess(there, blank, epsilon) <= removed + QUADRATURE
        assert excess(blank, there, epsilon) <= added + QUADRATURE
        if rest == () and x == 1.0:  # the worst case is attained
            assert excess(there, blank, epsilon) == pytest.approx(removed, abs=QUADRATURE)
            assert excess(blank, there, epsilon) == pytest.approx(added, abs=QUADRATURE)


def complete_nodes(steps, leaf):
    """Nodes of a binary tree over these steps that hold the leaf and no step beyond the last."""
    width, found = 1, 0
    while width <= steps:
        start = leaf // width * width
        found += start + width <= steps
        width *= 2
    return found


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 7, 8, 9, 100])
def test_a_tree_counts_the_complete_nodes_that_hold_a_step(steps):
    worst = max(complete_nodes(steps, leaf) for leaf in range(steps))
    ((event, count),) = from_dp_event(dp.SingleEpochTreeAggregationDpEvent(2.0, steps), SPECIAL)
    assert count == 1
    assert math.sqrt(worst) / 2 <= event.claims.mu <= math.sqrt(worst) / 2 * (1 + 1e-12)
    several = dp.SingleEpochTreeAggregationDpEvent(2.0, [1, steps, 1])
    assert from_dp_event(several, SPECIAL) == ((event, 1),)


def test_a_trees_epsilon_is_below_the_peers():
    event = dp.SelfComposedDpEvent(dp.SingleEpochTreeAggregationDpEvent(8.0, 100), 3)
    ours = DpcoreAccountant(SPECIAL).compose(event).get_epsilon(DELTA)
    theirs = RdpAccountant(neighboring_relation=SPECIAL).compose(event).get_epsilon(DELTA)
    assert 0.8 * theirs <= ours <= theirs


@pytest.mark.parametrize("event", [
    dp.GaussianDpEvent(1.3),
    dp.LaplaceDpEvent(2.0),
    dp.DiscreteLaplaceDpEvent(0.4, 2),
    dp.PoissonSampledDpEvent(0.05, dp.GaussianDpEvent(0.9)),
    dp.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0, 2.0], [0.5, 0.3, 0.2]),
])  # fmt: skip
def test_contributions_cost_what_they_cost_under_add_remove(event):
    (special,) = from_dp_event(event, SPECIAL)
    (plain,) = from_dp_event(event, ADD)
    assert special[0].adjacency == BLANK_ONE
    ours = DpcoreAccountant(SPECIAL).compose(event, 5).get_epsilon(DELTA)
    assert ours == DpcoreAccountant(ADD).compose(event, 5).get_epsilon(DELTA)
    theirs = PLDAccountant(SPECIAL, 3e-3).compose(event, 5).get_epsilon(DELTA)
    assert ours == pytest.approx(theirs, rel=5e-3)
    assert plain[0].adjacency == ADD_REMOVE


def test_randomized_response_on_a_sample_is_refused():
    """It answers for anyone who was drawn: the sample's size would say of the special record."""
    response = dp.RandomizedResponseDpEvent(0.5, 3)
    selected = dp.RepeatAndSelectDpEvent(response, 8.0, math.inf)
    for inner in (response, dp.ComposedDpEvent([dp.GaussianDpEvent(1.0), response]), selected):
        with pytest.raises(UnsupportedEventError, match="who was drawn"):
            DpcoreAccountant(SPECIAL).compose(dp.PoissonSampledDpEvent(0.1, inner))


def test_a_claim_about_places_is_none_about_records(tmp_path):
    ((event, _),) = from_dp_event(dp.GaussianDpEvent(1.0), SPECIAL)
    for other in (ADD_REMOVE, REPLACE_ONE, ADD_REMOVE.of_persons(1)):
        assert not BLANK_ONE.covers(other)
        assert not other.covers(BLANK_ONE)
    ledger = Ledger.create(tmp_path / "a.ledger", epsilon=9.0, delta=1e-5, adjacency=ADD_REMOVE)
    with pytest.raises(ContractError, match="blank_one"):
        ledger.spend(Charge(events=((event, 1),), frame="a list of 10 places"))
    with pytest.raises(ContractError, match="blank_one"):
        write_event(event, Catalogue())
    with pytest.raises(ParameterError):
        attrs.evolve(REPLACE_ONE, unit="place")
    with pytest.raises(ParameterError):
        attrs.evolve(BLANK_ONE, records=2)
    assert relation_of(BLANK_ONE) is SPECIAL
    assert "contributes nothing" in BLANK_ONE.describe()
