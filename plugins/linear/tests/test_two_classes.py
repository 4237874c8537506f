"""Two classes: every learner of the plugin separates them; the logistic loss has its gradient."""

import attrs
import numpy as np
import pytest

import dpcore
import dpcore.guarantee
from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Domain,
    Public,
    PublicRandomness,
    Range,
    Records,
    SecretRandomness,
)
from dpcore.domain import Classes
from dpcore.errors import NoClaimError, ParameterError
from dpcore.models.features.identity import Identity
from dpcore_linear.affine import Affine
from dpcore_linear.clipped_gradient import ClippedGradient, ClippedGradientBound
from dpcore_linear.output_perturbation import OutputPerturbation
from dpcore_linear.staged_gradient import StagedGradient
from dpcore_linear.sufficient_statistics import SufficientStatistics

from builders import price_learner

LINEAR = Affine(features=Identity())
SECRET = SecretRandomness.rehearsal(0).learner(0, "gradient", 1)
LOGISTIC = ClippedGradient(features=LINEAR, clip=0.5, rate=4.0, loss="logistic")
LEARNERS = [
    StagedGradient(),
    LOGISTIC,
    ClippedGradient(features=LINEAR, clip=0.5),
    SufficientStatistics(features=LINEAR),
    OutputPerturbation(features=LINEAR, total_regularization=5.0, clip=0.5),
]


def two_classes(records=2000, labels=None):
    return Domain(
        columns={"a": Range(-1, 1), "b": Range(-1, 1)},
        target="y",
        labels=labels or Classes(("no", "yes")),
        exact=records,
    )


def plan(domain, learner, epsilon=4):
    return price_learner(learner, domain=domain, epsilon=epsilon)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
def test_every_learner_separates_what_a_line_separates(learner):
    """a + b > 0 on 2000 records at epsilon = 4: 20 trials of each were right on 86 % or more."""
    rng = np.random.default_rng(7)
    a, b = rng.uniform(-1, 1, (2, 2000))
    table = {"a": a, "b": b, "y": np.where(a + b > 0, "yes", "no")}
    outcome = plan(two_classes(), learner).run(table)
    predicted = outcome.model.predict(table)
    assert set(predicted) <= {"no", "yes"}
    assert np.mean(predicted == table["y"]) > 0.75
    assert outcome.guarantee.status is dpcore.guarantee.Status.PROVED


def gradient(records, weights, learner=LOGISTIC):
    public = Public(domain=two_classes(len(records)), randomness=PublicRandomness(1), mu=0.3)
    (query,) = learner.queries(public)
    query = attrs.evolve(query, args={"weights": weights})
    value = learner.statistic(query, records, public, SECRET).floats()
    return value, query, public


def test_an_unclipped_gradient_is_the_slope_of_twice_the_logistic_loss():
    rng = np.random.default_rng(2)
    records = Records(features=rng.uniform(-1, 1, (40, 2)), labels=rng.choice([-1.0, 1.0], 40))
    loose = attrs.evolve(LOGISTIC, clip=50.0)
    weights = rng.normal(size=3) * 2
    value, _, public = gradient(records, weights, loose)
    rows = LINEAR.draw(public.domain, public.randomness)(records.features)
    rows /= LINEAR.norm(public.domain)

    def loss(w):
        return 2 * np.sum(np.log1p(np.exp(-records.labels * (rows @ w))))

    steps = 1e-6 * np.eye(3)
    slopes = [(loss(weights + step) - loss(weights - step)) / 2e-6 for step in steps]
    rounded = 2.0**-15 / 2 + 3 * 2.0**-21  # a residual at this clip; a row of entries to 2^-20
    assert value == pytest.approx(slopes, abs=40 * rounded)


def test_no_neighbours_move_a_logistic_gradient_further_than_its_bound():
    rng = np.random.default_rng(3)
    largest = dict.fromkeys((ADD_REMOVE, REPLACE_ONE, REPLACE_LABEL), 0.0)
    for trial in range(300):
        learner = attrs.evolve(LOGISTIC, clip=float(rng.choice([0.1, 0.5, 1.0, 3.0])))
        weights = rng.normal(size=3) * 10 ** rng.uniform(-2, 2) * (trial % 3 > 0)
        rows, labels = rng.choice([-1.0, 1.0, 0.2], (12, 2)), rng.choice([-1.0, 0.0, 1.0], 12)
        labels[-1] = -1.0
        before = Records(features=rows, labels=labels)
        flipped = np.append(labels[:-1], 1.0)
        moved = np.vstack([rows[:-1], rng.choice([-1.0, 1.0], (1, 2))])
        pairs = {
            ADD_REMOVE: Records(features=rows[:-1], labels=labels[:-1]),
            REPLACE_ONE: Records(features=moved if trial % 2 else rows, labels=flipped),
            REPLACE_LABEL: Records(features=rows, labels=flipped),
        }
        first, query, public = gradient(before, weights, learner)
        for adjacency, after in pairs.items():
            second, _, _ = gradient(after, weights, learner)
            claim = ClippedGradientBound().sensitivity(query, learner, public, adjacency)
            ratio = float(np.linalg.norm(first - second)) / claim.unit
            assert ratio <= 1
            largest[adjacency] = max(largest[adjacency], ratio)
    assert all(ratio > 0.99 for ratio in largest.values()), largest


@pytest.mark.parametrize("labels", [Range(0, 1), Classes(("a", "b", "c"))])
def test_the_logistic_loss_is_for_two_classes(labels):
    with pytest.raises(NoClaimError, match="classes"):
        plan(two_classes(labels=labels), LOGISTIC)
    with pytest.raises(ParameterError, match="logistic"):
        ClippedGradient(features=LINEAR, clip=1.0, loss="hinge")
