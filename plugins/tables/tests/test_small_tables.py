"""Rules for small tables: plain steps, their noise, spread of labels, functions that are kept."""

import math

import attrs
import numpy as np
import pytest
import scipy.special

from dpcore_tables import small
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import Layout, Term
from dpcore_tables.normal import gaussian_below
from dpcore_tables.plain_descent import Plain
from dpcore_tables.plan import Plan
from dpcore_tables.ranks import Ranks, usual_proportions
from dpcore_tables.residuals import UNCLIPPED, Residuals, measured
from dpcore_tables.steps.curvature import Walked
from dpcore_tables.sums import EDGES
from dpcore_tables.synthetic_records import simulated_rows
from dpcore_tables.synthetic_releases import Replay

LAYOUT = Layout(levels=(0, 2, 3, 0), starts=(0, 1, 2, 5))
RANKS = Ranks.of(np.zeros(2), np.full(2, 0.2), usual_proportions(2))
FIRST = small.first_dictionary(LAYOUT, RANKS, 100.0)


def walk(count=40, last=False, below=0.5, rate=0.8):
    return Plain(
        dictionary=FIRST,
        count=count,
        rate=rate,
        records=100.0,
        below=below,
        last=last,
        weights=np.zeros((FIRST.width, 1)),
    )


def test_plain_steps_keep_the_mean_of_the_later_half():
    rng = np.random.default_rng(0)
    drawn = rng.normal(size=(5, FIRST.width, 1))
    descent, iterates = walk(count=5), [np.zeros((FIRST.width, 1))]
    for gradient in drawn:
        descent = descent.after(gradient, 0.1, 0.5, 1.0, UNCLIPPED)
        iterates.append(iterates[-1] - 0.8 / 100 * gradient)
    assert descent.weights == pytest.approx((iterates[-2] + iterates[-1]) / 2)


def test_the_noise_of_kept_weights_is_that_of_simulated_descents():
    """400 walks on noise only, where half the residuals are clipped, on simulated records: the
    variance of a prediction errs by 7 % in one standard deviation, and of 1000 by less."""
    rng, rows = np.random.default_rng(1), simulated_rows(FIRST)
    curvature = 0.5 * 100 * rows @ rows.T / rows.shape[1]
    ends = []
    for _ in range(400):
        descent = walk()
        for _ in range(40):
            noise = 3.0 * rng.normal(size=(FIRST.width, 1))
            descent = descent.after(curvature @ descent.weights + noise, 3.0, 0.5, 1.0, UNCLIPPED)
        ends.append(descent.weights[:, 0])
    claimed = np.einsum("in,ij,jn->n", rows, descent.noise_covariance(), rows)
    assert claimed == pytest.approx(np.var(np.array(ends) @ rows, axis=0), rel=0.3)
    assert np.mean(claimed) == pytest.approx(
        np.mean(np.var(np.array(ends) @ rows, axis=0)), rel=0.1
    )


def walk_of(curvature, steps, noise, rng):
    """Gradients at weights that wander."""
    walked, weights = Walked(), rng.normal(size=len(curvature))
    pairs = []
    for _ in range(steps):
        gradient = curvature @ weights + 1.0 + noise * rng.normal(size=len(weights))
        walked = walked.after(weights, gradient)
        pairs.append((weights, gradient))
        weights = weights + 0.3 * rng.normal(size=len(weights))
    return walked, pairs


def test_a_curvature_is_the_mean_of_its_law_given_the_steps():
    """Every row by least squares with the prior as further equations; a constant is free."""
    rng, usual, noise = np.random.default_rng(5), np.diag([4.0, 1.0, 9.0]), 5.0
    walked, pairs = walk_of(usual + 0.5, 30, noise, rng)
    rows = []
    for at in range(3):
        design = np.array([[*weights, 1.0] for weights, _ in pairs]) / noise
        values = np.array([gradient[at] for _, gradient in pairs]) / noise
        deviation = 0.25 * np.sqrt(usual[at, at] * usual.diagonal())
        design = np.vstack([design, np.hstack([np.diag(1 / deviation), np.zeros((3, 1))])])
        values = np.concatenate([values, usual[at] / deviation])
        rows.append(np.linalg.lstsq(design, values, rcond=None)[0][:3])
    expected = (np.array(rows) + np.array(rows).T) / 2
    assert walked.curvature(usual, noise) == pytest.approx(expected)
    assert walked.curvature(usual, noise, at_once=True) == pytest.approx(expected)


