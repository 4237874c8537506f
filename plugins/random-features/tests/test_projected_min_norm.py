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
    replace_features,
)
from dpcore.models.features.identity import Identity
from dpcore_models.features.cos_sin import CosSin
from dpcore_random_features.projected_min_norm import ProjectedMinNorm, ProjectedMinNormBound

from doubles import domain

RELATIONS = [ADD_REMOVE, REPLACE_ONE, REPLACE_LABEL, replace_features(0.1, label=False)]
FACTS = Public(domain=domain(records=None), randomness=PublicRandomness(5))
SECRET = SecretRandomness.rehearsal(0).learner(0, "coefficients", 1)


def claim(learner, adjacency):
    (query,) = learner.queries(FACTS)
    return ProjectedMinNormBound().sensitivity(query, learner, FACTS, adjacency)


def fit(learner, rows, labels):
    (query,) = learner.queries(FACTS)
    records = Records(
        features=np.asarray(rows, dtype=float).reshape(len(labels), 2),
        labels=np.asarray(labels, dtype=float),
    )
    return learner.statistic(query, records, FACTS, SECRET)


def ratio(learner, adjacency, before, after):
    apart = np.linalg.norm(fit(learner, *before) - fit(learner, *after))
    return apart / claim(learner, adjacency).value


def test_nearly_equal_records_with_opposite_labels_reach_the_diameter():
    learner = ProjectedMinNorm(features=Identity(), radius=0.5)
    rows = [[0.8, 0.0], [0.8, 1e-4]]
    up, down = (rows, [0.0, 1.0]), (rows, [0.0, -1.0])
    assert 0.99 <= ratio(learner, REPLACE_ONE, up, down) <= 1
    assert 0.99 <= ratio(learner, REPLACE_LABEL, up, down) <= 1


def test_one_record_more_reaches_the_diameter():
    learner = ProjectedMinNorm(features=Identity(), radius=0.5)
    before = ([[0.8, 0.0], [0.8, 1e-4]], [0.0, 1.0])
    after = ([*before[0], [0.8, -1e-2]], [*before[1], 1.0])
    assert 0.99 <= ratio(learner, ADD_REMOVE, before, after) <= 1


@pytest.mark.parametrize("features", [Identity(), CosSin(count=20)])
def test_no_neighbours_leave_the_ball_and_zero_is_in_it(features):
    rng = np.random.default_rng(3)
    for _ in range(150):
        radius = 10 ** rng.uniform(-6, 6)
        learner = ProjectedMinNorm(features=features, radius=radius)
        count = int(rng.integers(0, 12))
        rows = rng.uniform(-1, 1, (count + 1, 2))
        rows[rng.random(count + 1) < 0.3] = rows[0]
        rows[rng.random(count + 1) < 0.2] += 1e-9
        labels = rng.choice([-1.0, 1.0], count + 1)
        here, there = fit(learner, rows, labels), fit(learner, rows[:-1], labels[:-1])
        for adjacency in RELATIONS:
            limit = claim(learner, adjacency)
            assert limit.value == 2 * radius
            assert limit.adjacency == adjacency
            assert limit.covers_fallback
            assert math.dist(here, there) <= limit.value
        assert math.fsum(here * here) <= radius * radius


def test_inside_the_ball_it_is_the_interpolant():
    learner = ProjectedMinNorm(features=CosSin(count=30), radius=1e6)
    rng = np.random.default_rng(4)
    rows, labels = rng.uniform(-1, 1, (9, 2)), rng.uniform(-1, 1, 9)
    phi = learner.features.draw(FACTS.domain, FACTS.randomness)(rows)
    expected = np.linalg.lstsq(phi, labels, rcond=None)[0]
    found = fit(learner, rows, labels)
    assert np.linalg.norm(found - expected) <= 1e-6 * np.linalg.norm(expected)


def test_a_single_record_and_none_at_all_are_fitted():
    learner = ProjectedMinNorm(features=Identity(), radius=10.0)
    assert fit(learner, [[0.5, 0.0]], [0.25]) == pytest.approx([0.5, 0])
    assert not fit(learner, [], []).any()
    assert not fit(learner, [[0.0, 0.0]], [1.0]).any()


def test_a_radius_whose_double_is_infinite_is_refused():
    assert isinstance(
        claim(ProjectedMinNorm(features=Identity(), radius=1e308), REPLACE_ONE), Refused
    )
