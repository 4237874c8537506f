"""The last look at a fit of classes: what it mends, how it is shrunk, and what its noise moves."""

import math

import numpy as np
import pytest

from dpcore import Categories, Domain, Public, PublicRandomness, Range
from dpcore.domain import Classes
from dpcore_tables.answers.shares import likely_proportions
from dpcore_tables.classes import probabilities
from dpcore_tables.plan import Plan
from dpcore_tables.steps.score_map import (
    Directions,
    ScoreMap,
    corrected_residual,
    direction_rows,
    shortened,
)
from dpcore_tables.sums import integer_rows

RECORDS = 40_000.0


def rows_of(count=1000, seed=0):
    rows = np.random.default_rng(seed).normal(size=(5, count)) * 0.3
    rows[0] = 0.5
    return rows


def fit_of(outputs, seed=1):
    weights = np.random.default_rng(seed).normal(size=(5, outputs))
    weights[0] = 0.0
    weights -= weights.mean(axis=1, keepdims=True) if outputs > 1 else 0.0
    return weights, np.zeros(outputs)


def gradient_of(rows, directions, fit, truth):
    """The mean of what records add whose labels follow the truth, times their number."""
    residual = probabilities(rows.T @ fit[0] + fit[1]) - probabilities(rows.T @ truth[0] + truth[1])
    chi = shortened(directions.weights.T @ rows - directions.middles[:, None])
    residual = residual[:, 1:] if fit[0].shape[1] == 1 else residual
    return chi @ residual * (RECORDS / rows.shape[1])


def map_of(outputs=4, factor=1.3, noise=1e-3, seed=1):
    """Of a fit whose scores should be multiplied, and have other constants."""
    rows, (weights, offset) = rows_of(), fit_of(outputs, seed)
    directions = Directions.of(rows, weights, max(outputs - 1, 1))
    constants = np.linspace(-0.2, 0.2, outputs) if outputs > 1 else np.array([0.2])
    truth = (factor * weights, offset + constants)
    gradient = gradient_of(rows, directions, (weights, offset), truth)
    model = (rows, weights, offset, gradient, noise, RECORDS)
    return ScoreMap.of(directions, *model), rows, (weights, offset), truth, model


@pytest.mark.parametrize("outputs", [1, 4])
def test_scores_that_are_too_small_and_constants_that_are_off_are_mended(outputs):
    score_map, rows, (weights, offset), truth, _ = map_of(outputs)
    mended = rows.T @ score_map.weights(weights) + score_map.offset(offset)
    likely, expected = probabilities(mended), probabilities(rows.T @ truth[0] + truth[1])
    before = probabilities(rows.T @ weights + offset)
    assert np.abs(likely - expected).mean() < 0.25 * np.abs(before - expected).mean()
    assert score_map.ratio > 1.2


def test_noise_leaves_scores_as_they_are():
    score_map, _, (weights, offset), *_ = map_of(noise=1e7)
    assert score_map.weights(weights) == pytest.approx(weights, abs=1e-2)
    assert score_map.offset(offset) == pytest.approx(offset, abs=1e-2)
    assert score_map.ratio == pytest.approx(1.0, abs=1e-2)


def test_a_gradient_of_noise_alone_moves_little():
    """What is found by chance is shrunk, as its own size says how wide the prior is."""
    rows, (weights, offset) = rows_of(), fit_of(6)
    directions, rng = Directions.of(rows, weights, 5), np.random.default_rng(2)
    sizes = []
    for _ in range(20):
        gradient = 100.0 * rng.standard_normal((6, 6))
        model = (rows, weights, offset, gradient, 100.0, RECORDS)
        sizes.append(np.abs(ScoreMap.of(directions, *model).weights(weights) - weights).max())
    assert np.median(sizes) < 0.1 * np.abs(weights).max()


