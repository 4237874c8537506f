"""What noise and chance make of columns that say nothing: centred functions, and curvature."""

import attrs
import numpy as np
import pytest

from dpcore import Categories, Domain, Range, SecretRandomness
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain import Classes
from dpcore_tables.descent import Descent
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import Layout, Term
from dpcore_tables.metric import Metric
from dpcore_tables.ranks import Ranks, usual_proportions
from dpcore_tables.residuals import UNCLIPPED
from dpcore_tables.shape_functions import ShapeFunctions
from dpcore_tables.shapes.null_distribution import gram_correction, metric_shifts
from dpcore_tables.steps.centres import Centres
from dpcore_tables.synthetic_records import simulated_records

from builders import price_learner

COLUMNS = {
    "a": Range(-1, 1),
    "c": Categories(("x", "y", "z")),
    "d": Categories(("no", "yes")),
    "e": Categories(("no", "yes")),
}
LAYOUT = Layout.of(Domain(columns=COLUMNS, target="y", labels=Range(0, 1), exact=1000))
LEVELS = (np.zeros(0), np.array([0.7, 0.2, 0.1]), np.array([0.9, 0.1]), np.array([0.25, 0.75]))
RANKS = Ranks.of(np.zeros(1), np.full(1, 0.2), usual_proportions(1))


def dictionary_of(terms):
    return Dictionary.sized(LAYOUT, RANKS, terms, np.linspace(0.1, 0.2, len(terms)))


def everyone():
    """All categories of three independent columns, and the proportion of each record."""
    codes = np.array([(c, d, e) for c in range(3) for d in range(2) for e in range(2)])
    proportions = LEVELS[1][codes[:, 0]] * LEVELS[2][codes[:, 1]] * LEVELS[3][codes[:, 2]]
    encoded = np.zeros((len(codes), 6))
    encoded[np.arange(len(codes)), 1 + codes[:, 0]] = 1.0
    encoded[:, 4:] = 2.0 * codes[:, 1:] - 1
    return encoded, proportions


@pytest.mark.parametrize("products", [True, False])
def test_centred_functions_have_mean_0_and_the_stated_squares(products):
    """By brute force over all records of independent columns."""
    mains = [Term(1, 0), Term(1, 1), Term(1, 2), Term(2, 0), Term(3, 0)]
    pairs = [Term(1, 1, 2, 0), Term(2, 0, 3, 0)]
    terms = mains + pairs if products else [*mains[:3], Term(3, 0), *pairs]
    dictionary = dictionary_of(terms)
    encoded, proportions = everyone()
    rows = np.vstack(
        [np.full(len(proportions), 0.5), dictionary.sizes[:, None] * dictionary.values(encoded)]
    )
    centres = Centres.of(dictionary, LEVELS)
    centred = centres.map @ rows
    assert (centred[1:] @ proportions) == pytest.approx(np.zeros(len(terms)), abs=1e-15)
    for place, term in enumerate(terms):
        if term in mains or products:
            square = (centred[place + 1] ** 2) @ proportions / dictionary.sizes[place] ** 2
            assert square == pytest.approx(centres.squares[place])
        if term in pairs and products:  # nothing is left of one column only
            sides = [t for t in mains if t.column in (term.column, term.second)]
            for side in sides:
                along = (centred[place + 1] * centred[1 + terms.index(side)]) @ proportions
                assert along == pytest.approx(0.0, abs=1e-15)


def test_made_up_records_have_the_released_shares_of_categories():
    encoded = simulated_records(dictionary_of([Term(0, 0)]), 1000, LEVELS)
    assert encoded[:, 1:4].mean(axis=0) == pytest.approx(LEVELS[1], abs=1e-3)
    assert np.mean(encoded[:, 4] > 0) == pytest.approx(0.1, abs=1e-3)
    assert np.mean(encoded[:, 5] > 0) == pytest.approx(0.75, abs=1e-3)
    usual = simulated_records(dictionary_of([Term(0, 0)]), 1000)
    assert np.array_equal(encoded[:, 0], usual[:, 0])


def descent_of(dictionary, gram_matrix, noise, records, **fields):
    width = dictionary.width
    metric = Metric.denoised(gram_matrix, noise, dictionary, records, 1.0, 0.4, (width, 0))
    return Descent.start(
        dictionary, metric, 6, np.zeros((width, 1)), variance=1.0, early=False, **fields
    )


