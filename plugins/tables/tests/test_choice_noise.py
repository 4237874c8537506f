"""What another choice of functions would have moved a fit by: walks, surveys, and the limit."""

import math

import attrs
import numpy as np
import pytest

from dpcore import Answer, Categories, Domain, Public, PublicRandomness, Range
from dpcore.domain import Classes
from dpcore.encoding.tables import project_table
from dpcore_tables.choice import kept
from dpcore_tables.descent import Descent, first_prior
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import Term
from dpcore_tables.residuals import UNCLIPPED
from dpcore_tables.shape_functions import ShapeFunctions
from dpcore_tables.shapes import choice_noise
from dpcore_tables.shapes.choice_noise import _Evaluations, _Gradients, with_choice
from dpcore_tables.survey import Survey

COLUMNS = {
    "a": Range(-1, 1),
    "b": Range(-1, 1),
    "c": Categories(("x", "y", "z")),
    "d": Categories(("no", "yes")),
}


def fitted(labels, mu=1.0, **rules):
    """Of 1500 records, with float noise of fixed seeds."""
    rng = np.random.default_rng(5)
    table = {"a": rng.uniform(-1, 1, 1500), "b": rng.uniform(-1, 1, 1500)}
    table |= {"c": rng.choice(["x", "y", "z"], 1500), "d": rng.choice(["no", "yes"], 1500)}
    score = table["a"] + np.abs(table["b"]) + table["a"] * (table["c"] == "y")
    noisy = score + 0.3 * rng.standard_normal(1500)
    numbers = isinstance(labels, Range)
    table["y"] = np.clip(noisy, -2, 3) if numbers else np.where(noisy > 0.5, "up", "down")
    domain = Domain(columns=COLUMNS, target="y", labels=labels, exact=1500)
    learner = ShapeFunctions(**rules)
    public, records = (
        Public(domain=domain, randomness=PublicRandomness(1), mu=mu),
        project_table(domain, table),
    )
    state, number = learner.start(public), 0
    while (query := learner.ask(state)) is not None:
        number += 1
        exact = learner.partial(query, records, public).floats().reshape(query.shape)
        answer = Answer(query=query, number=number, value=exact, mechanism=None)
        noise = state.noise(answer) * rng.standard_normal(query.shape)
        state = learner.update(state, attrs.evolve(answer, value=exact + noise))
    return learner.model(state)


@pytest.fixture(scope="module")
def model():
    return fitted(Range(-2, 3))


def test_standard_errors_hold_the_choice_and_published_arrays_do_not(model):
    squares = model.state.descent.metric.undamped
    without, added = (
        np.sum(squares * model.deviation),
        np.sum(squares * (model.noise - model.deviation)),
    )
    assert 0 < added <= choice_noise._MOST * without * (1 + 1e-12)
    assert np.array_equal(model.arrays()["spread"], model.deviation)
    assert np.linalg.eigvalsh(model.noise - model.deviation)[0] > -1e-12 * np.trace(model.deviation)


def test_a_release_fixes_what_its_choice_adds(model):
    again = with_choice(model.state, model.deviation, model.state.calibration.factor)
    assert np.array_equal(again, model.noise)


def test_the_first_edition_and_small_tables_choose_nothing_anew():
    for other in (fitted(Range(-2, 3), edition=1), fitted(Range(-2, 3), mu=0.4)):
        assert other.noise is other.deviation


@pytest.mark.slow
def test_priors_that_are_learned_from_noise_widen_errors_of_other_losses(model, monkeypatch):
    """By as much as 100 walks differ by that follow the rules of the release."""
    other = fitted(Range(-2, 3), mu=0.93, loss="quantile", level=0.9)
    monkeypatch.setattr(choice_noise, "_covariance", lambda *_: 0.0)
    state, descent = other.state, other.state.descent
    null_model, rng = _Gradients.of(state, descent, 50.0), np.random.default_rng(0)
    ends = []
    for _ in range(100):
        walk = attrs.evolve(
            choice_noise._begun(descent, state.prior_variance),
            steps=(),
            weights=descent.steps[0].weights,
        )
        for step in descent.steps:
            walk = (
                walk if step.curvature == walk.metric.curvature else walk.rescaled(step.curvature)
            )
            gradient = null_model.curvature @ (walk.coordinates(walk.weights) - null_model.goal)
            gradient += step.noise * rng.standard_normal(gradient.shape)
            walk = walk.after(gradient, step.noise, 1.0, step.sigma, UNCLIPPED)
        ends.append(walk.weights[:, 0])
    squares = descent.metric.undamped
    expected = np.sum(squares * np.cov(ends, rowvar=False)) / np.sum(squares * other.deviation)
    widened = with_choice(state, other.deviation, 1.0)
    assert widened == pytest.approx(other.deviation * widened[1, 1] / other.deviation[1, 1])
    assert expected > 1.3
    assert widened[1, 1] / other.deviation[1, 1] == pytest.approx(expected, rel=0.2)
    assert np.array_equal(with_choice(model.state, model.deviation, 1.0), model.deviation)


