"""Newton's iteration: lengths by brute force, accuracy against the exact solution, and premises."""

import itertools
import math

import numpy as np
import pytest

import dpcore
import dpcore.guarantee
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Range
from dpcore.domain.domain import Domain
from dpcore.errors import UnfitTargetError
from dpcore.learner import Public
from dpcore.learners.bounds.sum import SumBound
from dpcore.models.features.identity import Identity
from dpcore.randomness import PublicRandomness
from dpcore.records import Records
from dpcore_hessian_mixing.newton import STEPS, Newton
from dpcore_linear.affine import Affine

from builders import price_learner

LINEAR = Affine(features=Identity())
COLUMNS = {"a": Range(-1, 1), "b": Range(-1, 1)}


def public(*, exact=None, limit=None, labels=None):
    domain = Domain(
        columns=COLUMNS, target="y", labels=labels or Range(-1, 1), exact=exact, limit=limit
    )
    return Public(domain=domain, randomness=PublicRandomness(7), mu=1.0)


def queries(learner, facts):
    """Both queries, the gradient at several weights and clips."""
    matrix, gradient = learner.queries(facts)
    yield matrix
    width = gradient.shape[0] - 1
    for scale, clip in itertools.product((0.0, 1.0, 40.0), (0.01, 0.2, 1.0)):
        weights = scale * np.linspace(-1, 1, width)
        yield gradient.with_args({"weights": weights, "clip": clip})


def vector(learner, query, facts, record):
    """What one record adds, in the query's unit."""
    block = Records(features=np.array([record[:2]]), labels=np.array([record[2]]))
    exact = learner.total_of(query, block, facts)
    return np.array(exact.integers(), dtype=float) * 2.0**exact.exponent


@pytest.mark.parametrize("exact", [20, None])
def test_no_record_moves_a_sum_by_more_than_is_claimed_and_some_come_near(exact):
    learner = Newton(features=LINEAR)
    facts = public(exact=exact, limit=None if exact else 20)
    corners = [*itertools.product((-1.0, -0.3, 0.0, 1.0), repeat=3)]
    relations = (dpcore.ADD_REMOVE,) if exact is None else (dpcore.REPLACE_ONE,)
    for query in queries(learner, facts):
        vectors = [vector(learner, query, facts, record) for record in corners]
        moves = {
            dpcore.ADD_REMOVE: max(np.linalg.norm(v) for v in vectors),
            dpcore.REPLACE_ONE: max(
                np.linalg.norm(v - w) for v, w in itertools.combinations(vectors, 2)
            ),
        }
        for relation in relations:
            claim = SumBound().sensitivity(query, learner, facts, relation).value
            assert moves[relation] <= claim
            # the matrix's worst pair is orthogonal, which these columns allow only about
            if query.name == "matrix" or query.args["weights"].any():
                assert moves[relation] >= 0.65 * claim


def test_a_claim_that_forgot_the_weight_of_sizes_would_be_broken():
    """The length of the gradient only, which is 1, is passed by what is next to it."""
    learner, facts = Newton(features=LINEAR), public(limit=20)
    _, query = [*queries(learner, facts)][:2]
    longest = max(
        np.linalg.norm(vector(learner, query, facts, record))
        for record in itertools.product((-1.0, 1.0), repeat=3)
    )
    assert longest > 1.02


def answered(learner, facts, features, labels, planned=None, rng=None):
    """The model from exact answers, or with the planned noise, and the last state."""
    state = learner.start(facts)
    records = Records(features=features, labels=labels)
    while (query := learner.ask(state)) is not None:
        value, noise_distribution = learner.total_of(query, records, facts).floats(), None
        if planned is not None:
            noise_distribution = planned[query.name].noise_distribution
            value = value + noise_distribution.std * rng.standard_normal(query.shape)
        answer = dpcore.Answer(
            query=query,
            number=1,
            value=value,
            mechanism=Gaussian(),
            noise_distribution=noise_distribution,
        )
        state = learner.update(state, answer)
    return learner.model(state), state


