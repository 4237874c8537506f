"""Losses: what gradients are of, where fits without noise end, and what predictions keep."""

import numpy as np
import pytest
from scipy import optimize

from dpcore import ADD_REMOVE, Answer, Categories, Domain, Public, Range
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain import Classes
from dpcore.encoding.tables import project_table
from dpcore.errors import NoClaimError, ParameterError
from dpcore.randomness import PublicRandomness
from dpcore_attacks.laws.bounds.sums import LAWS, sum_verdicts
from dpcore_attacks.laws.law import Outcome
from dpcore_tables import portable
from dpcore_tables.objective.losses import Loss
from dpcore_tables.shape_functions import ShapeFunctions

from builders import price_learner
from shape_cases import case_of

COLUMNS = {"a": Range(-1, 1), "c": Categories(("x", "y", "z"))}
LABELS = {"poisson": Range(0, 40), "gamma": Range(1, 61), "quantile": Range(-10, 20)}


def people(loss, count, seed):
    """Columns, and labels whose law follows the first one."""
    rng = np.random.default_rng(seed)
    a, c = rng.uniform(-1, 1, count), rng.choice(["x", "y", "z"], count)
    score = np.sin(2 * a) + 0.5 * (c == "y")
    drawn = {
        "poisson": lambda: rng.poisson(3 * np.exp(0.7 * score)),
        "gamma": lambda: 1 + rng.gamma(4.0, np.exp(score)),
        "quantile": lambda: 3 * score + (1.5 + a) * rng.standard_normal(count),
    }[loss]()
    ends = LABELS[loss]
    return {"a": a, "c": c, "y": np.clip(drawn, ends.low, ends.high).astype(float)}


def domain(loss, count):
    return Domain(columns=COLUMNS, target="y", labels=LABELS[loss], exact=count)


def noiseless(loss, table, mu=40.0, **options):
    """A fit whose answers have no noise, though rules take them to have that of the plan."""
    facts = domain(loss, len(table["y"]))
    public = Public(domain=facts, randomness=PublicRandomness(1), mu=mu)
    learner, records, numbers = (
        ShapeFunctions(loss=loss, **options),
        project_table(facts, table),
        {},
    )
    state = learner.start(public)
    while (query := learner.ask(state)) is not None:
        numbers[query.name] = numbers.get(query.name, 0) + 1
        total = learner.total_of(query, records, public).floats()
        mechanism = Gaussian(noise_multiplier=1e-3)
        answer = Answer(query=query, number=numbers[query.name], value=total, mechanism=mechanism)
        state = learner.update(state, answer)
    return learner.model(state)


def released(loss, table, epsilon, **options):
    plan = price_learner(
        ShapeFunctions(loss=loss, **options),
        domain=domain(loss, len(table["y"])),
        mechanism=Gaussian(noise="float"),
        epsilon=epsilon,
    )
    return plan.run(table).model


def loss_of(loss, labels, scores):
    """Mean of the loss that a logarithmic score has."""
    if loss == "poisson":
        return np.mean(np.exp(scores) - labels * scores)
    return np.mean(scores + labels * np.exp(-scores))


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_a_fit_without_noise_ends_where_scipys_optimiser_does(loss):
    """Of the same functions, with their intercept; scores are logarithms of labels."""
    table = people(loss, 2000, 5)
    model = noiseless(loss, table)
    rows, labels = model.dictionary.rows(model.encode(table)).T, table["y"]
    frame, _, _ = np.linalg.svd(rows, full_matrices=False)
    frame = frame[:, : np.linalg.matrix_rank(rows, tol=1e-6)] * np.sqrt(len(rows))

    def of_weights(weights):
        scores = frame @ weights
        means = np.exp(np.clip(scores, -30, 30))
        pulls = means - labels if loss == "poisson" else 1 - labels / means
        return loss_of(loss, labels, scores), frame.T @ pulls / len(labels)

    start = frame.T @ np.full(len(labels), np.log(labels.mean())) / len(labels)
    best = optimize.minimize(of_weights, start, jac=True, method="L-BFGS-B").fun
    constant = loss_of(loss, labels, np.full(len(labels), np.log(labels.mean())))
    ours = loss_of(loss, labels, np.log(model.predict(table)))
    assert constant - ours > 0.97 * (constant - best)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.2, 0.5, 0.9])
def test_a_quantile_without_noise_is_that_of_a_linear_program(level):
    """Of the same functions; the smooth part of the loss costs little of it."""
    table = people("quantile", 600, 6)
    model = noiseless("quantile", table, mu=4.0, level=level)
    rows, labels = model.dictionary.rows(model.encode(table)).T, table["y"]
    count, width = rows.shape
    # Labels are scores plus what is above, less what is below.
    goal = np.concatenate([np.zeros(width), np.full(count, level), np.full(count, 1 - level)])
    equal = np.hstack([rows, np.eye(count), -np.eye(count)])
    bounds = [(None, None)] * width + [(0, None)] * (2 * count)
    best = optimize.linprog(goal, A_eq=equal, b_eq=labels, bounds=bounds).fun / count

    def pinball(quantiles):
        return np.mean(np.maximum(level * (labels - quantiles), (level - 1) * (labels - quantiles)))

    constant, ours = pinball(np.quantile(labels, level)), pinball(model.predict(table))
    assert constant - ours > 0.85 * (constant - best)
    assert np.mean(labels <= model.predict(table)) == pytest.approx(level, abs=0.04)