def test_the_spread_is_what_noise_moves_the_map_by():
    """400 draws, of which each has its own prior: deviations agree to a fifth."""
    rng, noise = np.random.default_rng(3), 50.0
    score_map, *_, model = map_of(3, noise=noise)
    draws = [
        ScoreMap.of(
            score_map.directions,
            *model[:3],
            model[3] + noise * rng.standard_normal((3, 3)),
            *model[4:],
        )
        for _ in range(400)
    ]
    moved = np.mean([np.var([d.change[:, k] for d in draws], axis=0) for k in range(3)], axis=0)
    stated = np.mean([np.diag(draw.deviation) for draw in draws[:40]], axis=0)
    assert np.sqrt(stated) == pytest.approx(np.sqrt(moved), rel=0.35)
    still = score_map.moved(np.zeros((5, 5)))
    assert np.linalg.eigvalsh(still).min() > -1e-9
    assert np.trace(score_map.moved(np.eye(5)) - still) == pytest.approx(5 * score_map.ratio)


@pytest.mark.parametrize("outputs", [1, 4])
def test_residuals_are_of_the_probabilities_that_are_published(outputs):
    rng = np.random.default_rng(4)
    scores = 4 * rng.normal(size=(outputs, 300))
    labels = np.eye(max(outputs, 2))[rng.integers(max(outputs, 2), size=300)].T
    likely = probabilities(scores.T).T
    if outputs == 1:
        labels, likely = labels[1:], likely[1:]
    assert corrected_residual(scores, labels) == pytest.approx(likely - labels, abs=1e-12)


def test_rows_of_directions_are_at_most_one_long_and_each_records_own():
    rows, (weights, _) = integer_rows(rows_of(200)), fit_of(4)
    directions = Directions.of(rows_of(), 50 * weights, 3)
    model = (directions.weights, directions.middles)
    chi = direction_rows(rows, *model).whole
    lengths = np.linalg.norm(chi, axis=0) / 2**20
    assert 0.999 < lengths.max() <= 1.0
    one = direction_rows(type(rows)(rows.whole[:, 7:8]), *model).whole
    assert np.array_equal(one[:, 0], chi[:, 7])


@pytest.mark.parametrize(
    ("labels", "count", "edition", "directions"),
    [("ny", 19_000, 2, 1), ("pqrs", 19_000, 2, 3), ("abcdefghijklm", 19_000, 2, 8),
     ("ny", 9000, 2, 0), ("pqrs", 19_000, 1, 0)],
)  # fmt: skip
def test_the_signal_says_along_how_many_directions(labels, count, edition, directions):
    columns = {"a": Range(-1, 1), "d": Categories(("n", "y"))}
    facts = Domain(columns=columns, target="y", labels=Classes(tuple(labels)), exact=count)
    plan = Plan.of(
        Public(domain=facts, randomness=PublicRandomness(1), mu=0.27), None, edition=edition
    )
    assert plan.score_directions == directions
    assert ("scores.pulls" in plan.script()) is (directions > 0)
    assert math.fsum(plan.shares().values()) == pytest.approx(1.0)


@pytest.mark.parametrize("noise", [0.03, 0.1, 0.3])
def test_shares_are_the_mean_of_what_could_have_been_released(noise):
    """Two classes, by quadrature on 100,000 points."""
    points = (np.arange(100_000) + 0.5) / 100_000
    for released in (-0.1, 0.02, 0.4):
        weights = np.exp(-(((points - released) / noise) ** 2) / 2)
        expected = np.sum(points * weights) / np.sum(weights)
        found = likely_proportions(np.array([released]), noise)
        assert found[0] == pytest.approx(expected, abs=1e-4)


def test_shares_of_several_classes_add_up_and_keep_their_order():
    released = np.array([0.9, 0.2, -0.1, 0.05])
    proportions = likely_proportions(released, 0.1)
    assert proportions.sum() == pytest.approx(1.0)
    assert np.array_equal(np.argsort(proportions), np.argsort(released))
    assert proportions.min() > 0.005
    exact = np.array([0.5, 0.3, 0.2])
    assert likely_proportions(exact, 1e-9) == pytest.approx(exact, abs=1e-8)
    assert likely_proportions(exact, 1e3) == pytest.approx(np.full(3, 1 / 3), abs=1e-3)
