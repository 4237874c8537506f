"""Laws of accountants and filters, and composition against independent truths."""

import contextlib
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcore.accountant import UnsupportedEventError
from dpcore.adjacency import ADD_REMOVE, REPLACE_ONE
from dpcore.claims.accounting import conversions
from dpcore.claims.accounting.conversions import epsilon_end, event_epsilon
from dpcore.claims.accounting.methods.auto import AutoAccountant, all_methods, intersection
from dpcore.claims.accounting.methods.basic import BasicAccountant
from dpcore.claims.accounting.methods.gdp import GdpAccountant, _root
from dpcore.claims.accounting.methods.homogeneous import HomogeneousAccountant
from dpcore.claims.accounting.methods.pld import PldAccountant
from dpcore.claims.accounting.methods.renyi import RenyiAccountant, ZcdpAccountant
from dpcore.claims.events.concentrated import ZcdpEvent, zcdp_to_delta
from dpcore.claims.events.exponential import ExponentialMechanismEvent
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.randomized_response import ApproximateEvent, PureEvent
from dpcore.errors import AdjacencyError, ContractError, NoClaimError
from dpcore.ledger import dyadic
from dpcore.ledger.filters import (
    BasicFilter,
    BudgetExceededError,
    GaussianFilter,
    RenyiFilter,
)

from oracles import accounting as oracles

A = ADD_REMOVE
GAUSSIAN = GaussianEvent(mu=0.2, adjacency=A)
LAPLACE = LaplaceEvent(shift=0.1, adjacency=A)
EVENTS = [
    GAUSSIAN,
    LAPLACE,
    PureEvent(epsilon=0.1, adjacency=A),
    ZcdpEvent(rho=0.01, adjacency=A),
    ExponentialMechanismEvent(epsilon=0.2, adjacency=A),
    ApproximateEvent(epsilon=0.1, delta=1e-9, adjacency=A),
    PoissonSampledEvent(event=GaussianEvent(mu=1.0, adjacency=A), sampling_probability=0.01),
]
METHODS = list(all_methods(A))


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("event", EVENTS, ids=lambda e: type(e).__name__)
def test_a_count_is_that_many_single_events(name, event):
    try:
        at_once = all_methods(A)[name].compose(event, 6)
    except UnsupportedEventError:
        pytest.skip("unsupported")
    singly = all_methods(A)[name]
    for _ in range(6):
        singly = singly.compose(event)
    assert singly.epsilon(1e-6).upper == pytest.approx(at_once.epsilon(1e-6).upper, rel=1e-12)
    nothing = at_once.compose(event, 0)
    assert nothing.epsilon(1e-6) == at_once.epsilon(1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_a_refused_event_changes_nothing(name):
    accountant = all_methods(A)[name]
    spent = accountant.compose(GAUSSIAN) if name in ("gdp", "zcdp", "renyi", "pld") else accountant
    before = spent.epsilon(1e-6)
    with pytest.raises(AdjacencyError):
        spent.compose(GaussianEvent(mu=1.0, adjacency=REPLACE_ONE))
    for count in (-1, True, 0.5):
        with pytest.raises(ValueError, match="count"):
            spent.compose(LAPLACE, count)
    assert spent.epsilon(1e-6) == before


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(EVENTS), st.integers(1, 30)), min_size=1, max_size=4),
    st.sampled_from([1e-3, 1e-6, 1e-10]),
)
def test_methods_never_contradict_each_other(events, delta):
    auto = AutoAccountant(A)
    for event, count in events:
        try:
            auto = auto.compose(event, count)
        except NoClaimError:
            return
    ends, _ = auto.intervals(delta)
    if not ends:  # infinite losses are likelier than delta
        return
    highest = max(end.lower for end in ends.values())
    assert all(end.upper >= highest for end in ends.values())
    assert auto.epsilon(delta).upper <= min(end.upper for end in ends.values()) * (1 + 1e-5)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.05, 3.0), st.floats(1.05, 3.0), st.integers(2, 200))
