"""The Gaussian mechanism: the grid release is the claimed law, and says nothing in its low bits."""

import math

import numpy as np
import pytest
from scipy import stats

from dpcore.adjacency import REPLACE_ONE
from dpcore.claims.events.gaussian import GaussianEvent
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.errors import ContractError, ParameterError, ReleaseError
from dpcore.event import Direction
from dpcore.query import Query

from mechanisms.mechanism_checks import bound, excess, noise

DRAWS = 200_000
REAL = Query(name="sum", shape=(DRAWS,), distance="l2")
ONE = Query(name="one", shape=(1,), distance="l2")


@pytest.mark.parametrize("noise_kind", ["grid", "float"])
@pytest.mark.parametrize("unit", [1.0, 0.37, 1e-9, 4e12])
def test_noise_is_a_gaussian_of_the_stated_width(noise_kind: str, unit: float) -> None:
    mechanism = Gaussian(noise_multiplier=1.5, noise=noise_kind)
    value = np.linspace(-3, 3, DRAWS) * unit
    released = mechanism.release(value, REAL, bound(unit, "l2"), noise(f"{unit}{noise_kind}"))
    scaled = (released - value) / (1.5 * unit)
    assert stats.kstest(scaled, "norm").pvalue > 1e-4
    assert stats.kstest(scaled * 1.02, "norm").pvalue < 1e-4
    assert np.isfinite(released).all()


def test_complex_statistics_get_noise_on_both_coordinates() -> None:
    query = Query(name="c", shape=(DRAWS,), distance="l2", field="complex")
    released = Gaussian(noise_multiplier=2.0).release(
        np.full(DRAWS, 1 - 2j), query, bound(3.0, "l2"), noise("complex")
    )
    assert released.dtype == np.complex128
    real, imaginary = (released.real - 1) / 6, (released.imag + 2) / 6
    assert stats.kstest(real, "norm").pvalue > 1e-4
    assert stats.kstest(imaginary, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(real, imaginary)[0, 1]) < 5 / math.sqrt(DRAWS)


def low_bits_attack(mechanism: Gaussian, value: float) -> float:
    """How often a release is no multiple of 2^-53 (Mironov 2012).

    A float sum of 1 and noise is always such a multiple, as 1 or the noise has no lower bits; noise
    around 0 mostly is not. The attack needs no knowledge but the mechanism.
    """
    released = mechanism.release(np.full(DRAWS, value), REAL, bound(1.0, "l2"), noise(f"{value}"))
    return float(np.mean(np.ldexp(released, 53) % 1 != 0))


def test_low_bits_tell_two_inputs_apart_on_float_noise() -> None:
    mechanism = Gaussian(noise_multiplier=1.0, noise="float")
    seen, never = low_bits_attack(mechanism, 0.0), low_bits_attack(mechanism, 1.0)
    assert never == 0.0
    assert seen > 0.2
    # so the event has probability 0 under one input, and under the other far more than delta:
    claim = mechanism.event(REAL, bound(1.0, "l2"))
    assert claim.curve.upper_at(10.0, Direction.REMOVE) < 1e-20 < seen


def test_low_bits_say_nothing_on_the_default_release() -> None:
    mechanism = Gaussian(noise_multiplier=1.0)
    grid = mechanism.grid(REAL, bound(1.0, "l2"))
    last = []
    for value in (0.0, 1.0, 1 / 3):
        assert low_bits_attack(mechanism, value) == 0.0
        released = mechanism.release(
            np.full(DRAWS, value), REAL, bound(1.0, "l2"), noise(f"bits {value}")
        )
        steps = released / grid.step
        assert (steps == np.rint(steps)).all()  # nothing below the grid
        last.append(np.bincount(steps.astype(np.int64) % 16, minlength=16))
    assert stats.chi2_contingency(np.array(last)).pvalue > 1e-4  # and the grid's own low bits


