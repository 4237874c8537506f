"""`builders`: make plans, files and folders that many tests need alike."""

import attrs

from dpcore import REPLACE_ONE, PrivacyBudget, price
from dpcore.claims.mechanisms.gaussian import Gaussian

from doubles import domain


def price_request(*, epsilon=1.0, delta=1e-5, **fields):
    """The plan of a request; unless told otherwise, `doubles.domain()` under replace-one."""
    defaults = {
        "domain": domain(),
        "adjacency": REPLACE_ONE,
        "budget": PrivacyBudget(epsilon=epsilon, delta=delta),
    }
    return price(**{**defaults, **fields})


def with_queries(guarantee, *queries):
    """The guarantee, with what holds of each query replaced."""
    return attrs.evolve(guarantee, basis=attrs.evolve(guarantee.basis, queries=queries))


def price_learner(learner, **fields):
    """The plan of one learner, with Gaussian noise unless told otherwise."""
    return price_request(**{"learner": learner, "mechanism": Gaussian(), **fields})
