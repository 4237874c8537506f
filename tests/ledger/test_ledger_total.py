"""What a ledger lets through stays within its total, however it is chosen; and nothing is wasted.

The oracle: a tree of randomized responses whose every outcome picks what comes next, with leaks and
Gaussian releases, summed up by the definition of differential privacy over all its leaves.
"""

import math
import random

import pytest
from hypothesis import given, strategies as st
from scipy import special

from dpcore import ADD_REMOVE, REPLACE_LABEL, REPLACE_ONE
from dpcore.claims.accounting.conversions import pure_to_gdp
from dpcore.claims.events.concentrated import ZcdpEvent
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.randomized_response import (
    ApproximateEvent,
    PureEvent,
    RandomizedResponseEvent,
)
from dpcore.errors import AdjacencyError, NoClaimError, ParameterError
from dpcore.ledger import Charge
from dpcore.ledger.filters import BudgetExceededError, GaussianFilter
from dpcore.ledger.total import Total

from oracles import accounting as oracles

A = ADD_REMOVE


def total(epsilon=1.0, delta=1e-5, adjacency=A, **options):
    return Total(epsilon=epsilon, delta=delta, adjacency=adjacency, **options)


def gaussian(mu):
    return GaussianEvent(mu=mu, adjacency=A)


def pure(epsilon):
    return PureEvent(epsilon=epsilon, adjacency=A)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 1.2, 5.0, 40.0])
def test_the_gaussian_of_a_pure_release_lies_just_below_its_trade_off(epsilon):
    def error_two(alpha, mu):
        return special.ndtr(-special.ndtri(alpha) - mu)

    corner = 1 / (1 + math.exp(epsilon))
    mu = pure_to_gdp(epsilon)
    for alpha in (corner / 10, corner / 2, corner, (1 + corner) / 2, 0.9):
        lines = max(1 - math.exp(epsilon) * alpha, math.exp(-epsilon) * (1 - alpha))
        assert error_two(alpha, mu) <= lines * (1 + 1e-9) + 1e-15
    if 0.01 < epsilon < 30:
        assert error_two(corner, 0.999 * mu) > corner


def test_a_gaussian_ledger_lets_through_exactly_its_curve():
    spent, count = total().start(), 0
    while count < 1000 and (after := let_through(spent, gaussian(0.013))) is not None:
        spent, count = after, count + 1
    assert oracles.gaussian_epsilon(1e-5, 0.013 * math.sqrt(count)) <= 1.0
    assert oracles.gaussian_epsilon(1e-5, 0.013 * math.sqrt(count + 1)) > 1.0


def test_the_filter_of_gaussians_counts_pure_events_by_their_gaussian():
    budget = GaussianFilter(adjacency=A, epsilon=1.0, delta=1e-5).spend(pure(0.05), 9)
    assert budget.epsilon_spent() == pytest.approx(
        oracles.gaussian_epsilon(1e-5, 3 * pure_to_gdp(0.05)), rel=1e-9
    )


def test_pure_releases_add_up_to_epsilon_and_no_further():
    spent = total().start()
    for _ in range(10):
        spent = spent.spend(Charge.of(LaplaceEvent(shift=0.1, adjacency=A)))
    assert spent.composed is None  # as Gaussians they are long past the total
    assert spent.left().describe() == "nothing"
    with pytest.raises(BudgetExceededError):
        spent.spend(Charge.of(pure(1e-6)))


@pytest.mark.parametrize("notion", ["gaussian", "renyi", "basic"])
def test_whatever_fits_the_total_by_itself_is_let_through_first_and_alone(notion):
    sampled = PoissonSampledEvent(event=gaussian(1.0), sampling_probability=0.01)
    spent = total(notion=notion).start().spend(Charge.of(sampled, 50))
    try:
        spent.spend(Charge.of(gaussian(1e-6)))
        assert notion == "renyi"
    except BudgetExceededError:
        assert spent.left().describe() == "nothing"
    later = total(notion="gaussian").start().spend(Charge.of(gaussian(1e-3)))
    with pytest.raises(BudgetExceededError, match="neither Gaussian"):
        later.spend(Charge.of(sampled, 50))
    with pytest.raises(BudgetExceededError):
        total(notion=notion).start().spend(Charge.of(sampled, 5000))


