"""Published scores of classes: corrected for clipping, shrunk by noise, widened by gradients."""

import math

import attrs
import numpy as np
import pytest

from dpcore import Categories, Domain, Public, PublicRandomness, Range, SecretRandomness
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain import Classes
from dpcore.encoding.tables import encode_table
from dpcore.transcript.replay_process import HERE
from dpcore_tables import portable
from dpcore_tables.classes import BELOW, CLIP, probabilities, softmax, unclipped, unclipped_several
from dpcore_tables.descent import Descent, Step
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import Layout
from dpcore_tables.metric import Metric
from dpcore_tables.plan import Plan
from dpcore_tables.ranks import Ranks, usual_proportions
from dpcore_tables.shape_functions import ShapeFunctions
from dpcore_tables.shapes.scaled_scores import ScaledScores
from dpcore_tables.synthetic_records import simulated_rows

from builders import price_learner

LAYOUT = Layout(levels=(0, 2), starts=(0, 1))
DICTIONARY = Dictionary.of(
    LAYOUT,
    Ranks.of(np.zeros(1), np.full(1, 0.2), usual_proportions(1)),
    [(term, 1.0) for term in LAYOUT.once()],
)
ROWS = simulated_rows(DICTIONARY)


@pytest.mark.parametrize("count", [3, 4, 10])
def test_clipped_residuals_of_several_classes_balance_at_the_corrected_probabilities(count):
    """By the definition: the mean over classes of the residual, cut to the length of the clip."""
    rng = np.random.default_rng(count)
    fitted = np.vstack(
        [rng.dirichlet(np.full(count, 0.5), 200), np.eye(count) * 0.96 + 0.04 / count]
    )
    fitted /= fitted.sum(axis=1, keepdims=True)
    balance = np.zeros(fitted.shape)
    for label, likely in enumerate(unclipped_several(fitted).T):
        residual = fitted - np.eye(count)[label]
        length = np.maximum(np.linalg.norm(residual, axis=1, keepdims=True), 1e-12)
        balance += likely[:, None] * residual * np.minimum(1, CLIP / length)
    assert np.abs(balance).max() < 1e-12
    assert unclipped_several(fitted).sum(axis=1) == pytest.approx(np.ones(len(fitted)))


def test_the_correction_keeps_the_order_of_classes():
    rng = np.random.default_rng(9)
    for count in (3, 5):
        fitted = np.sort(rng.dirichlet(np.full(count, 0.7), 5000), axis=1)
        assert np.diff(unclipped_several(fitted), axis=1).min() > -1e-12


def test_probabilities_of_two_classes_are_the_known_ones():
    scores = np.linspace(-30, 30, 61)[:, None]
    second = unclipped(1 / (1 + np.exp(-scores[:, 0])))
    assert np.allclose(probabilities(scores), np.stack([1 - second, second], axis=1), atol=1e-15)
    assert np.isfinite(probabilities(np.array([[1e6], [-1e6]]))).all()
    assert np.isfinite(probabilities(np.array([[1e6, 0.0, -1e6]]))).all()


UNKNOWN = (1.0, math.inf)


def noise_part(covariance, outputs):
    """Of a variance, over what independent noise of all weights alike makes of it on average."""
    values = np.linalg.eigvalsh(covariance)
    chosen = 1.1 if outputs == 1 else 1.3
    return chosen + math.sqrt(2 * np.sum(values**2) / np.sum(values) ** 2 / outputs)


def scaled(weights, deviation, proportions=(0.1,), noise=0.0, slope=UNKNOWN):
    proportions = np.array(proportions)
    offset = (
        np.log(proportions / (1 - proportions)) if len(proportions) == 1 else np.log(proportions)
    )
    model = (DICTIONARY, weights, offset, proportions, noise, deviation, slope)
    return ScaledScores.of(*model), offset