def hockey_stick(width: float, shift: int, epsilon: float) -> float:
    """Of the discrete Gaussian against itself moved by `shift`, by summation."""
    z = np.arange(-math.ceil(14 * width), math.ceil(14 * width) + 1)
    p = np.exp(-0.5 * (z / width) ** 2)
    loss = ((z - shift) ** 2 - z**2) / (2 * width**2)
    return float((p * -np.expm1(np.minimum(epsilon - loss, 0))).sum() / p.sum())


@pytest.mark.parametrize("multiplier", [0.002, 0.01, 0.1, 1.0, 5.0])
def test_the_exact_law_of_a_grid_release_stays_below_the_claim(multiplier: float) -> None:
    """T13 by brute force, for neighbours as far apart as rounding can put them."""
    mechanism = Gaussian(noise_multiplier=multiplier)
    sensitivity = bound(1.0, "l2")
    width = mechanism.width(ONE, sensitivity)
    shift = math.floor(mechanism.grid(ONE, sensitivity).sensitivity(1.0))
    claim = mechanism.event(ONE, sensitivity)
    for epsilon in np.linspace(0, 1.5 * (1 / multiplier) ** 2, 25):
        exact = hockey_stick(width, shift, float(epsilon))
        assert exact <= claim.curve.upper_at(float(epsilon), Direction.REMOVE) * (1 + 1e-9) + 1e-13


def test_without_the_correction_the_same_check_fails() -> None:
    """A discrete Gaussian of width s is not a Gaussian of std s: near s = 3 it is worse."""
    naive = GaussianEvent(mu=1.0, adjacency=REPLACE_ONE)
    worst = max(
        hockey_stick(3.0, 3, float(e)) / naive.curve.upper_at(float(e), Direction.REMOVE)
        for e in np.linspace(0, 3, 200)
    )
    assert worst > 1.01


@pytest.mark.parametrize("noise_kind", ["grid", "float"])
def test_sampled_losses_stay_below_the_event(noise_kind: str) -> None:
    mechanism = Gaussian(noise_multiplier=0.8, noise=noise_kind)
    sensitivity = bound(1.0, "l2")
    p = mechanism.release(np.ones(DRAWS), REAL, sensitivity, noise("p"))
    q = mechanism.release(np.zeros(DRAWS), REAL, sensitivity, noise("q"))
    event = mechanism.event(ONE, sensitivity)
    assert excess(event, p, q) <= 0
    assert excess(GaussianEvent(mu=1.0, adjacency=REPLACE_ONE), p, q) > 0  # 1.25 is the truth


def test_the_event_is_one_over_the_multiplier_whatever_the_noise_and_shape() -> None:
    for kind in ("grid", "float"):
        for size in (1, 1000):
            query = Query(name="q", shape=(size,), distance="l2")
            event = Gaussian(noise_multiplier=4.0, noise=kind).event(query, bound(2.0, "l2"))
            assert 0.25 <= event.mu <= 0.25 * (1 + 1e-15)


def test_at_sets_mu_to_one_over_scale() -> None:
    mechanism = Gaussian().at(7.0, ONE, bound(2.0, "l2"))
    assert mechanism.noise_multiplier == 7.0
    assert mechanism.noise == "grid"
    assert mechanism.noise_std(bound(2.0, "l2")) == 14.0


def test_the_grid_costs_at_most_two_tenths_of_a_per_cent_of_noise() -> None:
    for size in (1, 3, 10_000, 10**6):
        query = Query(name="q", shape=(size,), distance="l2")
        for unit in (0.9, 1.0, 7e-5):
            mechanism = Gaussian(noise_multiplier=0.5)
            std = (
                mechanism.width(query, bound(unit, "l2"))
                * mechanism.grid(query, bound(unit, "l2")).step
            )
            assert 1 < std / (0.5 * unit) < 1.002


