"""What every attack once let pass is caught now, and what is right next to it is not."""

import numpy as np
import pytest

from dpcore.sensitivity import Distance
from dpcore_attacks.laws.law import BrokenLawError
from dpcore_attacks.laws.mechanisms.dependence import most_dependent_pair, weakest_movement
from dpcore_attacks.laws.mechanisms.joint_moves import together
from dpcore_attacks.laws.mechanisms.laboratory import ANY_VALUE, CHECKS
from dpcore_attacks.laws.mechanisms.mechanisms import mechanism_cases
from dpcore_attacks.laws.mechanisms.statistical_trial import Trial

from gallery.core import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, examined
from gallery.hidden import HIDDEN
from gallery.hidden.noise import (
    DEPENDENT,
    RIGHT,
    autoregressive_noise,
    equal_sizes_with_random_signs,
    zeros_with_the_sign_of_the_value,
)
from gallery.hidden.statistics import mean_in_a_prediction


def trial(mechanism, effort, seed=0):
    return Trial(case=next(mechanism_cases(mechanism)), seed=seed, effort=effort, rate=1e-6)


NARROW = [
    (equal_sizes_with_random_signs, "one of coordinates [0-9]+ and [0-9]+ moves"),
    (autoregressive_noise, "a movement along which there is least noise"),
]


@pytest.mark.parametrize(("make", "where"), NARROW, ids=lambda part: getattr(part, "__name__", ""))
def test_numbers_that_follow_one_another_are_seen_where_they_do(make, where):
    wrong, _ = make()
    with pytest.raises(BrokenLawError, match=where):
        together(trial(wrong.component(), 0.06))


def test_signs_of_zeros_are_seen_and_zeros_without_a_sign_are_right():
    wrong, right = zeros_with_the_sign_of_the_value()
    with pytest.raises(BrokenLawError, match="the signs of zeros"):
        CHECKS[ANY_VALUE](trial(wrong.component(), 0.1))
    assert CHECKS[ANY_VALUE](trial(right.component(), 0.1))


def test_a_prediction_that_tells_a_mean_is_seen_by_two_laws(tmp_path):
    plugin = mean_in_a_prediction().plugin("mean_in_a_prediction", tmp_path)
    broken = {verdict.law.id for verdict in examined(plugin, 0.01).verdicts if verdict.failed}
    assert broken == {"learner.public-blind", "learner.nothing-left-behind"}


@pytest.mark.slow
@pytest.mark.parametrize("make", DEPENDENT, ids=lambda make: make.__name__)
def test_less_noise_together_than_alone_is_seen_and_the_right_one_is_not(make):
    wrong, right = make()
    for seed in range(3):
        with pytest.raises(BrokenLawError):
            together(trial(wrong.component(), 0.5, seed))
        assert together(trial(right.component(), 0.5, seed))


# Each errs with probability at most 1e-6.
@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "mechanism",
    [
        Gaussian(),
        Laplace(),
        DiscreteGaussian(),
        DiscreteLaplace(),
        Gaussian(noise="float"),
        *(make().component() for make in RIGHT),
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_right_noise_is_not_refuted_along_what_was_learnt(mechanism, seed):
    assert together(trial(mechanism, 0.3, seed))


@pytest.mark.slow
@pytest.mark.parametrize("entry", HIDDEN, ids=lambda entry: entry.name)
def test_every_hidden_entry_is_caught(entry, tmp_path):
    assert any(verdict.failed for verdict in examined(entry.wrong(tmp_path)).verdicts)


def test_the_weakest_movement_is_that_of_the_covariance():
    """Of the covariance [[1, .8], [.8, 1]] the smallest eigenvalue is .2, at (1, -1)/sqrt(2)."""
    rng = np.random.default_rng(0)
    releases = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 4000)
    step, weights = weakest_movement(releases, Distance.L2)
    assert abs(step @ [1, -1]) == pytest.approx(np.sqrt(2), abs=1e-3)
    assert weights @ step == pytest.approx(5, rel=0.1)
    step, _ = weakest_movement(releases, Distance.LINF)
    assert sorted(step) == [-1, 1]
    step, weights = weakest_movement(releases, Distance.L1)
    assert sorted(step) == [0, 1]
    # One movement of 1 shows as 1/(1 - .8^2) squared standard deviations.
    assert weights @ step == pytest.approx(1 / 0.36, rel=0.1)


@pytest.mark.parametrize("follow", [np.abs, np.square, lambda z: -z, lambda z: np.cos(3 * z)])
def test_the_pair_that_depends_is_found_whatever_the_way(follow):
    rng = np.random.default_rng(1)
    releases = rng.normal(size=(1000, 20))
    releases[:, 17] = follow(releases[:, 4]) * np.where(rng.random(1000) < 0.5, 1, -1)
    assert most_dependent_pair(releases) == (4, 17)
