"""Classes of small tables: plain steps, what noise and chance make of them, and how far they go."""

import attrs
import numpy as np
import pytest

from dpcore import Answer, Categories, Domain, Public, PublicRandomness, Range
from dpcore.domain import Classes
from dpcore.encoding.tables import project_table
from dpcore.learners.bounds.sum import moved_by_sum
from dpcore_tables import small
from dpcore_tables.classes import scatter
from dpcore_tables.layout import Layout
from dpcore_tables.plain_descent import Plain, kept_covariance
from dpcore_tables.plan import Plan
from dpcore_tables.ranks import Ranks, usual_proportions
from dpcore_tables.residuals import UNCLIPPED, Clipped
from dpcore_tables.shape_functions import ShapeFunctions
from dpcore_tables.shapes.fit_noise import plain_of
from dpcore_tables.shapes.null_distribution import way_covariance
from dpcore_tables.steps import small_classes
from dpcore_tables.steps.curvature import Walked
from dpcore_tables.synthetic_records import simulated_rows

LAYOUT = Layout(levels=(0, 2, 3, 0), starts=(0, 1, 2, 5))
RANKS = Ranks.of(np.zeros(2), np.full(2, 0.2), usual_proportions(2))
DICTIONARY = small.first_dictionary(LAYOUT, RANKS, 100.0)
ROWS = simulated_rows(DICTIONARY)
RECORDS, RATE, NOISE, BELOW = 100.0, 2.0, 3.0, 0.15
CURVATURE = BELOW * RECORDS * ROWS @ ROWS.T / ROWS.shape[1]
COLUMNS = {"a": Range(-1, 1), "b": Range(-1, 1), "c": Categories(("x", "y", "z"))}


def descent_of(start, *, last=False, before=None, outputs=1, count=40):
    """Steps from a start."""
    return Plain(
        dictionary=DICTIONARY,
        count=count,
        rate=RATE,
        records=RECORDS,
        below=BELOW,
        last=last,
        weights=np.zeros((DICTIONARY.width, outputs)) if start is None else start,
        before=before,
    )


def walked(descent, truth, noise, rng, clipped=UNCLIPPED):
    """To the end, along gradients of a linear problem with noise."""
    for _ in range(descent.count):
        gradient = CURVATURE @ (descent.weights - truth)
        gradient = gradient + noise * rng.normal(size=gradient.shape)
        descent = descent.after(gradient, noise, BELOW, 1.0, clipped)
    return descent


def plan_of(labels, mu, count=1000, **rules):
    domain = Domain(columns=COLUMNS, target="y", labels=labels, exact=count)
    return Plan.of(Public(domain=domain, randomness=PublicRandomness(1), mu=mu), None, **rules)


@pytest.mark.parametrize("classes", [("n", "y"), ("p", "q", "r")])
def test_classes_of_little_signal_ask_no_gram_matrix(classes):
    little, much = (plan_of(Classes(classes), mu) for mu in (3.2, 3.4))
    assert little.small
    assert not much.small
    assert "screen.metric" not in little.shares()
    assert "screen.metric" in much.shares()
    assert not plan_of(Classes(classes), 3.2, edition=1).small
    for plan in (little, much):
        assert sum(plan.shares().values()) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("count", [30, 300, 3000, 100_000])
@pytest.mark.parametrize("outputs", [2, 3, 30])
def test_steps_of_classes_are_stable_and_bounded(count, outputs):
    """A gradient gains at most 1/4 of a row's square, of several classes 1/2, and rows are at most
    1 long: a step above twice the inverse of that would grow."""
    classes = Classes(tuple(f"k{place}" for place in range(outputs)))
    for mu in (0.001, 0.03, min(3200 / count, 50.0)):
        plan = plan_of(classes, mu, count)
        for round_ in plan.rounds():
            assert 0 < round_.rate * (0.25 if outputs == 2 else 0.5) <= 1.5
            assert 40 <= round_.steps <= 500
            entries = count * (round_.width + 1)
            assert round_.steps * entries <= max(250_000_000, 40 * entries)


@pytest.mark.parametrize("outputs", [1, 3])
def test_without_noise_the_slope_is_the_best_factor_of_the_weights(outputs):
    """Of a quadratic loss by its definition: the factor of least loss along the kept weights, where
    the intercept is as good as it can be."""
    rng = np.random.default_rng(3)
    truth = rng.normal(size=(DICTIONARY.width, outputs))
    truth -= truth.mean(axis=1, keepdims=True) * (outputs > 1)
    descent = walked(descent_of(None, last=True, outputs=outputs), truth, 1e-9, rng)
    descent = attrs.evolve(descent, clipped=Clipped(BELOW, 0.0), walked=Walked())
    factor, deviation = descent.slope()
    inner = CURVATURE[1:, 1:] - np.outer(CURVATURE[1:, 0], CURVATURE[0, 1:]) / CURVATURE[0, 0]
    kept = descent.weights[1:]
    best = np.sum(kept * (inner @ truth[1:])) / np.sum(kept * (inner @ kept))
    # Early gradients of the window were taken farther away than its mean.
    assert factor == pytest.approx(best, rel=0.05)
    assert factor > 1.05
    assert deviation < 1e-6


