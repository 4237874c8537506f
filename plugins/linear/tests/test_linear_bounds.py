"""Neighbours against the bounds of the learners that take any feature map."""

import itertools
import math

import attrs
import numpy as np
import pytest
from scipy import optimize

import dpcore
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
from dpcore.claims.accounting.methods.gdp import GdpAccountant
from dpcore.claims.events.gaussian import gaussian_mu
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.pricing.calibration import compose
from dpcore.encoding.tables import encode_table
from dpcore.errors import NoClaimError, ParameterError
from dpcore.models.features.identity import Identity
from dpcore.sensitivity import Refuted, WorstCase
from dpcore_linear.affine import Affine
from dpcore_linear.clipped_gradient import ClippedGradient, ClippedGradientBound
from dpcore_linear.exact_sums import GramUnits
from dpcore_linear.gram_sensitivity import (
    statistics_add_remove,
    statistics_replace_label,
    statistics_replace_one,
)
from dpcore_linear.output_perturbation import (
    OutputPerturbation,
    OutputPerturbationBound,
    PrintedBound,
)
from dpcore_linear.sufficient_statistics import SufficientStatistics, SufficientStatisticsBound
from dpcore_models.features.cos_sin import CosSin

from builders import price_learner
from doubles import domain, table

RELATIONS = [ADD_REMOVE, REPLACE_ONE, REPLACE_LABEL, replace_features(0.5, label=True)]
SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)
BOUNDS = {
    ClippedGradient: ClippedGradientBound(),
    OutputPerturbation: OutputPerturbationBound(),
    SufficientStatistics: SufficientStatisticsBound(),
}


def public(limit=60, mu=0.3):
    facts = domain(records=None, limit=limit, norm=1.0)
    return Public(domain=facts, randomness=PublicRandomness(5), mu=mu)


def gradient(clip=0.4, features=None):
    return ClippedGradient(features=features or Identity(), clip=clip, steps=20)


def statistics(features=None, **fields):
    return SufficientStatistics(features=features or Identity(), **fields)


def output(lam=5.0, clip=0.6, features=None):
    return OutputPerturbation(features=features or Identity(), total_regularization=lam, clip=clip)


def ask(learner, facts, weights=None):
    (query,) = learner.queries(facts)
    if isinstance(learner, ClippedGradient):
        query = attrs.evolve(query, args={"weights": weights})
    return query


def ratio(learner, facts, adjacency, before, after, weights=None, bound=None):
    """What a pair moves over what is claimed."""
    query = ask(learner, facts, weights)
    claim = (bound or BOUNDS[type(learner)]).sensitivity(query, learner, facts, adjacency)
    assert claim.adjacency.covers(adjacency)
    values = [
        learner.statistic(
            query,
            Records(features=np.reshape(rows, (len(labels), 2)), labels=np.array(labels)),
            facts,
            SECRET,
        )
        for rows, labels in (before, after)
    ]
    first, second = (np.asarray(value) for value in values)
    return float(np.linalg.norm(first - second)) / claim.unit


def rows_in_the_ball(rng, count):
    rows = rng.normal(size=(count, 2)) * rng.choice([1.0, 0.01, 30.0], (count, 1))
    return rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True) * (1 + 1e-12))


@pytest.mark.parametrize("features", [Identity(), Affine(features=Identity()), CosSin(count=3)])
@pytest.mark.parametrize("make", [gradient, statistics, output])
def test_no_random_neighbours_move_further_than_any_bound(make, features):
    rng = np.random.default_rng(1)
    facts = public()
    for trial in range(100):
        learner = make(features=features)
        width = features.width(facts.domain)
        weights = rng.normal(size=width) * 10 ** rng.uniform(-2, 2)
        count = int(rng.integers(1, 50))
        rows, labels = rows_in_the_ball(rng, count), rng.choice([-1.0, 1.0, 0.3], count)
        other = -rows[-1] if trial % 2 else rows_in_the_ball(rng, 1)[0]
        near = np.clip(rows[-1] + 0.5 * rows_in_the_ball(rng, 1)[0], -0.7, 0.7)
        flipped = np.append(labels[:-1], -labels[-1])
        shuffled = rng.permutation(count)
        pairs = {
            ADD_REMOVE: (rows[:-1], labels[:-1]),
            REPLACE_ONE: (np.vstack([rows[:-1], other])[shuffled], flipped[shuffled]),
            REPLACE_LABEL: (rows[shuffled], flipped[shuffled]),
            RELATIONS[3]: (np.vstack([rows[:-1], near]), flipped),
        }
        for adjacency, there in pairs.items():
            assert ratio(learner, facts, adjacency, (rows, labels), there, weights) <= 1


