import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import linalg

from dpcore.errors import ParameterError
from dpcore.functions.kernels.base import triangle
from dpcore.functions.kernels.gaussian import GaussianKernel
from dpcore.functions.kernels.linear import LinearKernel
from dpcore.learning.solvers.ridge_path import RidgePath

LAMBDAS = (1e-4, 0.1, 3.0, 1e3)


def direct(matrix, labels, total):
    return linalg.solve(matrix + total * np.eye(len(matrix)), labels, assume_a="pos")


@settings(max_examples=60, deadline=None)
@given(
    side=st.integers(1, 40),
    outputs=st.integers(1, 4),
    rank=st.integers(1, 40),
    seed=st.integers(0, 2**32 - 1),
)
def test_it_solves_every_system_of_the_path(side, outputs, rank, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(side, rank)) / np.sqrt(rank)
    matrix, labels = rows @ rows.T, rng.normal(size=(side, outputs))
    found = RidgePath(matrix).solve(labels, LAMBDAS)
    assert found.shape == (len(LAMBDAS), side, outputs)
    for total, solution in zip(LAMBDAS, found, strict=True):
        expected = direct(matrix, labels, total)
        assert np.linalg.norm(solution - expected) <= 1e-10 * np.linalg.norm(expected)


def test_it_agrees_with_cholesky_to_ten_digits_on_a_kernel():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(400, 6)), rng.normal(size=400)
    matrix = GaussianKernel(bandwidth=2.0)(rows, rows)
    totals = np.geomspace(1e-6, 100, 20)
    for total, solution in zip(totals, RidgePath(matrix).solve(labels, totals), strict=True):
        expected = direct(matrix, labels, total)
        assert np.linalg.norm(solution - expected) <= 1e-10 * np.linalg.norm(expected)


def test_only_the_lower_triangle_is_read_and_kept_unless_given_away():
    rng = np.random.default_rng(1)
    rows, labels = rng.normal(size=(30, 30)), rng.normal(size=30)
    matrix = rows @ rows.T
    lower = np.asfortranarray(np.tril(matrix) + np.triu(np.full((30, 30), np.nan), 1))
    kept = lower.copy()
    found = RidgePath(lower).solve(labels, [0.5])
    assert np.array_equal(lower, kept, equal_nan=True)
    assert np.allclose(found[0], direct(matrix, labels, 0.5), rtol=1e-10)
    again = RidgePath(lower, overwrite=True).solve(labels, [0.5])
    assert np.array_equal(again, found)
    assert not np.array_equal(lower, kept, equal_nan=True)


def test_what_it_cannot_solve_is_refused():
    with pytest.raises(ParameterError, match="square"):
        RidgePath(np.zeros((3, 2)))
    with pytest.raises(ParameterError, match="finite"):
        RidgePath(np.full((3, 3), np.nan))
    path = RidgePath(np.ones((4, 4)))
    for total in (0.0, -1.0, float("nan"), 1e-300):
        with pytest.raises(ParameterError, match="rounding"):
            path.solve(np.ones(4), [1.0, total])


@pytest.mark.parametrize("count", [1, 127, 128, 300])
@pytest.mark.parametrize("kernel", [GaussianKernel(bandwidth=0.7), LinearKernel()])
def test_a_triangle_is_the_lower_half_of_the_kernel_matrix(count, kernel):
    rows = np.random.default_rng(count).normal(size=(count, 3))
    whole, lower = kernel(rows, rows), triangle(kernel, rows)
    assert lower.flags.f_contiguous
    assert np.allclose(np.tril(lower), np.tril(whole), rtol=0, atol=1e-14)