@pytest.mark.parametrize("noise", [3.0, 1e4])
def test_a_number_of_few_values_corrects_its_gram_matrix(noise):
    """Three values; noise that is far above all entries says nothing."""
    rng, records = np.random.default_rng(0), 3000
    dictionary = dictionary_of([Term(0, level) for level in range(1, 12)] + [Term(2, 0)])
    encoded = simulated_records(dictionary, records, LEVELS)
    made = dictionary.rows(encoded)
    encoded[:, 0] = rng.choice([-0.3, 0.1, 0.5], records)
    rows = dictionary.rows(encoded)
    upper = np.triu(rng.standard_normal((13, 13)), 1) / np.sqrt(2)
    blur = noise * (upper + upper.T + np.diag(rng.standard_normal(13)))
    descent = descent_of(dictionary, rows @ rows.T + blur, noise, records)
    correction = gram_correction(descent, made @ made.T)
    block = slice(0, 12)
    missing = (rows @ rows.T - made @ made.T)[block, block]
    error = np.linalg.norm(missing - correction[block, block]) / np.linalg.norm(missing)
    assert error < 0.35 if noise < 100 else error > 0.95
    assert not correction[12].any()


def quadratic(descent, curvature, pull, rng=None, start=None):
    """Where a descent ends on the gradients of a quadratic loss, with noise or without."""
    if start is not None:
        descent = attrs.evolve(descent, weights=start)
    for _ in range(descent.count):
        gradient = curvature @ descent.weights - pull
        if rng is not None:
            gradient = gradient + 2.0 * rng.standard_normal(gradient.shape)
        descent = descent.after(gradient, 2.0, 0.8, 0.3, UNCLIPPED)
    return descent


@pytest.mark.parametrize("centred", [False, True])
def test_movements_are_those_of_descents_whose_noise_is_drawn(centred):
    """400 descents of a quadratic loss with one prior: a variance errs by 7 %."""
    rng = np.random.default_rng(1)
    dictionary = dictionary_of([Term(0, 1), Term(1, 0), Term(1, 1), Term(2, 0), Term(3, 0)])
    centres = Centres.of(dictionary, LEVELS) if centred else None
    rows = dictionary.rows(simulated_records(dictionary, 1000, LEVELS))
    gram_matrix = rows @ rows.T
    mapping = np.eye(6) if centres is None else centres.map
    descent = descent_of(dictionary, mapping @ gram_matrix @ mapping.T, 5.0, 1000, centres=centres)
    pull = 20 * rng.standard_normal((6, 1))
    first = quadratic(descent, gram_matrix, pull, rng)
    start, force = rng.standard_normal((6, 1)), rng.standard_normal((6, 1))
    # Linear, once the maps are those of one release: a start and a force have one movement.
    quiet = attrs.evolve(first, steps=tuple(attrs.evolve(s, noise=1e-12) for s in first.steps))
    moved = quiet.movements(rng, start, gram_matrix / 0.8, [force] * 6)
    expected = []
    for begin, more in ((start, force), (np.zeros((6, 1)), np.zeros((6, 1)))):
        weights = begin
        targets, damped = [], first.metric.damped
        for last, step in enumerate(first.steps):
            gradient = gram_matrix @ weights / 0.8 + more
            targets.append(damped @ first.coordinates(weights) - first.along(gradient))
            window = first.window(last)
            weights = first.restored(step.map @ np.mean([targets[j] for j in window], axis=0))
        expected.append(weights)
    assert moved == pytest.approx(expected[0] - expected[1], abs=1e-9)
    ends = np.array([quadratic(descent, gram_matrix, pull, rng).weights[:, 0] for _ in range(400)])
    measured = np.trace(np.cov(ends.T) @ gram_matrix)
    claimed = np.trace(first.noise_covariance(gram_matrix / 0.8) @ gram_matrix)
    assert 0.7 < claimed / measured < 1.4


