"""The last look at a fit of numbers: what it mends, how it is shrunk, and what its noise moves."""

import numpy as np
import pytest

from dpcore import Domain, Public, PublicRandomness, Range
from dpcore_tables.dictionary import INTERCEPT
from dpcore_tables.plan import Plan
from dpcore_tables.steps.calibration import (
    Calibration,
    clip_of,
    curvature_of,
    directions,
    size_of,
)

RECORDS, CUTOFF = 2000.0, 0.1


def mended(noise=1e-6, gap=(0.02, 0.3)):
    """Of a fit that is too low by the first part of the gap, and too small by the second."""
    fitted = 0.08 * np.random.default_rng(0).standard_normal(int(RECORDS))
    chi = directions(fitted, CUTOFF, 2)
    residuals = -gap[0] - gap[1] * CUTOFF * np.clip(fitted / CUTOFF, -1, 1)
    return Calibration.of(
        chi @ residuals,
        noise,
        chi @ chi.T,
        size=0.05,
        sigma=1e-4,
        deviation=0.1,
        cutoff=CUTOFF,
    )


def test_a_fit_that_is_too_low_and_too_small_is_mended():
    last = mended()
    assert last.shift == pytest.approx(0.02, rel=1e-3)
    assert last.factor == pytest.approx(1.3, rel=1e-3)
    assert np.all(np.linalg.eigvalsh(last.deviation) >= 0)


def test_noise_leaves_the_fit_as_it_is():
    last = mended(noise=1e5)
    assert (last.shift, last.factor) == pytest.approx((0.0, 1.0), abs=1e-4)


def test_the_spread_is_what_noise_moves_shift_and_factor_by():
    """2000 draws: a deviation errs by 2 %."""
    noise, rng = 2.0, np.random.default_rng(1)
    curvature = RECORDS * np.array([[0.5, 0.05], [0.05, 0.2]])
    facts = {"size": 0.05, "sigma": 0.05, "deviation": 0.1, "cutoff": CUTOFF}
    draws = [
        Calibration.of(noise * rng.standard_normal(2), noise, curvature, **facts)
        for _ in range(2000)
    ]
    moved = np.cov([[draw.shift, draw.factor] for draw in draws], rowvar=False)
    assert np.diag(moved) == pytest.approx(np.diag(draws[0].deviation), rel=0.15)


def test_one_direction_shifts_and_never_multiplies():
    residuals = np.full(int(RECORDS), -0.02)
    chi = directions(residuals, CUTOFF, 1)
    last = Calibration.of(
        chi @ residuals, 1e-6, chi @ chi.T, size=0.05, sigma=1e-4, deviation=0.1, cutoff=CUTOFF
    )
    assert last.shift == pytest.approx(0.02, rel=1e-3)
    assert last.factor == 1.0


def test_directions_are_at_most_one_long():
    for width in (1, 2):
        lengths = np.linalg.norm(directions(np.linspace(-9, 9, 50), CUTOFF, width), axis=0)
        assert lengths.max() == pytest.approx(1.0, abs=1e-12)


def test_a_noisy_gram_matrix_is_replaced_by_what_is_usual():
    exact = RECORDS * np.array([[0.5, 0.05], [0.05, 0.15]])
    assert curvature_of(exact, 1e-9, RECORDS) == pytest.approx(exact)
    usual = curvature_of(exact, 1e9, RECORDS)
    assert usual == pytest.approx(RECORDS * np.diag([0.5, 0.2]), abs=1e-6)
    wild = curvature_of(-1e6 * np.ones((2, 2)), 1.0, RECORDS)
    assert np.linalg.eigvalsh(wild).min() > 0


def test_moved_weights_have_the_noise_of_both_changes():
    last = Calibration(shift=0.1, factor=2.0, deviation=np.array([[4.0, 1.0], [1.0, 9.0]]))
    weights = np.array([[7.0], [3.0], [-1.0]])
    moved = last.moved(np.eye(3), weights)
    assert moved[0, 0] == pytest.approx(1 + 4 / INTERCEPT**2)
    assert moved[1, 1] == pytest.approx(4 + 9 * 9)
    assert moved[1, 2] == pytest.approx(-3 * 9)
    assert last.weights(weights)[:, 0].tolist() == [7.0, 6.0, -2.0]


def test_clips_are_wide_and_grow_with_the_signal():
    size = size_of(0.01, 0.1, 2)
    assert size == 0.05
    assert clip_of(400.0, size) == pytest.approx(4 * size)
    assert clip_of(1e9, size) == 1.0


@pytest.mark.parametrize(
    ("mu", "edition", "width"), [(0.2, 2, 0), (0.4, 2, 1), (2.0, 2, 2), (2.0, 1, 0)]
)
def test_the_signal_says_along_how_many_directions(mu, edition, width):
    facts = Domain(columns={"x": Range(-1, 1)}, target="y", labels=Range(0, 1), exact=1000)
    plan = Plan.of(
        Public(domain=facts, randomness=PublicRandomness(1), mu=mu), None, edition=edition
    )
    assert plan.last_directions == width
    assert ("slope.sums" in plan.script()) is (width > 0)
    assert ("slope.directions" in plan.script()) is (width > 1)
    assert sum(plan.shares().values()) == pytest.approx(1.0)
