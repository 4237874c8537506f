"""Published scores of classes: corrected for clipping, and shrunk towards the released shares."""

import math

import numpy as np
import pytest

import dpcore
from dpcore import Categories, Classes, Domain, Public, PublicCoins, Range, SecretCoins
from dpcore.mechanisms.gaussian import Gaussian
from dpcore.running.replay_process import HERE
from dpcore_tables import portable
from dpcore_tables.classes import CLIP, probabilities, softmax, unclipped, unclipped_several
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import Layout
from dpcore_tables.plan import Plan
from dpcore_tables.ranks import Ranks, usual_shares
from dpcore_tables.shape_functions import ShapeFunctions
from dpcore_tables.shapes.shrunk_scores import ShrunkScores
from dpcore_tables.synthetic_records import simulated_rows

LAYOUT = Layout(levels=(0, 2), starts=(0, 1))
DICTIONARY = Dictionary.of(
    LAYOUT,
    Ranks.of(np.zeros(1), np.full(1, 0.2), usual_shares(1)),
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


def test_probabilities_of_two_classes_are_the_known_ones():
    scores = np.linspace(-30, 30, 61)[:, None]
    second = unclipped(1 / (1 + np.exp(-scores[:, 0])))
    assert np.allclose(probabilities(scores), np.stack([1 - second, second], axis=1), atol=1e-15)
    assert np.isfinite(probabilities(np.array([[1e6], [-1e6]]))).all()
    assert np.isfinite(probabilities(np.array([[1e6, 0.0, -1e6]]))).all()


def shrunk(weights, spread, shares=(0.1,), noise=0.0):
    shares = np.array(shares)
    offset = np.log(shares / (1 - shares)) if len(shares) == 1 else np.log(shares)
    law = (DICTIONARY, weights, offset, shares, noise, spread)
    return ShrunkScores.of(*law), offset


@pytest.mark.parametrize("shares", [(0.1,), (0.2, 0.3, 0.5)], ids=str)
def test_a_clear_fit_is_left_as_it_is_to_the_last_bit(shares):
    weights = np.random.default_rng(0).normal(size=(3, len(shares)))
    spread = 1e-4 * np.eye(3)
    published, offset = shrunk(weights, spread, shares, noise=0.1)
    assert published.factor == 1
    assert np.array_equal(published.weights, weights)
    assert np.array_equal(published.offset, offset)
    assert np.array_equal(published.spread, spread)


@pytest.mark.parametrize("shares", [(0.1,), (0.2, 0.3, 0.5)], ids=str)
def test_noise_alone_gives_nearly_the_released_shares(shares):
    weights = np.random.default_rng(1).normal(size=(3, len(shares)))
    published, _ = shrunk(weights, 4 * np.eye(3), shares)
    assert published.factor == 0.05
    likely = probabilities(ROWS.T @ published.weights + published.offset)
    released = np.array(shares) if len(shares) > 1 else np.array([0.9, 0.1])
    assert np.abs(likely - released).max() < 0.06
    # Of the fit's own shares 0.05 is left, so means are within that of the released ones.
    assert np.abs(likely.mean(axis=0) - released).max() < 0.04


@pytest.mark.parametrize("shares", [(0.1,), (0.2, 0.3, 0.5)], ids=str)
def test_between_them_made_up_records_have_the_mixture_of_both_shares(shares):
    weights = np.random.default_rng(2).normal(size=(3, len(shares)))
    scores = ROWS.T @ weights
    variance = np.mean(np.var(scores, axis=0))
    spread = 0.5 * variance / np.trace(np.cov(ROWS, bias=True)) * np.eye(3)
    published, offset = shrunk(weights, spread, shares)
    assert published.factor == pytest.approx(1.5 * (1 - 1.2 * 0.5))
    fitted = probabilities(scores + offset).mean(axis=0)
    released = np.array(shares) if len(shares) > 1 else np.array([0.9, 0.1])
    likely = probabilities(published.factor * scores + published.offset).mean(axis=0)
    assert likely == pytest.approx(0.6 * fitted + 0.4 * released, abs=1e-6)


def test_the_stated_spread_is_that_of_fits_that_are_shrunk_anew():
    """Sixteen hundred draws of the noise, each shrunk by the definition; 200 draws state it."""
    weights = np.array([[0.3], [1.0], [0.5]])
    covariance, rng = np.cov(ROWS, bias=True), np.random.default_rng(3)
    spread = 0.2 * float(weights[:, 0] @ covariance @ weights[:, 0]) / np.trace(covariance)
    published, _ = shrunk(weights, spread * np.eye(3))
    fits = weights[:, 0] + math.sqrt(spread) * rng.standard_normal((1600, 3))
    noise = spread * np.trace(covariance)
    variances = np.sum(fits * (fits @ covariance), axis=1)
    fits *= np.clip(1.5 * (1 - 1.2 * noise / variances), 0.05, 1)[:, None]
    expected = np.trace(covariance @ np.cov(fits.T))
    assert float(np.trace(covariance @ published.spread)) == pytest.approx(expected, rel=0.2)


def test_the_noise_of_the_shares_moves_scores_as_far_as_they_are_shrunk_to_them():
    weights, spread = np.full((3, 1), 0.1), 4 * np.eye(3)
    still, noisy = (shrunk(weights, spread, noise=noise)[0].spread for noise in (0.0, 0.02))
    moved = 0.95 * 0.02 / (0.1 * 0.9)  # of the logarithm of p/(1 - p)
    assert ROWS[0].max() == 0.5
    assert noisy[0, 0] - still[0, 0] == pytest.approx((moved / 0.5) ** 2)
    assert np.array_equal(noisy[1:], still[1:])


def facts(labels, count):
    columns = {"a": Range(-1, 1), "b": Range(-1, 1), "d": Categories(("n", "y"))}
    return Domain(columns=columns, target="y", labels=Classes(labels), exact=count)


@pytest.mark.parametrize(
    ("labels", "count", "share"),
    [("ny", 10_000, 0.01), ("ny", 1000, 0.0274), ("pqr", 1000, 0.0112), ("ny", 100, 0.1)],
)
def test_few_records_of_classes_pay_more_for_their_shares(labels, count, share):
    public = Public(domain=facts(tuple(labels), count), coins=PublicCoins(1), mu=0.27)
    plans = [Plan.of(public, None, edition=edition) for edition in (1, 2)]
    assert [plan.shares()["label"] for plan in plans] == [0.01, pytest.approx(share, abs=5e-4)]
    for plan in plans:
        assert math.fsum(plan.shares().values()) == pytest.approx(1.0)


def model_of(labels, edition):
    rng = np.random.default_rng(4)
    table = {"a": rng.uniform(-1, 1, 300), "b": rng.uniform(-1, 1, 300)}
    table["d"] = rng.choice(["n", "y"], 300)
    codes = (table["a"] + 0.3 * rng.normal(size=300) > 0).astype(int)
    table["y"] = np.array(labels)[codes + (table["b"] > 0.5) * (len(labels) - 2)]
    plan = dpcore.price(
        domain=facts(labels, 300),
        adjacency=dpcore.REPLACE_ONE,
        budget=dpcore.PrivacyBudget(epsilon=4, delta=1e-5),
        learner=ShapeFunctions(edition=edition),
        mechanism=Gaussian(noise="float"),
    )
    return plan.run(table, secret=SecretCoins.rehearsal(1), replaying=HERE).model, table


@pytest.mark.parametrize("edition", [1, 2])
def test_what_is_exported_names_the_classes_that_the_model_does(edition):
    model, table = model_of(("p", "q", "r"), edition)
    encoded = model.domain.encode(table)
    assert np.array_equal(portable.score(encoded, model.exported()[1]), model.score(encoded))
    likely = model.probabilities(table)
    assert np.array_equal(likely.argmax(axis=1), model.score(encoded).astype(int))
    plain = softmax(model.outputs(encoded))
    assert np.allclose(likely, plain if edition == 1 else unclipped_several(plain))
    assert (model.shrunk is None) is (edition == 1)
