"""Noise of density exp(-||b||/scale): length, direction, domination and refusals."""

import math
import tracemalloc

import numpy as np
import pytest
from scipy import stats

from dpcore.adjacency import REPLACE_ONE
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.mechanisms.l2_gamma import L2Gamma, L2GammaEvent
from dpcore.claims.mechanisms.noise.continuous import direction, gamma
from dpcore.errors import ContractError, ParameterError, ReleaseError
from dpcore.event import Direction
from dpcore.query import Query

from mechanisms.mechanism_checks import bound, excess, noise, samples

REMOVE = Direction.REMOVE
THREE = Query(name="v", shape=(3,), distance="l2")


@pytest.mark.parametrize("shape", [0.5, 1.0, 2.3, 100.0, 1e6])
def test_gamma_draws_have_their_law(shape: float) -> None:
    draws = gamma(np.full(50_000, shape), noise(f"gamma {shape}"))
    assert stats.kstest(draws, stats.gamma(shape).cdf).pvalue > 1e-4
    wrong = stats.gamma(shape + 0.05 * math.sqrt(shape)).cdf
    assert stats.kstest(draws, wrong).pvalue < 1e-4


def test_huge_gamma_shapes_keep_their_digits() -> None:
    draws = gamma(np.full(50_000, 1e13), noise("huge"))
    assert stats.kstest((draws - 1e13) / math.sqrt(1e13), "norm").pvalue > 1e-4
    with pytest.raises(ValueError, match="shapes"):
        gamma(np.array([0.0]), noise("bad"))


def test_directions_are_uniform() -> None:
    stream = noise("direction")
    points = np.array([direction(3, stream) for _ in range(20_000)])
    assert np.allclose(np.linalg.norm(points, axis=1), 1)
    for column in points.T:  # on the sphere in three dimensions, Archimedes: uniform
        assert stats.kstest(column, "uniform", args=(-1, 2)).pvalue > 1e-4
    assert set(direction(1, stream)) <= {-1.0, 1.0}


@pytest.mark.parametrize("dimension", [1, 2, 50])
def test_lengths_are_gamma(dimension: int) -> None:
    query = Query(name="v", shape=(dimension,), distance="l2")
    lengths = samples(
        L2Gamma(noise_scale=0.7),
        query,
        bound(1.0, "l2"),
        np.zeros(dimension),
        lambda b: float(np.linalg.norm(b)),
        10_000,
        f"length {dimension}",
    )
    assert stats.kstest(lengths / 0.7, stats.gamma(dimension).cdf).pvalue > 1e-4
    assert stats.kstest(lengths / 0.7, stats.gamma(dimension + 0.3).cdf).pvalue < (
        1e-4 if dimension < 50 else 1
    )


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [1, 3])
def test_sampled_losses_stay_below_the_event(dimension: int) -> None:
    query = Query(name="v", shape=(dimension,), distance="l2")
    mechanism, sensitivity = L2Gamma(noise_scale=0.5), bound(1.0, "l2")
    shift = np.zeros(dimension)
    shift[0] = 1.0

    def loss(b: np.ndarray) -> float:
        return round(float(np.linalg.norm(b) - np.linalg.norm(b - shift)) / 0.5, 6)

    p = samples(mechanism, query, sensitivity, shift, loss, 20_000, "p")
    q = samples(mechanism, query, sensitivity, 0 * shift, loss, 20_000, "q")
    event = mechanism.event(query, sensitivity)
    assert isinstance(event, LaplaceEvent if dimension == 1 else L2GammaEvent)
    assert excess(event, p, q) <= 0
    half = L2GammaEvent(epsilon=1.2, dimension=3, adjacency=REPLACE_ONE)
    assert excess(half, p, q) > 0


def test_complex_statistics_have_twice_the_dimension() -> None:
    query = Query(name="c", shape=(2,), distance="l2", field="complex")
    event = L2Gamma(noise_scale=1.0).event(query, bound(1.0, "l2"))
    assert isinstance(event, L2GammaEvent)
    assert event.dimension == 4
    released = L2Gamma(noise_scale=1.0).release(np.zeros(2), query, bound(1.0, "l2"), noise("c"))
    assert released.dtype == np.complex128
    assert (released.imag != 0).all()


def test_errors_and_parameters() -> None:
    stream = noise("untouched")
    with pytest.raises(ContractError):
        L2Gamma(noise_scale=1.0).release(np.full(3, np.inf), THREE, bound(1.0, "l2"), stream)
    assert (stream.words(3) == noise("untouched").words(3)).all()
    with pytest.raises(ReleaseError, match="overflows"):
        L2Gamma(noise_scale=1e308).release(np.zeros(3), THREE, bound(1.0, "l2"), noise("over"))
    with pytest.raises(ParameterError, match="noise_scale"):
        L2Gamma(noise_scale=-1.0)
    scaled = L2Gamma().at(2.0, THREE, bound(5.0, "l2"))
    assert scaled.noise_scale == pytest.approx(10 / math.sqrt(3))
    assert scaled.arithmetic == "real"


def test_curves_of_many_events_keep_a_few_tables() -> None:
    """A search for noise keeps every event that it asks: 560 MB were kept of these."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        scales = [1 + k / 60 for k in range(60)]
        events = [L2GammaEvent(epsilon=e, dimension=50, adjacency=REPLACE_ONE) for e in scales]
        for event in events:
            assert 0 < event.curve.lower_at(0.1, REMOVE) <= event.curve.upper_at(0.1, REMOVE)
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert kept < 120e6