def test_long_walks_tell_a_curvature_and_no_walk_leaves_what_is_usual():
    rng, usual = np.random.default_rng(6), np.diag([4.0, 1.0, 9.0])
    truth = usual + 0.6
    walked, _ = walk_of(truth, 3000, 1.0, rng)
    assert walked.curvature(usual, 1.0) == pytest.approx(truth, abs=0.05)
    assert np.array_equal(Walked().curvature(usual, 1.0), usual)
    assert walked.curvature(usual, 1e9) == pytest.approx(usual)


@pytest.mark.slow
def test_noise_that_moves_the_factors_of_shrinking_is_in_standard_errors():
    """400 descents on noise around one effect: what is shrunk by less where it is found larger."""
    rng, rows, ends, claimed = np.random.default_rng(7), simulated_rows(FIRST), [], []
    curvature = 0.5 * 100 * rows @ rows.T / rows.shape[1]
    truth = np.zeros((FIRST.width, 1))
    truth[1:3] = 0.7
    for _ in range(400):
        descent = walk(last=True)
        for _ in range(40):
            noise = 3.0 * rng.normal(size=(FIRST.width, 1))
            step = curvature @ (descent.weights - truth) + noise
            descent = descent.after(step, 3.0, 0.5, 1.0, UNCLIPPED)
        ends.append(descent.weights[:, 0])
        if len(claimed) < 10:
            claimed.append(np.mean(rows * (descent.noise_covariance() @ rows)) * len(rows))
    actual = np.mean(np.var(np.array(ends) @ rows, axis=0))
    assert np.mean(claimed) == pytest.approx(actual, rel=0.2)


def test_noise_is_shrunk_and_effects_are_not():
    rng = np.random.default_rng(2)
    truth = np.zeros((FIRST.width, 1))
    truth[1] = 1.0
    curvature = 0.5 * 100 * FIRST.scales[:, None] ** 2
    plain, shrunk = walk(count=200), walk(count=200, last=True)
    for _ in range(200):
        noise = 20.0 * rng.normal(size=(FIRST.width, 1))
        plain = plain.after(curvature * (plain.weights - truth) + noise, 20.0, 0.5, 1.0, UNCLIPPED)
        shrunk = shrunk.after(
            curvature * (shrunk.weights - truth) + noise, 20.0, 0.5, 1.0, UNCLIPPED
        )
    assert shrunk.weights[1] == pytest.approx(plain.weights[1], rel=0.15)
    assert np.linalg.norm(shrunk.weights[2:]) < 0.85 * np.linalg.norm(plain.weights[2:])


def test_the_spread_is_the_labels_deviation_where_noise_is_small_and_the_usual_elsewhere():
    residuals = np.random.default_rng(3).normal(size=5000) * 0.08
    total = float(np.sum(np.minimum(np.abs(residuals), small.LIMIT) - small.LIMIT / 2))
    assert small.deviation_of(total, 1.0, 5000) == pytest.approx(0.08, rel=0.03)
    assert small.deviation_of(total, 1e6, 5000) == pytest.approx(small.USUAL_DEVIATION, rel=0.01)
    for wild in (-1e9, 1e9):
        assert 0.03 <= small.deviation_of(wild, 1.0, 5000) <= 0.3


def test_the_share_within_a_clip_counts_a_part_of_the_bin_that_the_clip_is_in():
    """Sizes spread evenly over [0, 1]: bins count all or nothing, parts are the clip itself."""
    sizes = np.diff(np.concatenate([[0.0], EDGES]))
    known = Residuals(sigma=0.5, shares=sizes)
    for clip in (0.35, 0.5, 0.6, 0.99, 1.0):
        assert known.within(clip) == pytest.approx(clip)
    assert known.within(0.1) == 0.3  # no less, as of `below`
    assert abs(known.below(0.6) - 0.6) > 0.09


def test_a_column_that_the_screen_found_has_larger_functions_and_its_pairs_are_kept():
    weights = np.full((FIRST.width, 1), 0.01)
    terms = FIRST.terms.tolist()
    weights[1 + terms.index([0, 0, -1, -1])] = 1.0
    weights[1 + terms.index([1, 0, -1, -1])] = 1.0
    made = small.second_dictionary(FIRST, weights, 12)
    sizes = {Term(*term): size for term, size in zip(made.terms.tolist(), made.sizes, strict=True)}
    assert len(sizes) == 12
    assert Term(0, 1, 1, 0) in sizes
    assert sizes[Term(0, 0)] > 2 * sizes.get(Term(3, 0), 0.0)
    nothing = small.second_dictionary(FIRST, np.zeros_like(weights), 12)
    assert np.isfinite(nothing.sizes).all()


