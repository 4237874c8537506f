"""One run of training, audited by many canaries, each with a direction of its own."""

import math

import attrs
import numpy as np
import pytest

from dpcore import ADD_REMOVE, Domain, PrivacyBudget, SecretCoins, price
from dpcore.domain.columns import Range
from dpcore.learning.learners.clipping import IntegerRows
from dpcore.mechanisms.gaussian import Gaussian
from dpcore.running.replay_process import HERE
from dpcore_attacks.audits.one_run import OneRun
from dpcore_training.dense import DenseNetwork

CANARIES, GUESSES, EPSILON, DELTA = 1000, 100, 3.0, 1e-5


@attrs.frozen(kw_only=True)
class Canaries(DenseNetwork):
    """Record j has the loss w_j: its gradient is one of orthogonal vectors, as long as the clip."""

    def size(self, domain):
        return CANARIES

    def initial(self, stream, domain):
        return np.zeros(CANARIES)

    def gradients(self, weights, block, targets, public):
        places = np.rint((block.features[:, 0] + 1) / 2 * (CANARIES - 1)).astype(int)
        row = np.zeros(CANARIES)
        for place in places:
            row[:] = 0.0
            row[place] = self.clip
            yield row


@attrs.frozen(kw_only=True)
class FourTimesTheClip(Canaries):
    """Adds every gradient four times as long, in pieces that each pass the check."""

    def partial(self, query, block, public):
        return super().partial(query, block, public).times(4)


@attrs.frozen(kw_only=True)
class OverTheClip(Canaries):
    """Proposes rows of twice the clip, which the core counts as zeros."""

    def contributions(self, query, block, public):
        return IntegerRows(2 * super().contributions(query, block, public).integers)


def facts():
    columns = {"j": Range(0, CANARIES - 1)}
    return Domain(columns=columns, target="y", labels=Range(-1, 1), limit=CANARIES)


def audited(trainer, seed, steps=4):
    """What the sum of all answers tells of who was in: fair coins, and guesses fixed before."""
    plan = price(
        domain=facts(),
        adjacency=ADD_REMOVE,
        budget=PrivacyBudget(epsilon=EPSILON, delta=DELTA),
        learner=trainer(steps=steps),
        mechanism=Gaussian(),
    )
    is_in = np.random.default_rng(seed).uniform(size=CANARIES) < 0.5
    places = np.flatnonzero(is_in).astype(float)
    table = {"j": places, "y": np.zeros(len(places))}
    outcome = plan.run(table, replaying=HERE, secret=SecretCoins.rehearsal(seed))
    total = sum(answer.value for answer in outcome.answers["release"])
    return OneRun.of_scores(total - steps / 2, is_in, GUESSES)


def claimed_mu():
    plan = price(
        domain=facts(),
        adjacency=ADD_REMOVE,
        budget=PrivacyBudget(epsilon=EPSILON, delta=DELTA),
        learner=Canaries(steps=4),
        mechanism=Gaussian(),
    )
    (ask,) = plan.schedule.asks
    return 2 / ask.mechanism.noise_multiplier


def test_one_run_certifies_part_of_the_claim_and_no_more():
    run = audited(Canaries, seed=1)
    assert 0.4 < run.epsilon(DELTA, 0.05) < EPSILON
    assert 0.3 * claimed_mu() < run.mu(0.05) < claimed_mu()


def test_one_run_refutes_a_trainer_whose_sums_move_four_times_as_far():
    run = audited(FourTimesTheClip, seed=1)
    assert run.epsilon(DELTA, 0.05) > EPSILON
    assert run.mu(0.05) > claimed_mu()


def test_rows_over_the_clip_tell_nothing():
    run = audited(OverTheClip, seed=1)
    assert run.epsilon(DELTA, 0.05) == 0
    assert abs(run.right - GUESSES / 2) < 4 * math.sqrt(GUESSES / 4)


@pytest.mark.slow
def test_no_run_of_twenty_refutes_the_claim():
    runs = [audited(Canaries, seed) for seed in range(20)]
    assert max(run.epsilon(DELTA, 0.05) for run in runs) < EPSILON
    assert sum(run.mu(0.05) > claimed_mu() for run in runs) == 0