def test_the_noise_of_a_gram_matrix_moves_what_its_replay_says():
    """100 releases of the matrix of two functions that are nearly copies, without other noise."""
    rng, records, noise = np.random.default_rng(3), 2000, 4.0
    dictionary = dictionary_of([Term(0, 1), Term(0, 2), Term(2, 0), Term(3, 0)])
    rows = dictionary.rows(simulated_records(dictionary, records, LEVELS))
    rows[4] = 0.98 * rows[3] * np.linalg.norm(rows[4]) / np.linalg.norm(rows[3]) + 0.02 * rows[4]
    gram_matrix = rows @ rows.T
    pull = gram_matrix @ np.array([[0.1], [1.0], [0.4], [1.5], [0.5]])
    ends, claims = [], []
    for _ in range(100):
        upper = np.triu(rng.standard_normal((5, 5)), 1) / np.sqrt(2)
        blur = noise * (upper + upper.T + np.diag(rng.standard_normal(5)))
        descent = descent_of(dictionary, gram_matrix + blur, noise, records)
        ended = quadratic(descent, gram_matrix, pull)
        ends.append(ended.weights[:, 0])
        quiet = attrs.evolve(ended, steps=tuple(attrs.evolve(s, noise=1e-9) for s in ended.steps))
        shifts = metric_shifts(quiet, rng)
        start = np.zeros((5, shifts[0].shape[1]))
        moved = quiet.movements(rng, start, gram_matrix / 0.8, shifts=shifts)
        claims.append(np.mean((moved[3] - moved[4]) ** 2))
    measured = np.var([end[3] - end[4] for end in ends])
    assert 0.5 < np.mean(claims) / measured < 2.0


@pytest.mark.parametrize("centred", [False, True])
def test_a_curvature_comes_to_rest_and_stays_where_it_does(centred):
    dictionary = dictionary_of([Term(0, 1), Term(1, 0), Term(1, 1), Term(2, 0), Term(3, 0)])
    centres = Centres.of(dictionary, LEVELS) if centred else None
    mapping = np.eye(6) if centres is None else centres.map
    rows = dictionary.rows(simulated_records(dictionary, 1000, LEVELS))
    gram_matrix = mapping @ rows @ rows.T @ mapping.T
    descent = descent_of(dictionary, gram_matrix, 1e-3, 1000, centres=centres)
    same = 0.5 * rows @ rows.T
    assert descent.contracting(same) == pytest.approx(same, abs=1e-6)
    # Far above what was released: the released one.
    assert descent.contracting(9 * rows @ rows.T) == pytest.approx(rows @ rows.T, abs=0.05)


@pytest.mark.parametrize("likeness", [0.99, 1.0])
def test_of_copies_what_matters_is_found_and_nothing_runs_away(likeness):
    """A replay by synthetic independent columns ran away: bands of 84 about shapes of 1."""
    rng = np.random.default_rng(2)
    a, c = rng.standard_normal((2, 5000))
    b = likeness * a + np.sqrt(1 - likeness**2) * rng.standard_normal(5000)
    table = {"a": a, "b": b, "c": c, "y": a + rng.standard_normal(5000) / 2}
    table = {name: np.clip(values, -4, 4) for name, values in table.items()}
    plan = price_learner(
        ShapeFunctions(),
        domain=Domain(
            columns=dict.fromkeys("abc", Range(-4, 4)), target="y", labels=Range(-4, 4), exact=5000
        ),
        mechanism=Gaussian(noise="float"),
        epsilon=4,
    )
    shapes = plan.run(table, secret=SecretRandomness.rehearsal(1)).model.shapes()
    found = {shape.columns for shape in shapes if shape.found}
    assert {("a",), ("b",)} & found
    assert ("c",) not in found
    assert max(float(shape.joint_band.max()) for shape in shapes) < 2


@pytest.mark.slow
def test_an_unbalanced_column_that_says_nothing_is_not_found_of_a_rare_class():
    """Before functions were centred, such a column took part in the intercept in every fit."""
    rng, wrong, covered = np.random.default_rng(5), 0, 0
    columns = {"a": Range(-3, 3), "d": Categories(("no", "yes")), "e": Categories(("no", "yes"))}
    domain = Domain(columns=columns, target="y", labels=Classes(("no", "yes")), exact=4000)
    planned = price_learner(
        ShapeFunctions(), domain=domain, mechanism=Gaussian(noise="float"), epsilon=4
    )
    for seed in range(10):
        table = {
            "a": np.clip(rng.standard_normal(4000), -3, 3),
            "d": np.where(rng.random(4000) < 0.07, "yes", "no"),
            "e": np.where(rng.random(4000) < 0.85, "yes", "no"),
        }
        chances = 1 / (1 + np.exp(3.5 - 2.5 * table["a"]))
        table["y"] = np.where(rng.random(4000) < chances, "yes", "no")
        model = planned.run(table, secret=SecretRandomness.rehearsal(seed)).model
        for shape in model.shapes():
            if shape.columns in (("d",), ("e",)):
                wrong += shape.found
                covered += bool(np.all(np.abs(shape.values) <= shape.joint_band + 1e-12))
    assert wrong <= 3
    assert covered >= 16
