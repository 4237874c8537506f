"""One run of training, audited by many canaries, each with a direction of its own."""

import math

import attrs
import numpy as np
import pytest

from dpcore import ADD_REMOVE, Domain, SecretRandomness
from dpcore.domain.columns import Range
from dpcore.learners.clipping import IntegerRows
from dpcore.transcript.replay_process import HERE
from dpcore_attacks import ApproximateDP, GaussianDP, attack_one_run
from dpcore_training.dense import DenseNetwork

from builders import price_learner

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


def audited(trainer, claim, seed=1, steps=4):
    """What one run says of who was in, by the sum of its answers along each canary's direction."""

    def train(is_in):
        places = np.flatnonzero(is_in).astype(float)
        table = {"j": places, "y": np.zeros(len(places))}
        plan = priced(trainer, steps)
        outcome = plan.run(table, replaying=HERE, secret=SecretRandomness.rehearsal(seed))
        return sum(answer.value for answer in outcome.answers["release"])

    return attack_one_run(
        train, claim, canaries=CANARIES, guesses=GUESSES, relation=ADD_REMOVE, error=0.05, seed=seed
    )


def priced(trainer, steps=4):
    return price_learner(
        trainer(steps=steps), domain=facts(), adjacency=ADD_REMOVE, epsilon=EPSILON, delta=DELTA
    )


def claims():
    """The quoted pair, and the Gaussian that four steps are."""
    (planned_query,) = priced(Canaries).schedule.queries
    mu = 2 / planned_query.mechanism.noise_multiplier
    return ApproximateDP(epsilon=EPSILON, delta=DELTA), GaussianDP(mu=mu, delta=DELTA)


@pytest.mark.parametrize("kind", [0, 1], ids=["pair", "gaussian"])
def test_one_run_certifies_part_of_the_claim_and_no_more(kind):
    report = audited(Canaries, claims()[kind])
    assert report.verdict == "not refuted"
    assert (0.13, 0.3)[kind] * report.claim.claimed < report.least < report.claim.claimed


@pytest.mark.parametrize("kind", [0, 1], ids=["pair", "gaussian"])
def test_one_run_refutes_a_trainer_whose_sums_move_four_times_as_far(kind):
    assert audited(FourTimesTheClip, claims()[kind]).verdict == "refuted"


def test_rows_over_the_clip_tell_nothing():
    report = audited(OverTheClip, claims()[0])
    assert report.least == 0
    assert abs(report.right - GUESSES / 2) < 4 * math.sqrt(GUESSES / 4)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [0, 1], ids=["pair", "gaussian"])
def test_no_run_of_twenty_refutes_the_claim(kind):
    claim = claims()[kind]
    assert {audited(Canaries, claim, seed).verdict for seed in range(20)} == {"not refuted"}
