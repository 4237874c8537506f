"""The audit by one run: its bound against exact laws, and trainers that keep or break a claim."""

import math

import numpy as np
import pytest
import scipy

from dpcore import ADD_REMOVE
from dpcore.claims.events.gaussian import gaussian_epsilon
from dpcore.errors import ContractError, ParameterError
from dpcore_attacks import ApproximateDP, GaussianDP, attack_one_run
from dpcore_attacks.audits.claims import Curve
from dpcore_attacks.black_box.one_run import refutes

M = 1000


def least_refuted(claim, canaries, guesses, error):
    """The fewest right guesses that refute; one more than there are guesses if none do."""
    low, high = 0, guesses + 1
    while high - low > 1:
        middle = (low + high) // 2
        is_refuted = refutes(claim, claim.claimed, canaries, guesses, middle, error)
        low, high = (low, middle) if is_refuted else (middle, high)
    return high


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize(("canaries", "error"), [(4, 0.3), (12, 0.05), (60, 1e-3), (200, 1e-4)])
def test_randomised_response_is_refuted_no_oftener_than_its_exact_law_allows(
    epsilon, canaries, error
):
    """Of each coin an answer is published that is right with e^eps/(1 + e^eps): exactly eps."""
    right = scipy.stats.binom(canaries, math.exp(epsilon) / (1 + math.exp(epsilon)))
    fewest = least_refuted(ApproximateDP(epsilon=epsilon), canaries, canaries, error)
    assert right.sf(fewest - 1) <= error
    # Not vacuous: a law that is so much stronger is refuted by its own median.
    if canaries == 200:
        stronger = scipy.stats.binom(200, math.exp(epsilon + 2) / (1 + math.exp(epsilon + 2)))
        assert fewest <= stronger.median() + 1


@pytest.mark.parametrize("kind", ["gaussian", "curve"])
@pytest.mark.parametrize("guesses", [20, 100])
def test_gaussian_canaries_are_refuted_no_oftener_than_stated(kind, guesses):
    """Each canary has a sensor of its own, of mu exactly; the best guesses are the extreme ones."""
    mu, canaries, error, runs = 1.0, 200, 0.05, 4000
    gaussian = GaussianDP(mu=mu, delta=1e-5)
    epsilons = np.linspace(0, 6, 25)
    deltas = scipy.stats.norm.cdf(-epsilons / mu + mu / 2) - np.exp(
        epsilons
    ) * scipy.stats.norm.cdf(-epsilons / mu - mu / 2)
    claim = gaussian if kind == "gaussian" else Curve(epsilons=epsilons, deltas=deltas, delta=1e-5)
    rng = np.random.default_rng(5)
    is_in = rng.integers(2, size=(runs, canaries)).astype(bool)
    order = np.argsort(rng.normal(size=is_in.shape) + mu * is_in, axis=1)
    sides = np.take_along_axis(is_in, order, axis=1)
    half = guesses // 2
    right = (~sides[:, :half]).sum(axis=1) + sides[:, -half:].sum(axis=1)
    fewest = least_refuted(claim, canaries, guesses, error)
    assert np.mean(right >= fewest) <= error + 3 * math.sqrt(error / runs)


@pytest.mark.parametrize(
    ("canaries", "guesses", "right", "epsilon"),
    [(1000, 100, 95, 3.3233), (1000, 100, 80, 1.4022), (5000, 300, 299, 6.0382)],
)
def test_the_bound_equals_what_another_library_computes(canaries, guesses, right, epsilon):
    """jax-privacy 2.0.0, `auditing`, at an error of .05 and delta 1e-5; printed to four digits."""
    claim = GaussianDP(mu=1.0, delta=1e-5)
    low, high = (
        next(m for m in np.linspace(0.01, 2, 400) if gaussian_epsilon(1e-5, m) > epsilon + shift)
        for shift in (-0.05, 0.05)
    )
    assert refutes(claim, low, canaries, guesses, right, 0.05)
    assert not refutes(claim, high, canaries, guesses, right, 0.05)


def trained(sigma):
    """A step on a sum of orthogonal canaries' gradients, each clipped to 1."""

    def train(is_in, generator):
        return is_in + sigma * generator.normal(size=is_in.size)

    return train


def audited(train, claim, **options):
    return attack_one_run(train, claim, canaries=M, relation=ADD_REMOVE, seeded=True, **options)


def test_a_trainer_that_keeps_its_claim_is_not_refuted_and_one_with_half_the_noise_is():
    claim = GaussianDP(mu=1.0, delta=1e-5)
    kept = [audited(trained(1.0), claim, seed=seed) for seed in range(2)]
    assert {report.verdict for report in kept} == {"not refuted"}
    broken = audited(trained(0.1), claim, guesses=M // 2)
    assert (broken.verdict, broken.exit_code) == ("refuted", 1)
    assert 1.0 < broken.least < 1.2
    assert "guesses among 1000 canaries were right, in one run" in broken.describe()
    assert broken.to_dict()["right"] == broken.right
    with pytest.raises(AssertionError, match="is refuted"):
        broken.check()


def test_a_trainer_that_tells_all_refutes_an_epsilon_and_one_that_tells_nothing_does_not():
    claim = ApproximateDP(epsilon=2.0)
    output = audited(lambda is_in, generator: is_in, claim)
    assert output.verdict == "refuted"
    # All 100 guesses are right: the law of randomised response, at an error of 1e-4.
    keep = 1e-4 ** (1 / 100)
    assert output.least == pytest.approx(math.log(keep / (1 - keep)), abs=1e-6)
    report = audited(lambda is_in, generator: np.zeros(M), claim)
    assert report.verdict == "not refuted"
    assert report.least == 0.0
    assert report.describe().endswith("no proof of privacy.")


def test_equal_seeds_give_equal_reports_and_the_trainer_gets_other_coins():
    claim = ApproximateDP(epsilon=2.0)

    def guessing(is_in, generator):
        return generator.integers(2, size=is_in.size)

    first, second = (audited(guessing, claim, guesses=M) for _ in range(2))
    assert first.to_dict() == second.to_dict()
    assert 0.3 * M < first.right < 0.7 * M


def test_wrong_scores_and_numbers_are_errors():
    claim = ApproximateDP(epsilon=2.0)
    with pytest.raises(ContractError, match="one score a canary"):
        audited(lambda is_in, generator: np.zeros(3), claim)
    with pytest.raises(ContractError, match="one score a canary"):
        audited(lambda is_in, generator: np.full(M, np.nan), claim)
    with pytest.raises(ParameterError, match="guesses"):
        audited(trained(1.0), claim, guesses=M + 1)
    with pytest.raises(ParameterError, match="canaries"):
        attack_one_run(trained(1.0), claim, canaries=0, relation=ADD_REMOVE)
