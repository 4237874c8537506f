"""The usual mechanism of a query: what releases it where nobody names a mechanism.

A spec that names none is priced anew with these, and its published runs replay with them: a change
here needs a new format of specs.
"""

from typing import cast

from dpcore.distance import Distance
from dpcore.errors import SpecError
from dpcore.mechanism import AnyMechanism
from dpcore.mechanisms.discrete_gaussian import DiscreteGaussian
from dpcore.mechanisms.discrete_laplace import DiscreteLaplace
from dpcore.mechanisms.exponential import Exponential
from dpcore.mechanisms.gaussian import Gaussian
from dpcore.mechanisms.laplace import Laplace
from dpcore.mechanisms.permute_and_flip import PermuteAndFlip
from dpcore.query import Query


def usual_mechanism(
    query: Query, *, has_delta: bool, concentrated: bool | None = None
) -> AnyMechanism:
    """Gaussian noise in l2 and Laplace noise in l1, discrete for one integer; a choice in linf.

    At delta = 0 Laplace noise in l2 too. Functions, Gram matrices and categories have mechanisms of
    their own.

    Args:
        has_delta: Whether the budget has a delta.
        concentrated: Whether costs add up by Rényi divergences; else only Gaussian and pure events
            do. As `has_delta` if None.

    Raises:
        SpecError: no mechanism is usual for such a query.
    """
    if query.usual is not None:
        return cast(AnyMechanism, query.usual)
    concentrated = has_delta and concentrated is not False
    integer = query.values == "integers" and query.real_size == 1
    match query.distance:
        case Distance.L2 if has_delta:
            return DiscreteGaussian() if integer and concentrated else Gaussian()
        case Distance.L1 | Distance.L2:
            return DiscreteLaplace() if integer else Laplace()
        case Distance.LINF:
            return Exponential() if concentrated else PermuteAndFlip()
        case Distance.RKHS if has_delta:
            # Imported where a function is asked for: nothing else needs kernels.
            from dpcore.mechanisms.gaussian_process import GaussianProcess

            return GaussianProcess()
        case Distance.PSD_ROWS:
            from dpcore.mechanisms.gaussian_sampling import GaussianSampling

            return GaussianSampling()
        case Distance.HAMMING:
            from dpcore.mechanisms.randomized_response import RandomizedResponse

            return RandomizedResponse()
    raise SpecError(f"the query {query.name!r} is bounded in {query.distance}: name a mechanism")
