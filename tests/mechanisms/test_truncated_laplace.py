"""Truncated Laplace: bounded noise of the stated law, (epsilon, delta) in any dimension."""

import math

import numpy as np
import pytest
from scipy import stats

from dpcore.adjacency import REPLACE_ONE
from dpcore.claims.mechanisms.truncated_laplace import TruncatedLaplace, TruncatedLaplaceEvent
from dpcore.errors import ContractError, ParameterError, ReleaseError
from dpcore.event import Direction
from dpcore.query import Query

from mechanisms.mechanism_checks import bound, excess, noise

DRAWS = 200_000
REAL = Query(name="sum", shape=(DRAWS,), distance="l1")
ONE = Query(name="one", shape=(1,), distance="l1")


def support(t: float, truncation: float) -> float:
    return math.log(1 + (math.exp(t) - 1) / (2 * truncation))


@pytest.mark.parametrize(("scale", "truncation"), [(1.0, 1e-3), (0.2, 0.5), (30.0, 0.4)])
def test_noise_is_a_laplace_within_its_support(scale: float, truncation: float) -> None:
    mechanism = TruncatedLaplace(noise_scale=scale, truncation=truncation)
    released = mechanism.release(np.zeros(DRAWS), REAL, bound(1.0, "l1"), noise(f"{scale}"))
    v = support(1 / scale, truncation)
    u = released / scale
    assert np.abs(u).max() <= v * 1.003
    inside = 1 - math.exp(-v)

    def cdf(x: np.ndarray) -> np.ndarray:
        return np.clip(0.5 + np.sign(x) * 0.5 * -np.expm1(-np.abs(x)) / inside, 0, 1)

    # the grid's 0.1 to 0.2 per cent of extra noise are below what so many draws resolve
    assert stats.kstest(u, cdf).pvalue > 1e-4
    assert stats.kstest(u * 1.05, cdf).pvalue < 1e-4


@pytest.mark.parametrize("scale", [0.3, 1.0, 10.0])
@pytest.mark.parametrize("truncation", [0.4, 1e-2, 1e-6])
def test_the_exact_law_of_a_grid_release_stays_below_the_claim(
    scale: float, truncation: float
) -> None:
    """By summation over the grid, for neighbours as far apart as rounding can put them."""
    sensitivity = bound(1.0, "l1")
    mechanism = TruncatedLaplace(noise_scale=scale, truncation=truncation)
    t, steps = mechanism.steps(ONE, sensitivity)
    shift = math.floor(mechanism.grid(ONE, sensitivity).sensitivity(1.0))
    half = np.exp(-np.arange(steps) / float(t))
    distribution = np.concatenate([half[::-1], half])
    distribution /= distribution.sum()
    p, q = np.pad(distribution, (0, shift)), np.pad(distribution, (shift, 0))
    claim = mechanism.event(ONE, sensitivity)
    assert p[q == 0].sum() <= truncation * (1 + 1e-9)
    for epsilon in np.linspace(0, 1.1 / scale, 20):
        exact = np.maximum(p - math.exp(epsilon) * q, 0).sum()
        assert exact <= claim.curve.upper_at(float(epsilon), Direction.ADD) * (1 + 1e-9) + 1e-12


def test_several_coordinates_leave_the_support_no_more_often_than_claimed() -> None:
    sensitivity = bound(1.0, "l1")
    query = Query(name="pairs", shape=(DRAWS, 2), distance="l1")
    mechanism = TruncatedLaplace(noise_scale=0.8, truncation=0.1)
    one_release = Query(name="pair", shape=(2,), distance="l1")

    def statistic(value: float, name: str) -> np.ndarray:
        pairs = mechanism.release(np.full((DRAWS, 2), value), query, sensitivity, noise(name))
        limit = 0.8 * support(1 / 0.8, 0.1)
        beyond = (pairs > limit).any(axis=1).astype(float) - (pairs < 0.5 - limit).any(axis=1)
        return np.round((np.abs(pairs) - np.abs(pairs - 0.5)).sum(axis=1) + 5 * beyond, 6)

    p, q = statistic(0.5, "p"), statistic(0.0, "q")
    event = mechanism.event(one_release, sensitivity)
    assert excess(event, p, q) <= 0
    weaker = TruncatedLaplaceEvent(shift=0.4, truncation=0.01, dimension=2, adjacency=REPLACE_ONE)
    assert excess(weaker, p, q) > 0


def test_a_large_loss_per_step_does_not_overflow() -> None:
    mechanism = TruncatedLaplace(noise_scale=1e-3, truncation=1e-6)
    _, steps = mechanism.steps(ONE, bound(1.0, "l1"))
    released = mechanism.release(np.ones(1), ONE, bound(1.0, "l1"), noise("sharp"))
    assert abs(released[0] - 1) <= steps * mechanism.grid(ONE, bound(1.0, "l1")).step


def test_errors_and_parameters() -> None:
    stream = noise("untouched")
    with pytest.raises(ContractError):
        TruncatedLaplace(noise_scale=1.0, truncation=0.1).release(
            np.array([np.nan]), ONE, bound(1.0, "l1"), stream
        )
    assert (stream.words(3) == noise("untouched").words(3)).all()
    for truncation in (0.0, 0.6, math.nan):
        with pytest.raises(ParameterError, match="truncation"):
            TruncatedLaplace(truncation=truncation)
    with pytest.raises(ReleaseError, match="too wide"):
        TruncatedLaplace(noise_scale=1e20, truncation=0.1).release(
            np.zeros(1), ONE, bound(1.0, "l1"), stream
        )
    assert TruncatedLaplace(truncation=0.1).at(2.0, ONE, bound(3.0, "l1")).noise_scale == 6.0
    assert TruncatedLaplace(truncation=0.1).arithmetic == "exact"