def test_a_renyi_ledger_takes_what_has_divergences():
    spent = total(notion="renyi").start()
    sampled = PoissonSampledEvent(event=gaussian(0.5), sampling_probability=0.01)
    for event in (sampled, gaussian(0.05), ZcdpEvent(rho=1e-3, adjacency=A), pure(0.01)):
        spent = spent.spend(Charge.of(event))
    assert 0 < spent.left().mu < 0.25


def test_a_basic_ledger_adds_epsilons_and_deltas():
    claim = ApproximateEvent(epsilon=0.25, delta=2e-6, adjacency=A)
    spent = total(notion="basic").start()
    for _ in range(4):
        spent = spent.spend(Charge.of(claim))
    assert spent.left().describe() == "nothing"
    small = ApproximateEvent(epsilon=0.25, delta=4e-6, adjacency=A)
    spent = total(notion="basic").start().spend(Charge.of(small, 2))
    with pytest.raises(BudgetExceededError, match="failure probabilities would need"):
        spent.spend(Charge.of(small))


def test_failures_are_refused_unless_delta_is_kept_for_them():
    claim = Charge.of(ApproximateEvent(epsilon=0.1, delta=1e-6, adjacency=A))
    used = total().start().spend(Charge.of(gaussian(1e-3)))
    with pytest.raises(BudgetExceededError, match=r"0 is kept"):
        used.spend(claim)
    spent = total(failures=2e-6).start().spend(Charge.of(gaussian(1e-3)))
    spent = spent.spend(claim)
    over_randomness = Charge(events=((gaussian(1e-3), 1),), failures=1e-6)
    spent = spent.spend(over_randomness)
    with pytest.raises(BudgetExceededError, match="failure probabilities"):
        spent.spend(over_randomness)
    least = total(failures=2e-6).start().left().mu
    assert least < total().start().left().mu


def test_a_list_is_let_through_whole_or_not_at_all():
    start = total().start()
    with pytest.raises(BudgetExceededError):
        start.spend(Charge(events=((gaussian(0.1), 1), (gaussian(1.0), 1))))
    whole = Charge(events=((gaussian(0.05), 3), (pure(0.01), 2)))
    assert start.spend(whole).charges == 1
    assert start == total().start()


def test_the_relation_must_be_covered():
    with pytest.raises(AdjacencyError):
        total(adjacency=REPLACE_ONE).start().spend(Charge.of(gaussian(0.1)))
    covered = Charge.of(GaussianEvent(mu=0.1, adjacency=REPLACE_ONE))
    assert total(adjacency=REPLACE_LABEL).start().spend(covered).charges == 1


@pytest.mark.parametrize("notion", ["gaussian", "renyi", "basic"])
def test_the_sums_survive_being_written(notion):
    spent = total(notion=notion, **({"failures": 1e-6} if notion != "basic" else {})).start()
    for charge in (Charge.of(pure(0.1)), Charge.of(pure(0.3), 2)):
        spent = spent.spend(charge)
        assert spent.total.start().at(spent.state()) == spent
        assert spent.covered_by(spent)
    less = spent.total.start().spend(Charge.of(pure(0.1))).spend(Charge.of(pure(0.29), 2))
    assert less.covered_by(spent)
    assert not spent.covered_by(less)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": 0.0},
        {"epsilon": math.inf},
        {"delta": 1.0},
        {"delta": -1e-9},
        {"delta": 0.0},
        {"failures": 1e-5},
        {"failures": 2e-5},
        {"notion": "pld"},
        {"notion": "basic", "failures": 1e-6},
        {"notion": "basic", "order": 2.0},
        {"notion": "renyi", "order": 1.0},
    ],
)
def test_impossible_totals_are_refused(wrong):
    with pytest.raises((ParameterError, NoClaimError)):
        total(**wrong)


# The oracle.


def excess(p, q, epsilon, mu):
    """sup over sets of p Pr[N(mu, 1)] - q e^epsilon Pr[N(0, 1)]."""
    shift = epsilon + math.log(q / p)
    if mu == 0:
        return max(p - q * math.exp(epsilon), 0.0)
    tails = special.ndtr(mu / 2 - shift / mu), special.ndtr(-mu / 2 - shift / mu)
    return p * tails[0] - q * math.exp(epsilon) * tails[1]


