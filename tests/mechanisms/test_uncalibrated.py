"""A query whose mechanism has no noise yet states no law, no price and no release."""

import pytest

from dpcore.adjacency import REPLACE_ONE
from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.claims.mechanisms.discrete_laplace import DiscreteLaplace
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.claims.plan.planned_query import PlannedQuery
from dpcore.errors import ContractError
from dpcore.mechanism import Mechanism
from dpcore.query import Query
from dpcore.sensitivity import Distance, Sensitivity

DISTANCES = {
    DiscreteGaussian: Distance.L2,
    Gaussian: Distance.L2,
    DiscreteLaplace: Distance.L1,
    Laplace: Distance.L1,
}


@pytest.mark.parametrize("kind", DISTANCES)
def test_an_ask_without_noise_answers_nothing(kind: type[Mechanism]) -> None:
    distance = DISTANCES[kind]
    query = Query(name="total", shape=(1,), distance=distance, values="integers")
    sensitivity = Sensitivity(value=1.0, distance=distance, adjacency=REPLACE_ONE, source="one")
    planned_query = PlannedQuery(query=query, sensitivity=sensitivity, mechanism=kind(), share=1.0)
    for read in (
        PlannedQuery.event,
        lambda planned_query: planned_query.noise_distribution,
        lambda planned_query: planned_query.release,
    ):
        with pytest.raises(ContractError, match="priced once it is calibrated"):
            read(planned_query)
