import math

import mpmath
import numpy as np
import pytest

from dpcore import (
    ADD_REMOVE,
    REPLACE_LABEL,
    REPLACE_ONE,
    Public,
    PublicRandomness,
    Records,
    Refused,
    SecretRandomness,
)
from dpcore.errors import NoClaimError
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.functions.kernels.linear import LinearKernel
from dpcore.sensitivity import Refuted
from dpcore_kernel_ridge.bounds import KernelRidgeReplaceOne, Lemma2, Proposition1, lemma_2
from dpcore_kernel_ridge.one_scalar import OneScalar
from dpcore_kernel_ridge.ridge import KernelRidge
from dpcore_kernel_ridge.solver import solve_kernel_ridge
from dpcore_models.theorems.ridge import ridge_norm, ridge_replace_one

from doubles import domain

SECRET = SecretRandomness.rehearsal(0).learner(0, "function", 1)


def public(records=20, columns=2, **options):
    return Public(domain=domain(records, columns, **options), randomness=PublicRandomness(0))


def bounded(bound, learner, facts, adjacency=REPLACE_ONE):
    (query,) = learner.queries(facts)
    return bound.sensitivity(query, learner, facts, adjacency)


def fit(learner, facts, rows, labels):
    (query,) = learner.queries(facts)
    records = Records(features=np.array(rows, float), labels=np.array(labels, float))
    return learner.statistic(query, records, facts, SECRET)


def distance(f, g):
    """Norm of f - g in the kernel's space, by definition."""
    points = np.vstack([f.points, g.points])
    a = np.concatenate([f.coefficients, -g.coefficients])
    return math.sqrt(max(0.0, a @ f.kernel(points, points) @ a))


@pytest.mark.parametrize(
    ("regularization", "ratio"), [(1.0, 1.6), (0.1, 3.5), (0.01, 5.7), (0.001, 7.1)]
)
def test_t4_is_that_much_tighter_than_lemma_2(regularization, ratio):
    printed = lemma_2(1.0, 1.0, regularization, 10_000)
    ours = ridge_replace_one(1.0, 1.0, regularization, 10_000)
    assert round(printed / ours, 1) == ratio
    assert ridge_norm(1.0, 1.0, regularization) <= 1 / math.sqrt(regularization) / 2 * (1 + 1e-12)


def test_lemma_2_is_the_printed_formula():
    """Sup norm 2 R kappa^2 (kappa + 1)/(lam m), at kappa = 2, M = 3, lam = 1/4, m = 10: R = 6."""
    assert 2 * lemma_2(2.0, 3.0, 0.25, 10) == pytest.approx(2 * 6 * 4 * 3 / (0.25 * 10))


@pytest.mark.parametrize(
    "kernel", [GaussianKernel(bandwidth=0.5), LinearKernel()], ids=["gaussian", "linear"]
)
@pytest.mark.parametrize("adjacency", [REPLACE_ONE, REPLACE_LABEL])
def test_no_random_neighbours_move_further_than_either_bound(kernel, adjacency):
    rng = np.random.default_rng(1)
    for _ in range(40):
        count = int(rng.integers(1, 25))
        facts = public(count, norm=1.0)
        lam = float(10 ** rng.uniform(-3, 0))
        learner = KernelRidge(kernel=kernel, regularization=lam)
        rows = rng.uniform(-0.7, 0.7, (count, 2)) * rng.choice([1.0, 0.05])
        labels = rng.choice([-1.0, 1.0], count)
        other, flipped = rows.copy(), labels.copy()
        flipped[0] = -labels[0]
        if adjacency is REPLACE_ONE:
            other[0] = rng.uniform(-0.7, 0.7, 2)
        moved = distance(fit(learner, facts, rows, labels), fit(learner, facts, other, flipped))
        for bound in (KernelRidgeReplaceOne(), Lemma2()):
            assert moved <= bounded(bound, learner, facts, adjacency).unit


def test_the_bound_is_nearly_attained():
    """Two records at opposite places around many that make the norm large: 0.8 of T4."""
    records, lam = 400, 0.2
    facts = public(records, columns=3)
    learner = KernelRidge(kernel=LinearKernel(), regularization=lam)
    claim = bounded(KernelRidgeReplaceOne(), learner, facts)
    kappa, worst = math.sqrt(3) * (1 - 1e-9), 0.0
    for angle in np.linspace(0, np.pi, 60):
        found = []
        for side in (1, -1):
            rows = np.tile([math.sqrt(lam), 0, 0], (records, 1))
            rows[0] = kappa * np.array([np.cos(angle), side * np.sin(angle), 0])
            labels = np.full(records, -1.0)
            labels[0] = 1.0
            found.append(fit(learner, facts, rows, labels))
        worst = max(worst, distance(*found))
    assert 0.8 < worst / claim.unit <= 1