def test_the_noise_of_the_screen_is_in_what_the_fit_keeps():
    """300 pairs of descents on noise only: a mean variance errs by 5 %."""
    rng, nothing, ends = np.random.default_rng(1), np.zeros((DICTIONARY.width, 1)), []
    for _ in range(300):
        screen = walked(descent_of(None), nothing, NOISE, rng)
        fit = descent_of(screen.weights, before=screen, count=20)
        fit = walked(fit, nothing, NOISE, rng)
        ends.append(fit.weights[:, 0])
    fit = attrs.evolve(fit, walked=Walked(), before=attrs.evolve(screen, walked=Walked()))
    actual = np.mean(np.var(np.array(ends) @ ROWS, axis=0))
    both = np.mean(np.einsum("in,ij,jn->n", ROWS, fit.noise_covariance(screened=True), ROWS))
    single = np.mean(np.einsum("in,ij,jn->n", ROWS, fit.noise_covariance(), ROWS))
    assert both == pytest.approx(actual, rel=0.15)
    assert single < 0.9 * actual


def test_a_covariance_is_taken_over_as_weights_are():
    first = DICTIONARY
    second = small.second_dictionary(first, np.ones((first.width, 1)), 30, small_classes.HIGHEST)
    root = np.random.default_rng(0).normal(size=(first.width, 4))
    columns = np.hstack([small_start(first, root[:, [k]], second) for k in range(4)])
    assert kept_covariance(first, root @ root.T, second) == pytest.approx(columns @ columns.T)


def small_start(old, weights, new):
    """Term by term, from what a weight and its size represent."""
    start, terms = np.zeros((new.width, 1)), old.terms.tolist()
    start[0] = weights[0]
    for place, term in enumerate(new.terms.tolist()):
        if term in terms:
            index = terms.index(term)
            amount = weights[index + 1] * old.sizes[index] / new.sizes[place]
            start[place + 1] = amount
    return start


@pytest.mark.parametrize("highest", [1, 4])
def test_products_have_cosines_up_to_the_highest(highest):
    second = small.second_dictionary(DICTIONARY, np.ones((DICTIONARY.width, 1)), 200, highest)
    products = second.terms[second.terms[:, 2] != -1]
    are_numbers = (products[:, 0] == 0) & (products[:, 2] == 3)
    assert {*map(tuple, products[are_numbers][:, [1, 3]].tolist())} == {
        (k, j) for k in range(1, highest + 1) for j in range(1, highest + 1)
    }


def released(table, labels, mu, rng, scale=1.0):
    """A model from answers with noise of a fixed seed, or with `scale` of it."""
    count = len(table["y"])
    domain = Domain(columns=COLUMNS, target="y", labels=labels, exact=count)
    learner = ShapeFunctions()
    public, records = (
        Public(domain=domain, randomness=PublicRandomness(1), mu=mu),
        project_table(domain, table),
    )
    state, number = learner.start(public), 0
    while (query := learner.ask(state)) is not None:
        number += 1
        exact = learner.partial(query, records, public).floats().reshape(query.shape)
        answer = Answer(query=query, number=number, value=exact, mechanism=None)
        multiplier = np.sqrt(query.at_most / query.share) / mu
        noise = scale * multiplier * moved_by_sum(query).replace_one
        value = exact + noise * rng.standard_normal(query.shape)
        state = learner.update(state, attrs.evolve(answer, value=value))
    return learner.model(state)


def table_of(rng, count, strength):
    table = {"a": rng.uniform(-1, 1, count), "b": rng.uniform(-1, 1, count)}
    table["c"] = rng.choice(["x", "y", "z"], count)
    score = strength * (table["a"] + np.abs(table["b"]) - 0.5 + (table["c"] == "y"))
    is_yes = rng.random(count) < 1 / (1 + np.exp(-score))
    return {**table, "y": np.where(is_yes, "y", "n")}


def test_labels_that_say_nothing_have_no_slope_on_average():
    """Without noise, 24 tables: all that is fitted is chance, which a new table does not have. Were
    it not taken off, the slope would be near 1. One slope differs by 0.5."""
    slopes = []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        model = released(table_of(rng, 400, 0.0), Classes(("n", "y")), 2.0, rng, scale=0.0)
        slopes.append(plain_of(model.state).slope()[0])
    assert abs(np.mean(slopes)) < 0.35