@pytest.mark.parametrize("name", ["poisson", "gamma"])
def test_residuals_are_slopes_of_the_loss(name):
    """By differences of the loss in the score, over the square of the scale."""
    loss, rng = Loss.of(domain(name, 9), name, None), np.random.default_rng(7)
    labels, scores, step = rng.uniform(0, 1, (1, 50)), rng.normal(0, 0.2, (1, 50)), 1e-6
    link = loss.link(0.3, 0.0)
    ratios = (labels + loss.shift) / link[0]

    def value(at):
        logarithms = link[1] * at
        each = np.exp(logarithms) - ratios * logarithms
        return each if name == "poisson" else logarithms + ratios * np.exp(-logarithms)

    slopes = (value(scores + step) - value(scores - step)) / (2 * step) / link[1] ** 2
    assert loss.residuals(scores, labels, {"link": link}) == pytest.approx(slopes, abs=1e-7)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.75])
def test_what_a_quantile_sums_is_never_longer_than_its_clip(level):
    loss = Loss(name="quantile", level=level)
    residuals = np.array([[-5.0, -0.1, 0.0, 0.1, 5.0]])
    pulls = loss.pulls(residuals, 0.3)[0]
    near = loss.near(0.3)
    assert loss.clip(near) == pytest.approx(0.3)
    assert pulls[-1] == pytest.approx(2 * near * (1 - level))
    assert pulls[0] == pytest.approx(-2 * near * level)
    assert np.abs(pulls).max() == pytest.approx(0.3)


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_predictions_keep_the_mean_of_labels_that_are_clipped(loss):
    """Rare large labels are clipped in the fit; the released mean undoes what that does."""
    rng = np.random.default_rng(8)
    a, c = rng.uniform(-1, 1, 20_000), rng.choice(["x", "y", "z"], 20_000, p=[0.8, 0.1, 0.1])
    rates = np.exp(0.8 * a + (c == "y"))
    drawn = rng.poisson(0.4 * rates) if loss == "poisson" else rng.gamma(0.7, rates)
    ends = LABELS[loss]
    table = {"a": a, "c": c, "y": np.clip(drawn, ends.low, ends.high).astype(float)}
    model = released(loss, table, 2)
    # The released mean of labels itself errs by 4 % of it.
    assert model.predict(table).mean() == pytest.approx(table["y"].mean(), rel=0.15)
    unbalanced = np.exp(model.state.balance[0] * model.state.link["link"][1])
    assert unbalanced > 0.97


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "options"), [("poisson", {}), ("gamma", {}), ("quantile", {"level": 0.8})]
)
def test_shapes_are_found_and_what_is_exported_scores_alike(loss, options):
    table = people(loss, 6000, 9)
    model = released(loss, table, 4, monotone={"a": "up"}, **options)
    shapes = model.shapes()
    assert shapes[0].columns == ("a",)
    assert shapes[0].found
    rows = {"a": np.linspace(-1, 1, 50), "c": np.full(50, "x")}
    predictions = model.predict(rows)
    assert np.all(np.diff(predictions) >= -1e-12)
    ends = LABELS[loss]
    assert ends.low <= predictions.min()
    assert predictions.max() <= ends.high
    edited = model.edit("c", ["x"], 0.1, "more")
    # A logarithm's shapes are added before the exponential.
    if loss != "quantile":
        assert edited.predict(rows) == pytest.approx(predictions * np.exp(0.1), rel=1e-6)
    module, values = edited.exported()
    assert module is portable
    encoded = edited.encode(rows)
    assert portable.score(encoded, values) == pytest.approx(edited.score(encoded), abs=1e-9)
    # An error of the logarithm is a part of the prediction.
    errors = model.standard_errors(rows)
    assert np.all(errors > 0)
    assert np.all(errors < (0.5 if loss != "quantile" else 5.0))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["number, poisson", "number, gamma, weighted", "number, quantile"])
def test_the_laws_of_sums_hold_for_every_loss(kind):
    verdicts = sum_verdicts(case_of(kind, ADD_REMOVE, 0))
    assert [verdict.outcome for verdict in verdicts] == [Outcome.PASSED] * len(LAWS)


@pytest.mark.parametrize(
    ("labels", "options", "error"),
    [
        (Classes(("no", "yes")), {"loss": "poisson"}, NoClaimError),
        (Range(-1, 5), {"loss": "gamma"}, NoClaimError),
        (Range(0, 5), {"level": 0.5}, ParameterError),
        (Range(0, 5), {"loss": "poisson", "level": 0.5}, ParameterError),
        (Range(0, 5), {"loss": "quantile", "level": 1.0}, ParameterError),
        (Range(0, 5), {"loss": "absolute"}, ValueError),
    ],
)
def test_a_loss_that_does_not_fit_is_refused_before_anything_is_spent(labels, options, error):
    facts = Domain(columns=COLUMNS, target="y", labels=labels, exact=90)
    with pytest.raises(error):
        price_learner(ShapeFunctions(**options), domain=facts)
