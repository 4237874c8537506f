import itertools
import math

import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Public,
    PublicRandomness,
    Records,
    Refused,
    SecretRandomness,
    Sensitivity,
    replace_features,
)
from dpcore.models.features.identity import Identity
from dpcore_models.features.cos_sin import CosSin
from dpcore_models.theorems import taper
from dpcore_random_features.ball_ridge import BallRidgeBound, BallRidgeLearner
from dpcore_random_features.huber_ridge import HuberRidgeBound, HuberRidgeLearner

from doubles import domain

RELATIONS = [ADD_REMOVE, REPLACE_ONE, REPLACE_LABEL, replace_features(0.5, label=True)]
SECRET = SecretRandomness.rehearsal(0).learner(0, "coefficients", 1)


def public(limit=None, columns=2, **options):
    return Public(
        domain=domain(records=None, limit=limit, columns=columns, norm=1.0, **options),
        randomness=PublicRandomness(5),
    )


def ball(lam=100.0, radius=0.4, features=None):
    return BallRidgeLearner(
        features=features or Identity(), total_regularization=lam, radius=radius
    )


def huber(lam=20.0, clip=0.3, features=None):
    return HuberRidgeLearner(features=features or Identity(), total_regularization=lam, clip=clip)


def bound(learner, facts, adjacency):
    owner = BallRidgeBound() if isinstance(learner, BallRidgeLearner) else HuberRidgeBound()
    (query,) = learner.queries(facts)
    return owner.sensitivity(query, learner, facts, adjacency)


def fit(learner, facts, rows, labels):
    (query,) = learner.queries(facts)
    records = Records(
        features=np.asarray(rows, dtype=float).reshape(len(labels), facts.domain.width),
        labels=np.asarray(labels, dtype=float),
    )
    return learner.statistic(query, records, facts, SECRET)


def ratio(learner, facts, adjacency, before, after):
    claim = bound(learner, facts, adjacency)
    return np.linalg.norm(fit(learner, facts, *before) - fit(learner, facts, *after)) / claim.value


def rows_in_the_ball(rng, count, columns):
    rows = rng.normal(size=(count, columns)) * rng.choice([1.0, 0.01, 30.0], (count, 1))
    return rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True) * (1 + 1e-12))


@pytest.mark.parametrize("limit", [30, None])
@pytest.mark.parametrize("make", [ball, huber])
@pytest.mark.parametrize("features", [Identity(), CosSin(count=6)])
def test_no_random_neighbours_move_further_than_any_bound(make, features, limit):
    rng = np.random.default_rng(7)
    for _ in range(60):
        facts = public(limit)
        learner = make(10 ** rng.uniform(-0.5, 2), 10 ** rng.uniform(-1.5, 0.5), features)
        count = int(rng.integers(0, 20))
        rows = rows_in_the_ball(rng, count + 1, 2)
        labels = rng.choice([-1.0, 1.0, 0.2], count + 1)
        near = np.clip(rows[-1] + 0.5 * rows_in_the_ball(rng, 1, 2)[0], -0.7, 0.7)
        other = rows_in_the_ball(rng, 1, 2)[0]
        pairs = {
            ADD_REMOVE: (rows[:-1], labels[:-1]),
            REPLACE_ONE: (np.vstack([rows[:-1], other]), np.append(labels[:-1], -labels[-1])),
            REPLACE_LABEL: (rows, np.append(labels[:-1], -labels[-1])),
            RELATIONS[3]: (np.vstack([rows[:-1], near]), np.append(labels[:-1], -labels[-1])),
        }
        here = fit(learner, facts, rows, labels)
        for adjacency, there in pairs.items():
            claim = bound(learner, facts, adjacency)
            if isinstance(claim, Refused):
                assert limit is None
                continue
            assert claim.adjacency.covers(adjacency)
            assert np.linalg.norm(here - fit(learner, facts, *there)) <= claim.unit


def test_ball_ridge_reaches_95_percent_of_both_bounds():
    facts, learner = public(5000), ball(100.0, 0.4)
    label = 0.4 * 100.41 / 41  # 4100 rows of length 0.01 end exactly on the sphere
    base = ([[0.01, 0.0]] * 4100, [label] * 4100)
    more = ([*base[0], [1.0, 0.0]], [*base[1], -1.0])
    assert 0.95 <= ratio(learner, facts, ADD_REMOVE, base, more) <= 1
    small = ball(100.0, 0.05)
    up, down = ([[1.0, 0.0]], [1.0]), ([[1.0, 0.0]], [-1.0])
    assert 0.95 <= ratio(small, facts, REPLACE_ONE, up, down) <= 1
    assert 0.95 <= ratio(small, facts, REPLACE_LABEL, up, down) <= 1


