"""How a loss of classes is curved, by differences of its clipped residuals, and standard errors."""

import numpy as np
import pytest

from dpcore import Categories, Domain, Range
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain import Classes
from dpcore.encoding.tables import encode_table
from dpcore_tables.classes import (
    BELOW,
    CLIP,
    curvature,
    gain,
    jacobians,
    step_curvature,
    unclipped,
)
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import Layout
from dpcore_tables.ranks import Ranks, usual_proportions
from dpcore_tables.shape_functions import ShapeFunctions
from dpcore_tables.synthetic_records import simulated_rows

from builders import price_learner

LAYOUT = Layout(levels=(0, 2), starts=(0, 1))
RANKS = Ranks.of(np.zeros(1), np.full(1, 0.2), usual_proportions(1))
DICTIONARY = Dictionary.of(LAYOUT, RANKS, [(term, 1.0) for term in LAYOUT.once()])
ROWS = simulated_rows(DICTIONARY)


def probabilities(scores):
    falling = np.exp(scores)
    return falling / falling.sum(axis=1, keepdims=True)


def sigmoid(scores):
    return 1 / (1 + np.exp(-scores))


def test_two_classes_are_curved_as_differences_of_clipped_residuals_say():
    """Labels follow the probabilities, whose mean is the released share: nothing is shifted."""
    weights, offset = np.array([[0.0], [2.0], [1.0]]), np.array([-1.5])
    scores = ROWS.T @ weights[:, 0] + offset[0]
    likely = unclipped(sigmoid(scores))
    gained, step = np.zeros(len(scores)), 1e-5
    for label, proportion in ((0.0, 1 - likely), (1.0, likely)):
        up, down = (np.clip(sigmoid(scores + side) - label, -CLIP, CLIP) for side in (step, -step))
        gained += proportion * (up - down) / (2 * step)
    expected = (ROWS * gained) @ ROWS.T / BELOW * 300 / ROWS.shape[1]
    found = curvature(DICTIONARY, weights, offset, np.array([likely.mean()]), 300.0)
    assert found == pytest.approx(expected, rel=1e-4)


def test_several_classes_are_curved_as_differences_of_clipped_residuals_say():
    weights = np.array([[0.0, 0.0, 0.0], [2.0, -1.0, -1.0], [0.5, 0.5, -1.0]])
    offset = np.array([0.3, 0.0, -0.5])
    scores = ROWS.T @ weights + offset
    likely, step = probabilities(scores), 1e-5
    trace = np.zeros(len(scores))
    for label, proportion in enumerate(likely.T):
        for moved in range(3):
            ends = []
            for side in (step, -step):
                residual = probabilities(scores + side * np.eye(3)[moved]) - np.eye(3)[label]
                length = np.linalg.norm(residual, axis=1)
                ends.append(residual[:, moved] * np.minimum(1, CLIP / length))
            trace += proportion * (ends[0] - ends[1]) / (2 * step)
    expected = (ROWS * trace / 2) @ ROWS.T / BELOW * 300 / ROWS.shape[1]
    found = curvature(DICTIONARY, weights, offset, likely.mean(axis=0), 300.0)
    assert found == pytest.approx(expected, rel=1e-3)


def test_where_few_records_are_hard_to_tell_a_step_is_not_longer_than_they_allow():
    """Of 30 categories all but two are easy: the functions of those gain as their records do."""
    layout = Layout(levels=(30,), starts=(0,))
    ranks = Ranks.of(np.zeros(0), np.zeros(0), usual_proportions(0))
    dictionary = Dictionary.of(layout, ranks, [(term, 1.0) for term in layout.once()])
    rows = simulated_rows(dictionary)
    sizes = 400.0 * np.where(np.arange(31) % 2, 1.0, -1.0)
    sizes[0], sizes[1:3] = 0.0, 0.5 / rows.max()
    for outputs, proportions in (([1.0], [0.5]), ([1.0, -1.0, 0.0], [0.48, 0.48, 0.04])):
        weights = np.outer(sizes, outputs)
        model = (dictionary, weights, np.zeros(len(outputs)), np.array(proportions))
        gains = curvature(*model, 1.0).diagonal() / np.mean(rows**2, axis=1)
        assert step_curvature(*model) > gains.max() / 2 - 1e-9
        assert step_curvature(*model) > 1.5 * gain(*model) / BELOW


