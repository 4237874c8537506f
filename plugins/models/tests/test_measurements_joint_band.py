"""Joint bands: the laws that are simulated, the order statistic, and how often a band holds."""

import math

import numpy as np
import pytest
from scipy import stats

from dpcore.interval import LaplaceDistribution, NormalDistribution, TabulatedDistribution, apart
from dpcore_models.measurements.joint_band import (
    MOST_DRAWS,
    Stream,
    _rank,
    joint_half_width,
    noises,
    simulated_half_width,
)


def largest(noise):
    return np.abs(noise).max(axis=1)


@pytest.mark.parametrize("steps", [0.3, 1.0, 7.5])
def test_narrow_laws_have_the_weights_of_their_definition(steps):
    count, values = 200_000, np.arange(-60, 61)
    distributions = {
        LaplaceDistribution(scale=steps, step=1.0): np.exp(-np.abs(values) / steps),
        NormalDistribution(width=steps, step=1.0): np.exp(-0.5 * (values / steps) ** 2),
    }
    for distribution, weights in distributions.items():
        drawn = noises(distribution, Stream(7), (1, count)).ravel()
        found = np.array([(drawn == value).sum() for value in values])
        expected = count * weights / weights.sum()
        full = expected >= 20
        error = (found - expected)[full] / np.sqrt(expected[full])
        assert np.abs(error).max() < 5


def test_wide_laws_have_their_quantiles():
    for distribution, reference in (
        (LaplaceDistribution(scale=2.0), stats.laplace(scale=2.0)),
        (LaplaceDistribution(scale=2.0, step=2.0**-20), stats.laplace(scale=2.0)),
        (NormalDistribution(width=3.0, step=0.01), stats.norm(scale=3.0)),
    ):
        drawn = noises(distribution, Stream(3), (100, 1000)).ravel()
        assert stats.kstest(drawn, reference.cdf).pvalue > 1e-4


@pytest.mark.parametrize("draws", [500, 2048, 10_000])
@pytest.mark.parametrize("miss", [0.05, 0.2])
def test_the_order_statistic_is_the_first_that_is_surely_above_the_quantile(draws, miss):
    rank = _rank(miss, draws)
    assert stats.binom.sf(rank - 1, draws, 1 - miss) <= 2.0**-20
    assert stats.binom.sf(rank - 2, draws, 1 - miss) > 2.0**-20


def test_too_few_draws_have_no_band():
    assert joint_half_width(lambda stream, count: np.zeros(count), 0.01, 100) == math.inf


@pytest.mark.parametrize(
    "distribution", [LaplaceDistribution(scale=1.0), NormalDistribution(width=1.0)]
)
@pytest.mark.parametrize("size", [1, 30])
def test_a_band_of_independent_noise_is_a_little_above_the_exact_one(distribution, size):
    found = simulated_half_width(largest, size, size, distribution, 0.05)
    exact = distribution.quantile(apart(0.05, size))
    assert exact <= found <= 1.08 * exact
    assert found == simulated_half_width(largest, size, size, distribution, 0.05)  # a public stream
    # A small miss has as many draws beyond it.
    assert exact < simulated_half_width(largest, size, size, distribution, 0.001) < math.inf


def test_a_band_is_a_number_of_ten_bits():
    found = simulated_half_width(largest, 3, 3, LaplaceDistribution(scale=math.pi), 0.05)
    assert math.ldexp(math.frexp(found)[0], 10).is_integer()


def test_other_laws_have_no_band():
    distribution = TabulatedDistribution(
        step=1.0, beyond=np.array([0.5, 0.1]), period=1, decay=1.0, deviation=1.0
    )
    assert simulated_half_width(largest, 3, 3, distribution, 0.05) == math.inf
    assert simulated_half_width(largest, 3, 3, None, 0.05) == math.inf
    with pytest.raises(TypeError, match="TabulatedDistribution"):
        noises(distribution, Stream(1), (1, 1))
    assert MOST_DRAWS * 0.05 > 64


def test_a_miss_that_takes_too_many_draws_is_not_simulated():
    def refuse(noise):
        raise AssertionError("a draw was taken")

    distribution = NormalDistribution(width=100.0)
    assert simulated_half_width(refuse, 33, 100, distribution, 1e-12) == math.inf
    assert simulated_half_width(largest, 2, 8, distribution, 1e-4) < math.inf