@pytest.mark.parametrize("proportions", [(0.1,), (0.2, 0.3, 0.5)], ids=str)
def test_a_clear_fit_whose_slope_is_unknown_is_left_as_it_is(proportions):
    weights = np.random.default_rng(0).normal(size=(3, len(proportions)))
    covariance = 1e-4 * np.eye(3)
    published, offset = scaled(weights, covariance, proportions, noise=0.1)
    assert published.factor == 1
    assert np.array_equal(published.weights, weights)
    likely, fitted = (
        probabilities(ROWS.T @ weights + added) for added in (published.offset, offset)
    )
    assert np.allclose(likely, fitted)
    noise = np.trace(np.cov(ROWS, bias=True) @ published.deviation)
    assert noise == pytest.approx(1e-4 * np.trace(np.cov(ROWS, bias=True)), rel=0.25)


@pytest.mark.parametrize("proportions", [(0.1,), (0.2, 0.3, 0.5)], ids=str)
def test_noise_alone_gives_nearly_the_released_shares(proportions):
    weights = np.random.default_rng(1).normal(size=(3, len(proportions)))
    published, _ = scaled(weights, 4 * np.eye(3), proportions)
    assert published.factor == 0.05
    likely = probabilities(ROWS.T @ published.weights + published.offset)
    released = np.array(proportions) if len(proportions) > 1 else np.array([0.9, 0.1])
    assert np.abs(likely - released).max() < 0.06
    # Of the fit's own shares 0.05 is left, so means are within that of the released ones.
    assert np.abs(likely.mean(axis=0) - released).max() < 0.04


@pytest.mark.parametrize("proportions", [(0.1,), (0.2, 0.3, 0.5)], ids=str)
def test_between_them_made_up_records_have_the_mixture_of_both_shares(proportions):
    weights = np.random.default_rng(2).normal(size=(3, len(proportions)))
    scores = ROWS.T @ weights
    variance = np.mean(np.var(scores, axis=0))
    covariance = 0.3 * variance / np.trace(np.cov(ROWS, bias=True)) * np.eye(3)
    published, offset = scaled(weights, covariance, proportions)
    gamma = 1.5 * (1 - noise_part(np.cov(ROWS, bias=True), max(len(proportions) - 1, 1)) * 0.3)
    assert published.factor == pytest.approx(gamma)
    fitted = probabilities(scores + offset).mean(axis=0)
    released = np.array(proportions) if len(proportions) > 1 else np.array([0.9, 0.1])
    likely = probabilities(published.factor * scores + published.offset).mean(axis=0)
    assert likely == pytest.approx(gamma * fitted + (1 - gamma) * released, abs=1e-6)


@pytest.mark.parametrize("size", [0.1, 0.5, 1.0, 3.0])
def test_the_stated_spread_is_that_of_fits_that_are_multiplied_anew(size):
    """Of a truth whose scores have that deviation, over the noise's: 1600 draws, each multiplied by
    the definition. A hundred state their own spread, too large a one where nearly all is noise."""
    truth = np.array([0.3, 1.0, 0.5])
    covariance, rng = np.cov(ROWS, bias=True), np.random.default_rng(3)
    deviation = float(truth @ covariance @ truth) / np.trace(covariance) / size**2
    fits = truth + math.sqrt(deviation) * rng.standard_normal((1600, 3))
    noise = deviation * np.trace(covariance)
    variances = np.sum(fits * (fits @ covariance), axis=1)
    stated = [scaled(fit[:, None], deviation * np.eye(3))[0].deviation for fit in fits[:100]]
    likely = noise_part(covariance, 1) * noise
    fits *= np.clip(1.5 * (1 - likely / variances), 0.05, 1)[:, None]
    expected = np.trace(covariance @ np.cov(fits.T))
    found = np.trace(covariance @ np.mean(stated, axis=0))
    assert 0.8 < math.sqrt(found / expected) < (1.3 if size > 0.2 else 1.5)


def test_the_noise_of_the_shares_moves_scores_as_far_as_they_are_shrunk_to_them():
    weights, covariance = np.full((3, 1), 0.1), 4 * np.eye(3)
    still, noisy = (scaled(weights, covariance, noise=noise)[0].deviation for noise in (0.0, 0.02))
    moved = 0.95 * 0.02 / (0.1 * 0.9)  # of the logarithm of p/(1 - p)
    assert ROWS[0].max() == 0.5
    assert noisy[0, 0] - still[0, 0] == pytest.approx((moved / 0.5) ** 2)
    assert np.array_equal(noisy[1:], still[1:])


