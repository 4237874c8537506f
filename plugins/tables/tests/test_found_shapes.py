"""What shapes say: pairs are purified, and what is found of columns that say nothing."""

import itertools

import numpy as np
import pytest

from dpcore import Categories, Domain, Range, SecretRandomness
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.encoding.tables import encode_table
from dpcore_tables.dictionary import Dictionary
from dpcore_tables.layout import Layout, Term
from dpcore_tables.metric import released_levels
from dpcore_tables.plain_descent import Plain
from dpcore_tables.ranks import Ranks, usual_proportions
from dpcore_tables.residuals import Clipped
from dpcore_tables.shape_functions import ShapeFunctions
from dpcore_tables.shapes.covariance import Covariance
from dpcore_tables.shapes.effects import effects_of
from dpcore_tables.shapes.inference import discoveries, joint_band_of, p_value_of, shapes_of
from dpcore_tables.synthetic_records import simulated_records

from builders import price_learner

COLUMNS = {
    "a": Range(-1, 1),
    "c": Categories(("x", "y", "z")),
    "b": Range(0, 5),
    "d": Categories(("no", "yes")),
}
DOMAIN = Domain(columns=COLUMNS, target="y", labels=Range(0, 10), exact=1000)
TERMS = [
    *[Term(0, level) for level in range(3)],
    *[Term(1, level) for level in range(3)],
    Term(3, 0),
    *[Term(0, 1, 1, level) for level in range(3)],
    *[Term(0, 2, 2, 1), Term(0, 1, 3, 0), Term(1, 2, 3, 0), Term(2, 0, 3, 0)],
]
LEVELS = (np.zeros(0), np.array([0.7, 0.2, 0.1]), np.zeros(0), np.array([0.9, 0.1]))


def dictionary(terms=TERMS, sizes=None):
    ranks = Ranks.of(np.array([0.2, -0.3]), np.array([0.1, 0.2]), usual_proportions(2))
    rng = np.random.default_rng(0)
    sizes = rng.uniform(0.05, 0.15, len(terms)) if sizes is None else sizes
    return Dictionary.sized(Layout.of(DOMAIN), ranks, terms, sizes)


def effects(levels=LEVELS):
    weights = np.random.default_rng(1).normal(size=len(TERMS))
    return weights, {effect.owner: effect for effect in effects_of(DOMAIN, dictionary(), levels)}


def test_effects_add_up_to_the_model_but_for_a_constant():
    """At the ends of numbers and at all categories, which stand in every grid."""
    weights, found = effects()
    assert {(2,), (0, 2), (2, 3)} < {*found}  # b has no term of its own
    ends = [
        column.values if isinstance(column, Categories) else (column.low, column.high)
        for column in COLUMNS.values()
    ]
    sums, scores = [], []
    for corner in itertools.product(*ends):
        record = {name: np.array([value]) for name, value in zip(COLUMNS, corner, strict=True)}
        values = dictionary().values(encode_table(DOMAIN, record))[:, 0]
        scores.append(float(values * dictionary().sizes @ weights))
        total = 0.0
        for owner, effect in found.items():
            shape = [len(grid) for grid in effect.at]
            place = tuple(
                [*effect.at[i].tolist()].index(corner[column]) for i, column in enumerate(owner)
            )
            total += effect.values(weights).reshape(shape)[place]
        sums.append(total)
    ratio = np.ptp(sums) / np.ptp(scores)  # the median factor of shortened rows
    assert 0.5 < ratio <= 1.0
    assert np.array(sums) - ratio * np.array(scores) == pytest.approx(
        np.full(len(sums), sums[0] - ratio * scores[0]), abs=1e-12
    )


def test_a_pair_says_nothing_of_one_column_alone():
    """The mean over a column of categories is 0 at every value of the other one."""
    weights, found = effects()
    for owner, axis in (((0, 1), 1), ((0, 3), 1), ((1, 3), 0), ((1, 3), 1), ((2, 3), 1)):
        effect = found[owner]
        surface = effect.values(weights).reshape([len(grid) for grid in effect.at])
        assert np.abs(surface).max() > 0.01
        proportions = LEVELS[owner[axis]]
        means = np.tensordot(surface, proportions, axes=(axis, 0))
        assert means == pytest.approx(np.zeros(len(means)), abs=1e-13)


def test_a_pair_that_is_constant_in_a_column_has_importance_0():
    """All records have d = yes: a pair of a and d is a function of a, and is there."""
    weights = np.zeros((1 + len(TERMS), 1))
    weights[1 + TERMS.index(Term(0, 1, 3, 0))] = 3.0
    levels = (*LEVELS[:3], np.array([0.0, 1.0]))
    noise = np.eye(len(weights))
    shapes = shapes_of(DOMAIN, dictionary(), levels, weights, noise, noise, 1.0, 6)
    importances = {shape.columns: shape.importance for shape in shapes}
    assert importances["a", "d"] == pytest.approx(0.0, abs=1e-12)
    assert importances["a",] > 0.1


def test_discoveries_are_those_of_the_rule():
    rng = np.random.default_rng(2)
    for _ in range(200):
        p_values = (rng.random(8) ** rng.integers(1, 5)).tolist()
        tests = int(rng.integers(8, 30))
        below = [
            k for k in range(1, 9) if sorted(p_values)[k - 1] <= 0.1 * k / tests
        ]  # of the k smallest
        expected = {*np.argsort(p_values)[: max(below, default=0)].tolist()}
        expected = {place for place in expected if p_values[place] <= 0.05}
        assert {*discoveries(p_values, tests).tolist()} == expected
    assert [*discoveries([0.09], 1)] == []  # no null column more often than in one of 20