def test_every_bound_is_attained():
    facts, zero = public(), np.zeros(2)
    none, up, down = ([], []), ([[1.0, 0.0]], [1.0]), ([[1.0, 0.0]], [-1.0])
    turned = ([[0.0, 1.0]], [-1.0])
    for learner, (adjacency, pair) in itertools.product(
        (gradient(), output()),
        {ADD_REMOVE: (none, up), REPLACE_ONE: (up, down), REPLACE_LABEL: (up, down)}.items(),
    ):
        assert 0.99 < ratio(learner, facts, adjacency, *pair, zero) <= 1
    assert 0.99 < ratio(gradient(clip=5.0), facts, REPLACE_LABEL, up, down, zero) <= 1
    assert 0.99 < ratio(statistics(), facts, ADD_REMOVE, none, up) <= 1
    assert 0.99 < ratio(statistics(), facts, REPLACE_LABEL, up, down) <= 1
    assert 0.94 < ratio(statistics(), facts, REPLACE_ONE, up, turned) <= 1
    angle = math.acos(-0.5)  # t = 1/2 of T9 at equal weights: rows at 60 degrees, up to sign
    best = ([[math.cos(angle), math.sin(angle)]], [1.0])
    assert 0.99 < ratio(statistics(), facts, REPLACE_ONE, up, best) <= 1


@pytest.mark.parametrize("weight", [0.3, 1.0, 1.2, 4.0])
def test_t9_is_the_largest_move_that_a_search_finds(weight):
    """Definition of the joint move, maximised over angle, lengths and labels."""
    kappa, bound, w = 1.3, 0.7, 0.9
    a = weight * kappa * kappa

    def moved(x):
        (u, v), (y, z) = kappa / (1 + np.exp(-x[:2])), bound * np.tanh(x[2:4])
        p, q = u * np.array([1.0, 0.0]), v * np.array([np.cos(x[4]), np.sin(x[4])])
        gram = (np.outer(p, p) - np.outer(q, q)) / a
        return np.sqrt(np.sum(gram**2) + np.sum((p * y - q * z) ** 2) / w**2)

    rng = np.random.default_rng(0)
    starts = rng.normal(size=(30, 5)) * [3, 3, 3, 3, 2]
    best = max(-optimize.minimize(lambda x: -moved(x), x, tol=1e-12).fun for x in starts)
    assert 0.999 < best / statistics_replace_one(kappa, bound, a, w) <= 1


def test_t9_has_the_value_that_was_worked_out_by_hand():
    assert statistics_replace_one(1, 1, 1, 1) == pytest.approx(math.sqrt(4.5))
    assert statistics_add_remove(1, 1, 1, 1) == pytest.approx(math.sqrt(2))
    assert statistics_replace_label(1, 1, 1) == pytest.approx(2)
    with pytest.raises(ParameterError):
        statistics_replace_one(1, 1, 0, 1)


def test_sums_are_exact_whatever_the_order():
    rng = np.random.default_rng(4)
    rows, labels = rows_in_the_ball(rng, 4000), rng.uniform(-1, 1, 4000)
    units = GramUnits.of(1.0, 1.0, rows.shape[1], 1.0)
    first = units.total(rows, labels)
    order = rng.permutation(4000)
    assert first == units.total(rows[order], labels[order])
    assert np.allclose(units.parted(first.floats()).gram, rows.T @ rows, rtol=1e-3)
    whole = [[round(x * 2**18) for x in row] for row in rows.tolist()]
    values = [round(y * 2**14) for y in labels.tolist()]
    squares = [29 * sum(row[j] ** 2 for row in whole) for j in (0, 1)]
    across = 41 * sum(row[0] * row[1] for row in whole)
    moments = [
        units.weight * sum(r[j] * y for r, y in zip(whole, values, strict=True)) for j in (0, 1)
    ]
    assert first.integers() == [*squares, across, *moments]