def test_arithmetic_is_exact_on_the_grid_only() -> None:
    assert Gaussian().arithmetic == "exact"
    assert Gaussian(noise="float").arithmetic == "real"
    with pytest.raises(ParameterError, match="noise"):
        Gaussian(noise="fast")


@pytest.mark.parametrize("noise_kind", ["grid", "float"])
@pytest.mark.parametrize(
    "value",
    [
        np.array([np.nan]),
        np.array([np.inf]),
        np.zeros(2),
        np.zeros((1, 1)),
        np.zeros(0),
        np.array([1j]),
        np.array(["a"]),
        np.array([None]),
        np.array([2**60]),
        np.array([-(2**60)]),
        np.array([2**64 - 1], dtype=np.uint64),
    ],
)
def test_a_statistic_that_does_not_fit_is_an_error_and_draws_nothing(
    noise_kind: str, value: np.ndarray
) -> None:
    stream = noise("untouched")
    with pytest.raises(ContractError):
        Gaussian(noise_multiplier=1.0, noise=noise_kind).release(
            value, ONE, bound(1.0, "l2"), stream
        )
    assert (stream.words(3) == noise("untouched").words(3)).all()


def test_the_message_of_a_refusal_shows_no_value() -> None:
    with pytest.raises(ContractError) as caught:
        Gaussian(noise_multiplier=1.0).release(
            np.array([123454321.5, np.nan]),
            Query(name="q", shape=(2,), distance="l2"),
            bound(1.0, "l2"),
            noise("m"),
        )
    assert "123454321" not in str(caught.value)


def test_other_layouts_and_dtypes_give_the_same_release() -> None:
    query = Query(name="q", shape=(3, 4), distance="l2")
    base = np.arange(12.0).reshape(3, 4)
    strided = np.arange(24.0).reshape(3, 8)[:, ::2] / 2 + np.array([[0], [0], [0]])
    strided = np.lib.stride_tricks.as_strided(np.repeat(base, 2, axis=1).copy(), (3, 4), (64, 16))
    releases = [
        Gaussian(noise_multiplier=1.0).release(value, query, bound(1.0, "l2"), noise("layout"))
        for value in (
            base,
            np.asfortranarray(base),
            strided,
            base.astype(np.int32),
            base.astype(np.float32),
        )
    ]
    for released in releases:
        assert released.shape == (3, 4)
        assert (released == releases[0]).all()


def test_huge_values_are_clamped_and_stay_finite() -> None:
    released = Gaussian(noise_multiplier=1.0).release(
        np.array([1e308]), ONE, bound(1.0, "l2"), noise("huge")
    )
    step = Gaussian().grid(ONE, bound(1.0, "l2")).step
    assert released[0] == pytest.approx(2.0**62 * step)


def test_noise_too_wide_for_the_grid_is_an_error() -> None:
    with pytest.raises(ReleaseError, match="too wide"):
        Gaussian(noise_multiplier=1e20).release(np.zeros(1), ONE, bound(1.0, "l2"), noise("wide"))


@pytest.mark.parametrize("unit", [1e-320, 1e-300, 1e300])
def test_a_sensitivity_out_of_the_grids_range_is_refused_in_the_plan(unit: float) -> None:
    with pytest.raises(ParameterError, match="grid"):
        Gaussian(noise_multiplier=1.0).event(ONE, bound(unit, "l2"))


@pytest.mark.parametrize("unit", [0.0, -1.0, float("nan"), float("inf")])
def test_a_zero_or_undefined_sensitivity_does_not_exist(unit: float) -> None:
    with pytest.raises(ParameterError):
        bound(unit, "l2")


@pytest.mark.parametrize("multiplier", [0.0, -1.0, float("nan"), float("inf"), True, "1"])
def test_a_multiplier_that_is_no_positive_number_is_refused(multiplier: object) -> None:
    with pytest.raises(ParameterError, match="noise_multiplier"):
        Gaussian(noise_multiplier=multiplier)