@pytest.mark.parametrize("lam", [1.0, 1e-3, 1e-6])
def test_the_solver_and_the_evaluation_stay_within_their_declared_errors(lam):
    """Against the same system solved and evaluated with 50 digits."""
    rng = np.random.default_rng(5)
    rows = rng.uniform(-1, 1, (25, 2))
    rows[12:] = rows[:13] + 1e-7
    labels = rng.choice([-1.0, 1.0], 25)
    facts = public(25)
    learner = KernelRidge(bandwidth=0.7, regularization=lam)
    claim, (query,) = bounded(KernelRidgeReplaceOne(), learner, facts), learner.queries(facts)
    function = fit(learner, facts, rows, labels)
    with mpmath.workdps(50):

        def kernel(x, y):
            square = sum((mpmath.mpf(a) - mpmath.mpf(b)) ** 2 for a, b in zip(x, y, strict=True))
            return mpmath.exp(-square / (2 * mpmath.mpf(0.7) ** 2))

        gram = mpmath.matrix([[kernel(x, y) for y in rows.tolist()] for x in rows.tolist()])
        total = mpmath.mpf(25 * lam)
        exact = mpmath.lu_solve(gram + total * mpmath.eye(25), mpmath.matrix(labels.tolist()))
        off = exact - mpmath.matrix(function.coefficients.tolist())
        moved = mpmath.sqrt(abs((off.T * gram * off)[0]))
        assert moved <= claim.solver_error
        for x in rng.uniform(-1, 1, (5, 2)):
            value = sum(
                mpmath.mpf(float(a)) * kernel(x.tolist(), y)
                for a, y in zip(function.coefficients, rows.tolist(), strict=True)
            )
            assert abs(value - mpmath.mpf(float(function(x[None, :])[0]))) <= query.evaluation_error
    assert claim.solver_error < 0.01 * claim.value


def test_the_function_is_the_minimiser_by_definition():
    rng = np.random.default_rng(2)
    rows, labels = rng.uniform(-1, 1, (12, 2)), rng.uniform(-1, 1, 12)
    kernel = GaussianKernel(bandwidth=0.6)
    found = solve_kernel_ridge(kernel, rows, labels, 12 * 0.05)
    gram = kernel(rows, rows)

    def objective(a):
        return np.mean((gram @ a - labels) ** 2) + 0.05 * a @ gram @ a

    assert all(
        objective(found) <= objective(found + 1e-3 * rng.normal(size=12)) for _ in range(200)
    )


def test_what_cannot_be_claimed_is_refused():
    facts, learner = public(), KernelRidge(regularization=0.1)
    for bound in (KernelRidgeReplaceOne(), Lemma2(), Proposition1()):
        refused = bounded(bound, learner, facts, ADD_REMOVE)
        assert isinstance(refused, Refused)
        tiny = bounded(bound, KernelRidge(regularization=1e-16), facts)
        assert isinstance(tiny, Refused)
        assert "Cholesky" in tiny.reason
    assert "at most 1" in bounded(Lemma2(), KernelRidge(regularization=2.0), facts).reason
    assert isinstance(bounded(Proposition1(), learner, facts).validity, Refuted)


def test_the_printed_release_publishes_differences_exactly():
    """f(x1) - f(x2), of a function of private records, to the last bits: b cancels."""
    rng = np.random.default_rng(4)
    facts, learner = public(30), KernelRidge(regularization=0.05, bandwidth=0.5)
    (query,) = learner.queries(facts)
    function = fit(learner, facts, rng.uniform(-1, 1, (30, 2)), rng.choice([-0.4, 0.4], 30))
    claim = bounded(Proposition1(), learner, facts)
    oracle = OneScalar(noise_multiplier=1.0).open(
        function, query, claim, SecretRandomness.draw().noise(0, "function", 1)
    )
    points = rng.uniform(-1, 1, (2, 2))
    exact, answers = function(points), oracle.ask(points)
    assert answers[0] - answers[1] == pytest.approx(exact[0] - exact[1], abs=1e-12)
    assert abs(exact[0] - exact[1]) > 1e-3
    assert (answers != exact).all()


def test_one_scalar_never_carries_a_sound_claim():
    facts, learner = public(), KernelRidge(regularization=0.1)
    (query,) = learner.queries(facts)
    with pytest.raises(NoClaimError, match="exactly"):
        OneScalar(noise_multiplier=1.0).event(
            query, bounded(KernelRidgeReplaceOne(), learner, facts)
        )