@pytest.mark.parametrize("weight", [1e-3, 0.3, 1.0, 7.0, 1e4])
@pytest.mark.parametrize(("kappa", "bound"), [(1.0, 1.0), (1.3, 0.7), (1e-3, 5e4)])
def test_no_two_records_are_farther_apart_than_the_units_say(weight, kappa, bound):
    """In exact integers: corners and random rows at full length, labels at their ends."""
    rng = np.random.default_rng(5)
    units = GramUnits.of(kappa, bound, 3, weight)
    rows = rng.normal(size=(60, 3))
    rows *= kappa / np.linalg.norm(rows, axis=1, keepdims=True)
    labels = bound * rng.choice([-1.0, 1.0], 60)
    vectors = [units.total(rows[i : i + 1], labels[i : i + 1]).integers() for i in range(60)]
    scale = 2.0**units.exponent
    single = max(math.sqrt(sum(n * n for n in v)) for v in vectors) * scale
    apart = max(math.dist(v, u) for v in vectors for u in vectors) * scale
    assert 0.98 * units.add_remove < single <= units.add_remove
    assert 0.8 * units.replace_one < apart <= units.replace_one
    assert units.add_remove < 2.0 ** (units.exponent + 42)
    flipped = [units.total(rows[i : i + 1], -labels[i : i + 1]).integers() for i in range(60)]
    label = max(math.dist(v, u) for v, u in zip(vectors, flipped, strict=True)) * scale
    assert 0.98 * units.replace_label < label <= units.replace_label


def test_weights_say_how_much_shorter_the_matrix_is():
    for weight in (1e-3, 0.3, 1.0, 7.0, 1e4):
        units = GramUnits.of(1.3, 0.7, 3, weight)
        assert 1.3 * 1.3 / units.a * weight == pytest.approx(1.3 * 0.7 / units.w, rel=0.02)
        assert 0.5 < units.add_remove < 3


@pytest.mark.parametrize("features", [Affine(features=Identity()), CosSin(count=7)])
def test_the_released_sums_do_not_depend_on_the_order_of_records(features):
    rng = np.random.default_rng(6)
    facts, made = public(), statistics(features=features)
    rows, labels = rows_in_the_ball(rng, 53), rng.uniform(-1, 1, 53)
    values = [
        made.statistic(
            ask(made, facts), Records(features=rows[order], labels=labels[order]), facts, SECRET
        )
        for order in (np.arange(53), rng.permutation(53))
    ]
    assert values[0] == values[1]


def test_a_gradient_at_another_clip_is_never_served_from_memory():
    """Learners that share the records keep their own clips."""
    facts = public()
    records = Records(features=np.array([[1.0, 0.0]]), labels=np.array([1.0]))
    query = ask(gradient(), facts, np.zeros(2))
    for clip in (0.4, 0.1, 0.7):
        value = gradient(clip=clip).statistic(query, records, facts, SECRET)
        assert np.linalg.norm(value) == pytest.approx(clip)


def test_the_vector_is_almost_isometric_and_has_an_inverse():
    rng = np.random.default_rng(5)
    rows, labels = rows_in_the_ball(rng, 50), rng.uniform(-1, 1, 50)
    units = GramUnits.of(1.0, 1.0, rows.shape[1], 1.7)
    vector = units.total(rows, labels).floats()
    gram, moments = rows.T @ rows, rows.T @ labels
    square = np.sum(gram**2) / units.a**2 + np.sum(moments**2) / units.w**2
    assert np.sum(vector**2) == pytest.approx(square, rel=1e-3)
    again = units.parted(vector)
    assert np.allclose(again.gram, gram, atol=1e-4)
    assert np.allclose(again.moments, moments, atol=2e-3)