def test_more_noise_never_costs_more(shift, factor, count):
    less = PldAccountant(A).compose(LaplaceEvent(shift=shift, adjacency=A), count)
    more = PldAccountant(A).compose(LaplaceEvent(shift=shift / factor, adjacency=A), count)
    assert more.epsilon(1e-6).lower <= less.epsilon(1e-6).upper


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize(("count", "epsilon"), [(1, 0.7), (7, 0.4), (60, 0.1)])
def test_homogeneous_composition_is_the_sum_over_outcomes(count, epsilon, delta):
    event = PureEvent(epsilon=epsilon, adjacency=A)
    found = HomogeneousAccountant(A).compose(event, count).epsilon(delta).upper
    truth = oracles.response_epsilon(count, epsilon, 2, delta)
    assert truth * (1 - 1e-12) <= found <= truth * (1 + 1e-8) + 1e-12


def test_renyi_composition_covers_the_exact_gaussian_within_a_tenth():
    found = RenyiAccountant(A).compose(GaussianEvent(mu=0.05, adjacency=A), 1000).epsilon(1e-6)
    truth = oracles.gaussian_epsilon(1e-6, 0.05 * math.sqrt(1000))
    assert truth <= found.upper <= 1.1 * truth


def test_renyi_conversions_match_a_brute_force_minimum():
    orders = 1 + np.geomspace(1e-3, 1e4, 100_001)
    for rho, delta in ((0.01, 1e-6), (0.5, 1e-3), (20.0, 1e-10)):
        value = (
            rho * orders + np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
        )
        found = conversions.zcdp_to_epsilon(rho, delta)
        assert found == pytest.approx(float(np.min(value)), rel=1e-6)
        assert zcdp_to_delta(rho, np.array([found]))[0] == pytest.approx(delta, rel=1e-4)


@pytest.mark.parametrize("rho", [1e-12, 1e-4, 0.03, 1.0, 40.0])
def test_delta_of_a_zcdp_claim_is_the_least_over_many_orders(rho):
    """Never above the least of them, and below it by no more than a coarse grid misses."""
    near = rho * np.array([0.0, 0.5, 1.0, 1.5, 30.0])
    epsilons = np.concatenate([near, np.geomspace(0.01, 60, 8)])
    less = np.geomspace(1e-8, 1e9, 100_001)
    shape = np.where(
        less < 1, (1 + less) * (np.log(less) - np.log1p(less)), -(1 + less) * np.log1p(1 / less)
    )
    for epsilon in epsilons:
        least = float(np.min(less * ((1 + less) * rho - epsilon) - np.log(less) + shape))
        least = max(min(least, 0.0), -690.0)
        found = math.log(zcdp_to_delta(rho, np.array([epsilon]))[0])
        assert least - 1e-4 <= found <= least + 1e-9


def test_gaussians_are_never_composed_numerically():
    class Refusing(PldAccountant):
        def epsilon(self, delta):
            raise AssertionError

    auto = AutoAccountant(A).compose(GAUSSIAN, 10)
    methods = {**auto.methods, "pld": Refusing(A)}
    assert AutoAccountant(A, methods).epsilon(1e-6).width < 1e-9


def test_a_contradiction_names_both_methods():
    class TooSmall(RenyiAccountant):
        def epsilon(self, delta):
            return event_epsilon(PureEvent(epsilon=1e-3, adjacency=A), delta)

    auto = AutoAccountant(A).compose(LAPLACE, 100)
    broken = AutoAccountant(A, {**auto.methods, "zcdp": TooSmall(A)})
    with pytest.raises(ContractError, match=r"zcdp claims .* certifies"):
        broken.epsilon(1e-6)
    unasked = AutoAccountant(A, {**auto.methods, "renyi": TooSmall(A)})
    assert unasked.epsilon(1e-6) == auto.epsilon(1e-6)  # numerical composition leaves it no part
    with pytest.raises(ContractError, match=r"renyi claims .* certifies"):
        intersection(unasked.intervals(1e-6)[0], 1e-6)


def test_a_filter_lets_through_its_budget_and_no_more():
    budget = RenyiFilter(adjacency=A, epsilon=1.0, delta=1e-6)
    spent = 0
    try:
        while True:
            budget = budget.spend(GaussianEvent(mu=0.02, adjacency=A))
            spent += 1
    except BudgetExceededError:
        pass
    exact = oracles.gaussian_epsilon(1e-6, 0.02 * math.sqrt(spent))
    assert 0.8 < exact <= 1.0
    assert budget.epsilon_spent() <= 1.0
    basic = BasicFilter(adjacency=A, epsilon=1.0)
    for _ in range(10):
        basic = basic.spend(LAPLACE)
    with pytest.raises(BudgetExceededError):
        basic.spend(LAPLACE)
    with pytest.raises(UnsupportedEventError):
        basic.spend(GAUSSIAN)
    with pytest.raises(AdjacencyError):
        basic.spend(PureEvent(epsilon=0.1, adjacency=REPLACE_ONE))