def test_without_noise_six_steps_reach_least_squares():
    rng = np.random.default_rng(1)
    features = rng.uniform(-1, 1, (400, 2)) @ np.array([[1.0, 0.9], [0.0, 0.3]])
    features = np.clip(features, -1, 1)
    labels = np.clip(features @ [0.2, -0.1] + 0.05 + 0.02 * rng.standard_normal(400), -1, 1)
    learner, facts = Newton(features=LINEAR), public(exact=400)
    model, state = answered(learner, facts, features, labels)
    rows = LINEAR.drawn(facts.domain, facts.randomness)(features)
    oracle = np.linalg.lstsq(rows, labels, rcond=None)[0]
    assert len(state.weights) == STEPS + 1
    # One record's part is added to every eigenvalue, which shrinks the flattest direction.
    assert np.abs(rows @ (model.coefficients - oracle)).max() < 2e-3


def test_without_noise_classes_reach_the_logistic_fit():
    rng = np.random.default_rng(2)
    features = rng.uniform(-1, 1, (500, 2))
    scores = 2 * features[:, 0] - features[:, 1]
    labels = np.where(rng.random(500) < 1 / (1 + np.exp(-scores)), 1.0, -1.0)
    learner = Newton(features=LINEAR)
    facts = public(exact=500, labels=Classes((0, 1)))
    model, _ = answered(learner, facts, features, labels)
    rows = LINEAR.drawn(facts.domain, facts.randomness)(features)
    theta = np.zeros(3)
    for _ in range(50):  # Newton's method on the logistic loss itself
        p = 1 / (1 + np.exp(-rows @ theta))
        hessian = (rows * (p * (1 - p))[:, None]).T @ rows + 1e-9 * np.eye(3)
        theta += np.linalg.solve(hessian, rows.T @ ((labels + 1) / 2 - p))
    fitted, exact = rows @ model.coefficients, rows @ theta
    assert np.corrcoef(fitted, exact)[0, 1] > 0.99
    assert np.mean(np.sign(fitted) != np.sign(exact)) < 0.02


def test_the_clip_follows_small_labels_where_noise_lets_it():
    rng = np.random.default_rng(3)
    features = rng.uniform(-1, 1, (4000, 2))
    labels = 0.02 * rng.standard_normal(4000)
    _, state = answered(Newton(features=LINEAR), public(exact=4000), features, labels)
    assert state.clip < 0.05


@pytest.mark.parametrize("relation", [dpcore.ADD_REMOVE, dpcore.REPLACE_ONE], ids=str)
def test_noise_for_epsilon_one_leaves_most_of_a_small_slope(relation):
    """Twenty draws of the planned noise from a fixed seed; a constant has an error of 1."""
    rng = np.random.default_rng(4)
    features = rng.uniform(-1, 1, (2000, 2))
    labels = np.clip(0.1 * features[:, 0] + 0.02 * rng.standard_normal(2000), -1, 1)
    facts = public(exact=2000) if relation.replaces else public(limit=2500)
    learner = Newton(features=LINEAR)
    plan = price_learner(learner, domain=facts.domain, adjacency=relation)
    assert plan.guarantee.status is dpcore.guarantee.Status.PROVED
    rows = LINEAR.drawn(facts.domain, facts.randomness)(features)
    (release,) = plan.schedule.releases
    errors = []
    for _ in range(20):
        model, _ = answered(learner, facts, features, labels, release.queries, rng)
        errors.append(np.mean((rows @ model.coefficients - 0.1 * features[:, 0]) ** 2))
    assert np.mean(errors) < 0.01 * np.var(0.1 * features[:, 0])


def test_several_classes_are_refused():
    with pytest.raises(UnfitTargetError, match="two classes"):
        Newton(features=LINEAR).queries(public(exact=9, labels=Classes((0, 1, 2))))


def test_a_hostile_answer_moves_no_state_out_of_numbers():
    learner, facts = Newton(features=LINEAR), public(limit=50)
    state = learner.start(facts)
    for size in (1e300, -1e300, 0.0):
        trial = state
        while (query := learner.ask(trial)) is not None:
            value = np.full(query.shape, size)
            trial = learner.update(
                trial,
                dpcore.Answer(
                    query=query,
                    number=1,
                    value=value,
                    mechanism=Gaussian(),
                    noise_distribution=None,
                ),
            )
        assert np.isfinite(learner.model(trial).coefficients).all()
        assert 0.01 <= trial.clip <= 1
        assert math.isfinite(trial.records)