@pytest.mark.parametrize("outputs", [1, 3])
def test_null_shapes_have_even_p_values_and_bands_that_hold_0(outputs):
    rng = np.random.default_rng(3)
    root = rng.normal(size=(len(TERMS), 20)) / 10
    covariance = Covariance(terms=root @ root.T)
    _, found = effects()
    for owner in ((0,), (1,), (0, 1)):
        effect, inside, p_values = found[owner], [], []
        band = joint_band_of(effect, covariance, outputs)
        for _ in range(800):
            weights = root @ rng.normal(size=(20, outputs))
            if outputs > 1:  # scores add up to 0, of this variance each
                weights = (weights - weights.mean(axis=1, keepdims=True)) * np.sqrt(1.5)
            p_values.append(p_value_of(effect, weights, covariance))
            inside.append(np.all(np.abs(effect.values(weights)) <= band[:, None]))
        assert 0.925 <= np.mean(inside) <= 0.975
        for level in (0.02, 0.1, 0.5):
            proportion = np.mean(np.array(p_values) < level)
            assert proportion == pytest.approx(level, rel=0.2, abs=0.02)


def test_released_shares_of_categories_are_those_of_the_gram_matrix():
    rng, count = np.random.default_rng(4), 20_000
    map_of, encoded = dictionary(), np.zeros((count, DOMAIN.width))
    encoded[np.arange(count), 1 + rng.choice(3, count, p=LEVELS[1])] = 1.0
    encoded[:, 5] = rng.choice([-1.0, 1.0], count, p=LEVELS[3])
    rows = map_of.rows(encoded)
    found = released_levels(map_of, rows[0] @ rows.T, 1e-3)
    assert [len(proportions) for proportions in found] == [0, 3, 0, 2]
    assert found[1] == pytest.approx(LEVELS[1], abs=0.02)
    assert found[3] == pytest.approx(LEVELS[3], abs=0.02)
    drowned = released_levels(map_of, rows[0] @ rows.T, 1e9)
    assert drowned[1] == pytest.approx(np.full(3, 1 / 3), abs=1e-3)


def test_errors_of_plain_steps_are_those_of_redrawn_noise_and_chance():
    """Both rounds run on gradients L w + chance + noise, with the second's start in the first."""
    count, records, clipped, draws = 60, 300.0, Clipped(0.6, 0.2), 3000
    few = TERMS[:5]
    first = dictionary(few, np.array([0.5, 0.3, 0.4, 0.3, 0.5]))
    second = dictionary(few, np.array([0.3, 0.4, 0.4, 0.2, 0.6]))
    rng, noise = np.random.default_rng(5), (1.5, 0.8)
    residuals = rng.normal(size=(1000, draws)) * clipped.size * np.sqrt(records / 1000)
    ends, planned = [np.zeros((6, draws))], []
    for place, table in enumerate((first, second)):
        rows = table.rows(simulated_records(table, 1000))
        curvature, chance = 0.6 * records / 1000 * rows @ rows.T, rows @ residuals
        scales = np.concatenate([[1.0], first.sizes / table.sizes])
        weights, total = ends[-1] * scales[:, None], 0.0
        for step in range(count):
            gradient = curvature @ weights + chance
            gradient += noise[place] * rng.normal(size=weights.shape)
            weights = weights - 0.5 / records * gradient
            total = total + (weights if step >= count // 2 else 0)
        ends.append(total / (count // 2))
        plain = Plain(
            dictionary=table, count=count, rate=0.5, records=records, below=0.6, last=False,
            weights=np.zeros((6, 1)), noise=noise[place], clipped=clipped,
            factors=np.ones(6), before=planned[-1] if planned else None,
        )  # fmt: skip
        planned.append(plain)
    for plain, weights in zip(planned, ends[1:], strict=True):
        actual, claimed = np.cov(weights), plain.error_covariance()
        assert np.diag(claimed) == pytest.approx(np.diag(actual), rel=0.12)
        assert np.abs(claimed - actual).max() < 0.12 * np.diag(actual).max()


@pytest.mark.parametrize("epsilon", [1.0, pytest.param(8.0, marks=pytest.mark.slow)])
def test_a_column_that_says_nothing_is_not_found(epsilon):
    """Without a Gram matrix, and with one: at 8 one of 120 such columns was found in forty fits."""
    rng, pairs, nulls = np.random.default_rng(6), 0, 0
    for seed in range(1 if epsilon < 2 else 4):
        table = {
            "a": rng.uniform(-1, 1, 1000),
            "c": rng.choice(["x", "y", "z"], 1000),
            "b": rng.uniform(0, 5, 1000),
            "d": rng.choice(["no", "yes"], 1000),
        }
        table["y"] = 5 + 3 * table["a"] + rng.normal(size=1000) / 2
        planned = price_learner(
            ShapeFunctions(),
            domain=DOMAIN,
            mechanism=Gaussian(noise="float"),
            on_invalid="project",
            epsilon=epsilon,
        )
        model = planned.run(table, secret=SecretRandomness.rehearsal(seed)).model
        found = {shape.columns: shape for shape in model.shapes()}
        assert found["a",].found
        nulls += sum(found[name,].found for name in "bcd" if (name,) in found)
        pairs += sum(shape.found for columns, shape in found.items() if len(columns) == 2)
        for columns, shape in found.items():
            if "a" not in columns:
                assert np.all(np.abs(shape.values) <= 1.5 * shape.joint_band + 1e-12), columns
    assert nulls <= (epsilon > 2)  # of twelve, each with at most one in twenty
    assert pairs <= 1  # of ten families without a true pair, one may have a pair found
