"""The exponential mechanism: its law, its privacy by enumeration with ranges, and refusals."""

import itertools
import math
from fractions import Fraction

import attrs
import numpy as np
import pytest
from scipy import stats

from dpcore import ADD_REMOVE
from dpcore.claims.mechanisms.exponential import MOST, Exponential, chosen
from dpcore.claims.mechanisms.noise.exponential import BernoulliExp
from dpcore.errors import ContractError, ParameterError
from dpcore.event import Direction
from dpcore.query import Query

from mechanisms.mechanism_checks import bound, noise

FOUR = Query(name="scores", shape=(4,), distance="linf")
COUNTS = attrs.evolve(FOUR, values="integers")


def ranged(value, cutoff):
    """A claim about scores of a stated range."""
    return attrs.evolve(bound(value, "linf"), range=cutoff)


def distribution(scores, rate):
    weights = np.exp(rate * (np.asarray(scores) - np.max(scores)))
    return weights / weights.sum()


def test_choices_follow_the_law_of_the_definition():
    scores, stream = [0, 3, 4, 6], noise("law")
    counts = np.bincount(
        [chosen(scores, BernoulliExp(Fraction(1, 3)), stream) for _ in range(4000)], minlength=4
    )
    expected = 4000 * distribution([0, -3, -4, -6], 1 / 3)
    assert stats.chisquare(counts, expected).pvalue > 1e-4
    assert stats.chisquare(counts, 4000 * distribution([0, -3, -4, -6], 1 / 2)).pvalue < 1e-4


def test_the_range_sets_the_rate_and_not_the_largest_move():
    """A median under add/remove: scores move by 1/2 in size and by 1 in range, not by 2 * 1/2."""
    mechanism = Exponential(epsilon=1.0)
    assert mechanism.rate(COUNTS, ranged(1.0, 1.0)) == (0, Fraction(1))
    assert mechanism.rate(COUNTS, bound(1.0, "linf")) == (0, Fraction(1, 2))
    exponent, rate = mechanism.rate(FOUR, ranged(1.0, 1.0))
    assert float(rate * 2**-exponent) == pytest.approx(1.0, rel=0.003)
    assert float(rate * 2**-exponent) < 1.0  # rounding costs something


@pytest.mark.parametrize(("low", "high", "cutoff"), [(0, 1, 1), (-1, 1, 2), (-2, 1, 3)])
def test_the_law_stays_below_its_event_for_all_moves_within_the_range(low, high, cutoff):
    event = Exponential(epsilon=1.1).event(COUNTS, ranged(2.0, float(cutoff)))
    worst = 0.0
    for base in ([0, 0, 0, 0], [4, 3, 0, 1], [9, 0, 0, 0]):
        for moves in itertools.product(range(low, high + 1), repeat=4):
            p, q = distribution(base, 1.1 / cutoff), distribution(np.add(base, moves), 1.1 / cutoff)
            for first, second in ((p, q), (q, p)):
                worst = max(worst, float(np.log(first / second).max()))
                for epsilon in (0.0, 0.3, 1.0):
                    exact = np.maximum(first - math.exp(epsilon) * second, 0).sum()
                    assert exact <= event.curve.upper_at(epsilon, Direction.ADD) + 1e-12
    assert 0.85 * 1.1 < worst <= 1.1 + 1e-12


def test_a_stated_range_below_the_true_one_would_be_seen():
    """The check above has teeth: with half the range the loss leaves its event."""
    p, q = distribution([0, 0, 0, 0], 1.1), distribution([1, -1, -1, -1], 1.1)
    event = Exponential(epsilon=1.1).event(COUNTS, ranged(1.0, 1.0))
    assert np.maximum(p - q, 0).sum() > event.curve.upper_at(0.0, Direction.ADD)


def test_it_costs_less_than_permute_and_flip_in_concentrated_privacy():
    event = Exponential().at(2.0, COUNTS, bound(1.0, "linf")).event(COUNTS, bound(1.0, "linf"))
    assert event.epsilon_0 == 1.0
    assert event.claims.rho == pytest.approx(1 / 8)
    assert event.claims.pure == 1.0


def test_scores_of_any_size_are_neither_clamped_nor_lost():
    sure = Exponential(epsilon=50.0)
    values = np.array([-1e300, 1e300, 0.0, 5.0])
    assert sure.release(values, FOUR, bound(1.0, "linf"), noise("big")).tolist() == [0, 1, 0, 0]
    behind = [0, 1 << 70, 3 << 62, 1]
    assert chosen(behind, BernoulliExp(Fraction(100)), noise("far")) == 0
    many = [
        chosen(behind, BernoulliExp(Fraction(1, 1 << 72)), noise(f"flat{i}")) for i in range(60)
    ]
    assert {*many} == {0, 1, 2, 3}  # exp(-1/4) and nearly 1: a clamp would not show, a loss would


def test_a_release_is_one_at_one_index_in_the_querys_shape():
    query = Query(name="q", shape=(2, 3), distance="linf")
    found = Exponential(epsilon=1.0).release(
        np.zeros((2, 3)), query, bound(1.0, "linf"), noise("shape")
    )
    assert found.shape == (2, 3)
    assert sorted(found.ravel()) == [0, 0, 0, 0, 0, 1]


def test_what_it_cannot_choose_is_refused():
    with pytest.raises(ParameterError):
        Exponential(epsilon=-1.0)
    with pytest.raises(ParameterError, match="real scores"):
        Exponential(epsilon=1.0).event(attrs.evolve(FOUR, field="complex"), bound(1.0, "linf"))
    assert "at most" in Exponential().refusal(attrs.evolve(FOUR, shape=(MOST + 1,)))
    with pytest.raises(ContractError):
        Exponential(epsilon=1.0).release(
            np.array([0.0, np.nan, 0.0, 1.0]), FOUR, bound(1.0, "linf"), noise("nan")
        )
    for behind, rate in (([], Fraction(1)), ([1, 2], Fraction(1)), ([0, 1], Fraction(0))):
        with pytest.raises(ValueError, match=r"needs (candidates|a rate)"):
            chosen(behind, BernoulliExp(rate), noise("bad"))


def test_the_event_is_about_the_sensitivitys_relation():
    claim = attrs.evolve(bound(1.0, "linf"), adjacency=ADD_REMOVE)
    assert Exponential(epsilon=1.0).event(FOUR, claim).adjacency == ADD_REMOVE