def test_steps_of_several_classes_follow_differences_of_clipped_residuals():
    """The direction of scores in which some function gains most, by brute force."""
    weights = np.array([[0.0, 0.0, 0.0], [2.0, -1.0, -1.0], [9.0, -9.0, 0.0]])
    offset = np.array([0.3, 0.0, -0.5])
    scores = ROWS.T @ weights + offset
    likely, step = probabilities(scores), 1e-5
    differences = np.zeros((len(scores), 3, 3))
    for label, proportion in enumerate(likely.T):
        for moved in range(3):
            ends = []
            for side in (step, -step):
                residual = probabilities(scores + side * np.eye(3)[moved]) - np.eye(3)[label]
                length = np.linalg.norm(residual, axis=1, keepdims=True)
                ends.append(residual * np.minimum(1, CLIP / length))
            differences[:, :, moved] += proportion[:, None] * (ends[0] - ends[1]) / (2 * step)
    found = jacobians(likely)
    assert np.mean(np.abs(found - differences) > 1e-4) < 0.01  # at a clip's own edge both differ
    largest = 0.0
    for row in ROWS:
        mean = np.einsum("n,nij->ij", row**2 / np.sum(row**2), found)
        largest = max(largest, float(np.linalg.eigvalsh((mean + mean.T) / 2)[-1]))
    model = (DICTIONARY, weights, offset, likely.mean(axis=0))
    expected = max(gain(*model), largest / 2) / BELOW
    assert step_curvature(*model) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("proportions", [[0.02], [0.3], [0.1, 0.2, 0.7]], ids=str)
def test_made_up_records_have_the_released_shares(proportions):
    """A constant score is shifted to them, whatever it was: p(1 - p) of a rare class is small."""
    outputs, given = len(proportions), np.array(proportions)
    weights, offset = np.zeros((3, outputs)), np.full(outputs, 2.0)
    found = curvature(DICTIONARY, weights, offset, given, 100.0)
    known = np.log(given)
    if outputs == 1:  # p/(1 - p) = q/C for q below one half
        sigmoid_at = CLIP * given / (1 - given)
        known = np.log(sigmoid_at / (1 - sigmoid_at))
    assert found == pytest.approx(curvature(DICTIONARY, weights, known, given, 100.0), rel=1e-6)


@pytest.mark.parametrize("outputs", [1, 3])
def test_wild_weights_give_finite_curvatures(outputs):
    for size in (0.0, 1e4, 1e9):
        weights = size * np.random.default_rng(0).normal(size=(3, outputs))
        proportions = np.array([0.0, 1.0, 0.0])[:outputs]
        found = curvature(DICTIONARY, weights, np.zeros(outputs), proportions, 100.0)
        assert np.isfinite(found).all()
        assert np.linalg.eigvalsh(found).min() > -1e-9


@pytest.mark.slow
@pytest.mark.parametrize("values", [("no", "yes"), ("p", "q", "r")], ids=len)
def test_standard_errors_of_classes_are_those_of_redrawn_noise(values):
    """Eight releases of one table, whose second class is rare: the standard deviation of eight
    draws in some ten directions errs by 9 %. The metric's curvature would give 0.6."""
    rng = np.random.default_rng(5)
    table = {"a": rng.uniform(-1, 1, 6000), "b": rng.uniform(-1, 1, 6000)}
    table["d"] = rng.choice(["n", "y"], 6000)
    score = 2 * table["a"] - 2.5 + (table["d"] == "y")
    drawn = rng.random(6000)
    codes = np.where(drawn < sigmoid(score), 1, np.where(drawn > 0.6, len(values) - 1, 0))
    if len(values) == 2:
        codes = (drawn < sigmoid(score)).astype(int)
    table["y"] = np.array(values)[codes]
    plan = price_learner(
        ShapeFunctions(),
        domain=Domain(
            columns={"a": Range(-1, 1), "b": Range(-1, 1), "d": Categories(("n", "y"))},
            target="y",
            labels=Classes(values),
            exact=6000,
        ),
        mechanism=Gaussian(noise="float"),
        on_invalid="project",
        epsilon=2,
    )
    few = {name: column[:400] for name, column in table.items()}
    models = [plan.run(table).model for _ in range(8)]
    scores = [model.outputs(encode_table(model.domain, few)) for model in models]
    actual = np.sqrt(np.mean(np.var(scores, axis=0, ddof=1)))
    claimed = np.sqrt(np.mean([model.standard_errors(few) ** 2 for model in models]))
    assert 0.75 < claimed / actual < 1.35
    if len(values) == 3:
        assert np.abs(np.sum(scores, axis=2)).max() < 1e-9
