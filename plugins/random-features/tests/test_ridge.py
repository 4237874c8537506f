import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Domain,
    Public,
    PublicRandomness,
    Range,
    Records,
    SecretRandomness,
)
from dpcore.bound import Refused
from dpcore.errors import ParameterError
from dpcore.models.features.identity import Identity
from dpcore.sensitivity import Sensitivity
from dpcore_models.features.cos_sin import CosSin
from dpcore_models.features.cosines import Cosines
from dpcore_models.theorems.ridge import ridge_add_remove, ridge_norm, ridge_replace_one
from dpcore_random_features.ridge import Ridge, RidgeReplaceOne
from dpcore_random_features.solvers.ridge import ridge_error, solve_ridge

sys.path.insert(0, str(Path(__file__).parents[3] / "tests"))
from oracles.definitions import ridge  # the repository's oracles, not an installed module


def unit_disc(records):
    """Two columns in the unit disc, labels in [-1, 1]: kappa = M = 1."""
    return Domain(
        columns={"a": Range(-1, 1), "b": Range(-1, 1)},
        target="y",
        labels=Range(-1, 1),
        exact=records,
        norm=1.0,
    )


def setting(records, lam, features=None):
    learner = Ridge(features=features or Identity(), regularization=lam)
    public = Public(domain=unit_disc(records), randomness=PublicRandomness(3))
    (query,) = learner.queries(public)
    bound = RidgeReplaceOne().sensitivity(query, learner, public, REPLACE_ONE)
    assert isinstance(bound, Sensitivity)
    secret = SecretRandomness.rehearsal(0).learner(0, "coefficients", 1)

    def statistic(x, y):
        return learner.statistic(query, Records(features=x, labels=y), public, secret)

    return statistic, bound


@pytest.mark.parametrize("features", [None, CosSin(count=7, bandwidth=0.7), Cosines(count=9)])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_random_and_extremal_neighbours_never_exceed_the_bound(features, data):
    records = data.draw(st.sampled_from([1, 2, 3, 10, 60]))
    lam = 10 ** data.draw(st.floats(-3, 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    statistic, bound = setting(records, lam, features)
    angle = rng.uniform(0, 2 * np.pi, records)
    radius = rng.choice([0, 1, 1, rng.uniform()], records)
    x = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    if data.draw(st.booleans()):
        x[:] = x[0]  # duplicates
    y = rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], records)
    x2, y2 = x.copy(), y.copy()
    x2[0] = data.draw(st.sampled_from([-1.0, 0.0, 1.0])) * x[0] if rng.uniform() < 0.5 else [0, 1]
    y2[0] = -y[0]
    moved = np.linalg.norm(statistic(x, y) - statistic(x2, y2))
    assert moved <= bound.unit


@pytest.mark.parametrize("kappa", [1.0, 0.3])
@pytest.mark.parametrize(("records", "lam"), [(100, 0.5), (1000, 0.1), (1000, 0.05), (5000, 0.01)])
def test_the_construction_of_the_theorem_comes_within_a_fifth_of_the_bound(records, lam, kappa):
    """Base points a e1 with m a^2 = Lam, and kappa(cos t e1 +- sin t e2) with equal labels."""
    domain = Domain(
        columns={"a": Range(-1, 1), "b": Range(-1, 1)},
        target="y",
        labels=Range(-1, 1),
        exact=records,
        norm=kappa,
    )
    learner = Ridge(features=Identity(), regularization=lam)
    public = Public(domain=domain, randomness=PublicRandomness(0))
    (query,) = learner.queries(public)
    bound = RidgeReplaceOne().sensitivity(query, learner, public, REPLACE_ONE)
    assert records * lam >= 50 * kappa**2
    secret = SecretRandomness.rehearsal(0).learner(0, "coefficients", 1)
    base = min(np.sqrt(lam), kappa)
    worst = 0.0
    for t in np.linspace(0, np.pi, 200):
        for sign in (1.0, -1.0):
            found = []
            for side in (1, -1):
                x = np.full((records, 2), [base, 0.0])
                x[0] = [kappa * np.cos(t), side * kappa * np.sin(t)]
                y = np.full(records, -sign)
                y[0] = 1.0
                kept = Records(features=x, labels=y)
                found.append(learner.statistic(query, kept, public, secret))
            worst = max(worst, np.linalg.norm(found[0] - found[1]))
    assert 0.8 * bound.unit < worst <= bound.unit


