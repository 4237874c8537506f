"""T1 and T6 against oracles that know nothing of the code: broken by no pair, nearly reached."""

import math

import numpy as np
import pytest

from dpcore.errors import ParameterError
from dpcore_models.theorems import sum_form
from dpcore_models.theorems.projection import ball_diameter
from dpcore_models.theorems.taper import UNLIMITED_FULL, UNLIMITED_ZERO, Taper

from oracles.ridge import (
    distance,
    exact_ball_ridge,
    exact_huber_ridge,
    huber_ridge_to_few_digits,
    unit_rows,
)

KAPPA, M = 1.0, 1.0


def moved(first, second):
    return distance(first, np.array([float(entry) for entry in second]))


def ball(phi, y, lam, radius):
    return exact_ball_ridge(np.array(phi, dtype=float), np.array(y, dtype=float), lam, radius)


def huber(phi, y, lam, clip):
    phi, y = np.array(phi, dtype=float), np.array(y, dtype=float)
    near = huber_ridge_to_few_digits(phi, y, lam, clip)
    return exact_huber_ridge(phi, y, lam, clip, near)


def neighbours(rng):
    """A dataset, the same with one record more, with one replaced, and with one label changed."""
    records = int(rng.integers(1, 12))
    phi = unit_rows(rng, records + 1, 2, rng.choice([0.0, 0.0, 1e-3])) * rng.choice([1, 1, 0.3])
    y = rng.choice([-M, M, rng.uniform(-M, M)], records + 1)
    new, label = unit_rows(rng, 1, 2)[0], rng.choice([-M, M])
    smaller = (phi[:-1], y[:-1])
    replaced = (np.vstack([phi[:-1], new]), np.append(y[:-1], label))
    relabelled = (phi, np.append(y[:-1], label))
    return smaller, (phi, y), replaced, relabelled


@pytest.mark.parametrize("seed", range(40))
def test_no_random_pair_moves_further_than_t6(seed):
    rng = np.random.default_rng(seed)
    lam, radius, clip = (
        10 ** rng.uniform(-1, 2),
        10 ** rng.uniform(-1.5, 1),
        10 ** rng.uniform(-1, 1),
    )
    found = [(ball(*data, lam, radius), huber(*data, lam, clip)) for data in neighbours(rng)]
    smaller, larger, replaced, relabelled = found
    limits = [
        (
            smaller,
            sum_form.ball_ridge_add_remove,
            sum_form.huber_ridge_add_remove(KAPPA, clip, lam),
        ),
        (
            replaced,
            sum_form.ball_ridge_replace_one,
            sum_form.huber_ridge_replace_one(KAPPA, clip, lam),
        ),
        (
            relabelled,
            sum_form.ball_ridge_replace_label,
            sum_form.huber_ridge_replace_label(KAPPA, M, clip, lam),
        ),
    ]
    for (other_ball, other_huber), ball_limit, huber_limit in limits:
        assert moved(larger[0], other_ball) <= ball_limit(KAPPA, M, lam, radius)
        assert moved(larger[1], other_huber) <= huber_limit


def test_ball_ridge_reaches_the_add_remove_bound():
    # many short rows pull to the sphere; one long one pulls back with all of M + R
    lam, radius = 100.0, 0.4
    base = [[0.01]] * 4100
    label = radius * (lam + 0.41) / 41  # ends exactly on the sphere
    before = ball(base, [label] * 4100, lam, radius)
    after = ball([*base, [1.0]], [*[label] * 4100, -M], lam, radius)
    ratio = moved(before, after) / sum_form.ball_ridge_add_remove(KAPPA, M, lam, radius)
    assert 0.95 <= ratio <= 1


def test_ball_ridge_reaches_the_replace_one_bound():
    lam, radius = 100.0, 0.05
    before, after = ball([[1.0]], [M], lam, radius), ball([[1.0]], [-M], lam, radius)
    ratio = moved(before, after) / sum_form.ball_ridge_replace_one(KAPPA, M, lam, radius)
    assert 0.95 <= ratio <= 1
    label = sum_form.ball_ridge_replace_label(KAPPA, M, lam, radius)
    assert 0.98 <= moved(before, after) / label <= 1


