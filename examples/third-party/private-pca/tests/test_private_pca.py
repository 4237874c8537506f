"""Every law and attack of dpcore; the bound by brute force, and what a release shows."""

import itertools

import numpy as np
import private_pca
import pytest
from private_pca.pca import PrivatePCA

from dpcore import (
    ADD_REMOVE,
    REPLACE_ONE,
    Domain,
    PrivacyBudget,
    Public,
    PublicRandomness,
    Range,
    price,
)
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.encoding.tables import project_table
from dpcore_attacks.pytest_checks import checks

test_conformance = checks(private_pca)

GRID = [np.array(row, dtype=float) for row in itertools.product([-1, -0.5, 0, 0.5, 1], repeat=2)]


def domain(adjacency, **more):
    count = {"exact": 3} if adjacency is REPLACE_ONE else {}
    return Domain(columns={"a": Range(-1, 1), "b": Range(-1, 1)}, **count, **more)


def second_moments(rows):
    """The matrix that is released, by definition."""
    return sum((np.outer(row, row) for row in rows), start=np.zeros((2, 2)))


@pytest.mark.parametrize("adjacency", [REPLACE_ONE, ADD_REMOVE])
def test_no_neighbours_on_a_grid_are_further_apart_than_the_bound(adjacency):
    plan = price(
        domain=domain(adjacency), adjacency=adjacency, learner=PrivatePCA(components=2),
        budget=PrivacyBudget(epsilon=1, delta=1e-6), mechanism=Gaussian(),
    )  # fmt: skip
    (planned_query,) = plan.schedule.queries
    rest = [np.array([0.3, -0.7]), np.array([-1.0, 1.0])]
    pairs = (
        itertools.product(GRID, GRID) if adjacency is REPLACE_ONE else ((row, None) for row in GRID)
    )
    diameter = max(
        np.linalg.norm(
            second_moments([*rest, row]) - second_moments(rest if other is None else [*rest, other])
        )
        for row, other in pairs
    )
    # The Frobenius norm is the length of the released vector; corners of the domain attain it.
    assert 0.999 * planned_query.sensitivity.value < diameter <= planned_query.sensitivity.value


def test_the_statistic_is_the_matrix_of_second_moments():
    public = Public(domain=domain(REPLACE_ONE), randomness=PublicRandomness(0))
    rows = np.array([[0.3, -0.7], [-1, 1], [0.5, 0.25]])
    records = project_table(public.domain, {"a": rows[:, 0], "b": rows[:, 1]})
    learner = PrivatePCA(components=1)
    (query,) = learner.queries(public)
    released = learner.statistic(query, records, public, None).floats()
    matrix = second_moments(rows)
    expected = [matrix[0, 0], np.sqrt(2) * matrix[0, 1], matrix[1, 1]]
    assert released == pytest.approx(expected, abs=1e-9)
