"""A source without records is a dataset like any other where their number is private."""

import numpy as np
import pytest

import dpcore
import dpcore.guarantee
from dpcore import ADD_REMOVE, Release, read_csv
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.models.features.identity import Identity
from dpcore_kernel_ridge.gaussian_process import GaussianProcess
from dpcore_kernel_ridge.huber_ridge import KernelHuberRidge
from dpcore_linear import SufficientStatistics

from builders import price_request
from doubles import domain

POINTS = {"release": {"a": np.array([0.5]), "b": np.zeros(1)}}
CASES = [
    (KernelHuberRidge(clip=0.5, total_regularization=50.0), GaussianProcess(), "points.csv"),
    (SufficientStatistics(features=Identity()), Gaussian(), None),
]


@pytest.mark.parametrize("sealed", [True, False])
@pytest.mark.parametrize(("learner", "mechanism", "points"), CASES)
def test_a_file_of_a_header_alone_is_answered(tmp_path, learner, mechanism, points, sealed):
    """In memory and in blocks: a run that failed would say that no one is there."""
    release = Release(learner=learner, mechanism=mechanism, predictions_at=points)
    plan = price_request(
        domain=domain(records=None, limit=60),
        adjacency=ADD_REMOVE,
        releases=[release],
        sealed=sealed,
        on_invalid="project",
    )
    path = tmp_path / "people.csv"
    for rows in ("", "0.5,0.5,0.5\n"):
        path.write_text("a,b,y\n" + rows)
        outcome = plan.run(read_csv(path), points=POINTS if points else None)
        assert outcome.guarantee.status is dpcore.guarantee.Status.PROVED
