import math

import attrs
import mpmath
import numpy as np
import pytest
import scipy

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
from dpcore.errors import CertificateError
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.functions.kernels.linear import LinearKernel
from dpcore_attacks.attacks.falsifier import falsify
from dpcore_attacks.attacks.setting import Case
from dpcore_attacks.effort import Effort
from dpcore_kernel_ridge.huber_ridge import KernelHuberRidge, KernelHuberRidgeBound
from dpcore_kernel_ridge.huber_solver import (
    HuberProblem,
    huber_error,
    huber_evaluation_error,
    solve_huber,
)

from doubles import domain
from oracles.ridge import huber_ridge_to_few_digits

SECRET = SecretRandomness.rehearsal(0).learner(0, "function", 1)


def problem(lam=2.0, clip=0.5, kappa=1.0):
    return HuberProblem(
        kappa=kappa,
        kernel_error=1e-14,
        label_bound=1.0,
        total_regularization=lam,
        clip=clip,
    )


def hard_rows(rng, count):
    """Some records equal, some nearly equal, labels at their ends."""
    rows = rng.uniform(-0.7, 0.7, (count, 2))
    rows[count // 2 :] = rows[: count - count // 2] + rng.choice([0.0, 1e-7, 1e-2])
    return rows, rng.choice([-1.0, 1.0, 0.3], count)


def exact_huber(gram, labels, lam, clip, near):
    """The minimiser's coefficients to 50 digits: h = clip(Ka - y) + Lam a = 0, and that is checked.

    Fixed points of "solve for the records inside the clip, hold the others", from `near` on.
    """
    count = len(labels)
    with mpmath.workdps(50):
        a, lam, clip = mpmath.matrix(near.tolist()), mpmath.mpf(lam), mpmath.mpf(clip)
        for _ in range(40):
            residuals = gram * a - labels
            system, right = mpmath.eye(count), mpmath.zeros(count, 1)
            for i, r in enumerate(residuals):
                if abs(r) < clip:
                    system[i, :] = gram[i, :] / lam
                    system[i, i] += 1
                    right[i] = labels[i] / lam
                else:
                    right[i] = -clip * mpmath.sign(r) / lam
            a = mpmath.lu_solve(system, right)
            h = [max(-clip, min(clip, r)) + lam * a[i] for i, r in enumerate(gram * a - labels)]
            if max(map(abs, h)) < mpmath.mpf(10) ** -35:
                return a
    raise AssertionError("the oracle did not converge")


def exact_gram(rows, bandwidth):
    with mpmath.workdps(50):
        points = [[mpmath.mpf(x) for x in row] for row in rows.tolist()]
        halved = 2 * mpmath.mpf(bandwidth) ** 2
        return mpmath.matrix(
            [
                [
                    mpmath.exp(-sum((a - b) ** 2 for a, b in zip(x, y, strict=True)) / halved)
                    for y in points
                ]
                for x in points
            ]
        )


@pytest.mark.parametrize("lam", [5.0, 0.5, 0.02, 1e-3])
@pytest.mark.parametrize("clip", [10.0, 0.5, 0.05])
def test_the_solver_stays_within_its_error(lam, clip):
    """Against 50 digits."""
    rng = np.random.default_rng(3)
    rows, labels = hard_rows(rng, 14)
    kernel, own = GaussianKernel(bandwidth=0.5), problem(lam, clip)
    tolerance = huber_error(own, 14)
    found = solve_huber(own, kernel, rows, labels, tolerance)
    assert np.abs(found).max() <= clip / lam
    gram = exact_gram(rows, 0.5)
    with mpmath.workdps(50):
        right = mpmath.matrix(labels.tolist())
        off = exact_huber(gram, right, lam, clip, found) - mpmath.matrix(found.tolist())
        moved = float(mpmath.sqrt(abs((off.T * gram * off)[0])))
    assert moved <= tolerance
    assert tolerance < 1e-5 * clip / lam


@pytest.mark.parametrize("lam", [0.1, 0.01, 0.001])
@pytest.mark.parametrize("seed", range(3))
def test_hard_problems_end_after_their_public_steps(lam, seed):
    """Guesses of who is clipped go round in circles here. The minimiser is within |grad F|/Lam."""
    rng = np.random.default_rng(seed)
    rows, labels = rng.uniform(-0.7, 0.7, (100, 2)), rng.uniform(-1, 1, 100)
    kernel, own = GaussianKernel(bandwidth=0.5), problem(lam, 0.5)
    tolerance = huber_error(own, 100)
    assert own.steps(100) < 8100
    found = solve_huber(own, kernel, rows, labels, tolerance)
    gram = kernel(rows, rows)
    steep = np.clip(gram @ found - labels, -0.5, 0.5) + lam * found
    assert math.sqrt(max(steep @ gram @ steep, 0.0)) / lam <= tolerance
    assert tolerance < 1e-4 * 0.5 / lam


def test_it_finds_the_minimum_that_scipy_finds():
    rng = np.random.default_rng(5)
    rows, labels = hard_rows(rng, 30)
    kernel, own = GaussianKernel(bandwidth=0.5), problem(0.1, 0.4)
    gram = kernel(rows, rows)

    def both(a):
        residuals = gram @ a - labels
        size = np.abs(residuals)
        huber = np.where(size <= 0.4, residuals**2 / 2, 0.4 * (size - 0.2)).sum()
        inner = np.clip(residuals, -0.4, 0.4) + 0.1 * a
        return huber + 0.05 * a @ gram @ a, gram @ inner

    peer = scipy.optimize.minimize(
        both, np.zeros(30), jac=True, method="L-BFGS-B",
        options={"maxiter": 5000, "maxfun": 9000, "ftol": 1e-15, "gtol": 1e-9},
    )  # fmt: skip
    found = solve_huber(own, kernel, rows, labels, huber_error(own, 30))
    assert both(found)[0] <= both(peer.x)[0] + 1e-9
    assert gram @ found == pytest.approx(gram @ peer.x, abs=1e-3)


def test_the_number_of_steps_is_public():
    """The number of products with the kernel matrix, whatever the records."""
    own, counts = problem(0.5, 0.3), []

    class Counted(np.ndarray):
        def __matmul__(self, other):
            counts[-1] += 1
            return np.asarray(self) @ other

    def kernel(first, second):
        return GaussianKernel(bandwidth=0.5)(first, second).view(Counted)

    rng = np.random.default_rng(6)
    for rows, labels in (
        hard_rows(rng, 20),
        (np.zeros((20, 2)), np.zeros(20)),
        (rng.uniform(-0.7, 0.7, (20, 2)), np.full(20, 1.0)),
    ):
        counts.append(0)
        solve_huber(own, kernel, rows, labels, huber_error(own, 20))
    assert counts == [own.steps(20)] * 3


def test_in_finite_dimension_it_is_huber_ridge_on_the_rows():
    rng = np.random.default_rng(1)
    rows, labels = rng.uniform(-0.7, 0.7, (25, 2)), rng.uniform(-1, 1, 25)
    own = problem(3.0, 0.3)
    found = solve_huber(own, LinearKernel(), rows, labels, huber_error(own, 25))
    expected = huber_ridge_to_few_digits(rows, labels, 3.0, 0.3)
    assert rows.T @ found == pytest.approx(expected, abs=1e-6)


def test_without_clipping_it_is_ridge_in_the_kernels_space():
    rng = np.random.default_rng(2)
    rows, labels = rng.uniform(-1, 1, (20, 2)), rng.uniform(-1, 1, 20)
    kernel, own = GaussianKernel(bandwidth=0.7), problem(1.5, 50.0)
    found = solve_huber(own, kernel, rows, labels, huber_error(own, 20))
    expected = np.linalg.solve(kernel(rows, rows) + 1.5 * np.eye(20), labels)
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_tolerance_that_cannot_be_reached_is_an_error_and_no_other_output():
    rows, labels = hard_rows(np.random.default_rng(0), 10)
    with pytest.raises(CertificateError):
        solve_huber(problem(50.0), GaussianKernel(bandwidth=0.5), rows, labels, 0.0)


def test_computed_values_stay_within_the_declared_error():
    rng = np.random.default_rng(4)
    rows, labels = hard_rows(rng, 30)
    kernel, own = GaussianKernel(bandwidth=0.5), problem(0.1, 1.0)
    found = solve_huber(own, kernel, rows, labels, huber_error(own, 30))
    error = huber_evaluation_error(own, 30)
    for x in rng.uniform(-1, 1, (5, 2)):
        row = exact_gram(np.vstack([x[None, :], rows]), 0.5)[0, 1:]
        with mpmath.workdps(50):
            exact = sum(mpmath.mpf(a) * k for a, k in zip(found.tolist(), row, strict=True))
            assert abs(exact - float(kernel(x[None, :], rows)[0] @ found)) <= error
    assert error < 1e-9


GAUSSIAN = GaussianKernel(bandwidth=0.5)


def case(adjacency, kernel=GAUSSIAN, lam=5.0, clip=0.5, records=24, **options):
    where = domain(records, 2, norm=1.0)
    if adjacency.membership:
        where = attrs.evolve(where, exact=None, limit=records)
    learner = KernelHuberRidge(kernel=kernel, total_regularization=lam, clip=clip, **options)
    return Case(learner=learner, bound=KernelHuberRidgeBound(), domain=where, adjacency=adjacency)


@pytest.mark.parametrize("kernel", [GAUSSIAN, LinearKernel()], ids=["gaussian", "linear"])
@pytest.mark.parametrize("adjacency", [ADD_REMOVE, REPLACE_ONE, REPLACE_LABEL])
def test_t6_stands_in_the_kernels_space_and_is_attained(adjacency, kernel):
    (finding,) = falsify(case(adjacency, kernel), Effort(pairs=200))
    assert 0.95 < finding.worst <= 1


def test_the_claims_are_those_of_the_theorem():
    found = {}
    for relation in (ADD_REMOVE, REPLACE_ONE, REPLACE_LABEL):
        for clip in (0.5, 3.0):
            ((_, claim),) = case(relation, clip=clip).claims()
            assert claim.adjacency == relation
            found[relation, clip] = claim.value
    assert found[ADD_REMOVE, 0.5] == pytest.approx(0.5 / 5)
    assert found[REPLACE_ONE, 0.5] == pytest.approx(2 * 0.5 / 5)
    assert found[REPLACE_LABEL, 0.5] == pytest.approx(2 * 0.5 / 5)
    assert found[REPLACE_LABEL, 3.0] == pytest.approx(2 * 1.0 / 5)  # labels are within M = 1


def test_what_cannot_be_certified_is_refused():
    private = attrs.evolve(domain(20), exact=None, limit=None)
    refused = attrs.evolve(case(ADD_REMOVE), domain=private).claims()
    assert isinstance(refused, Refused)
    assert "declare at_most" in refused.reason
    assert "raise it" in case(ADD_REMOVE, lam=1e-9).claims().reason
    assert math.isinf(huber_error(problem(1e-9), 20))


def test_no_records_give_the_function_zero():
    facts = Public(domain=case(ADD_REMOVE).domain, randomness=PublicRandomness(0))
    learner = case(ADD_REMOVE).learner
    (query,) = learner.queries(facts)
    records = Records(features=np.zeros((0, 2)), labels=np.zeros(0))
    function = learner.statistic(query, records, facts, SECRET)
    assert (function(np.zeros((3, 2))) == 0).all()