def test_an_even_effect_is_screened_where_there_is_signal_and_makes_its_column_large():
    assert len(small.screen_terms(LAYOUT, 399.0)) == LAYOUT.simple
    first = small.first_dictionary(LAYOUT, RANKS, 400.0)
    terms = first.terms.tolist()
    assert first.width == 1 + LAYOUT.simple + 2  # of two numbers
    weights = np.full((first.width, 1), 0.01)
    weights[1 + terms.index([0, 2, -1, -1])] = 1.0
    made = small.second_dictionary(first, weights, 12)
    sizes = {Term(*term): size for term, size in zip(made.terms.tolist(), made.sizes, strict=True)}
    assert len(sizes) == 12
    assert sizes[Term(0, 2)] > 2 * sizes.get(Term(3, 2), 0.0)
    assert sizes[Term(0, 2)] > 1.5 * sizes[Term(0, 0)]  # a straight line was not found


def test_schedules_grow_with_the_signal_and_never_pass_the_stable_rate():
    last = 0.0
    for signal in (1.0, 60.0, 300.0, 1300.0):
        steps, rate = small.schedule(signal, 0.6, 40)
        assert 40 <= steps <= 500
        assert 0 < rate <= 1.5
        assert steps * rate >= last
        last = steps * rate
    assert small.below_clip(300.0) == pytest.approx(math.erf(0.16 / (0.6 * math.sqrt(2))))


def test_sized_dictionaries_have_rows_at_most_one_long():
    made = Dictionary.sized(LAYOUT, RANKS, LAYOUT.once(), np.full(6, 3.0))
    encoded = np.random.default_rng(4).uniform(-1, 1, (50, 6))
    assert np.linalg.norm(made.rows(encoded), axis=0).max() <= 1 + 1e-12


REPLAY = Replay(
    plan=Plan(layout=LAYOUT, records=400, known=True, mu=0.27, kind="number", outputs=1),
    records=400.0,
    label=0.5,
    deviation=0.12,
    variances=np.full(2, 0.2),
    residuals=measured(np.array([0.0] * 5 + [40.0, 80, 80, 100, 100] + [0.0] * 5), 1.0, 400.0),
    descent=Plain(
        dictionary=FIRST,
        count=40,
        rate=0.8,
        records=400.0,
        below=0.5,
        last=True,
        weights=np.zeros((FIRST.width, 1)),
    ).ended(np.linspace(-0.3, 0.3, FIRST.width)[:, None], 3.0, 0.5),
    noises={
        "means": 1.0,
        "squares": 1.0,
        "label": 1.0,
        "deviation": 1.0,
        "screen.gradient": 30.0,
        "fit.gradient": 30.0,
    },
)


@pytest.mark.parametrize("name", ["label", "screen.gradient", "fit.gradient"])
def test_the_noise_of_every_answer_is_in_a_replay(name):
    quiet = dict.fromkeys(REPLAY.noises, 1e-9)
    rows = simulated_rows(FIRST)

    def variance(noises):
        deviation = attrs.evolve(REPLAY, noises=noises).noise_covariance()
        assert np.linalg.eigvalsh(deviation).min() >= -1e-12
        return float(np.mean(np.einsum("in,ij,jn->n", rows, deviation, rows)))

    assert variance({**quiet, name: 40.0}) > 100 * variance(quiet)
    assert variance({**REPLAY.noises, name: 300.0}) > variance(REPLAY.noises)
    assert variance(REPLAY.noises) == variance(REPLAY.noises)


def test_the_gaussian_is_that_of_scipy_to_the_last_bit():
    randomness = np.random.default_rng(5)
    ends = [
        randomness.normal(size=20_000) * 3,
        randomness.uniform(-45, 45, 5_000),
        np.linspace(-1.5, 1.5, 97),
    ]
    ends += [[0.0, -0.0, 1e-320, np.inf, -np.inf, np.nan, math.sqrt(2), -math.sqrt(2)]]
    points = np.concatenate(ends)
    assert gaussian_below(points).tobytes() == scipy.special.ndtr(points).tobytes()
