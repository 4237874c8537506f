"""The Laplace mechanism: the grid release is a continuous Laplace, post-processed."""

import math

import numpy as np
import pytest
from scipy import stats

from dpcore.adjacency import REPLACE_ONE
from dpcore.claims.events.laplace import LaplaceEvent
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.errors import ContractError, ParameterError, ReleaseError
from dpcore.event import Direction
from dpcore.query import Query

from mechanisms.mechanism_checks import bound, excess, noise

DRAWS = 200_000
REAL = Query(name="sum", shape=(DRAWS,), distance="l1")
ONE = Query(name="one", shape=(1,), distance="l1")


@pytest.mark.parametrize("noise_kind", ["grid", "float"])
@pytest.mark.parametrize("unit", [1.0, 0.37, 1e-9, 4e12])
def test_noise_is_a_laplace_of_the_stated_scale(noise_kind: str, unit: float) -> None:
    value = np.linspace(-3, 3, DRAWS) * unit
    mechanism = Laplace(noise_scale=1.5 * unit, noise=noise_kind)
    released = mechanism.release(value, REAL, bound(unit, "l1"), noise(f"{unit}{noise_kind}"))
    scaled = (released - value) / (1.5 * unit)
    assert stats.kstest(scaled, "laplace").pvalue > 1e-4
    assert stats.kstest(scaled * 1.03, "laplace").pvalue < 1e-4


@pytest.mark.parametrize("scale", [0.05, 0.4, 1.0, 5.0])
def test_the_exact_law_of_a_grid_release_stays_below_the_claim(scale: float) -> None:
    """By summation over the grid, for neighbours as far apart as rounding can put them."""
    mechanism, sensitivity = Laplace(noise_scale=scale), bound(1.0, "l1")
    t = float(mechanism.scale(ONE, sensitivity))
    shift = math.floor(mechanism.grid(ONE, sensitivity).sensitivity(1.0))
    claim = mechanism.event(ONE, sensitivity)
    z = np.arange(-math.ceil(30 * t), math.ceil(30 * t) + shift + 1)

    def log_distribution(at: np.ndarray) -> np.ndarray:
        return -np.where(at >= 0, at, -at - 1) / t + math.log(-math.expm1(-1 / t) / 2)

    p, loss = np.exp(log_distribution(z)), log_distribution(z) - log_distribution(z - shift)
    assert p.sum() == pytest.approx(1, abs=1e-12)
    assert loss.max() <= claim.claims.pure + 1e-12
    for epsilon in np.linspace(0, 1.05 / scale, 30):
        exact = float((p * -np.expm1(np.minimum(epsilon - loss, 0))).sum())
        assert exact <= claim.curve.upper_at(float(epsilon), Direction.REMOVE) * (1 + 1e-9) + 1e-12


def test_the_plain_discrete_laplace_would_break_the_same_claim() -> None:
    """At t = 2, shift 1: its total variation is tanh(1/4), above 1 - exp(-1/4)."""
    claim = LaplaceEvent(shift=0.5, adjacency=REPLACE_ONE)
    assert math.tanh(0.25) > claim.curve.upper_at(0.0, Direction.REMOVE) * 1.05


@pytest.mark.parametrize("noise_kind", ["grid", "float"])
def test_sampled_losses_stay_below_the_event(noise_kind: str) -> None:
    """Two coordinates that move by a half each; the loss is the statistic."""
    mechanism, sensitivity = Laplace(noise_scale=0.8, noise=noise_kind), bound(1.0, "l1")
    query = Query(name="pairs", shape=(DRAWS, 2), distance="l1")

    def losses(value: float, name: str) -> np.ndarray:
        # every row represents a release of its own, with the scale of the whole
        pairs = mechanism.release(np.full((DRAWS, 2), value), query, sensitivity, noise(name))
        # rounded: the last bits of a loss are enough to break the claim on float noise
        return np.round((np.abs(pairs) - np.abs(pairs - 0.5)).sum(axis=1), 9)

    p, q = losses(0.5, "p"), losses(0.0, "q")
    event = mechanism.event(query, sensitivity)
    assert excess(event, p, q) <= 0
    assert excess(LaplaceEvent(shift=0.6, adjacency=REPLACE_ONE), p, q) > 0


def test_low_bits_tell_inputs_apart_on_float_noise_and_not_on_the_grid() -> None:
    """As for the Gaussian: a float sum of 1 and noise is a multiple of 2^-53."""

    def attack(mechanism: Laplace, value: float) -> float:
        given = np.full(DRAWS, value)
        released = mechanism.release(given, REAL, bound(1.0, "l1"), noise(f"a{value}"))
        return float(np.mean(np.ldexp(released, 53) % 1 != 0))

    assert attack(Laplace(noise_scale=1.0, noise="float"), 1.0) == 0
    assert attack(Laplace(noise_scale=1.0, noise="float"), 0.0) > 0.2
    assert attack(Laplace(noise_scale=1.0), 1.0) == attack(Laplace(noise_scale=1.0), 0.0) == 0
    counts = []
    for value in (0.0, 1.0, 1 / 3):
        mechanism = Laplace(noise_scale=1.0)
        given = np.full(DRAWS, value)
        released = mechanism.release(given, REAL, bound(1.0, "l1"), noise(f"g{value}"))
        halves = 2 * released / mechanism.grid(REAL, bound(1.0, "l1")).step
        assert (halves % 2 == 1).all()
        counts.append(np.bincount(((halves - 1) / 2).astype(np.int64) % 16, minlength=16))
    assert stats.chi2_contingency(np.array(counts)).pvalue > 1e-4


def test_at_costs_one_over_scale_and_the_noise_grows_by_a_fifth_of_a_per_cent_at_most() -> None:
    for size in (1, 7, 10_000):
        query, sensitivity = Query(name="q", shape=(size,), distance="l1"), bound(0.7, "l1")
        mechanism = Laplace().at(4.0, query, sensitivity)
        assert 0.25 <= mechanism.event(query, sensitivity).shift <= 0.25 * (1 + 1e-15)
        step = mechanism.grid(query, sensitivity).step
        assert 1 <= float(mechanism.scale(query, sensitivity)) * step / 2.8 < 1.002


@pytest.mark.parametrize("noise_kind", ["grid", "float"])
@pytest.mark.parametrize("value", [np.array([np.nan]), np.array([-np.inf]), np.zeros((1, 2))])
def test_a_statistic_that_does_not_fit_is_an_error_and_draws_nothing(
    noise_kind: str, value: np.ndarray
) -> None:
    stream = noise("untouched")
    with pytest.raises(ContractError):
        Laplace(noise_scale=1.0, noise=noise_kind).release(value, ONE, bound(1.0, "l1"), stream)
    assert (stream.words(3) == noise("untouched").words(3)).all()


def test_parameters_out_of_range_are_refused() -> None:
    with pytest.raises(ReleaseError, match="too wide"):
        Laplace(noise_scale=1e20).release(np.zeros(1), ONE, bound(1.0, "l1"), noise("wide"))
    with pytest.raises(ParameterError, match="grid"):
        Laplace(noise_scale=1.0).event(ONE, bound(1e-310, "l1"))
    with pytest.raises(ParameterError, match="noise"):
        Laplace(noise="other")
    with pytest.raises(ParameterError, match="noise_scale"):
        Laplace(noise_scale=0.0)


def test_arithmetic_is_exact_on_the_grid_only() -> None:
    assert Laplace().arithmetic == "exact"
    assert Laplace(noise="float").arithmetic == "real"