def test_ball_ridge_reaches_its_diameter():
    lam, radius = 0.1, 1e-3
    up, down = ([[0.2]], [M]), ([[1.0]], [-M])
    both = ([*up[0], *down[0]], [*up[1], *down[1]])
    replaced = moved(ball(*up, lam, radius), ball(*down, lam, radius))
    added = moved(ball(*up, lam, radius), ball(*both, lam, radius))
    for apart in (replaced, added):
        assert apart == pytest.approx(2 * radius, rel=1e-12)
    assert sum_form.ball_ridge_add_remove(KAPPA, M, lam, radius) == 2 * radius
    assert sum_form.ball_ridge_replace_one(KAPPA, M, lam, radius) == 2 * radius


def test_huber_ridge_reaches_its_bounds():
    lam, clip = 20.0, 0.3
    empty = np.zeros(1)
    up, down = huber([[1.0]], [M], lam, clip), huber([[1.0]], [-M], lam, clip)
    added = distance(up, empty) / sum_form.huber_ridge_add_remove(KAPPA, clip, lam)
    replaced = moved(up, down) / sum_form.huber_ridge_replace_one(KAPPA, clip, lam)
    label = moved(up, down) / sum_form.huber_ridge_replace_label(KAPPA, M, clip, lam)
    assert min(added, replaced, label) >= 0.999
    assert max(added, replaced, label) <= 1


def test_huber_ridge_reaches_the_label_bound_of_a_wide_clip():
    lam, clip = 50.0, 7.0
    ratio = moved(huber([[1.0]], [M], lam, clip), huber([[1.0]], [-M], lam, clip))
    ratio /= sum_form.huber_ridge_replace_label(KAPPA, M, clip, lam)
    assert 0.95 <= ratio <= 1


@pytest.mark.parametrize("seed", range(20))
def test_huber_ridge_is_no_longer_than_its_norm_bound(seed):
    rng = np.random.default_rng(seed)
    records = int(rng.integers(1, 30))
    phi, y = unit_rows(rng, records, 2, 0.01), rng.choice([-M, M]) * np.ones(records)
    lam, clip = 10 ** rng.uniform(-2, 2), 10 ** rng.uniform(-2, 1)
    length = distance(huber(phi, y, lam, clip), np.zeros(2))
    assert length <= sum_form.huber_ridge_norm(KAPPA, M, clip, lam, records)


@pytest.mark.parametrize("clip", [0.3, 0.6, 5.0])
def test_the_norm_bounds_are_reached_by_copies_of_one_record(clip):
    lam, best = 0.5, max(M - clip, M / 2)  # the residual that pulls longest
    row = best * math.sqrt(lam / (5 * best * (M - best)))
    long = distance(huber([[row]] * 5, [M] * 5, lam, clip), np.zeros(1))
    assert row <= KAPPA
    assert long == pytest.approx(sum_form.huber_ridge_norm(KAPPA, M, clip, lam, 5), rel=1e-12)
    pulled = distance(huber([[1.0]] * 5, [M] * 5, 100.0, 0.3), np.zeros(1))
    assert pulled == pytest.approx(sum_form.huber_ridge_norm(KAPPA, M, 0.3, 100.0, 5), rel=1e-12)


def test_parameters_outside_the_theorem_are_refused():
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ParameterError):
            ball_diameter(wrong)
        with pytest.raises(ParameterError):
            sum_form.ball_ridge_add_remove(KAPPA, M, wrong, 1.0)
        with pytest.raises(ParameterError):
            sum_form.huber_ridge_replace_one(KAPPA, wrong, 1.0)


def test_a_public_bound_on_the_count_needs_no_taper():
    taper = Taper.at_most(500)
    assert {taper.weight(n) for n in range(501)} == {1.0}
    assert taper.cost(1e9, membership=True) == 0


def test_without_one_neighbouring_counts_differ_by_no_more_than_the_cost():
    taper = Taper.at_most(None)
    counts = np.unique(np.geomspace(1, 4 * UNLIMITED_ZERO, 4000).astype(int))
    counts = np.union1d(counts, [UNLIMITED_FULL, UNLIMITED_ZERO - 1, UNLIMITED_ZERO])
    weights = {int(n): (taper.weight(int(n)), taper.weight(int(n) + 1)) for n in counts}
    steps = [here - there for here, there in weights.values()]
    assert min(steps) >= 0
    assert 0.999 <= max(steps) / taper.cost(1.0, membership=True) <= 1
    assert weights[1][0] == 1
    assert weights[UNLIMITED_FULL][0] == 1
    assert weights[UNLIMITED_ZERO][0] == 0