def test_the_statistic_is_ridge_by_definition():
    rng = np.random.default_rng(1)
    for records, width in ((50, 4), (4, 50), (1, 1)):
        phi = rng.normal(size=(records, width)) / np.sqrt(width)
        y = rng.uniform(-1, 1, records)
        found = solve_ridge(phi, y, records * 0.03)
        assert np.allclose(found, ridge(phi, y, 0.03), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("shape", [(60, 5), (5, 60), (30, 30)])
@pytest.mark.parametrize("lam", [1.0, 1e-4, 1e-8])
def test_the_solver_stays_within_its_declared_error(shape, lam):
    """Against the same system solved with 60 digits."""
    import mpmath

    rng = np.random.default_rng(7)
    records, width = shape
    phi = rng.normal(size=shape)
    phi[:, 0] = 1.0
    phi /= np.linalg.norm(phi, axis=1, keepdims=True)
    y = rng.choice([-1.0, 1.0], records)
    error = ridge_error(records, width, 1.0, 1.0, lam)
    with mpmath.workdps(60):
        exact_phi = mpmath.matrix(phi.tolist())
        small = min(shape)
        if width <= records:
            system = exact_phi.T * exact_phi
            right = exact_phi.T * mpmath.matrix(y.tolist())
        else:
            system, right = exact_phi * exact_phi.T, mpmath.matrix(y.tolist())
        total = mpmath.mpf(records * lam)
        solution = mpmath.lu_solve(system + total * mpmath.eye(small), right)
        exact = solution if width <= records else exact_phi.T * solution
        exact = np.array([float(v) for v in exact])
    found = solve_ridge(phi, y, records * lam)
    assert np.linalg.norm(found - exact) <= error
    assert error <= 1e-2 or lam < 1e-6


def test_norm_bound_is_attained_by_copies_of_one_point():
    """T3 at kappa = M = 1, lam = 0.01: m copies of a point with |phi|^2 = lam."""
    lam, records = 0.01, 50
    c = ridge(np.full((records, 1), np.sqrt(lam)), np.ones(records), lam)
    assert c[0] == pytest.approx(ridge_norm(1.0, 1.0, lam), rel=1e-9)
    assert ridge_norm(1.0, 1.0, 4.0) == pytest.approx(1 / 5)


def test_add_remove_bound_encloses_the_exact_supremum_of_t5():
    """The scalar formula of T5 maximised on a grid: the closed form is 1 to 1.75 times it."""
    for n, lam in ((1, 1.0), (10, 0.5), (100, 30.0), (1000, 1.0)):
        g, k = np.meshgrid(np.linspace(0, n, 2001), np.linspace(1e-6, 1, 400))
        exact = np.max(k / (g + lam + k**2) * (1 + k * np.sqrt(n * g) / (g + lam)))
        assert exact <= ridge_add_remove(1.0, 1.0, lam, n) <= 1.75 * exact


@pytest.mark.parametrize(
    ("lam", "records", "expected"),
    [
        (1, 20, 0.125),
        (1, 1000, 0.0025),
        (0.1, 1000, 0.0358),
        (0.01, 10000, 0.07),
        (0.001, 20, 31.6),
    ],
)
def test_published_values_of_t4_are_reproduced(lam, records, expected):
    assert ridge_replace_one(1.0, 1.0, lam, records) == pytest.approx(expected, rel=0.01)


def test_the_bound_refuses_what_it_cannot_cover():
    learner = Ridge(features=Identity(), regularization=0.1)
    public = Public(domain=unit_disc(10), randomness=PublicRandomness(0))
    (query,) = learner.queries(public)
    refused = RidgeReplaceOne().sensitivity(query, learner, public, ADD_REMOVE)
    assert isinstance(refused, Refused)
    tiny = Ridge(features=Identity(), regularization=1e-15)
    refused = RidgeReplaceOne().sensitivity(query, tiny, public, REPLACE_ONE)
    assert isinstance(refused, Refused)
    assert "Cholesky" in refused.reason


@pytest.mark.parametrize("lam", [0, -1.0, float("nan"), float("inf"), True, "0.1"])
def test_impossible_regularization_is_refused_by_name(lam):
    with pytest.raises(ParameterError, match="regularization"):
        Ridge(features=Identity(), regularization=lam)
