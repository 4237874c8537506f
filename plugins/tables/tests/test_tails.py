"""Ramps: what a column's tail beyond the cells of its ranks becomes, and what it may move."""

import json

import attrs
import numpy as np
import pytest

import dpcore
from dpcore import ADD_REMOVE, REPLACE_ONE, Categories, Domain, Range, SecretRandomness
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.domain import Classes
from dpcore.encoding.tables import encode_table
from dpcore.transcript.replay_process import HERE
from dpcore_tables import portable
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import RAMP, Layout, Term
from dpcore_tables.metric import Metric
from dpcore_tables.ranks import Ranks
from dpcore_tables.shape_functions import ShapeFunctions
from dpcore_tables.sums import gradients, gram, integer_rows

from builders import price_learner

COLUMNS = {"x": Range(0, 200), "c": Categories(("n", "y"))}


def records(seed, count=20_000):
    """A lognormal column, which the label follows to the end."""
    rng = np.random.default_rng(seed)
    x = np.minimum(np.exp(1.5 * rng.standard_normal(count)), 200)
    y = np.clip(x + rng.standard_normal(count), -5, 200)
    return {"x": x, "c": rng.choice(["n", "y"], count), "y": y}


def plan_of(epsilon=1.0, labels=None, **fields):
    return price_learner(
        ShapeFunctions(**fields),
        domain=Domain(columns=COLUMNS, target="y", labels=labels or Range(-5, 200), exact=20_000),
        mechanism=Gaussian(noise="float"),
        on_invalid="project",
        epsilon=epsilon,
    )


def fitted(**fields):
    return (
        plan_of(**fields)
        .run(records(0), secret=SecretRandomness.rehearsal(1), replaying=HERE)
        .model
    )


def tailed(domain):
    """A dictionary with a ramp on either side, as far as its column's mean is from the middle."""
    ranks = Ranks.of(np.array([-0.5]), np.array([0.005]), np.full((1, 24), 1 / 24))
    terms = [Term(0, 0), Term(0, 1), Term(0, RAMP), Term(0, RAMP + 1), Term(1, 0)]
    return Dictionary.of(Layout.of(domain), ranks, [(term, 1.0) for term in terms])


FACTS = Domain(columns=COLUMNS, target="y", labels=Range(-5, 200), exact=20_000)


def test_a_ramp_is_0_within_the_cells_and_1_where_the_range_ends():
    dictionary = tailed(FACTS)
    start = 1.5 * 2 * np.sqrt(0.005)
    ends = np.array([-1.0, -0.5 - start, -0.5, -0.5 + start, 0.25 + start / 2, 1.0])
    values = dictionary.values(np.column_stack([ends, np.zeros(6)]))
    assert values[2] == pytest.approx([0, 0, 0, 0, 0.5, 1])  # half way from the cells to the end
    assert values[3] == pytest.approx([1, 0, 0, 0, 0, 0])


def test_the_mean_square_is_that_of_a_pareto_law_of_index_3():
    dictionary = tailed(FACTS)
    ranks, middles = dictionary.ranks, (np.arange(10**6) + 0.5) / 10**6
    start, _ = ranks.tail(0, True)
    tail = ranks.ramp(0, True, -0.5 + start / np.cbrt(middles))
    assert ranks.ramp_square(0, True) == pytest.approx(np.mean(tail**2) / 24, rel=1e-3)
    assert dictionary.squares[[0, 1, 4]].tolist() == [1, 1, 1]


def test_a_deviation_is_0_where_the_ramp_goes_on_as_the_line_does():
    dictionary = tailed(FACTS)
    weights = np.zeros(dictionary.width)
    weights[1] = 0.7
    # The straight line through the cells, beyond them.
    z = np.array([1.5, 6.0])
    numbers = dictionary.ranks.means[0] + z * dictionary.ranks.widths[0]
    risen = 2 * (z[1] - z[0]) * dictionary.sizes[0] * weights[1]
    ramp = dictionary.ranks.ramp(0, True, numbers)[1]
    weights[3] = risen / (ramp * dictionary.sizes[2])
    moved = dictionary.deviations() @ weights
    assert moved[3] == pytest.approx(0, abs=1e-12)
    assert moved[4] > 0  # the lower one is 0, and the line falls there
    assert moved[[0, 1, 2, 5]].tolist() == weights[[0, 1, 2, 5]].tolist()