def test_classes_choose_anew_too():
    other = fitted(Classes(("down", "up")), mu=2.5)
    assert np.trace(other.noise) > np.trace(other.deviation)


@pytest.mark.parametrize("kind", ["number", "two"])
def test_a_walk_is_the_descent_on_linear_gradients(model, kind, monkeypatch):
    """The rules of the release, step by step, are the expected value."""
    monkeypatch.setattr(choice_noise, "_NEAR", 1.0)  # every map anew
    fit = model if kind == "number" else fitted(Classes(("down", "up")), mu=2.5)
    released, state = fit.state.descent, fit.state
    null_model = _Gradients.of(state, released, 50.0)
    begun = choice_noise._begun(released, state.prior_variance)
    start = released.steps[0].weights
    end = released.restored(null_model.walk(begun, released.coordinates(start)))
    descent = attrs.evolve(begun, steps=(), weights=start)
    for step in released.steps:
        if step.curvature != descent.metric.curvature:
            descent = descent.rescaled(step.curvature)
        force = null_model.curvature @ (released.coordinates(descent.weights) - null_model.goal)
        # A gradient by the weights themselves, where coordinates are others.
        if released.centres is not None:
            force = np.linalg.solve(released.centres.map, force)
        descent = descent.after(force, step.noise, 1.0, step.sigma, UNCLIPPED)
    assert end == pytest.approx(descent.weights, rel=1e-6, abs=1e-9)


def test_the_goal_is_where_gradients_without_noise_are_0(model):
    released, state = model.state.descent, model.state
    null_model = _Gradients.of(state, released, 50.0)
    goal = 0.1 * np.arange(released.dictionary.width)[:, None] / released.dictionary.width
    steps = tuple(
        attrs.evolve(
            step,
            noise=1e-9,
            target=released.metric.damped @ step.weights
            - null_model.curvature @ (step.weights - goal),
        )
        for step in released.steps
    )
    exact = _Gradients.of(state, attrs.evolve(released, steps=steps), 50.0)
    # Categories add up to a constant, so that not every weight is reported.
    assert null_model.curvature @ exact.goal == pytest.approx(null_model.curvature @ goal, abs=1e-3)


def test_candidates_that_say_nothing_are_nothing_in_other_surveys(model):
    """Of pure noise little is left; what is far larger than the noise stays."""
    layout, ranks = model.dictionary.layout, model.dictionary.ranks
    terms = [Term(0, i, 1, j) for i in range(16) for j in range(16)]
    candidates = Dictionary.sized(layout, ranks, terms, np.full(len(terms), 0.05))
    rng, noise = np.random.default_rng(0), 0.2
    for large in (0, 8):
        coefficients = noise * rng.standard_normal(len(terms))
        coefficients[:large] += 10 * noise
        strengths = dict(zip(terms, coefficients**2 - 2 * noise**2, strict=True))
        survey = Survey(
            dictionary=candidates, weights=np.zeros((257, 1)), noise=noise, strengths=strengths
        )
        evaluations = _Evaluations.of(survey, np.random.default_rng(1))
        assert np.mean(evaluations.coefficients[large:] ** 2) < 0.3
        assert np.all(np.abs(evaluations.coefficients[:large]) > 6)
        drawn = (
            np.array([*evaluations.draw(np.random.default_rng(2)).strengths.values()]) / noise**2
        )
        # The mean square of a candidate that is nothing is 1 - 2.
        assert np.mean(drawn[large:]) == pytest.approx(-1, abs=0.4)


def test_functions_that_are_chosen_again_alike_end_alike(model):
    """The choice of the release itself moves nothing but by the walk."""
    state, released = model.state, model.state.descent
    null_model = _Gradients.of(state, released, 50.0)
    weights = kept(state.screened.dictionary, state.screened.weights, released.dictionary)
    facts = (state.prior_variance, released, null_model)
    same = choice_noise._end_with(*facts, released.dictionary, weights)
    begun = choice_noise._begun(released, state.prior_variance)
    end = null_model.walk(begun, weights)
    assert same == pytest.approx(end, abs=1e-7)
    # Twice the weight of every function is the same choice, with the same sizes and prior.
    twice = attrs.evolve(released.dictionary, weights=2 * released.dictionary.weights)
    assert choice_noise._end_with(*facts, twice, weights) == pytest.approx(same, abs=1e-7)


def test_a_first_prior_has_the_stated_variance(model):
    dictionary = model.dictionary
    prior = first_prior(dictionary, 0.3)
    assert math.isclose(float(np.sum(prior * dictionary.sizes**2)), 0.3)
    assert isinstance(model.state.descent, Descent)
