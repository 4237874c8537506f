"""Discrete Gaussian and discrete Laplace noise on integer statistics."""

import math

import numpy as np
import pytest

from dpcore.adjacency import REPLACE_ONE
from dpcore.claims.events.concentrated import ZcdpEvent
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.events.randomized_response import PureEvent
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian, DiscreteGaussianEvent
from dpcore.claims.mechanisms.discrete_laplace import DiscreteLaplace, DiscreteLaplaceEvent
from dpcore.errors import ContractError, ParameterError, ReleaseError
from dpcore.event import Direction
from dpcore.query import Query

from mechanisms.mechanism_checks import bound, excess, noise
from oracles.noise import chi_square_p, gaussian_cdf, laplace_cdf

DRAWS = 200_000
L2 = Query(name="counts", shape=(DRAWS,), distance="l2")
L1 = Query(name="counts", shape=(DRAWS,), distance="l1")
ONE_L2 = Query(name="count", shape=(1,), distance="l2")
ONE_L1 = Query(name="count", shape=(1,), distance="l1")


@pytest.mark.parametrize("width", [0.3, 4.0, 1e6])
def test_noise_has_the_stated_law_and_counts_stay_counts(width: float) -> None:
    counts = np.arange(DRAWS) % 1000
    gaussian = DiscreteGaussian(noise_width=width).release(
        counts, L2, bound(1.0, "l2"), noise(f"g{width}")
    )
    laplace = DiscreteLaplace(noise_scale=width).release(
        counts, L1, bound(1.0, "l1"), noise(f"l{width}")
    )
    assert (gaussian == np.rint(gaussian)).all()
    drawn = (gaussian - counts).astype(np.int64)
    assert chi_square_p(drawn, gaussian_cdf(width), width) > 1e-4
    drawn = (laplace - counts).astype(np.int64)
    assert chi_square_p(drawn, laplace_cdf(width), 1.4 * width) > 1e-4


def curve(log_weights: np.ndarray, shift: int, epsilon: float) -> float:
    """Hockey stick of a law on consecutive integers against itself moved by `shift`."""
    p = np.pad(np.exp(log_weights - log_weights.max()), (shift, shift))
    q = np.roll(p, shift)
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum() / p.sum())


@pytest.mark.parametrize(("width", "shift"), [(0.4, 1), (1.0, 1), (3.0, 2), (500.0, 40)])
def test_the_events_of_one_coordinate_are_the_exact_curves(width: float, shift: int) -> None:
    z = np.arange(-math.ceil(40 * width) - 3, math.ceil(40 * width) + 4)
    gaussian = DiscreteGaussian(noise_width=width).event(ONE_L2, bound(float(shift), "l2"))
    laplace = DiscreteLaplace(noise_scale=width).event(ONE_L1, bound(float(shift), "l1"))
    assert isinstance(gaussian, DiscreteGaussianEvent if width >= 3 else ZcdpEvent)
    assert isinstance(laplace, DiscreteLaplaceEvent)
    slack = 1e-9 if width >= 3 else 1.0
    for epsilon in np.linspace(0, 1.2 * shift / width, 15):
        exact = curve(-0.5 * (z / width) ** 2, shift, epsilon)
        assert exact - 1e-12 <= gaussian.curve.upper_at(epsilon, Direction.ADD) <= exact + slack
        exact = curve(-np.abs(z) / width, shift, epsilon)
        assert exact - 1e-12 <= laplace.curve.upper_at(epsilon, Direction.ADD) <= exact + 1e-9


@pytest.mark.parametrize("width", [0.8, 2.5, 20.0, 310.0])
def test_two_coordinates_stay_below_their_event(width: float) -> None:
    """The exact curve of two coordinates that each move by 1, by summation over pairs."""
    z = np.arange(-math.ceil(9 * width) - 2, math.ceil(9 * width) + 3)
    query = Query(name="pair", shape=(2,), distance="l2")
    event = DiscreteGaussian(noise_width=width).event(query, bound(math.sqrt(2), "l2"))
    assert isinstance(event, GaussianEvent if width >= 300 else ZcdpEvent)
    one = np.exp(-0.5 * (z / width) ** 2)
    one /= one.sum()
    loss = (1 - 2 * z) / (2 * width**2)
    order = np.argsort(loss)
    for epsilon in np.linspace(0, 6 / width, 8):
        # given the first loss, the second one's tail
        p_tail = np.append(np.cumsum(one[order][::-1])[::-1], 0.0)
        q_tail = np.append(np.cumsum((one * np.exp(-loss))[order][::-1])[::-1], 0.0)
        at = np.searchsorted(loss[order], epsilon - loss)
        exact = (one * (p_tail[at] - np.exp(epsilon - loss) * q_tail[at])).sum()
        assert exact <= event.curve.upper_at(float(epsilon), Direction.ADD) + 1e-12


