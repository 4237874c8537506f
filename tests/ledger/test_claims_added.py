"""A ledger adds up (epsilon, delta) claims of any releases, chosen adaptively in any order.

The oracle: a tree of randomized responses and coarse Gaussians, whose every outcome picks what
comes next, summed up by the definition of differential privacy over all its leaves.
"""

import itertools
import math
import random

import attrs
import numpy as np
import pytest
from scipy.stats import norm

from dpcore import ADD_REMOVE as A, Ledger
from dpcore.claims.events.gaussian import GaussianEvent, gaussian_mu
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.poisson import PoissonSampledEvent
from dpcore.claims.events.randomized_response import ApproximateEvent, PureEvent
from dpcore.ledger import Charge, gaussian_cover
from dpcore.ledger.filters import BudgetExceededError
from dpcore.ledger.gaussian_cover import settled
from dpcore.ledger.total import Total

from oracles import accounting as oracles


def basic(epsilon=1.0, delta=1e-5):
    return Total(epsilon=epsilon, delta=delta, adjacency=A, notion="basic").start()


def gaussian(mu):
    return GaussianEvent(mu=mu, adjacency=A)


def pure(epsilon):
    return PureEvent(epsilon=epsilon, adjacency=A)


def spend(spent, *events):
    return settled(spent, Charge(events=tuple((event, 1) for event in events)))[0]


def test_a_gaussian_after_a_pure_release_is_charged_as_the_claim_of_its_curve():
    spent = spend(basic(), pure(0.1))
    after, charge = settled(spent, Charge.of(gaussian(0.1)))
    ((claim, count),) = charge.events
    assert count == 1
    assert oracles.gaussian_delta(claim.epsilon_0, 0.1) <= claim.delta_0 * (1 + 1e-9)
    # The same proportion of what was left of both.
    assert claim.epsilon_0 / 0.9 == pytest.approx(claim.delta_0 / 1e-5, rel=1e-9)
    left = after.left()
    assert left.epsilon == pytest.approx(0.9 - claim.epsilon_0)
    assert left.failures == pytest.approx(1e-5 - claim.delta_0)
    assert left.describe().startswith("releases whose (epsilon, delta) claims add up to (0.")


@pytest.mark.parametrize("parts", [2, 3, 7])
def test_releases_that_are_calibrated_to_equal_parts_all_fit_and_no_further(parts):
    event, spent = gaussian(gaussian_mu(1.0 / parts, 1e-5 / parts)), basic()
    for _ in range(parts):
        spent = spend(spent, event)
    with pytest.raises(BudgetExceededError):
        spend(spent, event)


def test_what_is_left_would_fit_and_no_more():
    spent = spend(basic(), pure(0.2), gaussian(0.05))
    left = spent.left()
    mu = gaussian_mu(left.epsilon, left.failures)
    assert spend(spent, gaussian(mu * (1 - 1e-9))).charges == 2
    with pytest.raises(
        BudgetExceededError, match=r"as an \(epsilon, delta\) claim the charge needs"
    ):
        spend(spent, gaussian(1.01 * mu))


def test_claims_pure_releases_and_samples_share_one_charge():
    sampled = PoissonSampledEvent(event=gaussian(0.5), sampling_probability=0.01)
    claim = ApproximateEvent(epsilon=0.1, delta=1e-6, adjacency=A)
    events = (sampled, pure(0.1), claim, LaplaceEvent(shift=0.1, adjacency=A))
    after, charge = settled(basic(), Charge(events=tuple((event, 2) for event in events)))
    assert charge.events[:3] == tuple((event, 2) for event in events[1:])
    assert after.left().epsilon < 1 - 0.6
    assert after.left().failures < 1e-5 - 2e-6


def test_a_ledger_of_gaussians_goes_on_with_claims_where_only_pure_releases_would_fit():
    spent = Total(epsilon=1.0, delta=1e-5, adjacency=A, failures=1e-6).start()
    for _ in range(2):
        spent = spend(spent, pure(0.4))
    assert spent.composed is None
    after = spend(spent, gaussian(0.01))
    assert 0 < after.left().epsilon < 0.2 + 1e-9
    assert after.failures <= 1e-6


@pytest.mark.parametrize(
    ("total", "way_out"),
    [
        (
            Total(epsilon=1.0, delta=0.0, adjacency=A, notion="basic"),
            "create a ledger with a delta",
        ),
        (
            Total(epsilon=1.0, delta=1e-5, adjacency=A),
            "with the notion basic, or with more failures",
        ),
    ],
)
def test_a_refusal_says_what_to_set(total, way_out):
    spent = spend(spend(total.start(), pure(0.4)), pure(0.4))
    with pytest.raises(BudgetExceededError, match=way_out) as refusal:
        spend(spent, gaussian(0.01))
    assert "makes no" not in str(refusal.value)


