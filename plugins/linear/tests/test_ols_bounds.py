"""The sums of a regression table, by brute force and by search: claims hold, and are attained."""

import itertools
import math

import attrs
import numpy as np
import pytest
from scipy import optimize

from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Categories,
    Domain,
    Public,
    PublicRandomness,
    Range,
    Records,
    SecretRandomness,
    replace_features,
)
from dpcore.domain.classes import Classes
from dpcore.domain.columns import Texts
from dpcore.domain.domain import People
from dpcore.encoding.tables import encode_table
from dpcore.errors import NoClaimError, UnfitTargetError
from dpcore_linear.exact_sums import GramUnits
from dpcore_linear.gram_sensitivity import (
    statistics_add_remove,
    statistics_replace_label,
    statistics_replace_one,
)
from dpcore_linear.ols import OrdinaryLeastSquares, OrdinaryLeastSquaresBound

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)
BOUND = OrdinaryLeastSquaresBound()
LEARNER = OrdinaryLeastSquares()
RELATIONS = [ADD_REMOVE, REPLACE_ONE, REPLACE_LABEL, replace_features(0.5, label=True)]


def facts(columns=1, half=3.0, **more):
    names = "abcdefgh"[:columns]
    domain = Domain(
        columns={name: Range(-1, 1) for name in names},
        target="y",
        labels=Range(-half, half),
        limit=60,
        **more,
    )
    return Public(domain=domain, randomness=PublicRandomness(5), mu=0.3)


def sums_of(records, public, query=None):
    query = query or LEARNER.queries(public)[0]
    rows, labels = records
    block = Records(features=np.reshape(rows, (len(labels), -1)), labels=np.array(labels, float))
    return np.asarray(LEARNER.statistic(query, block, public, SECRET))


def claim(public, relation, number=0):
    query = LEARNER.queries(public)[number]
    return BOUND.sensitivity(query, LEARNER, public, relation).unit


def second_query(public, theta=(0.4, -0.2), cutoff=0.5):
    query = LEARNER.queries(public)[1]
    return query.with_args({"coefficients": np.array(theta), "reach": cutoff})


@pytest.mark.parametrize("half", [3.0, 0.7, 1.0])
def test_no_pair_of_a_small_universe_moves_the_sums_further_than_claimed(half):
    """All pairs of records with a column and a label on a grid, ends among them."""
    public = facts(half=half)
    universe = list(itertools.product(np.linspace(-1, 1, 9), half * np.linspace(-1, 1, 9)))
    vectors = np.array([sums_of(([[a]], [y]), public) for a, y in universe])
    added = np.linalg.norm(vectors, axis=1).max() / claim(public, ADD_REMOVE)
    apart = np.linalg.norm(vectors[:, None] - vectors, axis=2)
    columns = np.array([a for a, _ in universe])
    labels_only = np.where(columns[:, None] == columns, apart, 0).max()
    assert 0.999 < added <= 1
    assert apart.max() / claim(public, REPLACE_ONE) <= 1
    assert 0.999 < labels_only / claim(public, REPLACE_LABEL) <= 1


def test_the_last_number_is_free_and_no_longer_is_a_little_later():
    """The lemma over lengths, angle and labels: T9 by itself bounds the longer vector up to the
    weight that is used, and the weight is the largest that a record which comes or goes allows."""
    kappa, bound, a, w = 1.3, 0.7, 1.1, 0.9

    def moved(x, v):
        (r, s), (y, z) = kappa * (1 + np.tanh(x[:2])) / 2, bound * np.tanh(x[2:4])
        p, q = r * np.array([1.0, 0.0]), s * np.array([np.cos(x[4]), np.sin(x[4])])
        gram = (np.outer(p, p) - np.outer(q, q)) / a
        square = np.sum(gram**2) + np.sum((p * y - q * z) ** 2) / w**2
        return np.sqrt(square + ((y * y - z * z) / v) ** 2)

    v = bound * w / kappa
    rng = np.random.default_rng(0)
    starts = rng.normal(size=(40, 5)) * [3, 3, 3, 3, 2]
    best = max(-optimize.minimize(lambda x: -moved(x, v), x, tol=1e-12).fun for x in starts)
    assert 0.999 < best / statistics_replace_one(kappa, bound, a, w) <= 1 + 1e-9
    # all lengths and labels of one record; and of one whose label by itself is replaced
    lengths, labels = np.meshgrid(np.linspace(0, kappa, 201), np.linspace(-bound, bound, 201))

    def longest(v):
        part = (bound**2 - labels**2) / v
        return np.sqrt(lengths**4 / a**2 + (lengths * labels / w) ** 2 + part**2).max()

    assert longest(v) <= statistics_add_remove(kappa, bound, a, w) < longest(0.95 * v)
    turned = np.linspace(-bound, bound, 401)
    steps = (turned[:, None] - turned) ** 2
    sums = (turned[:, None] + turned) ** 2
    label = np.sqrt(steps * kappa**2 / w**2 + steps * sums / v**2).max()
    assert label <= statistics_replace_label(kappa, bound, w) * (1 + 1e-12)


