import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import optimize

from dpcore.errors import CertificateError
from dpcore_random_features.solvers import ball_ridge
from dpcore_random_features.solvers.ball import into_ball
from dpcore_random_features.solvers.ball_ridge import (
    BallRidge,
    distance_to_minimiser,
)

from oracles.ridge import distance, exact_ball_ridge, unit_rows


def problem(lam=1.0, radius=0.5, kappa=1.0, label_bound=1.0):
    return BallRidge(kappa=kappa, label_bound=label_bound, total_regularization=lam, radius=radius)


def labels(rng, phi, kind):
    records = phi.shape[0]
    return {
        "random": rng.uniform(-1, 1, records),
        "linear": np.clip(3 * phi @ rng.normal(size=phi.shape[1]), -1, 1),
        "equal": np.ones(records),
        "zero": np.zeros(records),
    }[kind]


CASES = [
    # records, width, Lam, radius, collinear, labels
    (1, 1, 1.0, 0.1, 0, "equal"),
    (1, 5, 2.0, 0.2, 0, "equal"),
    (30, 3, 1.0, 0.6, 0, "linear"),
    (30, 3, 0.6, 0.9, 1e-9, "linear"),  # one direction has almost no data
    (30, 3, 0.6, 0.9, 1e-9, "random"),
    (30, 4, 1e6, 1e-3, 0, "linear"),  # huge regularization
    (60, 3, 1e4, 5e-5, 0, "equal"),
    (40, 3, 300.0, 1e4, 0, "random"),  # a ball that never binds
    (5, 20, 1.0, 0.3, 0, "random"),  # dual
    (6, 24, 3.0, 0.05, 1e-8, "linear"),  # dual and collinear
    (10, 4, 1.0, 0.5, 0, "zero"),
]


@pytest.mark.parametrize("case", CASES)
def test_the_solution_is_within_the_public_tolerance_of_the_exact_minimiser(case):
    records, width, lam, radius, collinear, kind = case
    rng = np.random.default_rng(records + width)
    phi = unit_rows(rng, records, width, collinear)
    y, stated = labels(rng, phi, kind), problem(lam, radius)
    tolerance = stated.error(records, width)
    assert tolerance < 1e-6 * min(2 * radius, (1 + radius) / lam)
    found = stated.solve(phi, y, tolerance)
    assert math.fsum(found * found) <= radius * radius
    assert distance(exact_ball_ridge(phi, y, lam, radius), found) <= tolerance


def test_duplicates_zero_rows_and_no_rows_are_solved():
    rng = np.random.default_rng(1)
    phi = np.vstack([np.repeat(unit_rows(rng, 3, 4), 8, axis=0), np.zeros((5, 4))])
    y, stated = rng.uniform(-1, 1, len(phi)), problem(0.7, 0.4)
    tolerance = stated.error(len(phi), 4)
    found = stated.solve(phi, y, tolerance)
    assert distance(exact_ball_ridge(phi, y, 0.7, 0.4), found) <= tolerance
    assert np.array_equal(stated.solve(phi[:0], y[:0], tolerance), np.zeros(4))


def test_it_agrees_with_a_general_constrained_optimiser():
    rng = np.random.default_rng(2)
    phi = unit_rows(rng, 50, 3)
    y, lam, radius = labels(rng, phi, "linear"), 2.0, 0.5
    found = problem(lam, radius).solve(phi, y, problem(lam, radius).error(50, 3))
    general = optimize.minimize(
        lambda c: np.sum((phi @ c - y) ** 2) + lam * c @ c,
        np.zeros(3),
        constraints={"type": "ineq", "fun": lambda c: radius**2 - c @ c},
        tol=1e-12,
    )
    assert np.linalg.norm(found - general.x) < 1e-5
    assert np.linalg.norm(found) == pytest.approx(radius, rel=1e-12)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    shift=st.one_of(st.just(0.0), st.floats(1e-9, 100)),
    off=st.sampled_from([0.0, 1e-15, 1e-12, 1e-6, 0.1, 3.0]),
    exact_start=st.booleans(),
)
def test_no_point_and_no_multiplier_gets_a_certificate_that_is_too_small(
    seed, shift, off, exact_start
):
    rng = np.random.default_rng(seed)
    phi = unit_rows(rng, int(rng.integers(1, 8)), 3, rng.choice([0.0, 1e-7]))
    y = labels(rng, phi, rng.choice(["random", "linear", "equal"]))
    lam, radius = 10 ** rng.uniform(-6, 2), 10 ** rng.uniform(-2, 1)
    exact = exact_ball_ridge(phi, y, lam, radius)
    start = np.array([float(entry) for entry in exact]) if exact_start else rng.normal(size=3)
    point = start + off * rng.normal(size=3)
    if rng.random() < 0.5 and shift > 0:
        # the multiplier that explains this point best
        gradient = phi.T @ (phi @ point - y) + lam * point
        shift = max(0.0, float(-gradient @ point / (point @ point)))
    certified = distance_to_minimiser(problem(lam, radius), phi, y, point, shift)
    assert distance(exact, point) <= certified


