"""The usual mechanism of a query: what releases it where no one names a mechanism.

A run whose spec names none replays with these: a change here needs a new format of specs.
"""

from collections.abc import Callable
from typing import cast

from dpcore.claims.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.claims.mechanisms.discrete_laplace import DiscreteLaplace
from dpcore.claims.mechanisms.exponential import Exponential
from dpcore.claims.mechanisms.gaussian import Gaussian
from dpcore.claims.mechanisms.laplace import Laplace
from dpcore.claims.mechanisms.permute_and_flip import PermuteAndFlip
from dpcore.claims.mechanisms.randomized_response import RandomizedResponse
from dpcore.errors import SpecError
from dpcore.mechanism import AnyMechanism
from dpcore.query import Query
from dpcore.sensitivity import Distance


def usual_mechanism(
    query: Query,
    *,
    has_delta: bool,
    named: Callable[[str], type[AnyMechanism]],
) -> AnyMechanism:
    """Choose Gaussian noise in l2 and Laplace in l1, discrete for one integer; a choice in linf.

    At delta = 0 it is Laplace noise in l2 too. What the query itself names comes first.

    Args:
        has_delta: Whether the budget has a delta.
        named: The mechanism of a name, from a registry: of functions and Gram matrices, which
            plugins release.

    Raises:
        RegistryError: no one admitted provides that mechanism, or its plugin is not installed.
        SpecError: no mechanism is usual for such a query.
    """
    integer = query.values == "integers" and query.real_size == 1
    # What the query names comes first; then its distance, values and the budget decide.
    match query.distance:
        case _ if query.mechanism is not None:
            return cast(AnyMechanism, query.mechanism)
        case Distance.L2 if has_delta and integer:
            return DiscreteGaussian()
        case Distance.L2 if has_delta:
            return Gaussian()
        case Distance.L1 | Distance.L2 if integer:
            return DiscreteLaplace()
        case Distance.L1 | Distance.L2:
            return Laplace()
        case Distance.LINF if has_delta:
            return Exponential()
        case Distance.LINF:
            return PermuteAndFlip()
        case Distance.RKHS if has_delta:
            return named("gaussian_process")()
        case Distance.PSD_ROWS:
            return named("gaussian_sampling")()
        case Distance.HAMMING:
            return RandomizedResponse()
        case _:
            raise SpecError(
                f"the query {query.name!r} is bounded in {query.distance}: name a mechanism"
            )