def test_the_rows_of_a_basic_ledger_recompute_and_say_what_was_asked(tmp_path):
    book = Ledger.create(tmp_path / "b.ledger", epsilon=1, delta=1e-5, adjacency=A, notion="basic")
    for event in (pure(0.1), gaussian(0.1), pure(0.1), gaussian(0.05)):
        book.spend(Charge.of(event))
    assert book.faults() == []
    row = book.rows()[2].body
    assert [event["kind"] for event in row["stands_for"]] == ["gaussian"]
    assert [event["kind"] for event in row["events"]] == ["approximate"]
    assert Ledger.open(tmp_path / "b.ledger").left() == book.left()


# The oracle: outcomes of each kind with their probabilities on both neighbours.

EDGES = np.concatenate([[-np.inf], np.linspace(-4.0, 5.0, 7), [np.inf]])


def outcomes(event):
    """Probabilities of a release's outcomes on the neighbours; a Gaussian is rounded to bins."""
    if isinstance(event, GaussianEvent):
        return np.diff(norm.cdf(EDGES, loc=event.mu)), np.diff(norm.cdf(EDGES))
    if isinstance(event, ApproximateEvent):
        # With probability delta all is reported, in a way that only one neighbour can.
        truth = 1 / (1 + math.exp(-event.epsilon_0))
        rest = (1 - event.delta_0) * np.array([truth, 1 - truth])
        return np.append(rest, [event.delta_0, 0]), np.append(rest[::-1], [0, event.delta_0])
    truth = 1 / (1 + math.exp(-event.epsilon_0))
    return np.array([truth, 1 - truth]), np.array([1 - truth, truth])


def worst(spent, p, q, epsilon, depth, choose):
    """What an adaptive tree of releases that the ledger lets through exceeds epsilon by."""
    event = choose(depth, p, q)
    if depth == 0 or event is None:
        return max(p - q * math.exp(epsilon), 0.0)
    try:
        after = spend(spent, event)
    except BudgetExceededError:
        return max(p - q * math.exp(epsilon), 0.0)
    return sum(
        worst(after, p * mine, q * theirs, epsilon, depth - 1, choose)
        for mine, theirs in zip(*outcomes(event), strict=True)
    )


MENU = tuple(
    itertools.chain(
        (pure(size) for size in (0.1, 0.4, 0.8)),
        (gaussian(size) for size in (0.2, 0.5, 0.9)),
        (ApproximateEvent(epsilon=0.2, delta=1e-2, adjacency=A),),
    )
)


def trees(start, seeds, depth=3):
    """The largest excess of random analysts, who choose by the loss so far."""
    excesses = []
    for seed in seeds:
        analyst, memory = random.Random(seed), {}

        def choose(depth, p, q, analyst=analyst, memory=memory):
            loss = round(math.log(p / q), 1) if p and q else math.inf
            return memory.setdefault((depth, loss), analyst.choice(MENU))

        excesses.append(worst(start, 1.0, 1.0, start.total.epsilon, depth, choose))
    return max(excesses)


@pytest.mark.parametrize("notion", ["basic", "gaussian"])
def test_no_adaptive_analyst_exceeds_the_total(notion):
    """A small delta would hide everything: 5e-2."""
    options = {} if notion == "basic" else {"failures": 2e-2}
    total = Total(epsilon=1.0, delta=5e-2, adjacency=A, notion=notion, **options)
    assert trees(total.start(), range(6), depth=2) <= 5e-2 * (1 + 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("notion", ["basic", "gaussian"])
def test_no_adaptive_analyst_of_many_exceeds_the_total(notion, epsilon):
    options = {} if notion == "basic" else {"failures": 2e-2}
    total = Total(epsilon=epsilon, delta=5e-2, adjacency=A, notion=notion, **options)
    assert trees(total.start(), range(40)) <= 5e-2 * (1 + 1e-9)


def always(event):
    return lambda depth, p, q: event


def test_the_game_finds_a_ledger_that_charges_half_of_an_epsilon(monkeypatch):
    honest = gaussian_cover.claimed

    def halved(charge, spent):
        claim = honest(charge, spent)
        if claim == charge:
            return charge
        ((event, _),) = claim.events
        half = attrs.evolve(event, epsilon=event.epsilon_0 / 2)
        return attrs.evolve(charge, events=((half, 1),))

    bold = always(gaussian(0.9))
    assert worst(basic(1.0, 5e-2), 1.0, 1.0, 1.0, 2, bold) == 0.0
    monkeypatch.setattr(gaussian_cover, "claimed", halved)
    assert worst(basic(1.0, 5e-2), 1.0, 1.0, 1.0, 2, bold) > 5e-2


def test_the_game_finds_a_ledger_that_forgets_the_deltas(monkeypatch):
    leak = always(ApproximateEvent(epsilon=1e-3, delta=2e-2, adjacency=A))
    assert worst(basic(1.0, 5e-2), 1.0, 1.0, 1.0, 4, leak) <= 5e-2
    monkeypatch.setattr(Total, "lowered", lambda self, event: (pure(1e-3), 0.0))
    assert worst(basic(1.0, 5e-2), 1.0, 1.0, 1.0, 4, leak) > 5e-2