@pytest.mark.parametrize(("kappa", "bound"), [(1.0, 1.0), (1.3, 0.7), (1e-3, 5e4), (2.0, 350.0)])
def test_integers_keep_the_lemmas_weight(kappa, bound):
    """v >= M w/kappa at the integers' own bounds, and not much above it."""
    units = GramUnits.of(kappa, bound, 4, 1.0)
    assert 1 <= units.v * kappa / (bound * units.w) <= 1.02
    assert 0.95 < units.balance < 1.05 < GramUnits.of(kappa, bound, 4, 1.2).balance
    squares = np.array([-bound, 0.0, bound / 3, bound])
    parts = np.ldexp(units.short_squares(squares).astype(float), units.exponent) * units.v
    assert (parts >= 0).all()
    assert np.allclose(units.square_limit - parts, squares**2, rtol=1e-3, atol=1e-4 * bound**2)


def test_no_random_neighbours_move_either_sum_further_than_claimed():
    rng = np.random.default_rng(1)
    public = facts(columns=3)
    for trial in range(60):
        count = int(rng.integers(2, 30))
        rows = rng.choice([-1.0, 1.0, 0.2, -0.6], (count, 3))
        labels = 3 * rng.choice([-1.0, 1.0, 0.3, 0.0], count)
        row = -rows[-1] if trial % 2 else rng.choice([-1.0, 1.0], 3)
        near = np.clip(rows[-1] + rng.uniform(-0.25, 0.25, 3), -1, 1)
        turned = np.append(labels[:-1], -labels[-1])
        shuffled = rng.permutation(count)
        pairs = {
            ADD_REMOVE: (rows[:-1], labels[:-1]),
            REPLACE_ONE: (np.vstack([rows[:-1], row])[shuffled], turned[shuffled]),
            REPLACE_LABEL: (rows[shuffled], turned[shuffled]),
            RELATIONS[3]: (np.vstack([rows[:-1], near]), turned),
        }
        meat = second_query(public, rng.normal(size=4), 10 ** rng.uniform(-2, 1))
        for relation, there in pairs.items():
            for number, query in enumerate((None, meat)):
                first = sums_of((rows, labels), public, query)
                second = sums_of(there, public, query)
                assert np.linalg.norm(first - second) <= claim(public, relation, number)


def test_the_second_ask_is_bounded_and_attained_over_a_small_universe():
    public = facts()
    universe = list(itertools.product(np.linspace(-1, 1, 21), 3 * np.linspace(-1, 1, 7)))
    query = second_query(public, (0.1, 0.2), 0.3)
    vectors = np.array([sums_of(([[a]], [y]), public, query) for a, y in universe])
    assert 0.999 < np.linalg.norm(vectors, axis=1).max() / claim(public, ADD_REMOVE, 1) <= 1
    apart = np.linalg.norm(vectors[:, None] - vectors, axis=2).max()
    # rows (1, -1) and (1, 1) are at a right angle: the most distant two matrices of rank one
    assert 0.999 < apart / claim(public, REPLACE_ONE, 1) <= 1