def test_a_clear_table_of_classes_is_learnt_and_a_silent_one_is_not_believed():
    rng, labels = np.random.default_rng(2), Classes(("n", "y"))
    others = table_of(rng, 2000, 4.0)
    model = released(table_of(rng, 800, 4.0), labels, 1.0, rng)
    probabilities = model.probabilities(others)
    assert np.mean(model.predict(others) == others["y"]) > 0.8
    calibrated = np.abs(np.mean(probabilities[:, 1]) - np.mean(others["y"] == "y"))
    assert calibrated < 0.1
    for seed in range(4):
        rng = np.random.default_rng(seed)
        silent = released(table_of(rng, 800, 0.0), labels, 0.3, rng)
        assert np.std(silent.probabilities(others)[:, 1]) < 0.12


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.3, 1.0])
@pytest.mark.parametrize("classes", [("n", "y"), ("n", "y", "z")])
def test_standard_errors_are_what_fits_of_one_table_differ_by(classes, mu):
    """Sixteen fits: their mean variance errs by about 10 %."""
    rng = np.random.default_rng(4)
    table, others = table_of(rng, 800, 3.0), table_of(rng, 300, 3.0)
    if len(classes) == 3:
        is_other = rng.random(800) < 0.2
        table["y"] = np.where(is_other, "z", table["y"])
    encoded = project_table(
        Domain(columns=COLUMNS, target="y", labels=Classes(classes), exact=300), others
    ).features
    scores, claims = [], []
    for seed in range(16):
        model = released(table, Classes(classes), mu, np.random.default_rng(100 + seed))
        outputs = model.outputs(encoded)
        scores.append(outputs - outputs.mean(axis=1, keepdims=True) * (len(classes) > 2))
        claims.append(np.mean(model.standard_errors(others) ** 2))
    measured = np.mean(np.var(np.array(scores), axis=0, ddof=1))
    assert 0.7 < np.sqrt(np.mean(claims) / measured) < 1.6


def test_shares_of_categories_are_released_where_there_is_signal_for_them():
    rng, labels = np.random.default_rng(7), Classes(("n", "y"))
    table = table_of(rng, 1500, 2.0)
    table["c"] = rng.choice(["x", "y", "z"], 1500, p=[0.9, 0.08, 0.02])
    assert plan_of(labels, 1.0, 1500).counted
    assert not plan_of(labels, 0.3, 1500).counted
    assert not plan_of(labels, 3.0, 1500).counted  # a Gram matrix has them
    model = released(table, labels, 1.0, rng)
    actual = [np.mean(table["c"] == value) for value in ("x", "y", "z")]
    assert model.state.levels[2] == pytest.approx(actual, abs=0.02)
    shape = next(shape for shape in model.shapes() if shape.columns == ("c",))
    assert shape.values @ model.state.levels[2] == pytest.approx(0.0, abs=1e-9)


def test_functions_go_along_with_the_intercept_as_far_as_their_means_are_unknown_or_not_0():
    """Numbers of which all of a bin stand at one place, 2000 times anywhere in it: the variance of
    the means of their cosines errs by 3 %. Categories have the means of their shares."""
    rng, proportions = np.random.default_rng(8), np.full((2, 24), 0.2 / 22)
    proportions[:, 9:11] = 0.5, 0.3
    ranks = Ranks.of(
        np.zeros(2), np.full(2, 0.2), proportions / proportions.sum(axis=1, keepdims=True)
    )
    first = small.first_dictionary(LAYOUT, ranks, 100.0)
    second = small.second_dictionary(first, np.ones((first.width, 1)), 60, 1)
    weights = np.zeros((second.width, 1))
    weights[0] = 3.0
    levels = (np.zeros(0), np.array([0.9, 0.1]), np.array([0.7, 0.2, 0.1]), np.zeros(0))
    descent = attrs.evolve(descent_of(weights), dictionary=second)
    no_cosines = way_covariance(descent_of(weights[: first.width]), levels)
    assert not no_cosines[1, 1] > 0
    covariance = way_covariance(descent, levels)
    terms = second.terms
    is_single, means = terms[:, 2] == -1, []
    cosines = np.flatnonzero(is_single & (terms[:, 0] == 0) & (terms[:, 1] > 0))
    plain = ranks.plain_fractions[0]
    for _ in range(2000):
        cells = 32 * np.arange(24) + rng.integers(32, size=24)
        places = np.arccos(ranks.waves[0][cells])
        means.append([np.sqrt(2) * plain @ np.cos(k * places) for k in terms[cosines, 1]])
    expected = (2 * 3.0) ** 2 * np.cov(np.array(means) * second.sizes[cosines], rowvar=False)
    assert np.diag(covariance)[cosines + 1] == pytest.approx(np.diag(expected), rel=0.15)
    for column, mean in ((1, [-0.8]), (2, np.sqrt(3) * (levels[2] - 1 / 3))):
        places = np.flatnonzero(is_single & (terms[:, 0] == column))
        moved = 2 * 3.0 * np.asarray(mean)[terms[places, 1]] * second.sizes[places]
        assert covariance[np.ix_(places + 1, places + 1)] == pytest.approx(np.outer(moved, moved))


def test_what_chance_makes_of_residuals_is_that_of_the_fit():
    rng = np.random.default_rng(5)
    model = released(table_of(rng, 400, 2.0), Classes(("n", "y")), 1.0, rng)
    state, descent = model.state, plain_of(model.state)
    null_model = (descent.dictionary, descent.weights, state.offset, state.label, descent.levels)
    assert descent.clipped.size == pytest.approx(0.7 * scatter(*null_model))
    assert descent.seen == descent.clipped.share
    assert 0.02 <= descent.seen <= 0.25
