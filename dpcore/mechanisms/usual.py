"""The usual mechanism of a query: what releases it where nobody names a mechanism.

A run whose spec names none replays with these: a change here needs a new format of specs.
"""

from typing import cast

from dpcore.distance import Distance
from dpcore.errors import SpecError
from dpcore.mechanism import AnyMechanism
from dpcore.query import Query


def usual_mechanism(
    query: Query, *, has_delta: bool, concentrated: bool | None = None
) -> AnyMechanism:
    """Gaussian noise in l2 and Laplace noise in l1, discrete for one integer; a choice in linf.

    At delta = 0 it is Laplace noise in l2 too. What the query itself names comes first.

    Args:
        has_delta: Whether the budget has a delta.
        concentrated: Whether costs add up by Rényi divergences, as they do unless this is False;
            else only Gaussian and pure events do. Never at delta = 0.

    Raises:
        SpecError: no mechanism is usual for such a query.
    """
    concentrated = has_delta and concentrated is not False
    integer = query.values == "integers" and query.real_size == 1
    # Each is imported where it is taken: most runs name their mechanism.
    match query.distance:
        case _ if query.usual is not None:
            return cast(AnyMechanism, query.usual)
        case Distance.L2 if has_delta and integer and concentrated:
            from dpcore.mechanisms.discrete_gaussian import DiscreteGaussian as Usual
        case Distance.L2 if has_delta:
            from dpcore.mechanisms.gaussian import Gaussian as Usual
        case Distance.L1 | Distance.L2 if integer:
            from dpcore.mechanisms.discrete_laplace import DiscreteLaplace as Usual
        case Distance.L1 | Distance.L2:
            from dpcore.mechanisms.laplace import Laplace as Usual
        case Distance.LINF if concentrated:
            from dpcore.mechanisms.exponential import Exponential as Usual
        case Distance.LINF:
            from dpcore.mechanisms.permute_and_flip import PermuteAndFlip as Usual
        case Distance.RKHS if has_delta:
            from dpcore.mechanisms.gaussian_process import GaussianProcess as Usual
        case Distance.PSD_ROWS:
            from dpcore.mechanisms.gaussian_sampling import GaussianSampling as Usual
        case Distance.HAMMING:
            from dpcore.mechanisms.randomized_response import RandomizedResponse as Usual
        case _:
            raise SpecError(
                f"the query {query.name!r} is bounded in {query.distance}: name a mechanism"
            )
    return Usual()
