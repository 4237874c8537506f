"""The private choice: what a record can move of the scores, and what the choice costs."""

import attrs
import numpy as np
import pytest

import dpcore
from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Public,
    PublicRandomness,
    Records,
    SecretRandomness,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.permute_and_flip import PermuteAndFlip
from dpcore.errors import NoClaimError, ParameterError
from dpcore.guarantee import Statistic
from dpcore.models.features.identity import Identity
from dpcore_linear.chosen_ridge import ChosenRidge, ChosenRidgeBound

from builders import price_learner
from doubles import domain, table

SECRET = SecretRandomness.rehearsal(0).learner(0, "choice", 1)
PAIR = {"statistics": Gaussian(), "choice": PermuteAndFlip()}


def learner(**fields):
    return ChosenRidge(**{"features": Identity(), "candidates": (0.1, 1.0, 1e4), **fields})


def plan(made, **options):
    return price_learner(
        made, epsilon=2, **{"domain": domain(records=200, norm=1.0), "mechanism": PAIR, **options}
    )


@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE, REPLACE_LABEL])
def test_no_record_moves_a_score_further_than_its_bound(adjacency):
    rng = np.random.default_rng(2)
    made = learner()
    public = Public(domain=domain(records=None, limit=60, norm=1.0), randomness=PublicRandomness(1))
    choice = made.queries(public)[1]
    claim = ChosenRidgeBound().sensitivity(choice, made, public, adjacency)
    largest = 0.0
    for _ in range(300):
        args = {"coefficients": rng.normal(size=(3, 2)) * 10}
        query = attrs.evolve(choice, args=args)
        rows = rng.normal(size=(40, 2))
        rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True) * (1 + 1e-12))
        labels = rng.choice([-1.0, 1.0, 0.2], 40)
        rows2, labels2 = rows.copy(), labels.copy()
        labels2[-1] = -labels[-1]
        if adjacency == REPLACE_ONE:
            rows2[-1] = -rows[-1] if rng.random() < 0.5 else [0.0, 1.0]
        if adjacency == ADD_REMOVE:
            rows2, labels2 = rows[:-1], labels[:-1]
        scores = [
            made.statistic(query, Records(features=x, labels=y), public, SECRET).floats()
            for x, y in ((rows, labels), (rows2, labels2))
        ]
        largest = max(largest, float(np.abs(scores[0] - scores[1]).max()) / claim.unit)
    assert 0.99 < largest <= 1


def test_the_choice_is_paid_for_in_the_same_guarantee():
    priced = plan(learner())
    queries = priced.schedule.releases[0].queries
    assert 1.94 < priced.guarantee.epsilon <= 2
    assert queries["choice"].mechanism.epsilon > 0
    cheaper = plan(learner(share=0.01)).schedule.releases[0].queries
    assert (
        cheaper["statistics"].mechanism.noise_multiplier
        < queries["statistics"].mechanism.noise_multiplier
    )
    explicit = {"statistics": Gaussian(noise_multiplier=3), "choice": PermuteAndFlip(epsilon=3)}
    with pytest.raises(NoClaimError, match="exceeds"):
        plan(learner(), mechanism=explicit)


def test_the_better_candidate_is_chosen_and_published():
    """Strong signal, choice at epsilon = 1000: the heavy regularization never wins."""
    people = table(records=200)
    people["y"] = 0.9 * people["a"]
    quiet = {
        "statistics": Gaussian(noise_multiplier=0.01),
        "choice": PermuteAndFlip(epsilon=1000),
    }
    loud = plan(learner(), mechanism=quiet, budget=dpcore.PrivacyBudget(epsilon=1e6, delta=1e-5))
    for _ in range(5):
        outcome = loud.run(people)
        _, choice = outcome.answers["release"]
        assert choice.value[2] == 0
        assert np.mean((outcome.model.predict(people) - people["y"]) ** 2) < 0.01


def test_scores_need_no_limit_on_the_records_and_candidates_must_differ():
    for limit in (None, 300):
        hidden = domain(records=None, limit=limit, norm=1.0)
        priced = plan(learner(), domain=hidden, adjacency=ADD_REMOVE)
        assert priced.guarantee.epsilon <= 2
        assert {query.statistic for query in priced.guarantee.basis.queries} == {Statistic.SUM}
    for wrong in ((1.0,), (1.0, 1.0), (1.0, -1.0), (1.0, float("nan"))):
        with pytest.raises(ParameterError):
            learner(candidates=wrong)
