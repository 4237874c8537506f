"""Minimisers by exact sums: rounded records within their limits, and the errors that are stated."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcore import Records
from dpcore.errors import CertificateError
from dpcore.models.features.identity import Identity
from dpcore_models.solvers import huber_folds
from dpcore_models.solvers.huber_folds import FoldedHuber
from dpcore_models.solvers.huber_ridge import HuberRidge
from dpcore_models.solvers.short_rows import FoldedRows, ShortRows
from dpcore_random_features.solvers.ball_ridge import BallRidge
from dpcore_random_features.solvers.ridge import solve_summed, summed_ridge_error

from oracles.definitions import ridge
from oracles.ridge import distance, exact_ball_ridge, exact_huber_ridge, unit_rows

SAME = Identity().draw(None, None)


def folded(phi, y, kappa=1.0, label_bound=1.0):
    units = ShortRows(kappa=kappa, label_bound=label_bound, width=phi.shape[1])
    records = Records(features=phi, labels=y)
    return FoldedRows(records=records, features=SAME, units=units, kept=True)


def rounded(rows):
    """The records that the minimiser is of, as floats: exactly."""
    whole = rows.units.integers(rows.records.features, rows.records.labels)
    return (
        np.ldexp(whole.rows, rows.units.row_exponent),
        np.ldexp(whole.labels, rows.units.label_exponent),
    )


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    width=st.sampled_from([1, 2, 7, 60]),
    kappa=st.sampled_from([1.0, 0.7, 2.0, 1.0000001, 3e-5, 1e9]),
)
def test_rounded_records_keep_every_limit_and_are_near(seed, width, kappa):
    rng = np.random.default_rng(seed)
    phi = unit_rows(rng, 9, width) * kappa * (1 - 2.0**-50)
    phi[0], phi[1] = 0.0, phi[1] * rng.uniform()
    bound = 3.0 * kappa
    y = rng.choice([-bound, bound, 0.1 * bound], 9)
    near, labels = rounded(folded(phi, y, kappa, bound))
    for row in near:
        assert sum(Fraction(v) ** 2 for v in row.tolist()) <= Fraction(kappa) ** 2
    assert max(abs(Fraction(v)) for v in labels.tolist()) <= Fraction(bound)
    assert np.abs(labels - y).max() <= 2.0**-19 * bound
    assert np.linalg.norm(near - phi, axis=1).max() <= 2 * math.sqrt(width) * 2.0**-20 * kappa


def test_rows_that_are_too_long_or_no_numbers_count_as_zeros():
    phi = np.array([[1.0, 1.0], [np.nan, 0.0], [np.inf, 0.0], [1e308, 1e308], [0.5, 0.5]])
    y = np.array([1.0, 1.0, 1.0, 1.0, np.nan])
    near, labels = rounded(folded(phi, y))
    assert not near.any()
    assert not labels.any()


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_sums_are_those_of_the_definition_rounded_once(count):
    rng = np.random.default_rng(count)
    some = unit_rows(rng, count, 3) if count else np.zeros((0, 3))
    rows = folded(some, rng.uniform(-1, 1, count))
    phi, y = rounded(rows)
    found = rows.sums()
    exact = [[Fraction(v) for v in row] for row in phi.tolist()]
    labels = [Fraction(v) for v in y.tolist()]
    for j in range(3):
        assert found.moments[j] == float(sum(r[j] * v for r, v in zip(exact, labels, strict=True)))
        for k in range(3):
            assert found.gram[j, k] == float(sum(r[j] * r[k] for r in exact))
    assert found.records == count


@pytest.mark.parametrize(("records", "width"), [(60, 5), (30, 30), (9, 2)])
@pytest.mark.parametrize("lam", [1.0, 1e-4, 1e-8])
def test_ridge_from_sums_stays_within_its_declared_error(records, width, lam):
    import mpmath

    rng = np.random.default_rng(7)
    rows = folded(unit_rows(rng, records, width), rng.choice([-1.0, 1.0], records))
    phi, y = rounded(rows)
    found = solve_summed(rows.sums(), records * lam)
    with mpmath.workdps(60):
        exact = mpmath.matrix(phi.tolist())
        system = exact.T * exact + mpmath.mpf(records * lam) * mpmath.eye(width)
        solution = mpmath.lu_solve(system, exact.T * mpmath.matrix(y.tolist()))
    error = summed_ridge_error(records, width, 1.0, 1.0, lam)
    assert distance(solution, found) <= error
    assert error <= 1e-2 or lam < 1e-6
    if lam == 1.0:
        assert np.allclose(found, ridge(phi, y, lam), rtol=1e-9, atol=1e-11)


CASES = [
    # records, width, Lam, radius or clip, collinear
    (1, 1, 1.0, 0.3, 0),
    (40, 3, 1.0, 0.3, 0),
    (40, 3, 1e-6, 0.3, 1e-7),  # hardly any curvature
    (40, 3, 1e6, 0.3, 0),
    (40, 3, 0.1, 1e-6, 0),  # nearly absolute deviations
    (40, 3, 0.1, 100.0, 0),  # ridge
    (20, 20, 0.01, 0.2, 0),
]


def huber(lam, clip, kappa=1.0, bound=1.0):
    return HuberRidge(kappa=kappa, label_bound=bound, total_regularization=lam, clip=clip)


def ball(lam, radius, kappa=1.0, bound=1.0):
    return BallRidge(kappa=kappa, label_bound=bound, total_regularization=lam, radius=radius)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("make", [huber, ball])
def test_the_solution_is_within_the_public_tolerance_of_the_exact_minimiser(make, case):
    check(make, *case)


@pytest.mark.parametrize("case", [case for case in CASES if case[2] >= 0.1])
def test_gradient_steps_alone_reach_the_tolerance(case, monkeypatch):
    monkeypatch.setattr(huber_folds, "_NEWTON_STEPS", 0)
    check(huber, *case)


def check(make, records, width, lam, clip, collinear):
    rng = np.random.default_rng(records + width)
    rows = folded(unit_rows(rng, records, width, collinear), rng.uniform(-1, 1, records))
    phi, y = rounded(rows)
    stated = make(lam, clip)
    tolerance = stated.folded_error(records, width)
    assert tolerance < 1e-3 * max(clip, 1.0) / lam
    found = stated.solve_folded(rows, tolerance)
    if make is huber:
        exact = exact_huber_ridge(phi, y, lam, clip, found)
    else:
        exact = exact_ball_ridge(phi, y, lam, clip)
        assert math.fsum(found * found) <= clip * clip
    assert distance(exact, found) <= tolerance


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6), lam=st.floats(-6, 8), clip=st.floats(-6, 3), scale=st.floats(-3, 3)
)
def test_whenever_a_tolerance_is_stated_it_is_reached(seed, lam, clip, scale):
    rng = np.random.default_rng(seed)
    records, width = int(rng.integers(0, 60)), int(rng.integers(1, 20))
    phi = unit_rows(rng, max(records, 1), width, rng.choice([0.0, 1e-8]))[:records] * 10**scale
    rows = folded(phi, 10**scale * rng.uniform(-1, 1, records), 10**scale, 10**scale)
    for make in (huber, ball):
        stated = make(10**lam, 10**clip, 10**scale, 10**scale)
        tolerance = stated.folded_error(max(records, 1), width)
        if make is ball or math.isfinite(tolerance):
            assert np.isfinite(stated.solve_folded(rows, tolerance)).all()  # or raises


def test_whatever_is_not_refused_ends_within_a_thousand_points(monkeypatch):
    """In 811 a line search has to look very near, since a direction is as long as 1/Lam; in 2836
    and 5022 full steps that raise the objective went round in circles."""
    points, at = [], huber_folds._Point.at.__func__

    def counted(cls, *facts):
        points[-1] += 1
        assert points[-1] <= 1000
        return at(cls, *facts)

    monkeypatch.setattr(huber_folds._Point, "at", classmethod(counted))
    for seed in (811, 2836, 5022, *range(100)):
        rng = np.random.default_rng(seed)
        records, width = int(rng.integers(20, 60)), int(rng.integers(1, 20))
        lam, clip, scale = 10.0 ** rng.uniform([-5, -4, 0], [0, 0, 2])
        phi = unit_rows(rng, records, width, 0.0) * scale
        rows = folded(phi, scale * rng.uniform(-1, 1, records), scale, scale)
        stated = huber(lam, clip, scale, scale)
        tolerance = stated.folded_error(records, width)
        if math.isfinite(tolerance):
            points.append(0)
            stated.solve_folded(rows, tolerance)
    assert len(points) > 50


def test_a_problem_whose_gradient_steps_would_take_years_is_refused():
    assert math.isfinite(huber(1e-2, 0.3).error(10**6, 5))
    assert math.isinf(huber(9e-3, 0.3).error(10**6, 5))
    assert math.isinf(huber(9e-3, 0.3).folded_error(10**6, 5))


@pytest.mark.parametrize("width", [1, 3, 300])
def test_a_gradient_errs_by_no_more_than_is_stated(width):
    """Against rational arithmetic, at points of many sizes."""
    rng = np.random.default_rng(width)
    for clip, size in [(0.3, 1.0), (1e-5, 1.0), (50.0, 30.0), (0.3, 1e-9)]:
        rows = folded(unit_rows(rng, 12, width), rng.uniform(-1, 1, 12))
        phi, y = rounded(rows)
        problem = FoldedHuber(kappa=1.0, label_bound=1.0, total_regularization=0.7, clip=clip)
        point = size * rng.normal(size=width) * 10.0 ** rng.uniform(-12, 0, width)
        found = huber_folds._Point.at(problem, rows, point).gradient
        exact = [Fraction(0.7) * Fraction(c) for c in point.tolist()]
        most = Fraction(clip)
        for row, label in zip(phi.tolist(), y.tolist(), strict=True):
            terms = (Fraction(a) * Fraction(c) for a, c in zip(row, point.tolist(), strict=True))
            pull = max(-most, min(most, sum(terms) - Fraction(label)))
            exact = [g + pull * Fraction(a) for g, a in zip(exact, row, strict=True)]
        off = [float(Fraction(f) - g) for f, g in zip(found.tolist(), exact, strict=True)]
        noise = problem.noise(12, width, float(np.linalg.norm(point)))
        assert np.linalg.norm(off) <= noise <= 1e-10 * 12 * (clip + size + 1)


def test_what_is_not_finite_is_not_certified():
    rows = folded(np.full((3, 2), 0.5), np.ones(3))
    problem = FoldedHuber(kappa=1.0, label_bound=1.0, total_regularization=1.0, clip=1.0)
    with pytest.raises(CertificateError):
        huber_folds._Point.at(problem, rows, np.array([np.nan, 0.0]))
