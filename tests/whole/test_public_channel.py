"""The law of the two channels: equal answers and an equal key give a byte-identical `public/`."""

import numpy as np
import pytest

from dpcore import PublicRandomness, SecretRandomness
from dpcore.guarantee import Status
from dpcore.published.folder import public_files
from dpcore.published.formats import FORMAT, format_of
from dpcore.published.lock import Lock, describe
from dpcore_models.features.cos_sin import CosSin
from dpcore_random_features.ridge import Ridge, RidgeReplaceOne

from builders import price_learner
from doubles import LabelMean, LabelMeanBound, Staged, StagedBound, table


def forced(planned_query, query, value, noise):
    """A test double for the release boundary: the same answer whatever the records say."""
    return np.full(query.shape, 0.125)


CASES = [
    (Ridge(features=CosSin(count=5), regularization=0.2), RidgeReplaceOne()),
    (LabelMean(), LabelMeanBound()),
    (Staged(plan=((1.0, 3), (1.0, 4))), StagedBound()),
]


@pytest.mark.parametrize(("learner", "bound"), CASES)
def test_equal_answers_give_byte_identical_public_files(learner, bound):
    plan = price_learner(learner, bound=bound, randomness=PublicRandomness(11), holdout=0.2)
    one, other = table(seed=1), table(seed=2)
    files = []
    for records, secret in ((one, SecretRandomness.draw()), (other, SecretRandomness.draw())):
        outcome = plan.run(records, secret=secret, release_through=forced)
        assert outcome.guarantee.status is Status.NONE
        lock = Lock(
            spec={}, versions={}, key=outcome.randomness.key, plan=describe(plan, format_of(FORMAT))
        )
        files.append(
            public_files(lock, outcome.answers, outcome.models, outcome.arrays, outcome.guarantee)
        )
    assert files[0] == files[1]
    assert {*files[0]} == {
        "spec.lock.json",
        "answers.npz",
        "model.npz",
        "guarantee.json",
        "guarantee.txt",
    }


def test_the_law_can_fail():
    """The same comparison distinguishes the two data sets  when the answers do."""
    from dpcore.private.release_context import wide_open

    learner, bound = CASES[0]
    plan = price_learner(learner, bound=bound)
    values = [plan.run(table(seed=s), release_through=wide_open).model.coefficients for s in (1, 2)]
    assert not np.allclose(*values)