def test_a_slope_counts_as_far_as_it_is_known():
    weights, covariance = np.array([[0.3], [1.0], [0.5]]), 1e-4 * np.eye(3)
    expected = {0.0: 2.0, 0.3: 1.5, math.inf: 1.0}
    for deviation, factor in expected.items():
        published, offset = scaled(weights, covariance, slope=(2.0, deviation))
        assert published.factor == pytest.approx(factor)
        assert np.array_equal(published.weights, published.factor * weights)
        fitted = probabilities(ROWS.T @ weights + offset).mean(axis=0)
        likely = probabilities(ROWS.T @ published.weights + published.offset).mean(axis=0)
        assert likely == pytest.approx(fitted, abs=1e-6)
    assert scaled(weights, covariance, slope=(9.0, 0.0))[0].factor == 3
    assert scaled(weights, covariance, slope=(-9.0, 0.0))[0].factor == 0.05
    # Noise of 0.3 in the slope, of which half counts, moves scores by 0.15 of their size.
    noisy = scaled(weights, 1e-12 * np.eye(3), slope=(2.0, 0.3))[0].deviation
    size = float(weights[:, 0] @ np.cov(ROWS, bias=True) @ weights[:, 0])
    assert np.trace(np.cov(ROWS, bias=True) @ noisy) == pytest.approx(0.15**2 * size, rel=0.25)


def descents_of(start, slope, noise, draws, gain=0.1):
    """Nine steps at weights that do not move, of residuals that balance at so many times the
    functions' weights, and for that at another intercept."""
    rng = np.random.default_rng(6)
    basis = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    metric = Metric(
        basis=basis, known=np.array([200.0, 90.0, 60.0]), damping=np.ones(3), curvature=0.25
    )
    started = Descent.start(DICTIONARY, metric, 9, start, variance=3.0)
    curvature = gain * (basis * metric.known) @ basis.T
    missing = (1 - slope) * start
    missing[0] = -curvature[0, 1:] @ missing[1:] / curvature[0, 0]
    for _ in range(draws):
        gradients = curvature @ missing + noise * rng.standard_normal((9, *start.shape))
        targets = metric.damped @ start - gradients
        empty = {
            "noise": noise,
            "sigma": 1.0,
            "scatter": 0.0,
            "curvature": 0.25,
            "map": np.eye(3),
            "weights": start,
        }
        yield attrs.evolve(started, steps=tuple(Step(target=t, **empty) for t in targets))


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_slope_is_that_at_which_gradients_balance(outputs):
    start = np.random.default_rng(7).normal(size=(3, outputs))
    if outputs > 1:
        start -= start.mean(axis=1, keepdims=True)
    (descent,) = descents_of(start, 1.7, 0.0, 1)
    assert descent.slope(0.1) == (pytest.approx(1.7), 0.0)
    slopes = [descent.slope(0.1) for descent in descents_of(start, 1.7, 3.0, 300)]
    found, deviation = np.mean([slope for slope, _ in slopes]), slopes[0][1]
    assert found == pytest.approx(1.7, abs=4 * deviation / math.sqrt(300))
    assert np.std([slope for slope, _ in slopes]) == pytest.approx(deviation, rel=0.15)


def test_what_moves_all_scores_alike_has_no_slope():
    """The same gradients at weights that noise has moved by as much in all classes."""
    start = np.random.default_rng(7).normal(size=(3, 3))
    start -= start.mean(axis=1, keepdims=True)
    (descent,) = descents_of(start, 1.7, 0.0, 1)
    moved = np.array([[0.0], [2.0], [-1.0]])
    steps = [
        attrs.evolve(
            step, weights=start + moved, target=step.target + descent.metric.damped @ moved
        )
        for step in descent.steps
    ]
    descent = attrs.evolve(descent, steps=tuple(steps))
    assert descent.slope(0.1) == (pytest.approx(1.7), 0.0)