def test_several_coordinates_of_laplace_noise_are_claimed_pure_only() -> None:
    query = Query(name="pair", shape=(2,), distance="l1")
    event = DiscreteLaplace(noise_scale=4.0).event(query, bound(2.0, "l1"))
    assert isinstance(event, PureEvent)
    assert 0.5 <= event.claims.pure <= 0.5 * (1 + 1e-14)


def test_sampled_losses_stay_below_the_events() -> None:
    zeros, ones = np.zeros(DRAWS), np.ones(DRAWS)
    gaussian, laplace = DiscreteGaussian(noise_width=0.9), DiscreteLaplace(noise_scale=1.1)
    p = gaussian.release(ones, L2, bound(1.0, "l2"), noise("gp"))
    q = gaussian.release(zeros, L2, bound(1.0, "l2"), noise("gq"))
    assert excess(gaussian.event(ONE_L2, bound(1.0, "l2")), p, q) <= 0
    assert excess(GaussianEvent(mu=0.9, adjacency=REPLACE_ONE), p, q) > 0
    p = laplace.release(ones, L1, bound(1.0, "l1"), noise("lp"))
    q = laplace.release(zeros, L1, bound(1.0, "l1"), noise("lq"))
    assert excess(laplace.event(ONE_L1, bound(1.0, "l1")), p, q) <= 0
    assert excess(LaplaceEvent(shift=1 / 1.1, adjacency=REPLACE_ONE), p, q) > 0  # continuous: less


def test_wide_noise_is_accounted_as_a_slightly_narrower_gaussian() -> None:
    event = DiscreteGaussian(noise_width=1e6).event(ONE_L2, bound(100.0, "l2"))
    assert isinstance(event, GaussianEvent)
    assert 1e-4 < event.mu < 1e-4 * (1 + 1e-10)


@pytest.mark.parametrize("value", [[0.5], [math.nan], [2.0**54], [math.inf]])
def test_what_is_no_integer_is_an_error_and_draws_nothing(value: list[float]) -> None:
    for mechanism, query, norm in (
        (DiscreteGaussian(noise_width=1.0), ONE_L2, "l2"),
        (DiscreteLaplace(noise_scale=1.0), ONE_L1, "l1"),
    ):
        stream = noise("untouched")
        with pytest.raises(ContractError):
            mechanism.release(np.array(value), query, bound(1.0, norm), stream)
        assert (stream.words(3) == noise("untouched").words(3)).all()


def test_at_scales_with_the_sensitivity_and_bad_parameters_are_refused() -> None:
    assert DiscreteGaussian().at(3.0, ONE_L2, bound(2.0, "l2")).noise_width == 6.0
    assert DiscreteLaplace().at(3.0, ONE_L1, bound(2.0, "l1")).noise_scale == 6.0
    for make in (
        lambda v: DiscreteGaussian(noise_width=v),
        lambda v: DiscreteLaplace(noise_scale=v),
    ):
        with pytest.raises(ParameterError):
            make(math.nan)
    with pytest.raises(ReleaseError, match="too wide"):
        DiscreteGaussian(noise_width=1e17).release(
            np.zeros(1), ONE_L2, bound(1.0, "l2"), noise("wide")
        )
    with pytest.raises(ReleaseError, match="too wide"):
        DiscreteLaplace(noise_scale=1e17).release(
            np.zeros(1), ONE_L1, bound(1.0, "l1"), noise("wide")
        )
    assert DiscreteGaussian().arithmetic == DiscreteLaplace().arithmetic == "exact"