def test_a_ghost_is_no_tail():
    proportions = np.full((1, 24), 0.98 / 23)
    proportions[0, -1] = 0.02
    narrow = Ranks.of(np.array([-0.9]), np.array([0.002]), proportions)
    assert narrow.tails(0.001) == [(0, True)]
    assert narrow.tails(0.01) == []  # within the noise
    wide = Ranks.of(np.array([-0.1]), np.array([0.2]), proportions)
    assert wide.tails(0.001) == []  # the declared range ends with the cells


@pytest.mark.parametrize("relation", [ADD_REMOVE, REPLACE_ONE], ids=str)
def test_no_two_records_in_a_tail_move_a_sum_by_more_than_the_bound(relation):
    """Brute force over all pairs of 60 rows, corners of the declared range among them."""
    dictionary = tailed(FACTS)
    rng = np.random.default_rng(0)
    numbers = np.concatenate([[-1.0, 1.0, -0.5], rng.uniform(-1, 1, 57)])
    rows = dictionary.rows(np.column_stack([numbers, rng.choice([-1.0, 1.0], 60)]))
    assert np.linalg.norm(rows, axis=0).max() <= 1 + 1e-15

    def single(index, residual):
        whole = integer_rows(rows[:, [index]].copy())
        sums = gradients(whole, np.array([[residual]]), 0.1, dictionary.width)
        return gram(whole, dictionary.width).floats(), sums.floats().ravel()

    sides = [single(index, residual) for index in range(60) for residual in (-1.0, 1.0)]
    grams, steps = (np.array(values) for values in zip(*sides, strict=True))
    diameter = {}
    for name, values in (("gram", grams), ("gradient", steps)):
        if relation is ADD_REMOVE:
            diameter[name] = np.linalg.norm(values, axis=1).max()
        else:
            products = values @ values.T
            squares = products.diagonal()
            distances = squares[:, None] + squares - 2 * products
            diameter[name] = float(np.sqrt(distances.max()))
    bounds = {"gram": 1.0, "gradient": 1.0}
    if relation is REPLACE_ONE:
        bounds = {"gram": np.sqrt(2), "gradient": 2.0}
    for name, bound in bounds.items():
        assert 0.9 * bound < diameter[name] <= bound * (1 + 1e-9), name


def test_a_long_tail_is_fitted_to_its_end():
    """With ranks only, which end three standard deviations from the mean, 0.2 and more is left."""
    model, test = fitted(), records(1)
    error = np.mean((model.predict(test) - test["y"]) ** 2) / np.var(test["y"])
    assert error < 0.05
    terms = {tuple(term) for term in model.dictionary.terms.tolist()}
    assert Term(0, RAMP) in terms
    assert Term(0, RAMP + 1) not in terms
    shape = next(shape for shape in model.shapes() if shape.columns == ("x",))
    assert shape.found
    assert shape.values[-1] - shape.values[20] > 80  # of 160 that the label rises there
    # What is exported scores alike, from its JSON, too.
    module, values = model.exported()
    assert module is portable
    encoded = encode_table(model.domain, test)
    values = json.loads(json.dumps(values, default=lambda array: np.asarray(array).tolist()))
    assert portable.score(encoded, values) == pytest.approx(model.score(encoded), abs=1e-9)


def test_classes_monotone_columns_and_earlier_specs_have_no_tails():
    assert not fitted(edition=1).dictionary.is_ramp.any()
    assert not fitted(monotone={"x": "up"}).dictionary.is_ramp.any()
    facts = attrs.evolve(FACTS, labels=Classes(("n", "y")))
    public = dpcore.Public(domain=facts, randomness=dpcore.PublicRandomness(1), mu=1.0)
    assert not ShapeFunctions().start(public).plan.tailed


def test_ramps_are_not_damped_however_large_the_noise():
    """With damping by the noise of their entries some descents stopped far from the end."""
    dictionary, noise = tailed(FACTS), 1e3
    width = dictionary.width
    released = noise * np.random.default_rng(4).standard_normal((width, width))
    facts = (noise, dictionary, 20_000.0, 1.0, 0.4, (width - 2, 2))
    metric = Metric.denoised(released + released.T, *facts)
    is_ramp = np.append(False, dictionary.is_ramp)
    assert (metric.damping[is_ramp] == 0).all()
    assert (metric.damping[~is_ramp] > 0.4 * noise).all()
    # Steps along a ramp are as long as its usual square says, or as what is clear of the answer.
    usual = 20_000.0 * dictionary.squares[dictionary.is_ramp]
    assert metric.damped.diagonal()[is_ramp] == pytest.approx(usual, rel=0.5)