def test_weights_of_zero_have_no_slope():
    (descent,) = descents_of(np.zeros((3, 1)), 1.0, 0.0, 1)
    assert descent.slope(0.1) == (1.0, math.inf)


def test_only_many_records_of_several_classes_descend_by_the_clipped_curvature():
    """Where labels follow the corrected probabilities, no residual gains more than 0.33 of its
    score: less than twice 0.25, so a descent contracts."""
    public = {
        count: Public(domain=facts(("p", "q", "r"), count), randomness=PublicRandomness(1), mu=0.27)
        for count in (1000, 9000)
    }
    steep = {
        (count, edition): Plan.of(given, None, edition=edition).steep
        for count, given in public.items()
        for edition in (1, 2)
    }
    assert [case for case, is_steep in steep.items() if is_steep] == [(9000, 2)]
    rng, largest = np.random.default_rng(8), 0.0
    fitted = [np.array([2 / 3, 1 / 3, 0.0]), *rng.dirichlet(np.full(3, 0.5), 500)]
    for likely in fitted:
        model = np.diag(likely) - np.outer(likely, likely)
        gain = np.zeros((3, 3))
        for label, proportion in enumerate(unclipped_several(likely[None])[0]):
            residual = likely - np.eye(3)[label]
            length = max(float(np.linalg.norm(residual)), 1e-9)
            across = np.eye(3) - (length > CLIP) * np.outer(residual, residual) / length**2
            gain += proportion * min(1.0, CLIP / length) * across @ model
        largest = max(largest, float(np.linalg.eigvals(gain / BELOW).real.max()))
    assert 0.32 < largest < 0.33


def facts(labels, count):
    columns = {"a": Range(-1, 1), "b": Range(-1, 1), "d": Categories(("n", "y"))}
    return Domain(columns=columns, target="y", labels=Classes(labels), exact=count)


@pytest.mark.parametrize(
    ("labels", "count", "proportion"),
    [("ny", 10_000, 0.01), ("ny", 1000, 0.0206), ("pqr", 1000, 0.0112), ("ny", 100, 0.2)],
)
def test_few_records_of_classes_pay_more_for_their_shares(labels, count, proportion):
    public = Public(domain=facts(tuple(labels), count), randomness=PublicRandomness(1), mu=0.27)
    plans = [Plan.of(public, None, edition=edition) for edition in (1, 2)]
    assert [plan.shares()["label"] for plan in plans] == [0.01, pytest.approx(proportion, abs=5e-4)]
    for plan in plans:
        assert math.fsum(plan.shares().values()) == pytest.approx(1.0)


def model_of(labels, edition):
    rng = np.random.default_rng(4)
    table = {"a": rng.uniform(-1, 1, 300), "b": rng.uniform(-1, 1, 300)}
    table["d"] = rng.choice(["n", "y"], 300)
    codes = (table["a"] + 0.3 * rng.normal(size=300) > 0).astype(int)
    table["y"] = np.array(labels)[codes + (table["b"] > 0.5) * (len(labels) - 2)]
    plan = price_learner(
        ShapeFunctions(edition=edition),
        domain=facts(labels, 300),
        mechanism=Gaussian(noise="float"),
        epsilon=4,
    )
    return plan.run(table, secret=SecretRandomness.rehearsal(1), replaying=HERE).model, table


@pytest.mark.parametrize("edition", [1, 2])
def test_what_is_exported_names_the_classes_that_the_model_does(edition):
    model, table = model_of(("p", "q", "r"), edition)
    encoded = encode_table(model.domain, table)
    assert np.array_equal(portable.score(encoded, model.exported()[1]), model.score(encoded))
    assert np.abs(model.outputs(encoded).sum(axis=1)).max() < 1e-9
    likely = model.probabilities(table)
    assert np.array_equal(likely.argmax(axis=1), model.score(encoded).astype(int))
    plain = softmax(model.outputs(encoded))
    assert np.allclose(likely, plain if edition == 1 else unclipped_several(plain))
    assert (model.scaled is None) is (edition == 1)
