"""Permute-and-flip: the law of its definition, its privacy by enumeration, and refusals."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpcore.claims.mechanisms.permute_and_flip import PermuteAndFlip
from dpcore.errors import ContractError, ParameterError
from dpcore.event import Direction
from dpcore.query import Query

from mechanisms.mechanism_checks import bound, noise

FOUR = Query(name="scores", shape=(4,), distance="linf")


def distribution(scores: np.ndarray, epsilon: float) -> np.ndarray:
    """The published algorithm, over all orders (sensitivity 1)."""
    heads = np.exp(-0.5 * epsilon * (scores.max() - scores))
    result = np.zeros(scores.size)
    orders = list(itertools.permutations(range(scores.size)))
    for order in orders:
        no_one = 1.0
        for r in order:
            result[r] += no_one * heads[r] / len(orders)
            no_one *= 1 - heads[r]
    return result


def choices(scores: np.ndarray, epsilon: float, count: int, name: str) -> np.ndarray:
    mechanism, stream = PermuteAndFlip(epsilon=epsilon), noise(name)
    releases = [mechanism.release(scores, FOUR, bound(1.0, "linf"), stream) for _ in range(count)]
    return np.sum(releases, axis=0)


@pytest.mark.slow
def test_choices_follow_the_published_algorithm() -> None:
    scores = np.array([3.0, 1.2, 2.5, 3.0])
    observed = choices(scores, 1.5, 8000, "law")
    expected = distribution(scores, 1.5)
    assert expected.sum() == pytest.approx(1)
    assert stats.chisquare(observed, expected * 8000).pvalue > 1e-4
    assert stats.chisquare(observed, distribution(scores, 1.0) * 8000).pvalue < 1e-4


def test_the_law_stays_below_its_event_for_the_worst_neighbours() -> None:
    """Exact curves of the definition for scores that move by 1, in every pattern of signs."""
    event = PermuteAndFlip(epsilon=1.1).event(FOUR, bound(1.0, "linf"))
    worst = 0.0
    for base in ([0.0, 0.0, 0.0, 0.0], [4.0, 3.0, 0.0, 1.0], [9.0, 0.0, 0.0, 0.0]):
        for signs in itertools.product((-1, 0, 1), repeat=4):
            p, q = distribution(np.array(base), 1.1), distribution(np.array(base) + signs, 1.1)
            worst = max(worst, float(np.log(p / q).max()))
            for epsilon in (0.0, 0.5, 1.0, 1.1):
                exact = np.maximum(p - math.exp(epsilon) * q, 0).sum()
                assert exact <= event.curve.upper_at(epsilon, Direction.ADD) + 1e-12
    assert 0.95 * 1.1 < worst <= 1.1 + 1e-12  # and the claim is not vacuous


def test_the_release_is_one_at_one_index_in_the_querys_shape() -> None:
    query = Query(name="q", shape=(2, 3), distance="linf")
    chosen = PermuteAndFlip(epsilon=1.0).release(
        np.zeros((2, 3)), query, bound(1.0, "linf"), noise("shape")
    )
    assert chosen.shape == (2, 3)
    assert sorted(chosen.ravel()) == [0, 0, 0, 0, 0, 1]
    sure = PermuteAndFlip(epsilon=1e6).release(
        np.array([[1, 2, 3], [4, 9, 6]]), query, bound(1.0, "linf"), noise("sure")
    )
    assert sure[1, 1] == 1


def test_scores_beyond_the_range_are_clamped() -> None:
    chosen = PermuteAndFlip(epsilon=1.0).release(
        np.array([-1e300, 0.0, 1e300, 5.0]), FOUR, bound(1.0, "linf"), noise("clamp")
    )
    assert chosen.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("value", [np.full(4, np.nan), np.full(4, np.inf), np.zeros(3)])
def test_a_statistic_that_does_not_fit_is_an_error_and_draws_nothing(value: np.ndarray) -> None:
    stream = noise("untouched")
    with pytest.raises(ContractError):
        PermuteAndFlip(epsilon=1.0).release(value, FOUR, bound(1.0, "linf"), stream)
    assert (stream.words(3) == noise("untouched").words(3)).all()


def test_parameters_are_checked_and_at_sets_epsilon() -> None:
    assert PermuteAndFlip().at(4.0, FOUR, bound(1.0, "linf")).epsilon == 0.25
    with pytest.raises(ParameterError, match="epsilon"):
        PermuteAndFlip(epsilon=-1.0)
    complex_query = Query(name="q", shape=(1,), distance="linf", field="complex")
    with pytest.raises(ParameterError, match="real"):
        PermuteAndFlip(epsilon=1.0).event(complex_query, bound(1.0, "linf"))
