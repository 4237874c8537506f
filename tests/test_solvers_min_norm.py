import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from ridge_oracles import unit_rows

from dpcore.solvers.min_norm import solve_min_norm


def lstsq(phi, y):
    return np.linalg.lstsq(phi, y, rcond=None)[0]


@pytest.mark.parametrize(
    ("records", "width"), [(1, 1), (1, 7), (20, 50), (50, 20), (30, 30), (200, 10)]
)
def test_it_is_the_min_norm_least_squares_solution(records, width):
    rng = np.random.default_rng(records)
    phi, y = unit_rows(rng, records, width), rng.uniform(-1, 1, records)
    expected = lstsq(phi, y)
    assert np.linalg.norm(solve_min_norm(phi, y) - expected) <= 1e-8 * np.linalg.norm(expected)


@pytest.mark.parametrize("width", [8, 60])
def test_equal_rows_count_as_often_as_they_occur(width):
    rng = np.random.default_rng(width)
    phi = unit_rows(rng, 12, width)[rng.integers(0, 12, 40)]
    y = rng.uniform(-1, 1, 40)
    expected = lstsq(phi, y)
    assert np.linalg.norm(solve_min_norm(phi, y) - expected) <= 1e-9 * np.linalg.norm(expected)


@pytest.mark.parametrize(("records", "width"), [(20, 30), (30, 20), (6, 100)])
def test_a_deficient_rank_is_cut_off(records, width):
    rng = np.random.default_rng(3)
    phi = rng.normal(size=(records, 4)) @ rng.normal(size=(4, width))
    y = rng.uniform(-1, 1, records)
    expected = lstsq(phi, y)
    assert np.linalg.norm(solve_min_norm(phi, y) - expected) <= 1e-9 * np.linalg.norm(expected)


def test_no_rows_and_zero_rows_give_zero():
    assert np.array_equal(solve_min_norm(np.zeros((0, 3)), np.zeros(0)), np.zeros(3))
    assert np.array_equal(solve_min_norm(np.zeros((4, 3)), np.ones(4)), np.zeros(3))


@settings(max_examples=200, deadline=None)
@given(
    hnp.arrays(float, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.floats()),
    st.floats(),
)
def test_it_never_raises_and_is_always_finite(phi, label):
    found = solve_min_norm(phi, np.full(phi.shape[0], label))
    assert found.shape == (phi.shape[1],)
    assert np.isfinite(found).all()
