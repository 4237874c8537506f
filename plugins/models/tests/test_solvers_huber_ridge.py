import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcore.errors import CertificateError
from dpcore_models.solvers import huber_ridge
from dpcore_models.solvers.huber_ridge import (
    HuberRidge,
    distance_to_minimiser,
)

from oracles.ridge import distance, exact_huber_ridge, huber_ridge_to_few_digits, unit_rows


def problem(lam=1.0, clip=0.3, kappa=1.0, label_bound=1.0):
    return HuberRidge(kappa=kappa, label_bound=label_bound, total_regularization=lam, clip=clip)


CASES = [
    # records, width, Lam, clip, collinear
    (1, 1, 1.0, 0.3, 0),
    (1, 5, 2.0, 0.3, 0),
    (40, 3, 1.0, 0.3, 0),
    (40, 3, 1e-6, 0.3, 1e-7),  # hardly any curvature
    (40, 3, 1e6, 0.3, 0),
    (40, 3, 0.1, 1e-6, 0),  # nearly absolute deviations
    (40, 3, 0.1, 100.0, 0),  # ridge
    (5, 20, 0.01, 0.2, 0),  # more features than records
]


@pytest.mark.parametrize("case", CASES)
def test_the_solution_is_within_the_public_tolerance_of_the_exact_minimiser(case):
    check(*case)


@pytest.mark.parametrize("case", [case for case in CASES if case[2] >= 0.1])
def test_gradient_steps_alone_reach_the_tolerance(case, monkeypatch):
    monkeypatch.setattr(huber_ridge, "_NEWTON_STEPS", 0)
    check(*case)


def check(records, width, lam, clip, collinear):
    rng = np.random.default_rng(records + width)
    phi = unit_rows(rng, records, width, collinear)
    y, stated = rng.uniform(-1, 1, records), problem(lam, clip)
    tolerance = stated.error(records, width)
    assert tolerance < 1e-3 * clip / lam
    found = stated.solve(phi, y, tolerance)
    assert distance(exact_huber_ridge(phi, y, lam, clip, found), found) <= tolerance


def test_duplicates_zero_rows_and_no_rows_are_solved():
    rng = np.random.default_rng(1)
    phi = np.vstack([np.repeat(unit_rows(rng, 3, 4), 8, axis=0), np.zeros((5, 4))])
    y, stated = rng.uniform(-1, 1, len(phi)), problem(0.7, 0.4)
    tolerance = stated.error(len(phi), 4)
    found = stated.solve(phi, y, tolerance)
    assert distance(exact_huber_ridge(phi, y, 0.7, 0.4, found), found) <= tolerance
    assert np.array_equal(stated.solve(phi[:0], y[:0], tolerance), np.zeros(4))


def test_it_agrees_with_a_general_optimiser():
    rng = np.random.default_rng(2)
    phi, y = unit_rows(rng, 60, 4), rng.uniform(-1, 1, 60)
    stated = problem(0.5, 0.4)
    found = stated.solve(phi, y, stated.error(60, 4))
    assert np.linalg.norm(found - huber_ridge_to_few_digits(phi, y, 0.5, 0.4)) < 1e-6


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 10**6), off=st.sampled_from([0.0, 1e-15, 1e-9, 0.1, 10.0]))
def test_no_point_gets_a_certificate_that_is_too_small(seed, off):
    rng = np.random.default_rng(seed)
    records = int(rng.integers(1, 9))
    phi = unit_rows(rng, records, 3, rng.choice([0.0, 1e-7]))
    y = rng.uniform(-1, 1, records)
    lam, clip = 10 ** rng.uniform(-4, 2), 10 ** rng.uniform(-3, 1)
    stated = problem(lam, clip)
    near = stated.solve(phi, y, stated.error(records, 3))
    exact = exact_huber_ridge(phi, y, lam, clip, near)
    point = np.array([float(entry) for entry in exact]) + off * rng.normal(size=3)
    assert distance(exact, point) <= distance_to_minimiser(stated, phi, y, point)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6), lam=st.floats(-6, 8), clip=st.floats(-6, 3), scale=st.floats(-3, 3)
)
def test_whenever_a_tolerance_is_stated_it_is_reached(seed, lam, clip, scale):
    rng = np.random.default_rng(seed)
    records, width = int(rng.integers(1, 60)), int(rng.integers(1, 40))
    phi = unit_rows(rng, records, width, rng.choice([0.0, 1e-8])) * 10**scale
    stated = problem(10**lam, 10**clip, kappa=10**scale, label_bound=10**scale)
    tolerance = stated.error(records, width)
    if math.isinf(tolerance):
        return
    y = 10**scale * rng.uniform(-1, 1, records)
    found = stated.solve(phi, y, tolerance)
    assert distance_to_minimiser(stated, phi, y, found) <= tolerance


def test_ill_conditioned_parameters_have_no_tolerance():
    assert math.isinf(problem(1e-30, 1.0).error(1000, 50))
    assert math.isinf(problem(math.nan, 1.0).error(1, 1))
    assert math.isinf(problem(1.0, 1e-300).error(1, 1))


def test_what_is_not_finite_is_not_certified():
    stated = problem()
    with pytest.raises(CertificateError):
        stated.solve(np.full((3, 2), np.nan), np.ones(3), 1e-6)
