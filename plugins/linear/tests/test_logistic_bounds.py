"""What a record adds to a step of a logistic regression: by brute force, attained, and clipped."""

import math

import attrs
import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Domain,
    Public,
    PublicRandomness,
    Range,
    Records,
    SecretRandomness,
)
from dpcore.domain.classes import Classes
from dpcore.domain.domain import People
from dpcore.errors import NoClaimError, UnfitTargetError
from dpcore.learners.bounds.sum import SumBound
from dpcore_linear.logistic import FREE, SQUARES, LogisticTable, _matrix, _products

SECRET = SecretRandomness.rehearsal(0).learner(0, "q", 1)
LEARNER = LogisticTable()
FIRST, LAST = 0, 3


def facts(columns=1):
    domain = Domain(
        columns={name: Range(-1, 1) for name in "abcdefgh"[:columns]},
        target="y",
        labels=Classes(("no", "yes")),
        limit=60,
    )
    return Public(domain=domain, randomness=PublicRandomness(5), mu=0.3)


def vectors(rows, labels, public, number, theta):
    query = LEARNER.queries(public)[number].with_args({"coefficients": np.array(theta, float)})
    block = Records(features=np.array(rows, float), labels=np.array(labels, float))
    return LEARNER.contributions(query, block, public), query


def test_the_golden_ratios_weight_is_the_largest_one():
    """Over residuals r: (r, c r(1-r)) is at most 1 long at c, and longer at a little more."""
    r = np.linspace(0, 1, 200_001)
    assert np.hypot(r, FREE * r * (1 - r)).max() <= 1
    assert np.hypot(r, (FREE + 0.005) * r * (1 - r)).max() > 1
    assert pytest.approx(3.33019, abs=1e-4) == FREE
    with_squares = np.sqrt(r**2 + (FREE * r * (1 - r)) ** 2 + (SQUARES * r * r) ** 2)
    assert 0.999 < with_squares.max() / math.hypot(1, SQUARES) <= 1


@pytest.mark.parametrize("number", [FIRST, LAST])
def test_no_record_of_a_universe_is_longer_than_its_query_says(number):
    """Rows on a grid with corners, labels (an unknown one too), and many coefficients."""
    public = facts(2)
    grid = np.linspace(-1, 1, 5)
    rows = np.array([(a, b) for a in grid for b in grid for _ in range(3)])
    labels = np.tile([-1.0, 0.0, 1.0], 25)
    longest, apart = 0.0, 0.0
    rng = np.random.default_rng(2)
    for theta in [*rng.normal(size=(60, 3)) * 10 ** rng.uniform(-1, 2, (60, 1)), np.zeros(3)]:
        values, query = vectors(rows, labels, public, number, theta)
        lengths = np.linalg.norm(values, axis=1)
        assert lengths.max() <= query.sum.clip * (1 + 1e-12)
        longest = max(longest, lengths.max())
        apart = max(apart, np.linalg.norm(values[:, None] - values, axis=2).max())
    assert longest > 0.97 * query.sum.clip
    claim = SumBound().sensitivity(query, LEARNER, public, REPLACE_ONE)
    assert apart <= claim.unit == 2 * query.sum.clip
    assert SumBound().sensitivity(query, LEARNER, public, ADD_REMOVE).unit == query.sum.clip


def test_what_is_too_long_is_clipped_whatever_the_learner_computes():
    """The claim is the core's: a learner whose weight is too large loses length, not privacy."""

    @attrs.frozen(kw_only=True)
    class Greedy(LogisticTable):
        def contributions(self, query, block, public):
            return 5 * super().contributions(query, block, public)

    public, rng = facts(2), np.random.default_rng(0)
    query = LEARNER.queries(public)[LAST].with_args({"coefficients": np.array([1.0, 2.0, 0.0])})
    for row in rng.uniform(-1, 1, (20, 2)):
        record = Records(features=row[None], labels=np.array([1.0]))
        total = Greedy().statistic(query, record, public, SECRET).floats()
        assert np.linalg.norm(total) <= query.sum.clip


def test_a_step_releases_score_hessian_and_squares():
    """By their definitions, of random records at random coefficients."""
    rng, public = np.random.default_rng(3), facts(2)
    rows, labels = rng.uniform(-1, 1, (40, 2)), rng.choice([-1.0, 1.0], 40)
    theta = np.array([0.5, -1.0, 2.0])
    values, _ = vectors(rows, labels, public, LAST, theta)
    total = values.sum(axis=0)
    full = np.column_stack([np.ones(40), rows]) / math.sqrt(3)
    chances = 1 / (1 + np.exp(-full @ theta))
    residuals = (labels + 1) / 2 - chances
    hessian = (full * (chances * (1 - chances))[:, None]).T @ full
    meat = (full * (residuals**2)[:, None]).T @ full
    assert np.allclose(total[:3], full.T @ residuals)
    assert np.allclose(_matrix(total[3:9], 3) / FREE, hessian)
    assert np.allclose(_matrix(total[9:], 3) / SQUARES, meat)


def test_a_triangle_is_as_long_as_its_matrix_and_its_noise_is_symmetric():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(30, 4))
    triangles = _products(rows)
    assert np.allclose(np.linalg.norm(triangles, axis=1), np.linalg.norm(rows, axis=1) ** 2)
    assert np.allclose(_matrix(triangles[0], 4), np.outer(rows[0], rows[0]))
    noise = np.array([_matrix(z, 4) for z in rng.normal(size=(20_000, 10))])
    # 20,000 draws: a variance is off by less than 5 %
    assert np.allclose(noise[:, 0, 0].var(), 1, atol=0.05)
    assert np.allclose(noise[:, 0, 1].var(), 0.5, atol=0.025)


def test_a_records_part_has_the_same_bits_in_every_block():
    rng, public = np.random.default_rng(5), facts(3)
    rows, labels = rng.uniform(-1, 1, (37, 3)), rng.choice([-1.0, 1.0], 37)
    theta = rng.normal(size=4)
    together, _ = vectors(rows, labels, public, LAST, theta)
    for place in range(37):
        single, _ = vectors(rows[place : place + 1], labels[place : place + 1], public, LAST, theta)
        assert (single[0] == together[place]).all()


def test_what_makes_no_table_is_refused_before_any_record_is_read():
    good = facts().domain

    def refusal(domain, error=NoClaimError, mu=0.3):
        with pytest.raises(error) as caught:
            LEARNER.queries(Public(domain=domain, randomness=PublicRandomness(1), mu=mu))
        return str(caught.value)

    assert "norm" in refusal(attrs.evolve(good, norm=1.0))
    person = People(column="id", records=3)
    assert "independent draws" in refusal(attrs.evolve(good, people=person))
    assert "linear.ols" in refusal(attrs.evolve(good, labels=Range(0, 1)), UnfitTargetError)
    three = Classes(("a", "b", "c"))
    assert "two classes" in refusal(attrs.evolve(good, labels=three), UnfitTargetError)
    assert "delta" in refusal(good, mu=None)