@pytest.mark.parametrize("seed", range(60))
def test_a_wrong_multiplier_that_explains_its_point_gets_no_small_certificate(seed):
    # c(nu) off the sphere: no residual at all, but the sphere is some way off
    rng = np.random.default_rng(seed)
    phi = unit_rows(rng, 6, 2) * np.array([1.0, 1e-3])
    y, lam = rng.choice([-1.0, 1.0], 6), 1e-6
    shift = 10 ** rng.uniform(-6, 0)
    point = np.linalg.solve(phi.T @ phi + (lam + shift) * np.eye(2), phi.T @ y)
    radius = np.linalg.norm(point) * (1 + 10 ** rng.uniform(-8, -1) * rng.choice([-1, 1]))
    certified = distance_to_minimiser(problem(lam, radius), phi, y, point, shift)
    assert distance(exact_ball_ridge(phi, y, lam, radius), point) <= certified


def test_a_residual_that_vanishes_by_rounding_gets_no_zero_certificate():
    rng = np.random.default_rng(0)
    for _ in range(400):
        phi, y = rng.uniform(0.5, 1, (1, 1)), rng.uniform(0.5, 1, 1)
        lam = rng.uniform(0.5, 1)
        exact = exact_ball_ridge(phi, y, lam, 100.0)
        point = np.array([float(exact[0]) * (1 + int(rng.integers(-3, 4)) * 2.0**-53)])
        certified = distance_to_minimiser(problem(lam, 100.0), phi, y, point, 0.0)
        assert distance(exact, point) <= certified


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    lam=st.floats(-3, 8),
    radius=st.floats(-6, 3),
    scale=st.floats(-3, 3),
)
def test_whenever_a_tolerance_is_stated_it_is_reached(seed, lam, radius, scale):
    rng = np.random.default_rng(seed)
    records, width = int(rng.integers(1, 60)), int(rng.integers(1, 40))
    phi = unit_rows(rng, records, width, rng.choice([0.0, 1e-8])) * 10**scale
    y = 10**scale * labels(rng, phi, rng.choice(["random", "linear", "equal"]))
    stated = problem(10**lam, 10**radius, kappa=10**scale, label_bound=10**scale)
    tolerance = stated.error(records, width)
    found = stated.solve(phi, y, tolerance)  # raises if it is not reached
    assert np.linalg.norm(found) <= stated.radius
    assert math.isinf(tolerance) or tolerance > 0


@pytest.mark.parametrize("lam", [1e-300, 1e-30, 1e-12, 1e300])
@pytest.mark.parametrize("radius", [1e-300, 1e-3, 1e300])
def test_where_none_is_stated_the_best_effort_is_a_point_of_the_ball(lam, radius):
    rng = np.random.default_rng(3)
    for records, width in [(20, 3), (3, 20), (1, 1)]:
        phi, y = unit_rows(rng, records, width, 1e-9), rng.uniform(-1, 1, records)
        found = problem(lam, radius).solve(phi, y, math.inf)
        assert np.isfinite(found).all()
        assert np.linalg.norm(found) <= radius


def test_ill_conditioned_parameters_have_no_tolerance():
    assert math.isinf(problem(1e-12, 1.0).error(1000, 50))
    assert math.isinf(problem(1e-300, 1.0).error(1, 1))
    assert math.isinf(problem(math.nan, 1.0).error(1, 1))


def test_an_error_above_the_radius_is_no_tolerance():
    few = [problem(1e-3, 10.0**-k, label_bound=1e3).error(10**5, 60) for k in range(9)]
    assert math.isinf(few[-1])
    assert all(math.isinf(e) or e <= 1.01 * 10.0**-k for k, e in enumerate(few))


def test_a_tolerance_grows_with_the_number_of_records_it_must_hold_for():
    errors = [problem(10.0).error(n, 60) for n in (1, 20, 29, 30, 31, 10**3, 10**6)]
    assert errors == sorted(errors)


def test_what_cannot_be_certified_is_not_returned(monkeypatch):
    rng = np.random.default_rng(4)
    phi, y = unit_rows(rng, 20, 3), np.ones(20)
    stated = problem(1.0, 0.1)
    tolerance = stated.error(20, 3)
    wrong = (np.full(3, 0.1 / math.sqrt(3)), 1.0)
    monkeypatch.setattr(ball_ridge, "_search", lambda *_: wrong)
    with pytest.raises(CertificateError) as caught:
        stated.solve(phi, y, tolerance)
    assert "0.1" not in str(caught.value)


@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=6),
    st.floats(0, exclude_min=True, allow_infinity=False),
)
def test_projection_lands_in_the_ball_whatever_comes(entries, radius):
    from fractions import Fraction

    with np.errstate(all="ignore"):
        point = into_ball(np.array(entries), radius)
    assert sum(Fraction(float(entry)) ** 2 for entry in point) <= Fraction(radius) ** 2


def test_projection_is_the_nearest_point_and_leaves_the_inside_alone():
    inside = np.array([0.3, -0.4])
    assert into_ball(inside, 0.6) is inside
    moved = into_ball(np.array([3.0, 4.0]), 2.0)
    assert moved == pytest.approx([1.2, 1.6], rel=1e-14)