def test_nothing_is_lost_however_small():
    """100,000 events, each half an ulp of a budget that is spent; together they are 1.1e-11."""
    small = PureEvent(epsilon=1.1e-16, adjacency=A)
    full = BasicFilter(adjacency=A, epsilon=1.0).spend(PureEvent(epsilon=1.0, adjacency=A))
    let_through = 0
    with contextlib.suppress(BudgetExceededError):
        for let_through in range(100_000):  # noqa: B007  # how many came before the refusal
            full = full.spend(small)
    assert let_through < 100
    assert 1 < full.spent_epsilon <= 1 + Fraction(1, 2**48)
    halves = BasicFilter(adjacency=A, epsilon=1.0)
    for _ in range(10_000):
        halves = halves.spend(PureEvent(epsilon=1e-4, adjacency=A))
    assert halves.spent_epsilon == 10_000 * Fraction(1e-4)


def test_a_mu_whose_square_is_no_double_is_counted():
    tiny = GaussianEvent(mu=1e-170, adjacency=A)
    count = 10**340
    whole = GdpAccountant(A).compose(tiny, count).epsilon(1e-5)
    assert whole.lower <= oracles.gaussian_epsilon(1e-5, 1.0) * (1 + 1e-9)
    assert whole.upper >= oracles.gaussian_epsilon(1e-5, 1.0) * (1 - 1e-9)
    with pytest.raises(BudgetExceededError):
        GaussianFilter(adjacency=A, epsilon=1.0, delta=1e-5).spend(tiny, count)
    assert tiny.claims.rho > 0
    for accountant in (ZcdpAccountant(A), RenyiAccountant(A), AutoAccountant(A)):
        assert accountant.compose(tiny).epsilon(1e-200).upper > 0


@given(st.lists(st.floats(0, 1e300) | st.floats(0, 1e-300), min_size=1, max_size=9))
def test_exact_sums_are_written_and_read_to_the_last_bit(parts):
    total = sum(map(Fraction, parts), Fraction(0))
    assert dyadic.read(dyadic.write(total)) == total
    assert dyadic.read(parts[0].hex()) == Fraction(parts[0])
    up = dyadic.rounded_up(total)
    assert math.isinf(up) or Fraction(up) >= total > Fraction(math.nextafter(up, -1))
    assert abs(Fraction(_root(total * total)) - total) <= total * Fraction(2, 2**53)


@pytest.mark.parametrize("text", ["inf", "nan", "-0x1p+0", "1/0", "x", "0x1p+99999", "-1/2"])
def test_what_is_no_sum(text):
    with pytest.raises(ValueError, match=r"sum|literal|hexadecimal|NaN"):
        dyadic.read(text)


def test_the_peer_lies_between_the_certified_ends_and_its_slack():
    dp = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import pld_privacy_accountant as peer

    theirs = peer.PLDAccountant(value_discretization_interval=1e-3)
    theirs.compose(dp.PoissonSampledDpEvent(0.02, dp.GaussianDpEvent(1.1)), 3000)
    theirs.compose(dp.LaplaceDpEvent(8.0), 40)
    ours = PldAccountant(A)
    sampled = PoissonSampledEvent(
        event=GaussianEvent(mu=1 / 1.1, adjacency=A), sampling_probability=0.02
    )
    found = ours.compose(sampled, 3000).compose(LaplaceEvent(shift=1 / 8, adjacency=A), 40)
    value = theirs.get_epsilon(1e-6)
    interval = found.epsilon(1e-6)
    assert interval.lower <= value
    assert interval.upper <= value * (1 + 1e-3)


def test_basic_composition_inverts_no_end_that_it_does_not_quote(monkeypatch):
    ends, honest = [], epsilon_end

    def counted(event, delta, *, lower):
        ends.append(lower)
        return honest(event, delta, lower=lower)

    monkeypatch.setattr("dpcore.claims.accounting.methods.basic.epsilon_end", counted)
    event = GaussianEvent(mu=0.5, adjacency=ADD_REMOVE)
    upper = BasicAccountant(ADD_REMOVE).compose(event).epsilon(1e-5).upper
    assert sorted(ends) == [False, True]
    assert upper >= event_epsilon(event, 1e-5).upper
