"""Lower bounds from samples: never above the truth oftener than they may be, and near it."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import integrate, optimize, stats

from dpcore import REPLACE_ONE
from dpcore.claims.accounting.methods.auto import AutoAccountant
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.errors import ParameterError
from dpcore.event import Direction
from dpcore_attacks.audits.auditor import audit_mechanism, audit_samples, curve_of_samples
from dpcore_attacks.audits.bands import measured_curve
from dpcore_attacks.audits.binomial import at_least, at_most
from dpcore_attacks.audits.claims import (
    ApproximateDP,
    Curve,
    GaussianDP,
    claims_of,
    gaussian_claim,
)

from oracles.accounting import gaussian_epsilon


def shift_of(epsilon, delta):
    """mu of the Gaussian whose exact epsilon at delta is this, by root finding on the oracle."""
    return optimize.brentq(lambda mu: gaussian_epsilon(delta, mu) - epsilon, 0.02, 20)


def gaussians(mu, samples, rng):
    return rng.normal(size=samples), rng.normal(size=samples) + mu


# Clopper-Pearson, against the binomial law itself


@given(
    trials=st.integers(1, 300),
    fraction=st.floats(0, 1),
    error=st.floats(1e-6, 0.4),
)
def test_the_ends_are_where_the_binomial_tails_reach_the_error(trials, fraction, error):
    hits = round(fraction * trials)
    low, high = float(at_least(hits, trials, error)), float(at_most(hits, trials, error))
    assert 0 <= low <= hits / trials <= high <= 1
    if hits > 0:
        assert stats.binom.sf(hits - 1, trials, low) == pytest.approx(error, rel=1e-5)
    if hits < trials:
        assert stats.binom.cdf(hits, trials, high) == pytest.approx(error, rel=1e-5)


# Strengths, by definition


def test_an_event_refutes_exactly_the_epsilons_below_its_ratio():
    claim = ApproximateDP(epsilon=1.0, delta=0.01)
    p, q = np.array([0.3]), np.array([0.05])
    strength = float(claim.strength(p, q)[0])
    assert p[0] - np.exp(strength) * q[0] == pytest.approx(0.01)
    assert claim.strength(np.array([0.005]), q)[0] == -np.inf
    assert claim.strength(p, np.array([0.0]))[0] == np.inf


def test_an_event_refutes_exactly_the_gaussians_that_cannot_tell_so_well():
    claim = GaussianDP(mu=1.0, delta=1e-5)
    q = 0.2
    power = stats.norm.sf(stats.norm.isf(q) - 1.3)  # Neyman-Pearson at mu = 1.3
    assert float(claim.strength(np.array([power]), np.array([q]))[0]) == pytest.approx(1.3)
    assert claim.as_epsilon(1.3) == pytest.approx(gaussian_epsilon(1e-5, 1.3), rel=1e-6)


@pytest.mark.parametrize("q", [1e-4, 0.03, 0.4, 0.9])
def test_a_curve_allows_what_its_own_worst_pair_attains_and_little_more(q):
    mu = 0.8
    curve = Curve.of_event(GaussianEvent(mu=mu, adjacency=REPLACE_ONE), 1e-5)
    most = stats.norm.sf(stats.norm.isf(q) - mu)  # the trade-off function of the pair itself
    allowed = float(curve.allowed(np.array(q)))
    assert most - 1e-12 <= allowed <= most + 0.02 * min(most, 1 - most) + 1e-4


def test_pairs_of_an_accountant_are_claims_of_the_composition():
    event = GaussianEvent(mu=0.5, adjacency=REPLACE_ONE)
    accountant = AutoAccountant(REPLACE_ONE).compose(event, 4)
    curve = Curve.of_accountant(accountant, 1e-5)
    truth = GaussianEvent(mu=1.0, adjacency=REPLACE_ONE)
    for epsilon, delta in zip(curve.epsilons, curve.deltas, strict=True):
        assert truth.curve.upper_at(epsilon, Direction.ADD) <= delta * (1 + 1e-6)
    assert curve.as_epsilon(0.0) == pytest.approx(gaussian_epsilon(1e-5, 1.0), rel=1e-4)


def test_only_gaussians_compose_to_a_gaussian():
    gaussian = GaussianEvent(mu=0.3, adjacency=REPLACE_ONE)
    laplace = LaplaceEvent(shift=1.0, adjacency=REPLACE_ONE)
    found = gaussian_claim([(gaussian, 4), (gaussian, 5)], 1e-5)
    assert found.mu == pytest.approx(0.9)
    assert gaussian_claim([(gaussian, 1), (laplace, 1)], 1e-5) is None
    accountant = AutoAccountant(REPLACE_ONE).compose(laplace, 1)
    quoted, whole = claims_of([(laplace, 1)], accountant, 1.0, 1e-5)
    assert isinstance(quoted, ApproximateDP)
    assert isinstance(whole, Curve)


# Power: 200 runs of 1e5 samples in the slow test, 8 in the default one. Thresholds hold for means.

POWER = [
    (GaussianDP, 1.0, 1e-5, 0.8),
    (GaussianDP, 4.0, 1e-5, 0.8),
    (ApproximateDP, 1.0, 1e-2, 0.8),
    (ApproximateDP, 4.0, 1e-2, 0.8),
    (ApproximateDP, 1.0, 1e-5, 0.4),
]


def claim_of(kind, epsilon, delta):
    if kind is GaussianDP:
        return GaussianDP(mu=shift_of(epsilon, delta), delta=delta)
    return ApproximateDP(epsilon=epsilon, delta=delta)


def bounds(kind, epsilon, delta, runs, seed, samples=100_000):
    rng, mu = np.random.default_rng(seed), shift_of(epsilon, delta)
    claim = claim_of(kind, epsilon, delta)
    return [
        audit_samples(*gaussians(mu, samples, rng), claim)[0].epsilon / epsilon for _ in range(runs)
    ]


@pytest.mark.parametrize(("kind", "epsilon", "delta", "least"), POWER)
def test_the_mean_bound_comes_near_to_the_truth(kind, epsilon, delta, least):
    assert np.mean(bounds(kind, epsilon, delta, runs=8, seed=1)) >= least


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "epsilon", "delta", "least"), POWER)
def test_the_mean_bound_of_200_runs_is_near_the_truth_and_few_exceed_it(
    kind, epsilon, delta, least
):
    found = bounds(kind, epsilon, delta, runs=200, seed=2)
    assert np.mean(found) >= least
    # 5 % of 200 runs are 10; more than 20 has probability 2e-3 at that rate
    assert np.sum(np.array(found) > 1) <= 20


# Validity. At most 5 % of runs may exceed: of 150, more than 18 has probability 2e-4.
@pytest.mark.parametrize("kind", [GaussianDP, ApproximateDP])
def test_a_true_claim_is_refuted_no_oftener_than_stated(kind):
    found = bounds(kind, 1.0, 0.05, runs=150, seed=3, samples=1000)
    assert np.sum(np.array(found) > 1) <= 18


def test_a_true_curve_is_refuted_no_oftener_than_stated_in_many_coordinates():
    rng, refuted = np.random.default_rng(4), 0
    event = GaussianEvent(mu=1.0, adjacency=REPLACE_ONE)
    curve = Curve.of_event(event, 1e-5)
    for _ in range(60):
        before, after = rng.normal(size=(2, 1000, 5))
        after[:, 2] += 1.0
        refuted += audit_samples(before, after, curve)[0].broken
    assert refuted <= 11  # 5 % of 60; more has probability 5e-5


def test_a_false_curve_is_refuted():
    rng = np.random.default_rng(5)
    curve = Curve.of_event(GaussianEvent(mu=1.0, adjacency=REPLACE_ONE), 1e-5)
    (found,) = audit_samples(*gaussians(1.1, 100_000, rng), curve)
    assert found.broken
    assert "REFUTED" in found.describe()


# Distinguishers


def test_a_coordinate_without_noise_is_found_among_many():
    rng = np.random.default_rng(6)
    before, after = rng.normal(size=(2, 5000, 8))
    shared = rng.normal(size=(2, 5000))
    before[:, 3], before[:, 4] = shared[0], shared[0]  # their difference is exactly 0 ...
    after[:, 3], after[:, 4] = shared[1], shared[1] + 1e-6  # ... or exactly 1e-6
    (found,) = audit_samples(before, after, ApproximateDP(epsilon=4.0))
    assert found.broken
    assert found.epsilon > 6


def test_a_difference_of_spread_alone_is_found():
    rng = np.random.default_rng(7)
    before, after = rng.normal(size=20_000), 1.5 * rng.normal(size=20_000)
    (found,) = audit_samples(before, after, ApproximateDP(epsilon=0.3))
    assert found.broken


def test_equal_laws_are_never_called_different_in_earnest():
    rng = np.random.default_rng(8)
    (found,) = audit_samples(*rng.normal(size=(2, 5000, 4)), ApproximateDP(epsilon=0.5, delta=0))
    assert found.epsilon < 0.3
    assert not found.broken


def test_what_was_learned_is_no_evidence():
    rng, refuted = np.random.default_rng(12), 0
    for _ in range(60):  # many columns and few samples: on its own samples any rule looks good
        before, after = rng.normal(size=(2, 300, 20))
        refuted += audit_samples(before, after, ApproximateDP(epsilon=0.0))[0].broken
    assert refuted <= 11  # 5 % of 60; more has probability 5e-5


def test_a_black_box_is_sampled_on_both_sides():
    rng = np.random.default_rng(9)
    (found,) = audit_mechanism(
        lambda count: rng.laplace(size=count),
        lambda count: rng.laplace(size=count) + 1.0,
        ApproximateDP(epsilon=1.0),
        samples=30_000,
    )
    assert 0.9 < found.epsilon <= 1.02
    assert found.to_dict()["samples"] == 30_000
    assert found.at_delta(0.0) == pytest.approx(found.epsilon)
    assert found.at_delta(0.01) < found.epsilon


def test_several_claims_share_the_error_rate():
    rng = np.random.default_rng(10)
    pair = gaussians(1.0, 20_000, rng)
    claims = [ApproximateDP(epsilon=1.0, delta=0.01), ApproximateDP(epsilon=1.0, delta=0.1)]
    both = audit_samples(*pair, claims)
    (single,) = audit_samples(*pair, claims[0])
    assert both[0].epsilon < single.epsilon
    assert len(both) == 2


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (np.zeros(5), np.zeros(5)),
        (np.zeros(50), np.zeros(60)),
        (np.full(50, np.nan), np.zeros(50)),
        (np.zeros((50, 2, 2)), np.zeros((50, 2, 2))),
    ],
)
def test_what_are_no_samples_is_refused(before, after):
    with pytest.raises(ParameterError):
        audit_samples(before, after, ApproximateDP(epsilon=1.0))


def test_an_impossible_confidence_is_refused():
    with pytest.raises(ParameterError, match="confidence"):
        audit_samples(np.zeros(50), np.zeros(50), ApproximateDP(epsilon=1.0), confidence=1.0)


# The band


def test_the_band_lies_below_the_true_curve_and_comes_near_it():
    rng = np.random.default_rng(11)
    epsilons = np.linspace(0, 3, 13)

    def hockey_stick(epsilon):  # by quadrature of the definition
        p, q = stats.norm(1.5, 1), stats.norm(0, 1)
        return integrate.quad(lambda x: max(0, p.pdf(x) - np.exp(epsilon) * q.pdf(x)), -9, 12)[0]

    truth = np.array([hockey_stick(e) for e in epsilons])
    found = curve_of_samples(*gaussians(1.5, 100_000, rng), epsilons)
    assert (found <= truth).all()
    assert found[0] > truth[0] - 0.02
    exceeded = 0
    for _ in range(100):  # 5 % of 100; more than 14 has probability 1e-4
        before, after = gaussians(1.5, 500, rng)
        exceeded += bool((measured_curve(before, after, epsilons, 0.05) > truth).any())
    assert exceeded <= 14