def test_the_printed_bound_is_broken_by_ridge_with_labels_in_the_unit_interval():
    """m = 1000, lambda = 0.1: two records that differ in direction move it 1.5 times as far."""
    ridge, facts = output(lam=100.0, clip=1e3), public(1000)
    base = [[math.sqrt(0.1), 0.0]] * 999
    labels = [1.0] * 999 + [-1.0]
    one, other = [0.5, math.sqrt(0.75)], [0.5, -math.sqrt(0.75)]
    pair = ([*base, one], labels), ([*base, other], labels)
    claim = PrintedBound().sensitivity(ask(ridge, facts), ridge, facts, REPLACE_ONE)
    assert isinstance(claim.validity, Refuted)
    assert claim.value == pytest.approx(2 / 100)
    assert ratio(ridge, facts, REPLACE_ONE, *pair, bound=PrintedBound()) > 1.5
    assert ratio(ridge, facts, REPLACE_ONE, *pair) <= 1


def test_the_printed_bound_holds_where_its_condition_is_enforced():
    huber, facts = output(lam=100.0, clip=1.0), public(1000)
    claim = PrintedBound().sensitivity(ask(huber, facts), huber, facts, REPLACE_ONE)
    assert isinstance(claim.validity, WorstCase)
    refused = PrintedBound().sensitivity(ask(huber, facts), huber, facts, ADD_REMOVE)
    assert isinstance(refused, Refused)


def plan(learner, **options):
    return price_learner(learner, **{"domain": domain(norm=1.0), **options})


def test_a_refuted_bound_releases_nothing():
    with pytest.raises(NoClaimError, match="refuted"):
        plan(output(lam=100.0, clip=1e3), bound=PrintedBound())


@pytest.mark.parametrize("make", [gradient, statistics, output])
def test_each_learner_composes_to_one_gaussian_at_the_target(make):
    priced = plan(make())
    (spent,) = priced.schedule.releases[0].queries.values()
    mu = math.sqrt(spent.query.at_most) / spent.mechanism.noise_multiplier
    assert mu == pytest.approx(gaussian_mu(1, 1e-5), rel=1e-9)
    assert 1 - 1e-9 < compose([spent], GdpAccountant(REPLACE_ONE)).epsilon(1e-5).upper <= 1
    assert len(priced.run(table()).answers["release"]) == spent.query.at_most


def test_units_in_which_sums_could_overflow_are_refused():
    with pytest.raises(ParameterError, match="another unit"):
        dpcore.Range(-1e200, 1e200)
    facts = attrs.evolve(domain(norm=1.0), labels=dpcore.Range(-1e150, 1e150))
    with pytest.raises(NoClaimError, match="overflow"):
        plan(statistics(), domain=facts)


@pytest.mark.parametrize("make", [gradient, statistics, output])
@pytest.mark.parametrize("limit", [None, 60])
def test_a_private_number_of_records_is_enough_where_promised(make, limit):
    facts = domain(records=None, limit=limit, norm=1.0)
    if limit is None and make is not statistics:
        with pytest.raises(NoClaimError, match="limit"):
            plan(make(), domain=facts, adjacency=ADD_REMOVE)
        return
    model = plan(make(), domain=facts, adjacency=ADD_REMOVE).run(table()).model
    assert np.isfinite(model.predict(table())).all()


def test_gradients_without_noise_end_at_least_squares():
    """600 records, tiny noise: within 0.05 of the solution by lstsq in every prediction."""
    people = table(records=600)
    people["y"] = 0.4 * people["a"] - 0.2 * people["b"]
    learner = ClippedGradient(features=Identity(), clip=2.0, steps=400, rate=1.0)
    done = plan(
        learner,
        domain=domain(records=600, norm=1.0),
        mechanism=Gaussian(noise_multiplier=1e-3),
        budget=dpcore.PrivacyBudget(epsilon=1e12, delta=1e-5),
    ).run(people)
    rows = encode_table(domain(norm=1.0), people)
    best = np.linalg.lstsq(rows, people["y"], rcond=None)[0]
    assert np.abs(done.model.predict(people) - rows @ best).max() < 0.05


def test_statistics_choose_a_regularization_only_with_a_gaussian_budget():
    learner = statistics()
    with pytest.raises(NoClaimError, match="total_regularization"):
        learner.queries(public(mu=None))
    assert statistics(total_regularization=2.0).queries(public(mu=None))
    assert learner.regularization(0.0, public()) > learner.regularization(0.0, public(mu=3.0)) > 0