def test_the_second_ask_is_the_gram_matrix_of_clipped_residuals():
    """By its definition, of random records."""
    rng = np.random.default_rng(3)
    public, theta, cutoff = facts(columns=2), np.array([0.3, -0.5, 1.0]), 0.8
    rows, labels = rng.uniform(-1, 1, (50, 2)), rng.uniform(-3, 3, 50)
    released = sums_of((rows, labels), public, second_query(public, theta, cutoff))
    units = LEARNER.units(public.domain)
    gram = units.parted(np.concatenate([released, np.zeros(3)])).gram
    full = np.hstack([np.ones((50, 1)), rows])
    weights = (np.clip(labels - full @ theta, -cutoff, cutoff) / cutoff) ** 2
    assert np.allclose(gram, (full * weights[:, None]).T @ full, rtol=1e-4, atol=1e-4)


def test_blocks_give_the_sums_of_their_records():
    """What a block adds is what its records add one by one, to the last unit."""
    rng = np.random.default_rng(2)
    public = facts(columns=2)
    block = Records(features=rng.uniform(-1, 1, (40, 2)), labels=rng.uniform(-3, 3, 40))
    for query in (LEARNER.queries(public)[0], second_query(public, (0.1, 0.2, 0.3), 0.4)):
        vectors = np.ldexp(LEARNER.contributions(query, block, public), -query.sum.unit)
        assert (vectors == np.rint(vectors)).all()
        integers = LEARNER.partial(query, block, public).integers()
        assert vectors.sum(axis=0).tolist() == integers


def test_what_makes_no_table_is_refused_before_any_record_is_read():
    def refusal(domain, error=NoClaimError, mu=0.3):
        with pytest.raises(error) as caught:
            LEARNER.queries(Public(domain=domain, randomness=PublicRandomness(1), mu=mu))
        return str(caught.value)

    good = facts().domain
    assert "norm" in refusal(attrs.evolve(good, norm=1.0))
    assert "texts" in refusal(attrs.evolve(good, columns={"t": Texts(12)}))
    person = People(column="id", records=2)
    assert "independent draws" in refusal(attrs.evolve(good, people=person))
    assert "linear.logistic" in refusal(
        attrs.evolve(good, labels=Classes(("no", "yes"))), UnfitTargetError
    )
    assert "delta" in refusal(good, mu=None)
    LEARNER.queries(
        Public(
            domain=attrs.evolve(good, people=People(column="id", records=1)),
            randomness=PublicRandomness(1),
            mu=0.3,
        )
    )


def test_a_design_has_no_linear_relation_between_its_columns():
    domain = attrs.evolve(
        facts().domain,
        columns={
            "a": Range(10, 30),
            "g": Categories(("p", "q", "r")),
            "b": Categories(("no", "yes")),
            "m": Range(0, 4, missing=True),
        },
    )
    from dpcore_linear.design import Design, bases, file_units

    units = file_units(domain)
    assert units.names == ("intercept", "a", "g=q", "g=r", "b=yes", "m", "m missing")
    assert bases(domain) == ("g=p",)
    rng = np.random.default_rng(0)
    table = {
        "a": rng.uniform(10, 30, 80),
        "g": rng.choice(["p", "q", "r"], 80),
        "b": rng.choice(["no", "yes"], 80),
        "m": np.where(rng.random(80) < 0.3, np.nan, rng.uniform(0, 4, 80)),
    }
    rows = Design().drawn(domain, PublicRandomness(1))(encode_table(domain, table))
    assert np.linalg.matrix_rank(rows) == rows.shape[1] == Design().width(domain)
    assert (
        np.linalg.norm(rows, axis=1).max() <= Design().norm(domain) == pytest.approx(math.sqrt(5))
    )
    # coefficients in the file's units, by the definition of a line in the file's own columns
    line = np.array([2.0, 0.5, -1.0, 3.0, 4.0, 0.25, -2.0])
    by_hand = np.column_stack(
        [
            np.ones(80), table["a"], table["g"] == "q", table["g"] == "r", table["b"] == "yes",
            np.where(np.isnan(table["m"]), 2.0, table["m"]), np.isnan(table["m"]),
        ]
    ) @ line  # fmt: skip
    theta = np.linalg.lstsq(rows, by_hand - domain.labels.centre, rcond=None)[0]
    assert np.allclose(units.turn @ theta + units.shift, line)
