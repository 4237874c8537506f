"""Audits of one run: published values, chances by enumeration, and how rarely truths fall."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from dpcore import ADD_REMOVE
from dpcore.errors import ParameterError
from dpcore.events.gaussian import GaussianEvent
from dpcore_attacks.audits.one_run import OneRun

# (canaries, guesses, right): the largest epsilon that jax_privacy 2.0.0's auditing refutes at delta
# 1e-5 and an error rate of .05, and that of the largest Gaussian which it refutes.
PUBLISHED = {
    (1000, 100, 95): (2.1652, 3.3233),
    (1000, 100, 80): (0.9553, 1.4022),
    (5000, 300, 299): (4.0552, 6.0382),
}


@pytest.mark.parametrize("counts", PUBLISHED)
def test_both_bounds_are_those_of_another_library(counts):
    canaries, guesses, right = counts
    run = OneRun(canaries=canaries, guesses=guesses, right=right)
    epsilon, of_gaussian = PUBLISHED[counts]
    assert run.epsilon(1e-5, 0.05) == pytest.approx(epsilon, abs=1e-4)
    gaussian = GaussianEvent(mu=run.mu(0.05), adjacency=ADD_REMOVE)
    assert gaussian.epsilon_end(1e-5, lower=False) == pytest.approx(of_gaussian, abs=1e-4)


def test_without_delta_the_chance_is_that_of_randomized_response():
    run = OneRun(canaries=9, guesses=7, right=5)
    share = math.exp(1.2) / (1 + math.exp(1.2))
    expected = sum(math.comb(7, k) * share**k * (1 - share) ** (7 - k) for k in range(5, 8))
    assert run.chance(1.2, 0.0) == pytest.approx(expected)


def test_a_delta_adds_what_the_definition_says():
    run, share = OneRun(canaries=9, guesses=7, right=5), 1 / (1 + math.exp(-1.2))
    spill = max(sum(binom.pmf(k, 7, share) for k in range(5 - i, 5)) / i for i in range(1, 6))
    added = run.chance(1.2, 0.01) - run.chance(1.2, 0.0)
    assert added == pytest.approx(2 * 9 * 0.01 * spill)


def gaussian_run(mu, seed, canaries=1000):
    rng = np.random.default_rng(seed)
    is_in = rng.uniform(size=canaries) < 0.5
    scores = mu * (is_in - 0.5) + rng.normal(size=canaries)
    return OneRun.of_scores(scores, is_in, canaries // 10)


def test_a_true_claim_is_rarely_refuted_and_twice_the_truth_often():
    """Of 100 runs at an error rate of .05; of claims of mu = 1."""
    refuted = [sum(gaussian_run(mu, seed).mu(0.05) > 1 for seed in range(100)) for mu in (1.0, 2.0)]
    assert refuted[0] <= 5
    assert refuted[1] >= 60


def test_a_true_epsilon_is_rarely_refuted():
    delta = 1e-5
    epsilon = 4.377  # of a Gaussian of mu = 1
    curve = norm.cdf(0.5 - epsilon) - math.exp(epsilon) * norm.cdf(-0.5 - epsilon)
    assert curve == pytest.approx(delta, rel=0.01)
    ends = [gaussian_run(1.0, seed).epsilon(delta, 0.05) for seed in range(10)]
    assert max(ends) < epsilon
    assert np.mean(ends) > 1


def test_guesses_without_a_right_one_refute_nothing():
    run = OneRun(canaries=100, guesses=10, right=0)
    assert run.epsilon(1e-5, 0.05) == run.mu(0.05) == 0


@pytest.mark.parametrize(("guesses", "right"), [(10, 11), (101, 5), (10, -1)])
def test_counts_that_cannot_be_are_refused(guesses, right):
    with pytest.raises(ParameterError):
        OneRun(canaries=100, guesses=guesses, right=right)