def test_huber_ridge_reaches_95_percent_of_both_bounds():
    facts, learner = public(5000), huber()
    none, up, down = ([], []), ([[1.0, 0.0]], [1.0]), ([[1.0, 0.0]], [-1.0])
    assert 0.99 <= ratio(learner, facts, ADD_REMOVE, none, up) <= 1
    assert 0.99 <= ratio(learner, facts, REPLACE_ONE, up, down) <= 1
    assert 0.99 <= ratio(learner, facts, REPLACE_LABEL, up, down) <= 1


@pytest.mark.parametrize("learner", [ball(), huber()])
def test_the_exact_number_of_records_is_never_read(learner):
    for facts in (public(40), public(None)):
        assert fit(learner, facts, [[0.5, 0.1]] * 3, [1.0, 0.5, -1.0]).shape == (2,)
        for adjacency in RELATIONS:
            assert isinstance(bound(learner, facts, adjacency), Sensitivity)


@pytest.mark.parametrize("learner", [ball(), huber()])
def test_a_private_count_costs_more_than_a_public_limit(learner):
    known, unknown = (bound(learner, public(n), ADD_REMOVE) for n in (1000, None))
    assert known.value < unknown.value < 1.05 * known.value
    assert known.solver_error < unknown.solver_error < 0.01 * known.value


@pytest.mark.parametrize("learner", [ball(1000.0, 0.5), huber(1000.0, 0.5)])
def test_the_taper_is_paid_for_at_every_count(learner, monkeypatch):
    # a steep taper, whose steps are far longer than what one record pulls
    monkeypatch.setattr(taper, "UNLIMITED_FULL", 1000)
    monkeypatch.setattr(taper, "UNLIMITED_ZERO", 1004)
    facts = public(None)
    claim = bound(learner, facts, ADD_REMOVE)
    counts = range(995, 1007)
    fits = [fit(learner, facts, [[1.0, 0.0]] * n, [1.0] * n) for n in counts]
    steps = [np.linalg.norm(after - before) for before, after in itertools.pairwise(fits)]
    assert max(steps) > 50 * bound(learner, public(1004), ADD_REMOVE).unit
    assert max(steps) <= claim.unit
    assert not fits[-2].any()


def test_a_ball_whose_diameter_is_the_claim_needs_no_solver_error():
    learner, facts = ball(1e-9, 0.4), public(1000)
    for adjacency in RELATIONS:
        claim = bound(learner, facts, adjacency)
        assert claim.value == 0.8
        assert claim.solver_error == 0
        assert claim.covers_fallback
    rng = np.random.default_rng(0)
    for count in (0, 1, 5, 400):
        rows = np.repeat(rows_in_the_ball(rng, 1, 2), count, axis=0)
        assert np.linalg.norm(fit(learner, facts, rows, rng.uniform(-1, 1, count))) <= 0.4


def test_what_floating_point_cannot_certify_is_refused():
    assert isinstance(bound(huber(1e-12), public(1000), ADD_REMOVE), Refused)
    wide = ball(1.0, 1e6, CosSin(count=5000))
    assert isinstance(bound(wide, public(None), ADD_REMOVE), Refused)
    assert isinstance(bound(ball(1.0, 1.7e308), public(10), ADD_REMOVE), Refused)


def test_hard_parameters_are_fitted_or_refused_but_never_fail():
    rng = np.random.default_rng(11)
    for _ in range(150):
        facts = public(int(rng.integers(1, 60)))
        features = CosSin(count=int(rng.integers(1, 40)), bandwidth=10 ** rng.uniform(-1, 4))
        lam, other = 10 ** rng.uniform(-8, 8), 10 ** rng.uniform(-6, 4)
        make = ball if rng.random() < 0.5 else huber
        learner = make(lam, other, features)
        count = int(rng.integers(0, facts.domain.at_most + 1))
        rows = rows_in_the_ball(rng, count, 2)[rng.integers(0, max(count, 1), count)]
        if isinstance(bound(learner, facts, ADD_REMOVE), Refused):
            continue
        found = fit(learner, facts, rows, rng.choice([-1.0, 1.0], count))
        assert np.isfinite(found).all()


def test_bounds_are_no_larger_than_the_theorem_and_its_named_terms():
    facts = public(1000)
    assert bound(ball(100.0, 0.4), facts, REPLACE_ONE).value == pytest.approx(2.4 / 100)
    assert bound(ball(100.0, 0.4), facts, ADD_REMOVE).value == pytest.approx(1.4 / 100)
    assert bound(ball(100.0, 0.4), facts, REPLACE_LABEL).value == pytest.approx(2 / 100)
    assert bound(huber(20.0, 0.3), facts, REPLACE_ONE).value == pytest.approx(0.6 / 20)
    assert bound(huber(20.0, 0.3), facts, ADD_REMOVE).value == pytest.approx(0.3 / 20)
    assert bound(huber(20.0, 3.0), facts, REPLACE_LABEL).value == pytest.approx(2 / 20)
    assert not math.isinf(bound(ball(), facts, REPLACE_ONE).unit)