def worst(spent, p, q, epsilon, depth, choose):
    """What a tree of releases that the ledger lets through exceeds epsilon by, from a node on."""
    kind, size = choose(depth, math.log(p / q))
    if kind == "stop" or depth == 0:
        return excess(p, q, epsilon, 0.0)
    made = {
        "response": lambda: RandomizedResponseEvent(epsilon=size, classes=2, adjacency=A),
        "gaussian": lambda: gaussian(size),
        "leak": lambda: ApproximateEvent(epsilon=size, delta=LEAK, adjacency=A),
    }[kind]()
    after = let_through(spent, made)
    if after is None:
        return excess(p, q, epsilon, 0.0)
    if kind == "gaussian":  # the last one on its branch, so that the curve is in closed form
        return excess(p, q, epsilon, size)
    kept = 1 - LEAK if kind == "leak" else 1.0
    truth = 1 / (1 + math.exp(-size))
    return p * (1 - kept) + sum(
        worst(after, p * kept * mine, q * kept * theirs, epsilon, depth - 1, choose)
        for mine, theirs in ((truth, 1 - truth), (1 - truth, truth))
    )


def let_through(spent, event):
    try:
        return spent.spend(Charge.of(event))
    except BudgetExceededError:
        return None


LEAK = 1e-3


@given(
    st.integers(0, 2**32),
    st.sampled_from(["gaussian", "renyi", "basic"]),
    st.sampled_from([0.3, 1.0, 2.0]),
)
def test_no_adaptive_tree_exceeds_the_total(seed, notion, epsilon):
    """A small delta would hide everything: 5e-2, 2e-2 of it for leaks."""
    options = {} if notion == "basic" else {"failures": 2e-2}
    chosen = random.Random(seed)
    memory = {}

    def choose(depth, loss):
        key = (depth, round(loss, 9))
        if key not in memory:
            kind = chosen.choice(["response", "response", "gaussian", "leak", "stop"])
            size = epsilon * chosen.choice([0.05, 0.25, 0.5, 1.0]) * chosen.uniform(0.8, 1.0)
            memory[key] = (kind, size)
        return memory[key]

    start = total(epsilon=epsilon, delta=5e-2, notion=notion, **options).start()
    assert worst(start, 1.0, 1.0, epsilon, 4, choose) <= 5e-2 * (1 + 1e-9)


def test_the_adversary_that_joins_both_ways_stays_within_the_total_and_comes_near():
    """A response first; then, by its outcome, the rest of the pure or of the Gaussian budget."""
    start = total(epsilon=1.0, delta=5e-2).start()
    best = 0.0
    for first in (0.0005, 0.05, 0.2, 0.5):
        for swap in (False, True):
            event = RandomizedResponseEvent(epsilon=first, classes=2, adjacency=A)
            spent = start.spend(Charge.of(event))
            truth, found = 1 / (1 + math.exp(-first)), 0.0
            for outcome, (p, q) in enumerate(((truth, 1 - truth), (1 - truth, truth))):
                if (outcome == 1) is swap:
                    found += excess(p, q, 1.0, spent.left().mu)
                else:
                    rest = spent.left().epsilon
                    more = 1 / (1 + math.exp(-rest))
                    found += excess(p * more, q * (1 - more), 1.0, 0.0)
                    found += excess(p * (1 - more), q * more, 1.0, 0.0)
            assert found <= 5e-2 * (1 + 1e-9)
            best = max(best, found)
    assert excess(1.0, 1.0, 1.0, start.left().mu) == pytest.approx(5e-2, rel=1e-6)
    assert best > 0.4 * 5e-2


def test_leaks_and_gaussians_together_use_delta_up_and_no_further():
    """By the definition: a leak says everything, and the rest goes to one Gaussian."""
    spent = total(epsilon=1.0, delta=5e-2, failures=2e-2).start()
    leak, kept = ApproximateEvent(epsilon=1e-9, delta=1e-2, adjacency=A), 1.0
    while (after := let_through(spent, leak)) is not None and kept > 0.9:
        spent, kept = after, 0.99 * kept
    found = 1 - kept + excess(kept, kept, 1.0, spent.left().mu)
    assert 0.95 * 5e-2 < found <= 5e-2
